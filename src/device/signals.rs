//! Signals of the system that would end the program where an error of the script is meant.

/// A file that grows beyond the limit of the process (`ulimit -f`) is an error of writing it; the signal that comes with it
/// would end the program without a word.
pub fn file_size_is_an_error() {
    #[cfg(unix)]
    // SAFETY: ignoring a signal runs no code of ours when it comes, and other parts of the program do not change its way.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
