//! `execute_request`: a cell as an entry of the REPL's conversation.

use super::display;
use super::history::History;
use super::notebook::{self, Notebook};
use super::outlet::Outlet;
use super::wire::Message;
use crate::script::session::handle::Session;
use crate::tools::command::Settings;
use crate::tools::repl::interrupts::Interrupts;
use crate::tools::repl::{Go, Repl, is_finished};
use crate::tools::run::{Failure, guarded};
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

pub struct Executor {
    repl: Repl,
    face: Rc<Notebook>,
    outlet: Arc<Outlet>,
    /// The number of the last cell.
    count: u32,
    pub history: History,
}

impl Executor {
    pub fn new(settings: Settings, outlet: Arc<Outlet>) -> Result<Executor, Failure> {
        let face = Rc::new(Notebook::new(outlet.clone()));
        let repl = Repl::new(settings, face.clone())?;
        Ok(Executor { repl, face, outlet, count: 0, history: History::default() })
    }

    pub fn interrupts(&self) -> Arc<Interrupts> {
        self.repl.interrupts.clone()
    }

    pub fn session(&self) -> Rc<RefCell<Session>> {
        self.repl.session.clone()
    }

    /// Runs a cell, broadcasts what it shows, and returns the content of the reply.
    pub fn execute(&mut self, request: &Message) -> Value {
        let content = &request.content;
        let code = content["code"].as_str().unwrap_or_default();
        let silent = content["silent"] == true;
        let counted = !silent && content["store_history"] != false && !code.trim().is_empty();
        self.count += u32::from(counted);
        self.outlet.begin(request, silent);
        self.outlet.show("execute_input", json!({"code": code, "execution_count": self.count}));
        self.face.begin(self.count);
        let go = self.take(code);
        let (failure, shown) = self.face.end();
        if counted {
            self.history.note(self.count, code, shown);
        }
        self.outlet.flush();
        if let Some(mut reply) = failure {
            reply["status"] = json!("error");
            reply["execution_count"] = json!(self.count);
            reply["user_expressions"] = json!({});
            reply["payload"] = json!([]);
            return reply;
        }
        // A cell that leaves asks the frontend to end; the kernel itself ends when it is told to.
        let leaves = json!([{"source": "ask_exit", "keepkernel": false}]);
        json!({
            "status": "ok",
            "execution_count": self.count,
            "user_expressions": self.expressions(&content["user_expressions"]),
            "payload": if go == Go::Leave { leaves } else { json!([]) },
        })
    }

    /// The entries of a cell, up to the first that fails or leaves.
    fn take(&mut self, code: &str) -> Go {
        for entry in entries(code, |text| is_finished(&self.repl.session.borrow(), text)) {
            self.repl.number = self.count;
            if self.repl.take(&entry) == Go::Leave {
                return Go::Leave;
            }
            if self.face.has_failed() {
                break;
            }
        }
        Go::On
    }

    /// The values of expressions, each with its own error.
    fn expressions(&self, asked: &Value) -> Value {
        let evaluated = |text: &str| match guarded(|| {
            let mut session = self.repl.session.borrow_mut();
            let value = session.value_of(self.count, text)?;
            display::value(&session, &value)
        }) {
            Ok(data) => json!({"status": "ok", "data": data.unwrap_or(json!({})), "metadata": {}}),
            Err(failure) => {
                let mut told = match failure {
                    Failure::Script(error) => notebook::failure(&error),
                    Failure::Panic(_) => notebook::panicked(),
                };
                told["status"] = json!("error");
                told
            }
        };
        let all = asked.as_object().into_iter().flatten();
        let values = all.map(|(name, text)| (name.clone(), evaluated(text.as_str().unwrap_or_default())));
        Value::Object(values.collect::<Map<_, _>>())
    }
}

/// The entries of a cell: a line that begins with a colon is a command, unless it belongs to a text that is not finished
/// before it. Each entry has as many line feeds before it as it has in the cell, so that errors name the cell's lines.
fn entries(code: &str, is_finished: impl Fn(&str) -> bool) -> Vec<String> {
    let mut entries = Vec::new();
    let mut text = String::new();
    for (index, line) in code.lines().enumerate() {
        let command = line.trim_start().starts_with(':') && (text.trim().is_empty() || is_finished(text.trim_end()));
        if command {
            entries.push(std::mem::replace(&mut text, "\n".repeat(index + 1)));
            entries.push(line.to_string());
        } else {
            text += line;
            text.push('\n');
        }
    }
    entries.push(text);
    entries.retain(|entry| !entry.trim().is_empty());
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_lines_of_their_own() {
        let session = Session::builder().build().expect("a session");
        let parts = |code: &str| entries(code, |text| is_finished(&session, text));
        assert_eq!(parts("\nlet x = 1;\nx"), ["\nlet x = 1;\nx\n"]);
        assert_eq!(parts(":vars\n:mem\n\n1"), [":vars", ":mem", "\n\n\n1\n"]);
        assert_eq!(parts("let x = 1\n  :time x\nx"), ["let x = 1\n", "  :time x", "\n\nx\n"]);
        assert_eq!(parts("let t = `a\n:b`;"), ["let t = `a\n:b`;\n"]);
        assert_eq!(parts(" \n"), Vec::<String>::new());
    }
}
