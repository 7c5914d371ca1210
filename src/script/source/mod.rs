//! Sources of a session and the pass over them.
