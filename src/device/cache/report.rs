//! Texts about memory: the details of an out-of-memory error, and the summary table.

use super::blocks::State;
use super::stats::{ByPool, Stat};
use super::{Cache, RawMemory};
use crate::base::order;
use std::collections::BTreeMap;

/// The memory of a device when a request failed, in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutOfMemory {
    /// As asked for, before rounding.
    pub requested: usize,
    /// Memory of the device.
    pub total: usize,
    /// What `set_memory_fraction` allows, when it was set.
    pub limit: Option<usize>,
    pub reserved: u64,
    pub allocated: u64,
    /// Reserved for the scratch memory of plans.
    pub arenas: usize,
    /// The largest cached block of any stream; it was too small or belongs to another stream.
    pub largest_free: usize,
    /// Owners of allocated memory, by falling size, then by owner.
    pub held: Vec<Held>,
}

/// What one owner holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    pub owner: u64,
    pub bytes: usize,
    pub blocks: usize,
}

impl<M: RawMemory> Cache<M> {
    /// Counts a failure and describes it. Public for failures that are injected above the cache.
    #[cold]
    pub fn out_of_memory(&mut self, requested: usize) -> OutOfMemory {
        self.stats.num_ooms += 1;
        let arenas = self.blocks.iter().filter(|(_, meta)| meta.state == State::Arena).map(|(_, meta)| meta.size);
        OutOfMemory {
            requested,
            total: self.raw.total(),
            limit: self.limit,
            reserved: self.stats.reserved_bytes[0].current,
            allocated: self.stats.allocated_bytes[0].current,
            arenas: arenas.sum(),
            largest_free: self.largest_free(),
            held: self.held(),
        }
    }

    /// Bytes of the largest cached block of any stream.
    pub fn largest_free(&self) -> usize {
        self.free.iter().flatten().map(|list| list.largest()).max().unwrap_or(0)
    }

    /// Allocated bytes of each owner, by falling size, then by owner.
    pub fn held(&self) -> Vec<Held> {
        let mut by_owner: BTreeMap<u64, Held> = BTreeMap::new();
        for (_, meta) in self.blocks.iter().filter(|(_, meta)| meta.state == State::Held) {
            let entry = by_owner.entry(meta.owner).or_insert(Held { owner: meta.owner, bytes: 0, blocks: 0 });
            entry.bytes += meta.size;
            entry.blocks += 1;
        }
        let mut held: Vec<Held> = by_owner.into_values().collect();
        order::by_key(&mut held, |entry| (std::cmp::Reverse(entry.bytes), entry.owner));
        held
    }

    /// A table of the statistics, 77 columns wide, as PyTorch's `memory_summary`.
    pub fn summary(&self, device: &str) -> String {
        let stats = &self.stats;
        let mut table = Table(String::new());
        table.rule('=');
        table.row(&format!("{:^75}", format!("memory summary of {device}")));
        table.rule('-');
        let counts = format!("out of memory: {}   retries after failure: {}", stats.num_ooms, stats.num_alloc_retries);
        table.row(&format!("{counts:^75}"));
        table.rule('=');
        table.row(" Metric                | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ");
        for (name, by_pool, format) in [
            ("Allocated memory", &stats.allocated_bytes, size as Format),
            ("Active memory", &stats.active_bytes, size),
            ("Requested memory", &stats.requested_bytes, size),
            ("Reserved memory", &stats.reserved_bytes, size),
            ("Non-releasable memory", &stats.inactive_split_bytes, size),
            ("Allocations", &stats.allocation, count),
            ("Active allocs", &stats.active, count),
            ("Reserved segments", &stats.segment, count),
            ("Non-releasable allocs", &stats.inactive_split, count),
        ] {
            table.rule('-');
            table.metric(name, by_pool, format);
        }
        table.rule('=');
        table.0
    }
}

struct Table(String);

/// Formats the first number in the unit that suits the second.
type Format = fn(u64, u64) -> String;

impl Table {
    fn row(&mut self, text: &str) {
        self.0.push('|');
        self.0.push_str(text);
        self.0.push_str("|\n");
    }

    fn rule(&mut self, stroke: char) {
        self.row(&stroke.to_string().repeat(75));
    }

    /// Three rows in the unit of the first, so that they can be compared.
    fn metric(&mut self, name: &str, [all, small, large]: &ByPool, format: Format) {
        let rows = [(name, all), ("      from large pool", large), ("      from small pool", small)];
        for (label, stat) in rows {
            let fields = |stat: &Stat| [stat.current, stat.peak, stat.allocated, stat.freed];
            let cells: Vec<String> = fields(stat).into_iter().zip(fields(all)).map(|(x, of)| format(x, of)).collect();
            self.row(&format!(" {label:<21} | {} ", cells.join(" | ")));
        }
    }
}

fn size(bytes: u64, of: u64) -> String {
    let (mut shift, mut unit) = (0, "B  ");
    for (power, larger) in ["KiB", "MiB", "GiB", "TiB", "PiB"].into_iter().enumerate() {
        if of >> shift < 768 * 1024 {
            break;
        }
        (shift, unit) = (10 * (power + 1), larger);
    }
    format!("{:6} {unit}", bytes >> shift)
}

fn count(number: u64, of: u64) -> String {
    let (divisor, unit) = match of {
        0..750_000 => (1, " "),
        750_000..750_000_000 => (1000, "K"),
        _ => (1_000_000, "M"),
    };
    format!("{:7} {unit} ", number / divisor)
}
