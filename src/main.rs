//! The program `tscript`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let path = std::env::args().nth(2).unwrap_or_default();
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut session = tscript::script::session::Session::new(tscript::sched::runtime::Options::default());
    match session.run_str(&text) {
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => {
            match tscript::script::session::diagnostic(&failure) {
                Some(diag) => eprintln!("{diag:#?}"),
                None => eprintln!("{failure}"),
            }
            ExitCode::FAILURE
        }
    }
}
