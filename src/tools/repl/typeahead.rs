//! Keys typed while an entry runs. The line editor reads them afterwards, but not Ctrl-D if the terminal collects lines
//! between two prompts: the terminal takes it for the end of a file and gives a zero byte in its place. So it passes
//! each key on as it is until the conversation ends.

/// While it lives, the terminal collects no lines.
pub struct Typeahead(());

#[cfg(unix)]
mod terminal {
    use rustix::stdio::stdin;
    use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
    use std::sync::Mutex;

    /// The settings before the conversation.
    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    pub fn pass_on() {
        let Ok(before) = tcgetattr(stdin()) else { return };
        let mut without = before.clone();
        without.local_modes -= LocalModes::ICANON;
        without.special_codes[SpecialCodeIndex::VMIN] = 1;
        without.special_codes[SpecialCodeIndex::VTIME] = 0;
        set(&without);
        if let Ok(mut kept) = BEFORE.lock() {
            *kept = Some(before);
        }
    }

    pub fn restore() {
        if let Some(before) = BEFORE.lock().ok().and_then(|mut kept| kept.take()) {
            set(&before);
        }
    }

    /// A terminal that refuses stays as it is.
    fn set(settings: &Termios) {
        let _ = tcsetattr(stdin(), OptionalActions::Drain, settings);
    }
}

#[cfg(not(unix))]
mod terminal {
    pub fn pass_on() {}

    pub fn restore() {}
}

impl Typeahead {
    pub fn pass_on() -> Typeahead {
        terminal::pass_on();
        Typeahead(())
    }
}

impl Drop for Typeahead {
    fn drop(&mut self) {
        restore();
    }
}

/// The terminal as it was before the conversation, for a program that ends without returning from it.
pub fn restore() {
    terminal::restore();
}
