//! The cache against a simple model, on random traces, and PyTorch's rules one by one.

use super::*;
use std::collections::BTreeMap;

/// Raw memory that returns new addresses and can be set to fail.
struct Fake {
    total: usize,
    used: usize,
    next: u64,
    live: BTreeMap<u64, usize>,
    /// Requests so far, and which of them fails.
    requests: usize,
    fails: Option<usize>,
    /// Maximal bytes of a segment that grows; 0: segments do not grow.
    room: usize,
}

fn fake(total: usize) -> Fake {
    Fake { total, used: 0, next: 1 << 30, live: BTreeMap::new(), requests: 0, fails: None, room: 0 }
}

fn growing(total: usize, room: usize) -> Fake {
    Fake { room, ..fake(total) }
}

impl RawMemory for Fake {
    fn reserve(&mut self, bytes: usize) -> Option<u64> {
        self.requests += 1;
        if self.fails == Some(self.requests) || self.used + bytes > self.total {
            return None;
        }
        let address = self.next;
        self.next += bytes.max(self.room) as u64 + ROUND_SEGMENT as u64;
        self.live.insert(address, bytes);
        self.used += bytes;
        Some(address)
    }

    fn release(&mut self, address: u64, bytes: usize) {
        assert_eq!(self.live.remove(&address), Some(bytes), "only whole segments go back");
        self.used -= bytes;
    }

    fn total(&self) -> usize {
        self.total
    }

    fn grows(&self) -> bool {
        self.room > 0
    }

    fn grow(&mut self, address: u64, bytes: usize, more: usize) -> bool {
        self.requests += 1;
        assert!(more > 0 && more.is_multiple_of(ROUND_SEGMENT));
        if self.fails == Some(self.requests) || self.used + more > self.total || bytes + more > self.room {
            return false;
        }
        assert_eq!(self.live.insert(address, bytes + more), Some(bytes), "only what is there grows");
        self.used += more;
        true
    }

    fn shrink(&mut self, address: u64, bytes: usize, max_bytes: usize) -> usize {
        let less = max_bytes / ROUND_SEGMENT * ROUND_SEGMENT;
        assert!(less < bytes, "something is left");
        assert_eq!(self.live.insert(address, bytes - less), Some(bytes), "only what is there shrinks");
        self.used -= less;
        less
    }
}

const MIB: usize = 1 << 20;

/// As `test_memory_stats` of PyTorch: every current number is a sum over the snapshot.
fn check<M: RawMemory>(cache: &Cache<M>) {
    let mut sums: BTreeMap<(&str, usize), u64> = BTreeMap::new();
    let mut last_end = 0;
    for segment in cache.snapshot() {
        assert!(segment.address >= last_end, "segments overlap");
        let pool = 1 + segment.pool as usize;
        let mut add = |name: &'static str, amount: usize| {
            *sums.entry((name, 0)).or_default() += amount as u64;
            *sums.entry((name, pool)).or_default() += amount as u64;
        };
        add("segment", 1);
        add("reserved_bytes", segment.total_size);
        add("allocated_bytes", segment.allocated_size);
        add("active_bytes", segment.active_size);
        add("requested_bytes", segment.requested_size);
        let mut at = segment.address;
        let mut before_free = false;
        for block in &segment.blocks {
            assert_eq!(block.address, at, "blocks lie without gaps");
            assert_eq!(block.size % ROUND, 0);
            at += block.size as u64;
            match block.state {
                BlockState::ActiveAllocated => {
                    add("allocation", 1);
                    add("active", 1);
                }
                BlockState::ActiveAwaitingFree => add("active", 1),
                BlockState::Inactive if segment.blocks.len() > 1 => {
                    add("inactive_split", 1);
                    add("inactive_split_bytes", block.size);
                }
                BlockState::Inactive => (),
            }
            let free = block.state == BlockState::Inactive && block.owner == 0;
            assert!(!(free && before_free), "free neighbors are merged");
            before_free = free;
        }
        last_end = at;
    }
    for (name, stats) in cache.statistics().quantities() {
        for (pool, stat) in stats.iter().enumerate() {
            assert_eq!(stat.current, sums.get(&(name, pool)).copied().unwrap_or(0), "{name} of pool {pool}");
            assert!(stat.peak >= stat.current);
            assert_eq!(stat.allocated - stat.freed, stat.current, "{name} of pool {pool}");
        }
    }
}

/// A small generator, so that a failing trace can be run again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n
    }

    fn size(&mut self) -> usize {
        match self.below(8) {
            0 => 0,
            1..4 => 1 + self.below(5000),
            4 | 5 => 1 + self.below(MIB + 600),
            6 => MIB + self.below(9 * MIB),
            _ => 9 * MIB + self.below(20 * MIB),
        }
    }
}

struct Held {
    block: Block,
    stream: u32,
    uses: Vec<(u32, u64)>,
}

/// Blocks in a model that knows nothing but intervals, and when each may be handed out again.
#[derive(Default)]
struct Model {
    held: Vec<Held>,
    /// Freed, by whom it is still used.
    awaiting: Vec<Held>,
    now: [u64; 3],
    passed: [u64; 3],
}

impl Model {
    fn may_reuse(&self, other: &Held) -> bool {
        other.uses.iter().all(|&(stream, at)| self.passed[stream as usize] >= at)
    }

    fn insert(&mut self, block: Block, stream: u32) {
        let passed = self.passed;
        self.awaiting.retain(|other| !other.uses.iter().all(|&(stream, at)| passed[stream as usize] >= at));
        for other in self.held.iter().chain(&self.awaiting) {
            let (a, b) = (&block, &other.block);
            let apart = a.address + a.size as u64 <= b.address || b.address + b.size as u64 <= a.address;
            assert!(apart || a.size == 0 || b.size == 0, "{a:?} overlaps {b:?}");
        }
        self.held.push(Held { block, stream, uses: Vec::new() });
    }
}

fn alloc_waiting(cache: &mut Cache<Fake>, model: &mut Model, bytes: usize, stream: u32, arena: bool) -> Option<Block> {
    loop {
        let result = if arena { cache.alloc_arena(bytes, stream, 9) } else { cache.alloc(bytes, stream, 9) };
        match result {
            Ok(block) => return Some(block),
            Err(AllocError::Wait(points)) => {
                assert!(!points.is_empty());
                for point in points {
                    let passed = &mut model.passed[point.stream as usize];
                    assert!(point.sequence > *passed);
                    *passed = point.sequence;
                    cache.release_ready(point.stream, point.sequence);
                }
                assert!(cache.awaited().is_empty());
            }
            Err(AllocError::OutOfMemory(report)) => {
                assert_eq!(report.requested, bytes);
                return None;
            }
        }
    }
}

fn random_trace(seed: u64, steps: usize, raw: Fake) {
    let mut dice = Dice(seed);
    let mut cache = Cache::new(raw);
    let mut model = Model::default();
    for _ in 0..steps {
        match dice.below(12) {
            0..5 => {
                let (bytes, stream) = (dice.size(), dice.below(3) as u32);
                if let Some(block) = alloc_waiting(&mut cache, &mut model, bytes, stream, dice.below(8) == 0) {
                    assert!(block.size_bytes() >= bytes && block.address() % ROUND as u64 == 0);
                    model.insert(block, stream);
                }
            }
            5..9 if !model.held.is_empty() => {
                let index = dice.below(model.held.len());
                let Held { block, stream, uses } = model.held.swap_remove(index);
                let copy = Block { ..block };
                cache.free(block);
                let rest = Held { block: copy, stream, uses };
                if !model.may_reuse(&rest) {
                    model.awaiting.push(rest);
                }
            }
            9 if !model.held.is_empty() => {
                let index = dice.below(model.held.len());
                let stream = dice.below(3) as u32;
                model.now[stream as usize] += 1;
                let at = model.now[stream as usize];
                let held = &mut model.held[index];
                cache.record_use(&held.block, stream, at);
                if held.stream != stream && held.block.size > 0 {
                    held.uses.push((stream, at));
                }
            }
            10 => {
                let stream = dice.below(3);
                let behind = (model.now[stream] - model.passed[stream]) as usize;
                model.passed[stream] += dice.below(behind + 1) as u64;
                cache.release_ready(stream as u32, model.passed[stream]);
            }
            11 if dice.below(10) == 0 => cache.empty_cache(),
            _ => (),
        }
        check(&cache);
    }
    for held in model.held {
        cache.free(held.block);
    }
    for stream in 0..3 {
        cache.release_ready(stream, model.now[stream as usize]);
    }
    check(&cache);
    assert!(cache.snapshot().iter().all(|segment| segment.blocks.len() == 1), "all merges back to whole segments");
    cache.empty_cache();
    assert!(cache.raw().live.is_empty());
    assert_eq!(cache.statistics().reserved_bytes[0].current, 0);
    assert_eq!(cache.statistics().num_device_alloc, cache.statistics().num_device_free);
}

#[test]
fn random_traces_agree_with_the_model() {
    for seed in 0..40 {
        random_trace(seed, 250, fake(1 << 40));
        random_trace(1000 + seed, 250, fake(100 * MIB));
        random_trace(2000 + seed, 250, growing(1 << 40, 1 << 36));
        random_trace(3000 + seed, 250, growing(100 * MIB, 1 << 36));
        random_trace(4000 + seed, 250, growing(200 * MIB, 50 * MIB));
    }
}

/// Whichever request for raw memory fails, the books stay right and what can be served is served.
#[test]
fn any_reservation_may_fail() {
    let sizes = [100, 3 * MIB, 512, 12 * MIB, MIB, 9 * MIB, 30 * MIB, 2 * MIB];
    for (n, room) in (1..=8).flat_map(|n| [(n, 0), (n, 1 << 36)]) {
        let mut cache = Cache::new(growing(1 << 40, room));
        cache.raw_mut().fails = Some(n);
        let mut held = Vec::new();
        for round in 0..2 {
            for bytes in sizes {
                let block = cache.alloc(bytes, 0, 1);
                assert!(block.is_ok(), "one failure is retried");
                held.extend(block);
                check(&cache);
            }
            for block in held.drain(..) {
                cache.free(block);
            }
            assert_eq!(cache.statistics().num_ooms, 0, "round {round}");
        }
        assert!(cache.statistics().num_alloc_retries <= 1);
    }
}

#[test]
fn a_segment_grows_where_another_would_not_fit() {
    let mut cache = Cache::new(growing(100 * MIB, 1 << 30));
    let [a, b, c] = [30, 30, 30].map(|mib| cache.alloc(mib * MIB, 0, 1).expect("enough"));
    assert_eq!((b.address() - a.address(), c.address() - b.address()), (30 * MIB as u64, 30 * MIB as u64));
    let start = c.address();
    cache.free(a);
    cache.free(c);
    // 30 free at the front, 30 at the end and 10 that are not reserved: two thirds are free, and no new segment fits.
    let d = cache.alloc(40 * MIB, 0, 1).expect("30 and 10 more");
    assert_eq!((d.address(), cache.statistics().num_alloc_retries), (start, 0));
    assert_eq!((cache.statistics().segment[0].current, cache.raw().live.len()), (1, 1));
    check(&cache);
    // Another stream needs what this one does not use at its end.
    cache.free(d);
    let e = cache.alloc(36 * MIB, 1, 1).expect("40 come back");
    assert_eq!((cache.statistics().num_alloc_retries, cache.raw().used), (1, 96 * MIB));
    check(&cache);
    cache.free(b);
    cache.free(e);
    cache.empty_cache();
    assert_eq!((cache.raw().used, cache.statistics().segment[0].current), (0, 0));
    // An arena alone in its segment counts as a free part of it once there is something behind it.
    let arena = cache.alloc_arena(12 * MIB, 0, 5).expect("enough");
    let tail = cache.alloc(12 * MIB, 0, 1).expect("enough");
    check(&cache);
    cache.free(tail);
    cache.empty_cache();
    check(&cache);
    assert_eq!(cache.raw().used, 12 * MIB);
    cache.free(arena);
    check(&cache);
    cache.set_memory_fraction(Some(0.5));
    assert!(cache.alloc(51 * MIB, 0, 1).is_err(), "the limit is for growing, too");
}

#[test]
fn pytorchs_sizes() {
    let mut cache = Cache::new(fake(1 << 40));
    let mut reserved = |bytes| {
        let before = cache.statistics().clone();
        let block = cache.alloc(bytes, 0, 0).expect("enough");
        let after = cache.statistics().clone();
        let grown = |f: fn(&Statistics) -> u64| (f(&after) - f(&before)) as usize;
        let out = (grown(|s| s.allocated_bytes[0].current), grown(|s| s.reserved_bytes[0].current));
        cache.free(block);
        cache.empty_cache();
        out
    };
    assert_eq!(reserved(1), (512, 2 * MIB));
    assert_eq!(reserved(MIB), (MIB, 2 * MIB));
    assert_eq!(reserved(MIB + 1), (MIB + 512, 20 * MIB));
    assert_eq!(reserved(10 * MIB - 512), (10 * MIB - 512, 20 * MIB));
    assert_eq!(reserved(10 * MIB), (10 * MIB, 10 * MIB));
    // The rest of a large block of at most 1 MiB is not split off: `rand([300, 300, 300])`.
    assert_eq!(reserved(300 * 300 * 300 * 4), (108_000_256, 104 * MIB));
    assert_eq!(reserved(0), (0, 0));
}

#[test]
fn the_rest_is_split_off_by_pytorchs_rule() {
    let mut cache = Cache::new(fake(1 << 40));
    let small = cache.alloc(MIB, 0, 0).expect("enough");
    let (a, b) = (cache.alloc(MIB - 512, 0, 0).expect("enough"), cache.alloc(100, 0, 0).expect("enough"));
    assert_eq!([a.address(), b.address()], [small.address() + MIB as u64, small.address() + 2 * MIB as u64 - 512]);
    // 20 MiB less 9, less 9.5: 1.5 MiB remain and are split; then less than 1 MiB would remain.
    let large = [9 * MIB, 9 * MIB + MIB / 2, MIB + 512].map(|bytes| cache.alloc(bytes, 0, 0).expect("enough"));
    assert_eq!(large[2].size_bytes(), MIB + MIB / 2);
    assert_eq!(cache.statistics().segment[0].current, 2);
    assert_eq!(cache.statistics().inactive_split[0].current, 0);
    check(&cache);
}

#[test]
fn best_fit_then_lowest_address() {
    let mut cache = Cache::new(fake(1 << 40));
    let mut blocks: Vec<Option<Block>> =
        [512, 512, 1024, 512, 2048, 512, 1024, 512].map(|bytes| cache.alloc(bytes, 0, 0).ok()).into();
    let addresses: Vec<u64> = blocks.iter().flatten().map(Block::address).collect();
    for index in [4, 6, 2] {
        cache.free(blocks[index].take().expect("held"));
    }
    let again = [1000, 700, 1025].map(|bytes| cache.alloc(bytes, 0, 0).expect("enough").address());
    assert_eq!(again, [addresses[2], addresses[6], addresses[4]]);
}

#[test]
fn another_stream_gets_its_own_memory() {
    let mut cache = Cache::new(fake(1 << 40));
    let a = cache.alloc(512, 0, 0).expect("enough");
    let address = a.address();
    cache.free(a);
    let b = cache.alloc(512, 1, 0).expect("enough");
    assert_ne!(b.address(), address);
    assert_eq!(cache.alloc(512, 0, 0).expect("enough").address(), address);
}

/// PyTorch's `test_record_stream`.
#[test]
fn a_block_used_elsewhere_is_not_reused_too_early() {
    let mut cache = Cache::new(fake(1 << 40));
    let a = cache.alloc(512, 0, 0).expect("enough");
    let address = a.address();
    cache.record_use(&a, 1, 5);
    cache.free(a);
    check(&cache);
    assert_eq!(cache.statistics().active[0].current, 1);
    assert_eq!(cache.statistics().allocation[0].current, 0);
    let b = cache.alloc(512, 0, 0).expect("enough");
    assert_ne!(b.address(), address);
    cache.release_ready(1, 4);
    assert_eq!(cache.awaited(), [StreamPoint { stream: 1, sequence: 5 }]);
    cache.release_ready(1, 5);
    assert_eq!(cache.alloc(512, 0, 0).expect("enough").address(), address);
    // A use that has passed delays nothing, nor does one by the stream itself.
    let c = cache.alloc(512, 0, 0).expect("enough");
    let address = c.address();
    cache.record_use(&c, 1, 5);
    cache.record_use(&c, 0, 99);
    cache.free(c);
    assert_eq!(cache.alloc(512, 0, 0).expect("enough").address(), address);
}

/// PyTorch's `test_caching_allocator_record_stream_oom`.
#[test]
fn out_of_memory_waits_for_blocks_in_use_elsewhere() {
    let mut cache = Cache::new(fake(100 * MIB));
    let a = cache.alloc(60 * MIB, 0, 0).expect("enough");
    cache.record_use(&a, 1, 3);
    cache.free(a);
    let Err(AllocError::Wait(points)) = cache.alloc(70 * MIB, 0, 0) else { panic!("waits") };
    assert_eq!(points, [StreamPoint { stream: 1, sequence: 3 }]);
    cache.release_ready(1, 3);
    assert!(cache.alloc(70 * MIB, 0, 0).is_ok());
    assert_eq!((cache.statistics().num_alloc_retries, cache.statistics().num_ooms), (1, 0));
}

/// PyTorch's `test_out_of_memory_retry` and `test_set_per_process_memory_fraction`.
#[test]
fn the_fraction_limits_and_failures_are_counted() {
    let mut cache = Cache::new(fake(1000 * MIB));
    cache.set_memory_fraction(Some(0.5));
    let a = cache.alloc(499 * MIB, 0, 3).expect("below the limit");
    let Err(AllocError::OutOfMemory(report)) = cache.alloc(2 * MIB, 0, 4) else { panic!("beyond the limit") };
    let expected = (Some(500 * MIB), 500 * MIB as u64, 500 * MIB as u64, 0);
    assert_eq!((report.limit, report.reserved, report.allocated, report.largest_free), expected);
    assert_eq!(report.held, [super::report::Held { owner: 3, bytes: 500 * MIB, blocks: 1 }]);
    cache.free(a);
    assert!(cache.alloc(300 * MIB, 1, 0).is_ok(), "cached memory of another stream goes back");
    assert_eq!((cache.statistics().num_alloc_retries, cache.statistics().num_ooms), (2, 1));
    cache.set_memory_fraction(None);
    assert!(cache.alloc(690 * MIB, 1, 0).is_ok());
    assert!(matches!(cache.alloc(usize::MAX, 0, 0), Err(AllocError::OutOfMemory(_))));
    check(&cache);
}

#[test]
fn peaks_and_sums_start_again() {
    let mut cache = Cache::new(fake(1 << 40));
    let a = cache.alloc(2000, 0, 0).expect("enough");
    let b = cache.alloc(512, 0, 0).expect("enough");
    cache.free(a);
    assert_eq!(cache.statistics().allocated_bytes[0].peak, 2560);
    cache.reset_peaks();
    assert_eq!(cache.statistics().allocated_bytes[0].peak, 512);
    cache.reset_accumulated();
    assert_eq!(cache.statistics().allocated_bytes[0].allocated, 0);
    cache.free(b);
    assert_eq!(cache.statistics().allocated_bytes[0].freed, 512);
}

#[test]
fn an_arena_is_reserved_but_not_allocated() {
    let mut cache = Cache::new(fake(1 << 40));
    let arena = cache.alloc_arena(3 * MIB, 0, 5).expect("enough");
    check(&cache);
    let stats = cache.statistics();
    assert_eq!((stats.allocated_bytes[0].peak, stats.active_bytes[0].peak), (0, 0));
    assert_eq!(stats.reserved_bytes[0].current, 20 * MIB as u64);
    assert_eq!(cache.out_of_memory(1).arenas, 3 * MIB);
    cache.record_use(&arena, 1, 1);
    cache.free(arena);
    check(&cache);
    cache.release_ready(1, 1);
    check(&cache);
    cache.empty_cache();
    assert_eq!(cache.statistics().reserved_bytes[0].current, 0);
}

#[test]
fn the_names_are_pytorchs() {
    let mut cache = Cache::new(fake(1 << 40));
    let block = cache.alloc(1000, 0, 0).expect("enough");
    let entries = cache.statistics().entries();
    assert_eq!(entries.len(), 9 * 12 + 14);
    assert!(entries.is_sorted());
    let get = |name: &str| entries.iter().find(|entry| entry.0 == name).map(|entry| entry.1);
    assert_eq!(get("allocated_bytes.all.current"), Some(1024));
    assert_eq!(get("requested_bytes.small_pool.allocated"), Some(1000));
    assert_eq!(get("reserved_bytes.small_pool.peak"), Some(2 * MIB as i64));
    assert_eq!(get("inactive_split_bytes.all.current"), Some(2 * MIB as i64 - 1024));
    assert_eq!(get("segment.large_pool.freed"), Some(0));
    assert_eq!(get("oversize_segments.peak"), Some(0));
    assert_eq!(get("max_split_size"), Some(-1));
    assert_eq!(get("num_device_alloc"), Some(1));
    cache.free(block);
    let summary = cache.summary("cuda:0");
    assert!(summary.lines().all(|line| line.chars().count() == 77), "{summary}");
    let line = "| Allocated memory      |      0 B   |   1024 B   |   1024 B   |   1024 B   |";
    assert!(summary.contains(line), "{summary}");
}

#[test]
fn dropping_the_cache_gives_all_back() {
    use std::{cell::Cell, rc::Rc};
    struct Counted(Rc<Cell<usize>>);
    impl RawMemory for Counted {
        fn reserve(&mut self, bytes: usize) -> Option<u64> {
            self.0.set(self.0.get() + bytes);
            Some(1 << 30)
        }
        fn release(&mut self, _: u64, bytes: usize) {
            self.0.set(self.0.get() - bytes);
        }
        fn total(&self) -> usize {
            1 << 40
        }
    }
    let bytes = Rc::new(Cell::new(0));
    let mut cache = Cache::new(Counted(bytes.clone()));
    let held = cache.alloc(5000, 2, 0).expect("enough");
    assert_eq!(bytes.get(), 2 * MIB);
    drop(cache);
    assert_eq!((bytes.get(), held.size_bytes()), (0, 5120));
}
