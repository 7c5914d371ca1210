//! Keys typed while an entry runs. The line editor reads them afterwards, but not Ctrl-D if the terminal collects lines
//! between two prompts: the terminal takes it for the end of a file and gives a zero byte in its place. So it passes
//! each key on as it is until the conversation ends.

/// While it lives, the terminal collects no lines.
pub struct Typeahead(());

#[cfg(unix)]
mod terminal {
    use std::mem::MaybeUninit;
    use std::sync::Mutex;

    /// The settings before the conversation.
    static BEFORE: Mutex<Option<libc::termios>> = Mutex::new(None);

    pub fn pass_on() {
        let mut found = MaybeUninit::uninit();
        // SAFETY: the pointer is to memory for one such structure, which the call fills when it gives 0.
        if unsafe { libc::tcgetattr(libc::STDIN_FILENO, found.as_mut_ptr()) } != 0 {
            return;
        }
        // SAFETY: filled by the call above.
        let before: libc::termios = unsafe { found.assume_init() };
        let mut without = before;
        without.c_lflag &= !libc::ICANON;
        without.c_cc[libc::VMIN] = 1;
        without.c_cc[libc::VTIME] = 0;
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

    fn set(settings: &libc::termios) {
        // SAFETY: the pointer is to a live structure. A terminal that refuses stays as it is.
        unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSADRAIN, settings) };
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
