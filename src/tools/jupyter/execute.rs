//! `execute_request`: a cell as an entry of the REPL's conversation.

use super::display;
use super::history::History;
use super::notebook::{self, Notebook};
use super::outlet::Outlet;
use super::wire::Message;
use crate::script::session::handle::Session;
use crate::tools::command::Settings;
use crate::tools::repl::interrupts::Interrupts;
use crate::tools::repl::{Go, Repl};
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
        self.repl.number = self.count;
        let go = self.repl.take(code);
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
