//! The program `tscript`; all of it is in `tools/`.

/// A script makes and drops small values all the time.
#[global_allocator]
static HEAP: tscript::program::Heap = tscript::program::Heap;

fn main() -> std::process::ExitCode {
    tscript::program::one_arena();
    tscript::program::file_size_is_an_error();
    tscript::program::main()
}
