//! Messages as they travel: a list of frames, of which four are JSON, signed together.

use hmac_sha256::HMAC;
use serde_json::{Value, json};

/// Between the frames of the way that a message came and those of the message.
const DELIMITER: &[u8] = b"<IDS|MSG>";

/// What signs messages; an empty key signs none.
#[derive(Clone, Debug)]
pub struct Key(Vec<u8>);

/// A message of the protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Frames before the message: of a request, the way back; of a broadcast, its topic.
    pub route: Vec<Vec<u8>>,
    pub header: Value,
    pub parent: Value,
    pub metadata: Value,
    pub content: Value,
}

impl Key {
    pub fn new(key: &str) -> Key {
        Key(key.as_bytes().to_vec())
    }

    fn mac(&self, parts: &[impl AsRef<[u8]>]) -> HMAC {
        let mut mac = HMAC::new(&self.0);
        parts.iter().for_each(|part| mac.update(part));
        mac
    }

    fn sign(&self, parts: &[impl AsRef<[u8]>]) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        self.mac(parts).finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether a signature is right; takes as long for a wrong one.
    fn accepts(&self, parts: &[impl AsRef<[u8]>], signature: &[u8]) -> bool {
        self.0.is_empty() || from_hex(signature).is_some_and(|expected| self.mac(parts).finalize_verify(&expected))
    }
}

fn from_hex(text: &[u8]) -> Option<[u8; 32]> {
    let digit = |byte: &u8| (*byte as char).to_digit(16);
    let mut out = [0; 32];
    if text.len() != 2 * out.len() {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(text.chunks(2)) {
        *byte = (digit(&pair[0])? << 4 | digit(&pair[1])?) as u8;
    }
    Some(out)
}

impl Message {
    /// `execute_request`.
    pub fn kind(&self) -> &str {
        self.header["msg_type"].as_str().unwrap_or_default()
    }

    /// Reads the frames of a message; buffers after the content are passed over, since no request has any.
    pub fn decode(frames: &[Vec<u8>], key: &Key) -> Result<Message, String> {
        let at = frames.iter().position(|frame| frame == DELIMITER).ok_or("it has no delimiter")?;
        let [signature, parts @ ..] = &frames[at + 1..] else { return Err("it has no signature".to_string()) };
        let parts = parts.get(..4).ok_or("it has too few frames")?;
        if !key.accepts(parts, signature) {
            return Err("its signature is wrong".to_string());
        }
        let read = |index: usize, name: &str| match serde_json::from_slice::<Value>(&parts[index]) {
            Ok(value) if value.is_object() => Ok(value),
            Ok(_) => Err(format!("its {name} is no object")),
            Err(error) => Err(format!("its {name} is no JSON: {error}")),
        };
        let header = read(0, "header")?;
        if !header["msg_type"].is_string() {
            return Err("its header has no type".to_string());
        }
        Ok(Message {
            route: frames[..at].to_vec(),
            header,
            parent: read(1, "parent header").unwrap_or_else(|_| json!({})),
            metadata: read(2, "metadata")?,
            content: read(3, "content")?,
        })
    }

    /// The frames of a message, signed.
    pub fn encode(&self, key: &Key) -> Vec<Vec<u8>> {
        let parts = [&self.header, &self.parent, &self.metadata, &self.content].map(|part| part.to_string());
        let mut frames = self.route.clone();
        frames.push(DELIMITER.to_vec());
        frames.push(key.sign(&parts).into_bytes());
        frames.extend(parts.map(String::into_bytes));
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        Message {
            route: vec![b"\0peer".to_vec()],
            header: json!({"msg_type": "kernel_info_request", "msg_id": "1"}),
            parent: json!({}),
            metadata: json!({"é": [1, null]}),
            content: json!({"code": "1 + 1"}),
        }
    }

    #[test]
    fn signatures_are_those_of_rfc_4231() {
        // Test case 2, its data in two parts.
        let signature = Key::new("Jefe").sign(&["what do ya want ", "for nothing?"]);
        assert_eq!(signature, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        assert_eq!(Key::new("").sign(&["x"]), "");
    }

    #[test]
    fn a_message_goes_and_comes() {
        for key in [Key::new("secret"), Key::new("")] {
            let frames = message().encode(&key);
            assert_eq!(frames.len(), 7);
            assert_eq!(Message::decode(&frames, &key), Ok(message()));
            // Buffers follow.
            assert_eq!(Message::decode(&[frames, vec![vec![1, 2]]].concat(), &key), Ok(message()));
        }
    }

    #[test]
    fn damaged_messages_are_refused() {
        let key = Key::new("secret");
        let frames = message().encode(&key);
        let refused = |frames: &[Vec<u8>]| Message::decode(frames, &key).expect_err("damaged");
        for length in 0..frames.len() {
            refused(&frames[..length]);
        }
        for (index, frame) in frames.iter().enumerate().skip(2) {
            for at in 0..frame.len() {
                let mut changed = frames.clone();
                changed[index][at] ^= 1;
                assert_eq!(refused(&changed), "its signature is wrong");
            }
        }
        let signed = |parts: [&str; 4]| {
            let mut frames = vec![DELIMITER.to_vec(), key.sign(&parts).into_bytes()];
            frames.extend(parts.map(|part| part.as_bytes().to_vec()));
            frames
        };
        let header = r#"{"msg_type": "x"}"#;
        assert!(refused(&signed([header, "{}", "{}", "{"])).contains("content is no JSON"));
        assert!(refused(&signed([header, "{}", "[]", "{}"])).contains("metadata is no object"));
        assert!(refused(&signed(["{}", "{}", "{}", "{}"])).contains("no type"));
        assert!(refused(&signed(["\u{0}", "{}", "{}", "{}"])).contains("header is no JSON"));
    }
}
