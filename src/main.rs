//! The program `tscript`; all of it is in `tools/`.

fn main() -> std::process::ExitCode {
    tscript::tools::main()
}
