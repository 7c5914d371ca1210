//! The face of a conversation whose entries are the cells of a notebook.

use super::display;
use super::outlet::{Outlet, Stream};
use crate::base::code;
use crate::script::Dynamic;
use crate::script::error::Error;
use crate::script::session::handle::Session;
use crate::tools::command::Settings;
use crate::tools::render::{Coloring, render_error};
use crate::tools::repl::face::Face;
use crate::tools::run::{builder, internal};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

pub struct Notebook {
    outlet: Arc<Outlet>,
    /// The number of the cell.
    number: Cell<u32>,
    /// The first error of the cell, as replies have it.
    failure: RefCell<Option<Value>>,
    /// The text of its value.
    shown: RefCell<Option<String>>,
}

impl Notebook {
    pub fn new(outlet: Arc<Outlet>) -> Notebook {
        Notebook { outlet, number: Cell::new(0), failure: RefCell::default(), shown: RefCell::default() }
    }

    /// A cell begins.
    pub fn begin(&self, number: u32) {
        self.number.set(number);
        self.failure.take();
        self.shown.take();
    }

    pub fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// What became of the cell: its first error, or the text of its value.
    pub fn end(&self) -> (Option<Value>, Option<String>) {
        (self.failure.take(), self.shown.take())
    }

    fn fail(&self, failure: Value) {
        self.outlet.show("error", failure.clone());
        self.failure.borrow_mut().get_or_insert(failure);
    }
}

/// An error as replies and broadcasts have it.
pub fn failure(error: &Error) -> Value {
    told(&error.code(), error.message(), &render_error(error, Coloring::On))
}

/// The same of a panic.
pub fn panicked() -> Value {
    told(&code::INTERNAL.to_string(), "an internal error", &internal(Coloring::On))
}

fn told(name: &str, message: &str, text: &str) -> Value {
    json!({"ename": name, "evalue": message, "traceback": text.lines().collect::<Vec<_>>()})
}

impl Face for Notebook {
    fn session(&self, settings: &Settings) -> Result<Session, Error> {
        let [prints, warns, draws, moves] = [(); 4].map(|()| self.outlet.clone());
        let picture = move |raster: &_, text: &str| match display::picture(raster, text) {
            Ok(bundle) => draws.show("display_data", bundle),
            Err(_) => draws.write(Stream::Output, &format!("{text}\n")),
        };
        builder(settings)
            .module_root(".")
            .output(move |line| prints.write(Stream::Output, &format!("{line}\n")))
            .on_warning(move |warning| {
                warns.show("display_data", json!({"data": display::diagnostic(warning), "metadata": {}}));
            })
            .progress_output(move |text| moves.write(Stream::Errors, text))
            .pictures(picture)
            .entry_names(|number| format!("cell [{number}]"))
            .build()
    }

    fn say(&self, text: &str) {
        self.outlet.write(Stream::Output, &format!("{}\n", text.trim_end_matches('\n')));
    }

    fn value(&self, session: &Session, value: &Dynamic) -> Result<(), Error> {
        let Some(data) = display::value(session, value)? else { return Ok(()) };
        *self.shown.borrow_mut() = data["text/plain"].as_str().map(str::to_string);
        let content = json!({"execution_count": self.number.get(), "data": data, "metadata": {}});
        self.outlet.show("execute_result", content);
        Ok(())
    }

    fn error(&self, error: &Error) {
        self.fail(failure(error));
    }

    fn internal(&self) {
        self.fail(panicked());
    }

    fn refuse(&self, message: &str, help: &str) {
        let text = format!("{}: {message}\n   = help: {help}", Coloring::On.wrap("31", "error"));
        self.fail(told("error", message, &text));
    }

    fn color(&self) -> Coloring {
        Coloring::On
    }
}
