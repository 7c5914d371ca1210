//! `progress(iterable, #{desc: ".."})`: passes values through and draws a bar on the standard error; plain lines if
//! that is no terminal. Elsewhere, as in a notebook, one line that is written anew.
//!
//! Iterates over everything that `open` supports; a type with its own iterator has one line there.

use crate::base::code;
use crate::base::diag::Diag;
use crate::script::bind::native::{self, native};
use crate::script::bind::rows::Natives;
use crate::script::host::{Host, Output};
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rhai::{Array, Dynamic};
use std::any::TypeId;
use std::io::{IsTerminal, Write};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An iterator of values; fallible, as a loader is.
pub type Items = Box<dyn Iterator<Item = Native>>;

/// The result of `progress`, before the loop begins.
#[derive(Clone)]
pub struct Progress {
    over: Dynamic,
    desc: String,
}

/// The values of an iterable, and their count if known; none if a `for` loop could not iterate over it.
pub fn open(host: &Arc<Host>, over: Dynamic) -> Option<(Option<usize>, Items)> {
    fn counted(items: impl ExactSizeIterator<Item = Dynamic> + 'static) -> Option<(Option<usize>, Items)> {
        Some((Some(items.len()), Box::new(items.map(Ok))))
    }
    let over = over.flatten();
    if let Some(array) = over.read_lock::<Array>() {
        return counted(array.clone().into_iter());
    }
    if let Some(range) = over.read_lock::<Range<i64>>() {
        let (range, n) = (range.clone(), count(range.start, range.end));
        return Some((n, Box::new(range.map(|i| Ok(Dynamic::from(i))))));
    }
    if let Some(range) = over.read_lock::<RangeInclusive<i64>>() {
        let n = count(*range.start(), range.end().saturating_add(1));
        return Some((n, Box::new(range.clone().map(|i| Ok(Dynamic::from(i))))));
    }
    if let Some(loader) = over.read_lock::<crate::script::data::loader::Loader>() {
        return Some((Some(loader.batch_count()), Box::new(loader.clone().into_iter())));
    }
    if let Some(dataset) = over.read_lock::<crate::script::data::dataset::Dataset>() {
        return Some((
            Some(dataset.row_count()),
            Box::new(crate::script::data::dataset::iterate(host, dataset.clone())),
        ));
    }
    if let Some(tensor) = over.read_lock::<Tensor>() {
        let n = tensor.shape().first().copied();
        return Some((n, Box::new(crate::script::bind::iterate::rows(host, tensor.clone()))));
    }
    None
}

fn count(start: i64, end: i64) -> Option<usize> {
    usize::try_from(end.saturating_sub(start).max(0)).ok()
}

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    native(module, host, "progress", move |_, _, [over, desc]| {
        let (over, desc) = (over.flatten_clone(), native::text("desc", desc)?);
        if open(&shared, over.clone()).is_none() {
            let text = format!(
                "`progress` iterates over arrays, ranges, tensors, datasets and loaders, not {}",
                type_names::of_value(&over)
            );
            return Err(Diag::error(code::ARGUMENT_TYPE, text));
        }
        Ok(Dynamic::from(Progress { over, desc }))
    });
    let shared = host.clone();
    crate::script::values::panics::place_iterator(&mut module.module, TypeId::of::<Progress>(), move |value| {
        let Some(progress) = value.try_cast::<Progress>() else { return Box::new(std::iter::empty()) };
        match open(&shared, progress.over) {
            Some((_, items)) if !shared.shows_progress => items,
            Some((total, items)) => {
                let elsewhere = shared.progress_output.read().clone();
                Box::new(Shown { items, meter: Meter::new(progress.desc, total, elsewhere) })
            }
            None => Box::new(std::iter::empty()),
        }
    });
}

/// An iterator that shows its progress.
struct Shown {
    items: Items,
    meter: Meter,
}

impl Iterator for Shown {
    type Item = Native;

    fn next(&mut self) -> Option<Native> {
        // The previous value is done when the next is requested.
        self.meter.step();
        let item = self.items.next();
        if item.is_none() {
            self.meter.end();
        }
        item
    }
}

/// Time between two texts of a line that is written anew.
const ANEW: Duration = Duration::from_millis(100);

/// How progress is drawn.
enum Drawn {
    Bar(ProgressBar),
    /// A line for each tenth.
    Lines,
    /// One line that is written anew, and when it was.
    Anew(Arc<Output>, Option<Instant>),
}

struct Meter {
    drawn: Drawn,
    desc: String,
    total: Option<usize>,
    begun: bool,
    done: usize,
    /// Tenths of the whole that were printed.
    tenths: usize,
}

impl Meter {
    fn new(desc: String, total: Option<usize>, elsewhere: Option<Arc<Output>>) -> Meter {
        let drawn = match elsewhere {
            Some(output) => Drawn::Anew(output, None),
            None if std::io::stderr().is_terminal() => Drawn::Bar(bar(&desc, total)),
            None => Drawn::Lines,
        };
        Meter { drawn, desc, total, begun: false, done: 0, tenths: 0 }
    }

    fn step(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            return;
        }
        self.done += 1;
        match &mut self.drawn {
            Drawn::Bar(bar) => return bar.inc(1),
            Drawn::Anew(_, last) if last.is_some_and(|last| last.elapsed() < ANEW) => return,
            Drawn::Anew(_, last) => {
                *last = Some(Instant::now());
                return self.write_anew("");
            }
            Drawn::Lines => {}
        }
        let Some(total) = self.total.filter(|total| *total > 0) else { return };
        let tenths = self.done * 10 / total;
        if tenths > self.tenths {
            self.tenths = tenths;
            self.line(&format!("{}/{total}", self.done));
        }
    }

    fn end(&mut self) {
        match &self.drawn {
            Drawn::Bar(bar) => bar.finish(),
            Drawn::Anew(..) => self.write_anew("\n"),
            Drawn::Lines if self.total.is_none() => self.line(&self.done.to_string()),
            Drawn::Lines => {}
        }
    }

    /// `train  40% 400/1000`.
    fn write_anew(&self, end: &str) {
        let Drawn::Anew(output, _) = &self.drawn else { return };
        let space = if self.desc.is_empty() { "" } else { " " };
        let count = match self.total {
            Some(total) => format!("{:>3}% {}/{total}", self.done * 100 / total.max(1), self.done),
            None => self.done.to_string(),
        };
        output(&format!("\r{}{space}{count}{end}", self.desc));
    }

    fn line(&self, count: &str) {
        let space = if self.desc.is_empty() { "" } else { " " };
        // An error of writing progress is ignored.
        let _ = writeln!(std::io::stderr().lock(), "{}{space}{count}", self.desc);
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        // A loop that was left early leaves its bar unchanged.
        if let Drawn::Bar(bar) = &self.drawn
            && !bar.is_finished()
        {
            bar.abandon();
        }
    }
}

fn bar(desc: &str, total: Option<usize>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => {
            (ProgressBar::new(total as u64), "{msg}{percent:>3}% {bar:30} {pos}/{len} [{elapsed}<{eta}, {per_sec}]")
        }
        None => (ProgressBar::no_length(), "{msg}{spinner} {pos} [{elapsed}, {per_sec}]"),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(if desc.is_empty() { String::new() } else { format!("{desc} ") });
    bar
}
