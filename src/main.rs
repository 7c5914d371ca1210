//! The program `tscript`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let path = std::env::args().nth(2).unwrap_or_default();
    let mut session = match tscript::script::session::Session::builder().build() {
        Ok(session) => session,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match session.run_file(&path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", tscript::tools::render::render_error(&error, tscript::tools::render::Colour::of_stderr()));
            ExitCode::FAILURE
        }
    }
}
