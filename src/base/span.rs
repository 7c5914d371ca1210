//! Places in the session's sources.
//!
//! Every source (file, REPL entry, `eval` text, `std/` module) owns a range of global line numbers, so one packed `u32`
//! gives source, line and column. `script/source` converts it to byte spans for a diagnostic; code of lower floors only
//! passes it on.

/// One place: global line (16 bits) and column (16 bits), both 1-based; 0 is "nowhere".
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Site(pub u32);

impl Site {
    pub const NONE: Site = Site(0);

    pub const fn new(line: u16, column: u16) -> Site {
        Site((line as u32) << 16 | column as u32)
    }

    pub const fn line(self) -> u16 {
        (self.0 >> 16) as u16
    }

    pub const fn column(self) -> u16 {
        self.0 as u16
    }

    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// The origin of an operation: the line of the user's script, and the line inside `std/` if the operation was called
/// there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Origin {
    pub user: Site,
    pub inner: Site,
}

impl Origin {
    pub const NONE: Origin = Origin { user: Site::NONE, inner: Site::NONE };

    pub const fn at(user: Site) -> Origin {
        Origin { user, inner: Site::NONE }
    }
}
