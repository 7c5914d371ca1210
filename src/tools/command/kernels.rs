//! The words of `tscript jupyter`.

use super::{Command, Settings, UsageError, flag, help_of, owned, text, unknown, unreadable};
use crate::tools::jupyter::{Options, Place};
use crate::tools::usage::{self, Usage};
use lexopt::{Arg, Parser};
use std::ffi::OsString;
use std::path::PathBuf;

const JUPYTER: &Usage = usage::named("jupyter");

/// What the words say, whichever of the three things is done.
#[derive(Default)]
struct Said {
    values: Vec<OsString>,
    places: Vec<Place>,
    name: Option<String>,
    display_name: Option<String>,
    settings: Settings,
    /// Flags of `install`, and of `run`.
    of_install: Option<String>,
    of_run: Option<String>,
}

/// `jupyter install`, `uninstall` and `run FILE`; `after` is what stands after `--`.
pub fn parse(parser: &mut Parser, after: Option<Vec<String>>) -> Result<Command, UsageError> {
    let Some(said) = said(parser)? else { return Ok(help_of(JUPYTER)) };
    let mut values = said.values.iter();
    let action = values.next().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let (operand, extra) = (values.next(), values.next());
    let refused = |message: String| Err(UsageError::new(message, "`tscript help jupyter` tells what it takes"));
    match action.as_str() {
        "" => refused("`tscript jupyter` expects `install`, `uninstall` or `run FILE`".to_string()),
        "run" => match (operand, extra.is_some() || after.is_some(), &said.of_install) {
            (_, _, Some(flag)) => refused(format!("`{flag}` belongs to `tscript jupyter install`")),
            (Some(file), false, None) => Ok(Command::Kernel { file: file.into(), settings: said.settings }),
            _ => refused("`tscript jupyter run` expects a connection file, which Jupyter writes".to_string()),
        },
        "install" | "uninstall" => {
            if let Some(flag) = &said.of_run {
                return refused(format!("`{flag}` belongs to the kernel: `tscript jupyter install -- {flag}`"));
            }
            if let Some(word) = operand {
                return refused(format!("`{}` is one argument too many", word.to_string_lossy()));
            }
            let options = said.options(after.unwrap_or_default())?;
            Ok(if action == "install" { Command::Install(options) } else { Command::Uninstall(options) })
        }
        other => refused(format!("`tscript jupyter` knows `install`, `uninstall` and `run`, not `{other}`")),
    }
}

/// All words; none where help is asked for.
fn said(parser: &mut Parser) -> Result<Option<Said>, UsageError> {
    let mut said = Said::default();
    while let Some(arg) = parser.next().map_err(unreadable)? {
        let name = match arg {
            Arg::Value(value) => {
                said.values.push(value);
                continue;
            }
            Arg::Long("help") | Arg::Short('h') => return Ok(None),
            other => owned(other),
        };
        match name.as_str() {
            "--user" => said.places.push(Place::User),
            "--sys-prefix" => said.places.push(Place::Environment),
            "--prefix" => said.places.push(Place::Prefix(PathBuf::from(text(parser, &name, "a folder")?))),
            "--name" => said.name = Some(text(parser, &name, "a name")?),
            "--display-name" => said.display_name = Some(text(parser, &name, "a text")?),
            "--profile" => return Err(unknown(&name, JUPYTER.flag_names())),
            _ => {
                flag(parser, &mut said.settings, &name, JUPYTER)?;
                said.of_run.get_or_insert(name);
                continue;
            }
        }
        said.of_install.get_or_insert(name);
    }
    Ok(Some(said))
}

impl Said {
    fn options(self, flags: Vec<String>) -> Result<Options, UsageError> {
        if self.places.len() > 1 {
            let message = "`--user`, `--sys-prefix` and `--prefix` exclude each other";
            return Err(UsageError::new(message, "each names a folder"));
        }
        let name = self.name.unwrap_or_else(|| "tscript".to_string());
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
        if !name.chars().all(fits) || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            let message = format!("`{name}` is no name of a kernel");
            return Err(UsageError::new(
                message,
                "it has small letters, digits, `.`, `_` and `-`; `--display-name` may have any",
            ));
        }
        check(&flags)?;
        let place = self.places.into_iter().next().unwrap_or_default();
        Ok(Options { place, name, display_name: self.display_name, flags })
    }
}

/// The kernel is started with these flags later, when nobody reads what is wrong with them.
fn check(flags: &[String]) -> Result<(), UsageError> {
    let words: Vec<OsString> = ["jupyter", "run", "x.json"].iter().map(OsString::from).collect();
    let words = words.into_iter().chain(flags.iter().map(OsString::from));
    match super::parse(words.collect())? {
        Command::Kernel { .. } => Ok(()),
        _ => Err(UsageError::new("after `--` stand flags of `tscript jupyter run`", "for example `-- --device cuda`")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn read(line: &str) -> Result<Command, UsageError> {
        parse(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn kernels_are_installed_with_flags() {
        let plain = Options { place: Place::User, name: "tscript".into(), display_name: None, flags: Vec::new() };
        assert_eq!(read("jupyter install"), Ok(Command::Install(plain.clone())));
        assert_eq!(read("jupyter uninstall --user"), Ok(Command::Uninstall(plain)));
        let named = Options {
            place: Place::Prefix("/opt".into()),
            name: "tscript-cuda".into(),
            display_name: Some("GPU".into()),
            flags: vec!["--device".into(), "cuda".into()],
        };
        let line = "jupyter install --prefix /opt --name tscript-cuda --display-name GPU -- --device cuda";
        assert_eq!(read(line), Ok(Command::Install(named)));
        let settings = Settings { seed: Some(3), ..Settings::default() };
        assert_eq!(read("jupyter run c.json --seed 3"), Ok(Command::Kernel { file: "c.json".into(), settings }));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for line in [
            "jupyter",
            "jupyter start",
            "jupyter run",
            "jupyter run a b",
            "jupyter run a --name b",
            "jupyter run a -- b",
            "jupyter run a --profile",
            "jupyter install a",
            "jupyter install --name Big",
            "jupyter install --name ../x",
            "jupyter install --name .",
            "jupyter install --user --sys-prefix",
            "jupyter install --seed 1",
            "jupyter install -- --sed 1",
            "jupyter install -- --help",
            "jupyter install -- x",
        ] {
            read(line).expect_err(line);
        }
        assert_eq!(read("jupyter run --help"), Ok(Command::Help(Some("jupyter"))));
    }
}
