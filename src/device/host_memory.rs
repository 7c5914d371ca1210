//! Segments of pageable host memory: new pages from the system, huge ones if it has them. Pinned memory is
//! `cuda/memory.rs`.
//!
//! A caching allocator is built on top; nothing here is meant to be fast or small. Knows nothing of tensors.

use super::cache::RawMemory;
use super::system_memory;

/// Segments of at least this many bytes start at a multiple of it, so that huge pages can back all of them.
const HUGE_PAGE: usize = 2 << 20;

/// Host memory up to a limit. Where the limit or the system refuses, `reserve` returns `None`; it never aborts.
pub struct HostMemory {
    total: usize,
    reserved: usize,
}

impl HostMemory {
    /// `total`: bytes that may be reserved at most.
    pub fn new(total: usize) -> HostMemory {
        HostMemory { total, reserved: 0 }
    }

    /// Bytes reserved now.
    #[cfg(test)]
    fn reserved(&self) -> usize {
        self.reserved
    }
}

impl RawMemory for HostMemory {
    fn reserve(&mut self, bytes: usize) -> Option<u64> {
        let after = self.reserved.checked_add(bytes).filter(|&after| bytes > 0 && after <= self.total)?;
        if !system_memory::reserve(bytes) {
            return None;
        }
        let Some(address) = system::map(bytes) else {
            system_memory::release(bytes);
            return None;
        };
        self.reserved = after;
        Some(address)
    }

    fn release(&mut self, address: u64, bytes: usize) {
        system::unmap(address, bytes);
        system_memory::release(bytes);
        self.reserved -= bytes;
    }

    fn total(&self) -> usize {
        self.total
    }

    fn available(&self) -> usize {
        system_memory::available()
    }
}

/// Bytes of memory that this program may have: those of the machine, of its control group or of a resource limit,
/// whichever is least. 0 where the system does not say.
pub fn physical_bytes() -> usize {
    static BYTES: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *BYTES.get_or_init(|| {
        let machine = system::physical_bytes();
        [system::resource_limit(), control_group()].into_iter().flatten().fold(machine, usize::min)
    })
}

/// Whether `ulimit` bounds the address space or the data of this program.
pub fn is_limited() -> bool {
    system::resource_limit().is_some()
}

/// The least memory limit of the control groups that this program is in, of version 1 or 2.
#[cfg(target_os = "linux")]
fn control_group() -> Option<usize> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().filter_map(|line| group_limit(line, &|path| std::fs::read_to_string(path).ok())).min()
}

#[cfg(not(target_os = "linux"))]
fn control_group() -> Option<usize> {
    None
}

/// The memory limit of one line of `/proc/self/cgroup`, `0::/path` or `4:memory:/path`: the least from that group up to
/// the root. In a container the path may be one of the host that does not exist inside, and the root is the container's
/// own.
#[cfg(any(target_os = "linux", test))]
fn group_limit(line: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<usize> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        list if list.split(',').any(|one| one == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return None,
    };
    let mut path = path.trim_end_matches('/');
    let mut least = None;
    loop {
        // `max`, or a number beyond all memory, is no limit.
        let found = read(&format!("{root}{path}/{file}")).and_then(|text| text.trim().parse::<usize>().ok());
        least = least.into_iter().chain(found).min();
        match path.rfind('/') {
            Some(at) => path = &path[..at],
            None => return least,
        }
    }
}

#[cfg(unix)]
mod system {
    use super::HUGE_PAGE;

    pub fn map(bytes: usize) -> Option<u64> {
        if bytes < HUGE_PAGE {
            return map_pages(bytes);
        }
        // The system aligns to small pages only: map more, and unmap both ends.
        let bytes = bytes.checked_next_multiple_of(page_bytes())?;
        let mapped = bytes.checked_add(HUGE_PAGE)?;
        let start = map_pages(mapped)?;
        let aligned = start.next_multiple_of(HUGE_PAGE as u64);
        let (before, after) = ((aligned - start) as usize, (start + HUGE_PAGE as u64 - aligned) as usize);
        if before > 0 {
            unmap(start, before);
        }
        if after > 0 {
            unmap(aligned + bytes as u64, after);
        }
        #[cfg(target_os = "linux")]
        // SAFETY: the range is a mapping of ours, and the advice does not change its contents.
        // A refusal only means small pages.
        unsafe {
            libc::madvise(aligned as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE);
        }
        Some(aligned)
    }

    fn map_pages(bytes: usize) -> Option<u64> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
        // SAFETY: an anonymous mapping at an address of the system's choice touches no memory of ours.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        (address != libc::MAP_FAILED).then_some(address as u64)
    }

    pub fn unmap(address: u64, bytes: usize) {
        // SAFETY: the range is one that `map` returned, and `RawMemory::release` takes memory that nobody uses any more.
        let status = unsafe { libc::munmap(address as *mut libc::c_void, bytes) };
        debug_assert_eq!(status, 0, "munmap of {bytes} bytes at {address:#x}");
    }

    fn page_bytes() -> usize {
        // SAFETY: sysconf reads a constant of the system.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).unwrap_or(4096).max(1)
    }

    /// What `ulimit -v` and `ulimit -d` leave.
    pub fn resource_limit() -> Option<usize> {
        let of = |resource| {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the system fills in a structure of ours.
            let known = unsafe { libc::getrlimit(resource, &mut limit) } == 0;
            (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur as usize)
        };
        let space = of(libc::RLIMIT_AS).map(|limit| limit.saturating_sub(mapped_bytes()));
        [space, of(libc::RLIMIT_DATA)].into_iter().flatten().min()
    }

    /// Address space of the program, including stacks that are only reserved.
    fn mapped_bytes() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = text.split(' ').next().and_then(|pages| pages.parse::<usize>().ok());
        pages.unwrap_or(0).saturating_mul(page_bytes())
    }

    pub fn physical_bytes() -> usize {
        // SAFETY: sysconf reads a constant of the system.
        let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
        usize::try_from(pages).unwrap_or(0).saturating_mul(page_bytes())
    }
}

#[cfg(not(unix))]
mod system {
    use std::alloc::Layout;

    fn layout(bytes: usize) -> Option<Layout> {
        Layout::from_size_align(bytes, super::super::cache::ROUND).ok()
    }

    pub fn map(bytes: usize) -> Option<u64> {
        // SAFETY: the size is not 0, as `reserve` checked.
        let address = unsafe { std::alloc::alloc(layout(bytes)?) };
        (!address.is_null()).then_some(address as u64)
    }

    pub fn unmap(address: u64, bytes: usize) {
        if let Some(layout) = layout(bytes) {
            // SAFETY: `map` allocated this address with the layout of the same size, and nobody uses it any more, as
            // `unmap` asks.
            unsafe { std::alloc::dealloc(address as *mut u8, layout) };
        }
    }

    pub fn resource_limit() -> Option<usize> {
        None
    }

    pub fn physical_bytes() -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cache::{AllocError, Cache};

    #[test]
    fn memory_can_be_written_to_both_ends() {
        let mut memory = HostMemory::new(1 << 30);
        for bytes in [1, 4096, 5000, HUGE_PAGE, HUGE_PAGE + 1, 20 << 20, (3 << 20) + 4097] {
            let address = memory.reserve(bytes).expect("1 GiB is enough");
            assert_eq!(address % if bytes < HUGE_PAGE { 512 } else { HUGE_PAGE as u64 }, 0, "{bytes} bytes");
            // SAFETY: `reserve` returned an address with `bytes` behind it, held by nobody else.
            let slice = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, bytes) };
            (slice[0], slice[bytes / 2], slice[bytes - 1]) = (1, 2, 3);
            memory.release(address, bytes);
        }
        assert_eq!(memory.reserved(), 0);
    }

    #[test]
    fn limits_of_control_groups_are_the_least_on_the_way_to_the_root() {
        let files = |path: &str| {
            let text = match path {
                "/sys/fs/cgroup/a/b/memory.max" => "max\n",
                "/sys/fs/cgroup/a/memory.max" => "1000\n",
                "/sys/fs/cgroup/memory.max" => "2000\n",
                "/sys/fs/cgroup/memory/x/memory.limit_in_bytes" => "9223372036854771712\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => "500\n",
                _ => return None,
            };
            Some(text.to_string())
        };
        let of = |line| group_limit(line, &files);
        assert_eq!(of("0::/a/b"), Some(1000));
        assert_eq!(of("0::/elsewhere/deep"), Some(2000));
        assert_eq!(of("0::/"), Some(2000));
        assert_eq!(of("7:cpu,memory:/x"), Some(500));
        assert_eq!(of("3:cpuset:/x"), None);
    }

    #[test]
    fn the_limit_and_the_system_both_say_no() {
        let mut memory = HostMemory::new(4 << 20);
        let first = memory.reserve(3 << 20).expect("below the limit");
        assert_eq!(memory.reserve(2 << 20), None);
        memory.release(first, 3 << 20);
        let mut endless = HostMemory::new(usize::MAX);
        assert_eq!(endless.reserve(1 << 60), None);
        assert_eq!(endless.reserve(usize::MAX - 5), None);
        assert_eq!(endless.reserve(0), None);
        assert_eq!(endless.reserved(), 0);
    }

    #[test]
    fn a_cache_over_it_reports_running_out() {
        let mut cache = Cache::new(HostMemory::new(24 << 20));
        let held = cache.alloc(3 << 20, 0, 7).expect("20 MiB segment");
        let Err(AllocError::OutOfMemory(report)) = cache.alloc(30 << 20, 0, 8) else { panic!("30 MiB of 24") };
        assert_eq!((report.requested, report.total, report.held[0].owner), (30 << 20, 24 << 20, 7));
        cache.free(held);
        drop(cache);
    }
}
