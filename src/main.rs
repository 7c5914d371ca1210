//! The program `tscript`; all of it is in `tools/`.

/// A script makes and drops small values all the time.
#[global_allocator]
static HEAP: tscript::device::heap::Heap = tscript::device::heap::Heap;

fn main() -> std::process::ExitCode {
    tscript::device::heap::one_pool();
    tscript::tools::main()
}
