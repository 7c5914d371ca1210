//! How much memory the system can still give this program, and admission of what the program reserves: a system that
//! runs out of memory kills processes without warning.
//!
//! Invariant: segments of tensors and the heap of the program's own values leave `reserve_bytes()` of the system's
//! memory free. A query of the system takes about 50 microseconds, so each answer approves an eighth of the free memory
//! in advance (`PREAPPROVED`, `HEAP_LIMIT`); the next query comes when that is used up.

use super::heap;
use super::host_memory::physical_bytes;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of segments that this program has from the system, in all sessions.
static MAPPED: AtomicUsize = AtomicUsize::new(0);
/// Bytes that may be reserved without a query.
static PREAPPROVED: AtomicUsize = AtomicUsize::new(0);
/// Bytes up to which the heap may grow without a query.
static HEAP_LIMIT: AtomicUsize = AtomicUsize::new(16 << 20);

/// One of this many parts of the free memory may be taken before the next query.
const PARTS: usize = 8;
/// Bound: bytes of that part below which `available` queries the system.
const PREAPPROVED_MIN: usize = 8 << 20;
/// Bound: bytes by which the heap grows between two queries.
const HEAP_STEP: usize = 128 << 20;

/// Bytes that stay free: for threads, libraries, and what grows between two steps of a script.
fn reserve_bytes() -> usize {
    (physical_bytes() / 16).clamp(16 << 20, 256 << 20)
}

/// Reserves this many bytes more; false if the system has not enough.
pub fn reserve(bytes: usize) -> bool {
    let granted = admit(bytes);
    if granted {
        MAPPED.fetch_add(bytes, Ordering::Relaxed);
    }
    granted
}

/// Returns bytes that `reserve` took.
pub fn release(bytes: usize) {
    MAPPED.fetch_sub(bytes, Ordering::Relaxed);
}

/// Whether this many bytes may be taken for a short time: scratch of a kernel.
pub fn admit(bytes: usize) -> bool {
    let take = |preapproved: usize| preapproved.checked_sub(bytes);
    PREAPPROVED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() || query(bytes).is_some()
}

/// Bytes that can be reserved: a lower bound.
pub fn available() -> usize {
    match PREAPPROVED.load(Ordering::Relaxed) {
        // One of the eight parts is being used up, seven are untouched.
        preapproved if preapproved >= PREAPPROVED_MIN => preapproved.saturating_mul(PARTS - 1),
        _ => query(0).unwrap_or(0),
    }
}

/// Asks the system what is free beside this many bytes, and approves a part of it in advance.
fn query(bytes: usize) -> Option<usize> {
    // What the heap may take without a query stays reserved for it, but not what it has freed.
    let taken = heap::taken_bytes();
    let limit = HEAP_LIMIT.fetch_min(taken.saturating_add(HEAP_STEP), Ordering::Relaxed);
    let promised = if taken == 0 { 0 } else { limit.saturating_sub(taken).min(HEAP_STEP) };
    let left = available_bytes().checked_sub(bytes.saturating_add(reserve_bytes()).saturating_add(promised))?;
    PREAPPROVED.store(left / PARTS, Ordering::Relaxed);
    Some(left)
}

/// Bytes up to which the heap may grow before `grow_heap` is called.
#[inline]
pub fn heap_limit() -> usize {
    HEAP_LIMIT.load(Ordering::Relaxed)
}

/// Whether the heap, whose limit is `max_bytes`, may grow by this many bytes.
pub fn grow_heap(bytes: usize, max_bytes: usize) -> bool {
    let needed = heap::taken_bytes().saturating_add(bytes);
    if needed <= heap_limit() || needed > max_bytes {
        return needed <= max_bytes;
    }
    // Half of the free bytes that `query` keeps are for growth between two steps.
    let Some(left) = available_bytes().checked_sub(bytes.saturating_add(reserve_bytes() / 2)) else { return false };
    PREAPPROVED.store(0, Ordering::Relaxed);
    let limit = needed.saturating_add((left / PARTS).min(HEAP_STEP));
    HEAP_LIMIT.store(limit.min(max_bytes), Ordering::Relaxed);
    true
}

/// Bytes that the system would still give this program; `usize::MAX` where it does not say.
fn available_bytes() -> usize {
    system::available_bytes(MAPPED.load(Ordering::Relaxed).saturating_add(heap::taken_bytes()))
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::read_to_string;
    use std::sync::OnceLock;

    /// For a program that has allocated `taken` bytes, touched or not.
    pub fn available_bytes(taken: usize) -> usize {
        let pages = |text: &str, at: usize| text.split(' ').nth(at)?.parse::<usize>().ok()?.checked_mul(page());
        let statm = read_to_string("/proc/self/statm").unwrap_or_default();
        let (space, resident, data) = (pages(&statm, 0), pages(&statm, 1), pages(&statm, 5));
        // Pages that nobody has written yet are not resident, so the system still counts them as free.
        let pending = taken.saturating_sub(resident.unwrap_or(0));
        let machine = read_to_string("/proc/meminfo").ok().and_then(|text| mem_available(&text));
        let groups = cgroups().iter().filter_map(|group| group.available_bytes(&|path| read_to_string(path).ok()));
        let counted = machine.into_iter().chain(groups).map(|left| left.saturating_sub(pending));
        let limits = [(libc::RLIMIT_AS, space), (libc::RLIMIT_DATA, data)];
        let limits = limits.into_iter().filter_map(|(which, has)| Some(limit(which)?.saturating_sub(has?)));
        counted.chain(limits).min().unwrap_or(usize::MAX)
    }

    fn page() -> usize {
        // SAFETY: sysconf reads a constant of the system.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
    }

    /// The type of a limit's number, which C libraries do not agree on.
    #[cfg(target_env = "gnu")]
    type Resource = libc::__rlimit_resource_t;
    #[cfg(not(target_env = "gnu"))]
    type Resource = libc::c_int;

    fn limit(which: Resource) -> Option<usize> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the system fills in a structure of ours.
        let known = unsafe { libc::getrlimit(which, &mut limit) } == 0;
        (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
    }

    /// `MemAvailable` with free swap, of `/proc/meminfo`.
    pub(super) fn mem_available(text: &str) -> Option<usize> {
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse::<usize>().ok()?.checked_mul(1024)
        };
        Some(of("MemAvailable")?.saturating_add(of("SwapFree").unwrap_or(0)))
    }

    /// A control group's folder, and its version, which decides the names of its files.
    pub(super) struct Cgroup {
        pub folder: String,
        pub is_v2: bool,
    }

    fn cgroups() -> &'static [Cgroup] {
        static GROUPS: OnceLock<Vec<Cgroup>> = OnceLock::new();
        GROUPS.get_or_init(|| {
            let lines = read_to_string("/proc/self/cgroup").unwrap_or_default();
            lines.lines().flat_map(|line| cgroups_of_line(line, &|path| read_to_string(path).ok())).collect()
        })
    }

    /// The control groups of one line of `/proc/self/cgroup` that have a limit, from the innermost to the root.
    pub(super) fn cgroups_of_line(line: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<Cgroup> {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
        let (root, is_v2) = match controllers {
            "" => ("/sys/fs/cgroup", true),
            list if list.split(',').any(|one| one == "memory") => ("/sys/fs/cgroup/memory", false),
            _ => return Vec::new(),
        };
        let path = path.trim_end_matches('/');
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]).rev();
        let groups = ends.map(|end| Cgroup { folder: format!("{root}{}", &path[..end]), is_v2 });
        groups.filter(|group| group.available_bytes(read).is_some()).collect()
    }

    impl Cgroup {
        /// Its limit less its usage. Cached pages of files do not count as used: the system drops them when memory is
        /// needed.
        pub(super) fn available_bytes(&self, read: &dyn Fn(&str) -> Option<String>) -> Option<usize> {
            let [limit, usage, active, inactive] = match self.is_v2 {
                true => ["memory.max", "memory.current", "active_file", "inactive_file"],
                false => ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file", "total_inactive_file"],
            };
            let number = |name: &str| read(&format!("{}/{name}", self.folder))?.trim().parse::<usize>().ok();
            // `max`, or a number beyond all memory, is no limit.
            let limit = number(limit).filter(|&limit| limit < 1 << 60)?;
            let usage = number(usage)?;
            let stat = read(&format!("{}/memory.stat", self.folder)).unwrap_or_default();
            let lines = stat.lines().filter_map(|line| line.split_once(' '));
            let files = lines.filter(|(name, _)| *name == active || *name == inactive);
            let files: usize = files.filter_map(|(_, bytes)| bytes.trim().parse::<usize>().ok()).sum();
            Some(limit.saturating_sub(usage.saturating_sub(files)))
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub fn available_bytes(_: usize) -> usize {
        usize::MAX
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::system::{cgroups_of_line, mem_available};

    #[test]
    fn control_groups_have_what_their_limits_leave_beside_files() {
        let files = |path: &str| {
            let text = match path {
                "/sys/fs/cgroup/a/b/memory.max" => "max\n",
                "/sys/fs/cgroup/a/memory.max" => "1000\n",
                "/sys/fs/cgroup/a/memory.current" => "700\n",
                "/sys/fs/cgroup/a/memory.stat" => "anon 500\nactive_file 50\ninactive_file 100\nshmem 7\n",
                "/sys/fs/cgroup/memory/x/memory.limit_in_bytes" => "9223372036854771712\n",
                "/sys/fs/cgroup/memory/x/memory.usage_in_bytes" => "5\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => "500\n",
                "/sys/fs/cgroup/memory/memory.usage_in_bytes" => "600\n",
                _ => return None,
            };
            Some(text.to_string())
        };
        let of = |line| {
            cgroups_of_line(line, &files).iter().filter_map(|group| group.available_bytes(&files)).collect::<Vec<_>>()
        };
        assert_eq!(of("0::/a/b"), [450]);
        assert!(of("0::/elsewhere/deep").is_empty());
        assert_eq!(of("7:cpu,memory:/x"), [0]);
        assert!(of("3:cpuset:/x").is_empty());
        let text = "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:  3 kB\nSwapFree: 2 kB\n";
        assert_eq!(mem_available(text), Some(5 << 10));
    }

    #[test]
    fn what_no_machine_has_is_not_left() {
        assert!(!super::admit(1 << 60) && !super::reserve(1 << 60));
        assert!(super::admit(1 << 20));
    }
}
