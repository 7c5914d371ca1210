//! The numbers of `memory_stats`, with PyTorch's names and meanings.

/// Which segments a block comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Pool {
    Small = 0,
    Large = 1,
}

/// One quantity over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stat {
    pub current: u64,
    pub peak: u64,
    /// Sum of all increases.
    pub allocated: u64,
    /// Sum of all decreases.
    pub freed: u64,
}

impl Stat {
    fn add(&mut self, amount: u64) {
        self.current += amount;
        self.peak = self.peak.max(self.current);
        self.allocated += amount;
    }

    fn sub(&mut self, amount: u64) {
        self.current -= amount;
        self.freed += amount;
    }
}

/// All, small pool, large pool.
pub type ByPool = [Stat; 3];

fn add(stats: &mut ByPool, pool: Pool, amount: u64) {
    stats[0].add(amount);
    stats[1 + pool as usize].add(amount);
}

fn sub(stats: &mut ByPool, pool: Pool, amount: u64) {
    stats[0].sub(amount);
    stats[1 + pool as usize].sub(amount);
}

fn change(stats: &mut ByPool, pool: Pool, amount: isize) {
    match amount {
        0 => (),
        1.. => add(stats, pool, amount as u64),
        _ => sub(stats, pool, amount.unsigned_abs() as u64),
    }
}

/// Bytes are of blocks (rounded) except in `requested_bytes`. An active block is allocated, or freed and
/// waiting for a stream; an inactive split block is free but part of a segment that is in use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    pub allocation: ByPool,
    pub segment: ByPool,
    pub active: ByPool,
    pub inactive_split: ByPool,
    pub allocated_bytes: ByPool,
    pub reserved_bytes: ByPool,
    pub active_bytes: ByPool,
    pub inactive_split_bytes: ByPool,
    pub requested_bytes: ByPool,
    /// Allocations that were retried after cached segments were released.
    pub num_alloc_retries: u64,
    /// Requests that failed also after the retry.
    pub num_ooms: u64,
    /// Segments reserved so far.
    pub num_device_alloc: u64,
    /// Segments released so far.
    pub num_device_free: u64,
    /// Times that all streams were waited for before cached segments were released.
    pub num_sync_all_streams: u64,
}

impl Statistics {
    pub(super) fn hold(&mut self, pool: Pool, size: usize, requested: usize) {
        add(&mut self.allocation, pool, 1);
        add(&mut self.allocated_bytes, pool, size as u64);
        self.activate(pool, size, requested);
    }

    pub(super) fn unhold(&mut self, pool: Pool, size: usize) {
        sub(&mut self.allocation, pool, 1);
        sub(&mut self.allocated_bytes, pool, size as u64);
    }

    pub(super) fn activate(&mut self, pool: Pool, size: usize, requested: usize) {
        add(&mut self.active, pool, 1);
        add(&mut self.active_bytes, pool, size as u64);
        add(&mut self.requested_bytes, pool, requested as u64);
    }

    pub(super) fn deactivate(&mut self, pool: Pool, size: usize, requested: usize) {
        sub(&mut self.active, pool, 1);
        sub(&mut self.active_bytes, pool, size as u64);
        sub(&mut self.requested_bytes, pool, requested as u64);
    }

    pub(super) fn inactive_split(&mut self, pool: Pool, count: isize, bytes: isize) {
        change(&mut self.inactive_split, pool, count);
        change(&mut self.inactive_split_bytes, pool, bytes);
    }

    pub(super) fn reserve(&mut self, pool: Pool, size: usize) {
        add(&mut self.segment, pool, 1);
        add(&mut self.reserved_bytes, pool, size as u64);
        self.num_device_alloc += 1;
    }

    /// A segment has grown or shrunk.
    pub(super) fn change_reserved(&mut self, pool: Pool, bytes: isize) {
        change(&mut self.reserved_bytes, pool, bytes);
    }

    pub(super) fn release(&mut self, pool: Pool, size: usize) {
        sub(&mut self.segment, pool, 1);
        sub(&mut self.reserved_bytes, pool, size as u64);
        self.num_device_free += 1;
    }

    /// Name and value of each quantity, the names without `.all.current` and the like.
    pub fn quantities(&self) -> [(&'static str, &ByPool); 9] {
        [
            ("active", &self.active),
            ("active_bytes", &self.active_bytes),
            ("allocated_bytes", &self.allocated_bytes),
            ("allocation", &self.allocation),
            ("inactive_split", &self.inactive_split),
            ("inactive_split_bytes", &self.inactive_split_bytes),
            ("requested_bytes", &self.requested_bytes),
            ("reserved_bytes", &self.reserved_bytes),
            ("segment", &self.segment),
        ]
    }

    fn quantities_mut(&mut self) -> [&mut ByPool; 9] {
        [
            &mut self.active,
            &mut self.active_bytes,
            &mut self.allocated_bytes,
            &mut self.allocation,
            &mut self.inactive_split,
            &mut self.inactive_split_bytes,
            &mut self.requested_bytes,
            &mut self.reserved_bytes,
            &mut self.segment,
        ]
    }

    pub(super) fn reset_peaks(&mut self) {
        for stat in self.quantities_mut().into_iter().flatten() {
            stat.peak = stat.current;
        }
    }

    pub(super) fn reset_accumulated(&mut self) {
        for stat in self.quantities_mut().into_iter().flatten() {
            (stat.allocated, stat.freed) = (0, 0);
        }
        (self.num_alloc_retries, self.num_ooms, self.num_device_alloc, self.num_device_free) = (0, 0, 0, 0);
        self.num_sync_all_streams = 0;
    }

    /// Every key of PyTorch's `memory_stats`, sorted. `max_split_size` is -1 (every block may be split), so
    /// that nothing is oversize.
    pub fn entries(&self) -> Vec<(String, i64)> {
        let mut entries = Vec::with_capacity(9 * 12 + 14);
        for (name, stats) in self.quantities() {
            for (stat, pool) in stats.iter().zip(["all", "small_pool", "large_pool"]) {
                entries.extend(stat.entries(&format!("{name}.{pool}")));
            }
        }
        for name in ["oversize_allocations", "oversize_segments"] {
            entries.extend(Stat::default().entries(name));
        }
        let counts = [
            ("max_split_size", -1),
            ("num_alloc_retries", self.num_alloc_retries as i64),
            ("num_device_alloc", self.num_device_alloc as i64),
            ("num_device_free", self.num_device_free as i64),
            ("num_ooms", self.num_ooms as i64),
            ("num_sync_all_streams", self.num_sync_all_streams as i64),
        ];
        entries.extend(counts.map(|(name, value)| (name.to_string(), value)));
        entries.sort();
        entries
    }
}

impl Stat {
    /// The four numbers under their names: `name.current` and so on.
    pub fn entries(&self, name: &str) -> [(String, i64); 4] {
        let fields =
            [("current", self.current), ("peak", self.peak), ("allocated", self.allocated), ("freed", self.freed)];
        fields.map(|(field, value)| (format!("{name}.{field}"), value as i64))
    }
}
