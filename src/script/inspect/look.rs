//! The state of a session: variables, the tensors in a value, memory, streams. Never waits and never runs script
//! code.

use crate::base::float_text::float_text;
use crate::base::order;
use crate::base::span::Origin;
use crate::sched::streams::facts::MemoryFacts;
use crate::script::draw::terminal::Terminal;
use crate::script::error::Error;
use crate::script::language::growing::literal;
use crate::script::language::show;
use crate::script::manual;
use crate::script::manual::Page;
use crate::script::session::handle::Session;
use crate::script::source::LAST;
use crate::script::source::pass::written_name;
use crate::script::values::module::fields;
use crate::script::values::type_names;
use crate::script::values::types::{Cell, Tensor};
use rhai::{Array, Dynamic};

/// Where new tensors are created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The default device: `cpu`, `cuda:1`.
    pub device: String,
    /// The current stream there, if it is not the default one.
    pub stream: Option<u32>,
}

/// A tensor inside a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// The path from the value: empty for the value itself, `weight`, `layers[0].weight`.
    pub path: String,
    pub shape: Vec<usize>,
    pub dtype: String,
    pub device: String,
    pub bytes: usize,
    pub requires_grad: bool,
    /// Whether work that writes it is queued and not known to be done.
    pub pending: bool,
}

/// The elements of a tensor that are shown.
pub struct Table {
    /// Indices of the rows; none of a tensor of one dimension, which has one row.
    pub rows: Vec<usize>,
    pub columns: Vec<usize>,
    pub cells: Vec<Vec<String>>,
}

/// A variable of the top level.
pub struct Variable {
    pub name: String,
    pub constant: bool,
    /// `tensor`, `i64`, `map`, ...
    pub kind: String,
    /// The value in one line.
    pub brief: String,
    /// Its tensors, at most as many as were requested.
    pub tensors: Vec<Placed>,
}

/// Memory of one device, in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceMemory {
    pub device: String,
    pub allocated: usize,
    pub reserved: usize,
    pub peak: usize,
    /// Total memory of the device, if known.
    pub total: Option<usize>,
    /// Memory of tensors by the line that created them, largest first.
    pub held: Vec<Held>,
}

/// Memory of the tensors of one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// `model.rhai:7`, `repl:3`.
    pub made: String,
    /// In whole blocks of the allocator.
    pub bytes: usize,
    pub blocks: usize,
}

/// One stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamReport {
    pub device: String,
    pub stream: u32,
    /// Operations that are queued and not known to be done.
    pub pending: usize,
    /// Whether the device is at work for it, with these or with what cannot fail any more.
    pub is_busy: bool,
}

/// Bound: values that are visited in search of tensors.
const VALUES: usize = 100_000;

/// What a search may still visit.
struct Budget {
    tensors: usize,
    values: usize,
}

/// Bound: nesting of arrays and maps that is searched; a map can contain itself through a `cell`.
const DEPTH: usize = 8;

#[doc(hidden)]
impl Session {
    pub fn placement(&self) -> Placement {
        let rt = &self.host.rt;
        let device = rt.default_device();
        let stream = if device.is_cuda() { rt.current_stream(device).ok() } else { None };
        let stream = stream.map(|stream| stream.name.number).filter(|&number| number != 0);
        Placement { device: device.to_string(), stream }
    }

    /// The terminal that `show` and `plot` draw for; characters without color by default.
    pub fn set_terminal(&self, terminal: Terminal) {
        *self.host.print.terminal.lock() = terminal;
    }

    /// The type of a value, as `type_of` gives it.
    pub fn kind(&self, value: &Dynamic) -> String {
        self.engine.map_type_name(value.type_name()).to_string()
    }

    /// The tensors of a value, at most `most`.
    pub fn tensors_in(&self, value: &Dynamic, most: usize) -> Vec<Placed> {
        let mut found = Vec::new();
        self.collect(value, "", DEPTH, &mut Budget { tensors: most, values: VALUES }, &mut found);
        found
    }

    /// A value in short form: tensors by their shapes, modules as they print. Does not wait.
    pub fn brief(&self, value: &Dynamic) -> String {
        let module = crate::script::nn::outline::module(value);
        module.unwrap_or_else(|| brief(value, DEPTH))
    }

    /// A tensor of one or two dimensions as rows of texts, each with its index; waits for its values.
    pub fn table(&self, value: &Dynamic) -> Result<Option<Table>, Error> {
        let Some(tensor) = value.read_lock::<Tensor>().map(|tensor| tensor.clone()) else { return Ok(None) };
        if !matches!(tensor.shape().len(), 1 | 2) || tensor.numel() == 0 {
            return Ok(None);
        }
        let (mut indices, texts) = show::elements(&self.host, &tensor).map_err(|diag| self.error(diag))?;
        let columns = indices.pop().unwrap_or_default();
        let rows = indices.pop().unwrap_or_default();
        let cells = texts.chunks(columns.len().max(1)).map(<[String]>::to_vec).collect();
        Ok(Some(Table { rows, columns, cells }))
    }

    /// Variables and constants of the top level, in order of their creation.
    pub fn variables(&self, most_tensors: usize) -> Vec<Variable> {
        // Not: what patterns and `_` put there.
        let is_users = |name: &str| name != LAST && name != "args" && !name.starts_with("__");
        let entries = self.scope.iter_raw().filter(|(name, ..)| is_users(name));
        let mut variables: Vec<Variable> = entries
            .map(|(name, constant, value)| {
                let value = value.flatten_clone();
                let tensors = self.tensors_in(&value, most_tensors);
                let (kind, brief) = (self.kind(&value), brief(&value, DEPTH));
                Variable { name: name.to_string(), constant, kind, brief, tensors }
            })
            .collect();
        // Rhai iterates from the latest to the earliest.
        variables.reverse();
        variables
    }

    pub fn memory_report(&self) -> Vec<DeviceMemory> {
        self.host.rt.memory_by_device().into_iter().map(|memory| self.memory(memory)).collect()
    }

    fn memory(&self, memory: MemoryFacts) -> DeviceMemory {
        let MemoryFacts { device, allocated, reserved, peak, total, held } = memory;
        let mut lines: Vec<Held> = Vec::new();
        for (origin, bytes, blocks) in held {
            let made = self.line(origin).unwrap_or_else(|| "a place that is not known".to_string());
            match lines.iter_mut().find(|line| line.made == made) {
                Some(line) => (line.bytes, line.blocks) = (line.bytes + bytes, line.blocks + blocks),
                None => lines.push(Held { made, bytes, blocks }),
            }
        }
        order::by_key(&mut lines, |line| std::cmp::Reverse(line.bytes));
        DeviceMemory { device: device.to_string(), allocated, reserved, peak, total: Some(total), held: lines }
    }

    pub fn streams(&self) -> Vec<StreamReport> {
        let told = |(name, pending, is_busy): (crate::device::race::StreamName, usize, bool)| StreamReport {
            device: name.device.to_string(),
            stream: name.number,
            pending,
            is_busy,
        };
        self.host.rt.pending_by_stream().into_iter().map(told).collect()
    }

    /// Help for a name: a function of the user with its doc comment, or a page of the manual.
    pub fn page(&self, name: &str) -> Option<Page> {
        let forms: Vec<_> = self.functions.iter_functions().filter(|f| written_name(f.name) == name).collect();
        let Some(first) = forms.first() else { return manual::page(name) };
        let words = |line: &&str| line.trim_start_matches('/').trim().to_string();
        let comments: Vec<String> = first.comments.iter().map(words).collect();
        Some(Page {
            name: name.to_string(),
            calls: forms.iter().map(|f| format!("{name}({})", f.params.join(", "))).collect(),
            summary: comments.join("\n"),
            details: String::new(),
            examples: Vec::new(),
        })
    }

    fn collect(&self, value: &Dynamic, path: &str, depth: usize, budget: &mut Budget, found: &mut Vec<Placed>) {
        if found.len() >= budget.tensors || depth == 0 || budget.values == 0 {
            return;
        }
        budget.values -= 1;
        if let Some(tensor) = value.read_lock::<Tensor>() {
            found.push(self.placed(&tensor, path));
        } else if let Some(array) = value.read_lock::<Array>() {
            for (index, item) in array.iter().enumerate() {
                // Cost: long arrays of numbers are common and contain no tensors.
                if !item.is_int() && !item.is_float() {
                    self.collect(item, &format!("{path}[{index}]"), depth - 1, budget, found);
                }
            }
        } else if let Some(map) = fields(value) {
            let dot = if path.is_empty() { "" } else { "." };
            for (name, item) in map.iter() {
                self.collect(item, &format!("{path}{dot}{name}"), depth - 1, budget, found);
            }
        } else if let Some(cell) = value.read_lock::<Cell>().map(|cell| cell.clone()) {
            self.collect(&cell.get(), path, depth - 1, budget, found);
        }
    }

    /// A position as `repl:3` or `model.rhai:7`.
    pub(in crate::script) fn line(&self, origin: Origin) -> Option<String> {
        let at = self.host.sources.read().location(origin.user)?;
        Some(match at.source.starts_with("repl:") && at.line == 1 {
            true => at.source.to_string(),
            false => format!("{}:{}", at.source, at.line),
        })
    }

    fn placed(&self, tensor: &Tensor, path: &str) -> Placed {
        let view = tensor.view();
        Placed {
            path: path.to_string(),
            shape: tensor.shape().to_vec(),
            dtype: tensor.dtype().to_string(),
            device: tensor.device().to_string(),
            bytes: tensor.numel() * tensor.dtype().size_bytes(),
            requires_grad: tensor.requires_grad(),
            pending: self.host.rt.is_pending(&view.buffer),
        }
    }
}

/// Bound: entries of an array or a map that are shown.
const ENTRIES: usize = 16;

fn brief(value: &Dynamic, depth: usize) -> String {
    if depth == 0 {
        return "...".to_string();
    }
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return format!("tensor{:?}", tensor.shape());
    }
    let list = |items: Vec<String>, length: usize| {
        let rest = if length > ENTRIES { ", ..." } else { "" };
        format!("{}{rest}", items.join(", "))
    };
    if let Some(array) = value.read_lock::<Array>() {
        let items = array.iter().take(ENTRIES).map(|item| brief(item, depth - 1)).collect();
        return format!("[{}]", list(items, array.len()));
    }
    if let Some(map) = fields(value) {
        let items = map.iter().take(ENTRIES).map(|(name, item)| format!("{name}: {}", brief(item, depth - 1)));
        return format!("#{{{}}}", list(items.collect(), map.len()));
    }
    if value.is_string() {
        return literal(&value.to_string());
    }
    if value.is_fnptr() {
        return "closure".to_string();
    }
    if value.is_unit() {
        return "()".to_string();
    }
    match value.as_float() {
        Ok(x) => float_text(x),
        Err(_) if value.is_int() || value.is_bool() || value.is_char() => value.to_string(),
        Err(_) => type_names::of_value(value).to_string(),
    }
}
