//! `tscript explain`: the long form of an error.

use super::command::UsageError;
use crate::base::code::{self, Code};

pub fn explain(word: Option<&str>) -> Result<u8, UsageError> {
    let Some(word) = word else {
        let lines: Vec<String> = code::ALL.iter().map(|(code, title)| format!("{code}  {title}")).collect();
        super::say(&lines.join("\n"));
        return Ok(0);
    };
    let Some(code) = Code::parse(word) else {
        return Err(UsageError::new(format!("there is no error code `{word}`"), "`tscript explain` lists all codes"));
    };
    super::say(&format!("{code}: {}\n\n{}", code.title(), crate::base::explain::explain(code).trim()));
    Ok(0)
}
