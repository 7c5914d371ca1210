//! `progress(iterable, #{desc: ".."})`: passes values through and draws a bar on the standard error; plain lines if
//! that is no terminal.
//!
//! Iterates over everything that `open` supports; a type with its own iterator has one line there.

use crate::base::code;
use crate::base::diag::Diag;
use crate::script::bind::native::{self, native};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rhai::{Array, Dynamic};
use std::any::TypeId;
use std::io::{IsTerminal, Write};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

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
            Some((total, items)) => Box::new(Shown { items, meter: Meter::new(progress.desc, total) }),
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

/// A bar, or lines.
struct Meter {
    bar: Option<ProgressBar>,
    desc: String,
    total: Option<usize>,
    begun: bool,
    done: usize,
    /// Tenths of the whole that were printed.
    tenths: usize,
}

impl Meter {
    fn new(desc: String, total: Option<usize>) -> Meter {
        let bar = std::io::stderr().is_terminal().then(|| bar(&desc, total));
        Meter { bar, desc, total, begun: false, done: 0, tenths: 0 }
    }

    fn step(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            return;
        }
        self.done += 1;
        if let Some(bar) = &self.bar {
            bar.inc(1);
            return;
        }
        let Some(total) = self.total.filter(|total| *total > 0) else { return };
        let tenths = self.done * 10 / total;
        if tenths > self.tenths {
            self.tenths = tenths;
            self.line(&format!("{}/{total}", self.done));
        }
    }

    fn end(&mut self) {
        match &self.bar {
            Some(bar) => bar.finish(),
            None if self.total.is_none() => self.line(&self.done.to_string()),
            None => {}
        }
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
        if let Some(bar) = self.bar.as_ref().filter(|bar| !bar.is_finished()) {
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
