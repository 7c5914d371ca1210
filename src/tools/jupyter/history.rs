//! The cells that ran, for `history_request`.

use serde_json::{Value, json};

/// Bound: cells that are kept.
const CELLS: usize = 10_000;

/// A cell: its number, its text, and the text of its value.
struct Cell {
    number: u32,
    input: String,
    output: Option<String>,
}

#[derive(Default)]
pub struct History {
    cells: Vec<Cell>,
}

impl History {
    pub fn note(&mut self, number: u32, input: &str, output: Option<String>) {
        if self.cells.len() == CELLS {
            self.cells.remove(0);
        }
        self.cells.push(Cell { number, input: input.to_string(), output });
    }

    /// The reply: entries `[session, number, input]`, or with `output` `[session, number, [input, output]]`. The session
    /// is always 0, the current one: those before are not kept.
    pub fn reply(&self, request: &Value) -> Value {
        let with_output = request["output"] == true;
        let entry = |cell: &&Cell| match with_output {
            true => json!([0, cell.number, [cell.input, cell.output]]),
            false => json!([0, cell.number, cell.input]),
        };
        let entries: Vec<Value> = self.chosen(request).iter().map(entry).collect();
        json!({"status": "ok", "history": entries})
    }

    fn chosen(&self, request: &Value) -> Vec<&Cell> {
        let number = |name: &str| request[name].as_i64();
        let mut found: Vec<&Cell> = match request["hist_access_type"].as_str().unwrap_or("tail") {
            "range" => {
                let start = number("start").unwrap_or(0);
                let stop = number("stop").unwrap_or(i64::MAX);
                let here = number("session").unwrap_or(0) == 0;
                self.cells.iter().filter(|cell| here && (start..stop).contains(&i64::from(cell.number))).collect()
            }
            "search" => {
                let pattern: Vec<char> = request["pattern"].as_str().unwrap_or("*").chars().collect();
                let fits = |cell: &&Cell| matches(&pattern, &cell.input.chars().collect::<Vec<_>>());
                self.cells.iter().filter(fits).collect()
            }
            _ => self.cells.iter().collect(),
        };
        if request["unique"] == true {
            // The latest of equal ones stays.
            let all = std::mem::take(&mut found);
            let last = |at: usize| all[at + 1..].iter().all(|later| later.input != all[at].input);
            found = (0..all.len()).filter(|&at| last(at)).map(|at| all[at]).collect();
        }
        if let Some(most) = number("n").filter(|_| request["hist_access_type"] != "range") {
            let most = usize::try_from(most).unwrap_or(0);
            found.drain(..found.len().saturating_sub(most));
        }
        found
    }
}

/// Whether a text fits a pattern in which `*` stands for any text and `?` for one character.
fn matches(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut from) = (0, 0);
    // The last star, and how far the text before it reaches.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(&c) if c == '?' || c == text[from] => (at, from) = (at + 1, from + 1),
            _ => {
                let Some((place, reach)) = star else { return false };
                star = Some((place, reach + 1));
                (at, from) = (place + 1, reach + 1);
            }
        }
    }
    pattern[at..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_is_cut_searched_and_ranged() {
        let mut history = History::default();
        for (number, text) in (1..).zip(["let x = 1", "x + 1", "print(x)", "x + 1"]) {
            history.note(number, text, (number == 2).then(|| "2".to_string()));
        }
        let numbers = |request: Value| -> Vec<u64> {
            let reply = history.reply(&request);
            let entries = reply["history"].as_array().expect("a list");
            entries.iter().map(|entry| entry[1].as_u64().expect("a number")).collect()
        };
        assert_eq!(numbers(json!({"hist_access_type": "tail", "n": 2})), [3, 4]);
        assert_eq!(numbers(json!({"hist_access_type": "tail", "n": 9})), [1, 2, 3, 4]);
        assert_eq!(numbers(json!({"hist_access_type": "range", "session": 0, "start": 2, "stop": 4})), [2, 3]);
        assert_eq!(numbers(json!({"hist_access_type": "range", "session": -1})), [0; 0]);
        assert_eq!(numbers(json!({"hist_access_type": "search", "pattern": "*x*", "n": 9, "unique": true})), [1, 3, 4]);
        assert_eq!(numbers(json!({"hist_access_type": "search", "pattern": "x ? 1", "n": 1})), [4]);
        let with_output = history.reply(&json!({"hist_access_type": "range", "start": 2, "stop": 3, "output": true}));
        assert_eq!(with_output["history"], json!([[0, 2, ["x + 1", "2"]]]));
    }

    #[test]
    fn patterns_have_stars_and_marks() {
        let fits = |pattern: &str, text: &str| {
            matches(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>())
        };
        for (pattern, text) in
            [("*", ""), ("a*c", "abbc"), ("*b?", "abbc"), ("é?", "éx"), ("**", "x"), ("a*b*c", "aXbXbc")]
        {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "x"), ("?", ""), ("a*c", "abcd"), ("*x", "xy")] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }
}
