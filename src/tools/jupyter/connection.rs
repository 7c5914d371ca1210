//! The connection file: where a kernel listens, and the key that signs its messages. Jupyter writes it and starts the
//! kernel with its name.

use super::sockets::Address;
use super::wire::Key;
use crate::base::code;
use crate::base::diag::Diag;
use crate::files::input::os_reason;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What the file says.
#[derive(Debug)]
pub struct Connection {
    pub shell: Address,
    pub iopub: Address,
    pub stdin: Address,
    pub control: Address,
    pub heartbeat: Address,
    pub key: Key,
}

/// Reads a connection file.
///
/// # Errors
/// E0601 for one that cannot be read, E0602 for one that is none.
pub fn read(path: &Path) -> Result<Connection, Box<Diag>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let message = format!("cannot read the connection file {}: {}", path.display(), os_reason(&error));
        Diag::error(code::FILE, message).help(
            "Jupyter writes it and starts the kernel with it: run `tscript jupyter install`, and choose tscript in Jupyter",
        )
    })?;
    parse(&text).map_err(|why| {
        Diag::error(code::FILE_FORMAT, format!("{} is no connection file of Jupyter: {why}", path.display()))
    })
}

fn parse(text: &str) -> Result<Connection, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let word = |name: &str| file[name].as_str();
    let ip = word("ip").ok_or("it has no `ip`")?;
    let transport = word("transport").unwrap_or("tcp");
    let address = |name: &str| {
        let port = file[name].as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or_else(|| format!("its `{name}` is no port"))?;
        match transport {
            "tcp" => Ok(Address::Tcp(if ip == "*" { "0.0.0.0" } else { ip }.to_string(), port)),
            "ipc" if cfg!(unix) => Ok(Address::Ipc(PathBuf::from(format!("{ip}-{port}")))),
            other => Err(format!("its transport is `{other}`, and tscript knows `tcp` and `ipc`")),
        }
    };
    let key = word("key").unwrap_or_default();
    match word("signature_scheme").unwrap_or("hmac-sha256") {
        "hmac-sha256" => {}
        _ if key.is_empty() => {}
        other => return Err(format!("it signs by `{other}`, and tscript knows `hmac-sha256`")),
    }
    Ok(Connection {
        shell: address("shell_port")?,
        iopub: address("iopub_port")?,
        stdin: address("stdin_port")?,
        control: address("control_port")?,
        heartbeat: address("hb_port")?,
        key: Key::new(key),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5,
        "ip": "127.0.0.1", "key": "secret", "transport": "tcp", "signature_scheme": "hmac-sha256", "kernel_name": ""}"#;

    #[test]
    fn a_connection_file_names_five_addresses() {
        let connection = parse(FILE).expect("a connection");
        assert_eq!(connection.heartbeat, Address::Tcp("127.0.0.1".into(), 5));
        let everywhere = parse(&FILE.replace("127.0.0.1", "*")).expect("a connection");
        assert_eq!(everywhere.shell, Address::Tcp("0.0.0.0".into(), 1));
        let local = parse(&FILE.replace("\"tcp\"", "\"ipc\"").replace("127.0.0.1", "/tmp/k"));
        assert_eq!(local.expect("a connection").iopub, Address::Ipc("/tmp/k-2".into()));
    }

    #[test]
    fn what_is_no_connection_file_says_why() {
        for (from, to, why) in [
            ("{", "[", "expected"),
            ("\"hb_port\": 5", "\"hb_port\": 70000", "`hb_port` is no port"),
            ("\"hb_port\": 5,", "", "`hb_port` is no port"),
            ("\"ip\"", "\"pi\"", "no `ip`"),
            ("\"tcp\"", "\"udp\"", "`udp`"),
            ("hmac-sha256", "hmac-md5", "`hmac-md5`"),
        ] {
            let told = parse(&FILE.replacen(from, to, 1)).expect_err(to);
            assert!(told.contains(why), "{told}");
        }
        let missing = read(Path::new("/no/such/file")).expect_err("missing");
        assert_eq!(missing.code, code::FILE);
    }
}
