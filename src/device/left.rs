//! How much memory of the machine is left for this program, and who may still take of it: a system that is out of memory
//! kills without asking.
//!
//! Invariant: what tensors reserve and what the program's own values take leave `spare` bytes of what the system has. To
//! ask the system takes some 50 microseconds, so that answers are used up before it is asked again.

use super::heap;
use super::host_memory::physical_bytes;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of segments that this program has from the system, whatever session they belong to.
static MAPPED: AtomicUsize = AtomicUsize::new(0);
/// Bytes that may be reserved without asking.
static CREDIT: AtomicUsize = AtomicUsize::new(0);
/// Bytes up to which the heap may grow without asking.
static SURE: AtomicUsize = AtomicUsize::new(16 << 20);

/// Of what is left, one part may be taken before the system is asked again.
const PARTS: usize = 8;
/// Bound: bytes of that part below which it is asked for what is known.
const LOW: usize = 8 << 20;
/// Bound: bytes by which the heap grows between two questions.
const STRIDE: usize = 128 << 20;

/// What is left untouched: for threads, libraries, and what grows between two steps of a script.
fn spare() -> usize {
    (physical_bytes() / 16).clamp(16 << 20, 256 << 20)
}

/// Whether so many bytes more may be reserved, which they are then taken to be.
pub fn reserve(bytes: usize) -> bool {
    let granted = admit(bytes);
    if granted {
        MAPPED.fetch_add(bytes, Ordering::Relaxed);
    }
    granted
}

/// They go back.
pub fn release(bytes: usize) {
    MAPPED.fetch_sub(bytes, Ordering::Relaxed);
}

/// Whether so many bytes may be taken for a while: scratch of a kernel.
pub fn admit(bytes: usize) -> bool {
    let pay = |credit: usize| credit.checked_sub(bytes);
    CREDIT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay).is_ok() || ask(bytes).is_some()
}

/// Bytes that can be reserved, as far as is known: never more than there are.
pub fn known() -> usize {
    match CREDIT.load(Ordering::Relaxed) {
        // A part of the answer is used up, seven are not.
        credit if credit >= LOW => credit.saturating_mul(PARTS - 1),
        _ => ask(0).unwrap_or(0),
    }
}

/// What is left beside so many bytes, a part of which may be taken without asking.
fn ask(bytes: usize) -> Option<usize> {
    // What the heap was promised stays its, but not what it has given back.
    let taken = heap::taken_bytes();
    let sure = SURE.fetch_min(taken.saturating_add(STRIDE), Ordering::Relaxed);
    let promised = if taken == 0 { 0 } else { sure.saturating_sub(taken).min(STRIDE) };
    let rest = left().checked_sub(bytes.saturating_add(spare()).saturating_add(promised))?;
    CREDIT.store(rest / PARTS, Ordering::Relaxed);
    Some(rest)
}

/// Bytes that the heap may have before somebody asks (`heap_grows`).
#[inline]
pub fn heap_sure() -> usize {
    SURE.load(Ordering::Relaxed)
}

/// Whether the heap, which may have `most` bytes, may have so many more than it has.
pub fn heap_grows(bytes: usize, most: usize) -> bool {
    let wanted = heap::taken_bytes().saturating_add(bytes);
    if wanted <= heap_sure() || wanted > most {
        return wanted <= most;
    }
    // Half of the spare bytes is for what comes between two steps.
    let Some(rest) = left().checked_sub(bytes.saturating_add(spare() / 2)) else { return false };
    CREDIT.store(0, Ordering::Relaxed);
    let sure = wanted.saturating_add((rest / PARTS).min(STRIDE));
    SURE.store(sure.min(most), Ordering::Relaxed);
    true
}

/// Bytes that the system would still give this program; as many as there are numbers where it does not say.
fn left() -> usize {
    system::left(MAPPED.load(Ordering::Relaxed).saturating_add(heap::taken_bytes()))
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::read_to_string;
    use std::sync::OnceLock;

    /// Of a program that has asked for `had` bytes, used or not.
    pub fn left(had: usize) -> usize {
        let pages = |text: &str, at: usize| text.split(' ').nth(at)?.parse::<usize>().ok()?.checked_mul(page());
        let statm = read_to_string("/proc/self/statm").unwrap_or_default();
        let (space, resident, data) = (pages(&statm, 0), pages(&statm, 1), pages(&statm, 5));
        // What nobody has written yet is not missing anywhere.
        let pending = had.saturating_sub(resident.unwrap_or(0));
        let machine = read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
        let groups = groups().iter().filter_map(|group| group.left(&|path| read_to_string(path).ok()));
        let counted = machine.into_iter().chain(groups).map(|left| left.saturating_sub(pending));
        let limits = [(libc::RLIMIT_AS, space), (libc::RLIMIT_DATA, data)];
        let limits = limits.into_iter().filter_map(|(which, has)| Some(limit(which)?.saturating_sub(has?)));
        counted.chain(limits).min().unwrap_or(usize::MAX)
    }

    fn page() -> usize {
        // SAFETY: sysconf reads a constant of the system.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
    }

    fn limit(which: libc::__rlimit_resource_t) -> Option<usize> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the system fills in a structure of ours.
        let known = unsafe { libc::getrlimit(which, &mut limit) } == 0;
        (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
    }

    /// `MemAvailable` with free swap, of `/proc/meminfo`.
    pub(super) fn available(text: &str) -> Option<usize> {
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse::<usize>().ok()?.checked_mul(1024)
        };
        Some(of("MemAvailable")?.saturating_add(of("SwapFree").unwrap_or(0)))
    }

    /// A control group's folder, with the names that its version gives to files.
    pub(super) struct Group {
        pub folder: String,
        pub is_second: bool,
    }

    fn groups() -> &'static [Group] {
        static GROUPS: OnceLock<Vec<Group>> = OnceLock::new();
        GROUPS.get_or_init(|| {
            let lines = read_to_string("/proc/self/cgroup").unwrap_or_default();
            lines.lines().flat_map(|line| on_the_way(line, &|path| read_to_string(path).ok())).collect()
        })
    }

    /// Those of one line of `/proc/self/cgroup` that have a limit, from the innermost to the root.
    pub(super) fn on_the_way(line: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<Group> {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
        let (root, is_second) = match controllers {
            "" => ("/sys/fs/cgroup", true),
            list if list.split(',').any(|one| one == "memory") => ("/sys/fs/cgroup/memory", false),
            _ => return Vec::new(),
        };
        let path = path.trim_end_matches('/');
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]).rev();
        let groups = ends.map(|end| Group { folder: format!("{root}{}", &path[..end]), is_second });
        groups.filter(|group| group.left(read).is_some()).collect()
    }

    impl Group {
        /// What it may have beside what it has; pages of files do not count, which go when others are wanted.
        pub(super) fn left(&self, read: &dyn Fn(&str) -> Option<String>) -> Option<usize> {
            let [limit, usage, active, inactive] = match self.is_second {
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
    pub fn left(_: usize) -> usize {
        usize::MAX
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::system::{available, on_the_way};

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
        let of = |line| on_the_way(line, &files).iter().filter_map(|group| group.left(&files)).collect::<Vec<_>>();
        assert_eq!(of("0::/a/b"), [450]);
        assert!(of("0::/elsewhere/deep").is_empty());
        assert_eq!(of("7:cpu,memory:/x"), [0]);
        assert!(of("3:cpuset:/x").is_empty());
        let text = "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:  3 kB\nSwapFree: 2 kB\n";
        assert_eq!(available(text), Some(5 << 10));
    }

    #[test]
    fn what_no_machine_has_is_not_left() {
        assert!(!super::admit(1 << 60) && !super::reserve(1 << 60));
        assert!(super::admit(1 << 20));
    }
}
