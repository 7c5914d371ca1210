//! Damaged files: the files of the fixtures, cut, flipped, spliced and made to lie, are read without a panic, within
//! memory that their size allows, or refused with a code; what is read from them can be written and read again.
//!
//! `TSCRIPT_DAMAGE_SECONDS` says how long each format is tried (half a second unless given), `TSCRIPT_FUZZ_SEED` from
//! which seed on.

use super::files::{fixtures, peak};
use super::random::{Random, mutate};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tscript::internals::base::code::{FILE, FILE_FORMAT};
use tscript::internals::files::{Kind, Value, read_bytes, write_bytes};

/// What reading `len` bytes may take: inherent expansion of the format, and its fixed buffers.
fn allowance(kind: Kind, len: usize) -> usize {
    let fixed = 1 << 20;
    fixed
        + match kind {
            Kind::Safetensors | Kind::Npy | Kind::Csv => 32 * len,
            Kind::Npz => 3 * 1032 * len,
            Kind::Png => 3 * 1032 * len,
            Kind::Jpeg => 4 * 2048 * len,
        }
}

/// Reads hostile bytes: any result, no panic, little memory.
fn survive(kind: Kind, bytes: &[u8]) -> bool {
    let (result, peak) = peak(|| read_bytes(kind, bytes));
    assert!(peak <= allowance(kind, bytes.len()), "{kind:?} of {} bytes took {peak}", bytes.len());
    if let Err(error) = &result {
        assert!(!error.message.is_empty() && [FILE_FORMAT, FILE].contains(&error.code), "{}", error.message);
    }
    let Ok(value) = result else { return false };
    // Not everything that can be read can be written back: a table without columns, an image with alpha as JPEG. A table
    // without rows has no text.
    let rows = if let Value::One(array) = &value { array.shape().first() } else { None };
    match write_bytes(kind, &value) {
        Ok(_) if kind == Kind::Csv && rows == Some(&0) => {}
        Ok(bytes) => {
            let again = read_bytes(kind, &bytes);
            let exact = !matches!(kind, Kind::Jpeg | Kind::Csv);
            let same = again.as_ref().is_ok_and(|again| !exact || *again == value);
            assert!(same, "{kind:?}: {value:?} is {:?} when read again", again.err().map(|error| error.message));
        }
        Err(_) => {}
    }
    true
}

/// The files of a format, whole.
fn corpus(kind: Kind) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(fixtures()).expect("the fixtures");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| Kind::of(path).is_ok_and(|own| own == kind));
    paths.sort();
    let mut files: Vec<(PathBuf, Vec<u8>)> =
        paths.into_iter().map(|path| (path.clone(), std::fs::read(path).expect("a file"))).collect();
    if kind == Kind::Csv {
        let table = b"a,b,c\n1,2.5,3\n\"4\",nan,-6e3\n7,8,9\n".to_vec();
        files.push((Path::new("a table").to_path_buf(), table));
    }
    files
}

/// Tries a format for its time, and some rounds in any case.
fn damage(kind: Kind) {
    let seconds = std::env::var("TSCRIPT_DAMAGE_SECONDS").ok().and_then(|word| word.parse().ok()).unwrap_or(0.5);
    let seed = std::env::var("TSCRIPT_FUZZ_SEED").ok().and_then(|word| word.parse().ok()).unwrap_or(1);
    let (begun, budget) = (Instant::now(), Duration::from_secs_f64(seconds));
    let mut random = Random::new(seed);
    let files = corpus(kind);
    let (mut tried, mut rejected) = (0, 0);
    while tried < 3000 || begun.elapsed() < budget {
        let mut bytes = files[random.below(files.len())].1.clone();
        if random.once_in(8) {
            let other = &files[random.below(files.len())].1;
            let (at, from) = (random.below(bytes.len() + 1), random.below(other.len() + 1));
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        mutate(&mut bytes, &mut random);
        tried += 1;
        rejected += usize::from(!survive(kind, &bytes));
    }
    println!("{kind:?}: {tried} damaged files, {rejected} refused");
    assert!(rejected > tried / 4, "only {rejected} of {tried} were refused: they do not reach far");
}

#[test]
fn files_that_are_cut_are_errors() {
    for kind in [Kind::Safetensors, Kind::Npy, Kind::Npz, Kind::Png, Kind::Jpeg] {
        for (path, whole) in corpus(kind) {
            for cut in 0..whole.len() {
                let survived = survive(kind, &whole[..cut]);
                // A picture whose last bytes are a checksum or an end marker may be complete without them.
                assert!(!survived || matches!(kind, Kind::Png | Kind::Jpeg), "{path:?} cut at {cut} was accepted");
            }
        }
    }
}

#[test]
fn damaged_safetensors() {
    damage(Kind::Safetensors);
}

#[test]
fn damaged_npy() {
    damage(Kind::Npy);
}

#[test]
fn damaged_npz() {
    damage(Kind::Npz);
}

#[test]
fn damaged_csv() {
    damage(Kind::Csv);
}

#[test]
fn damaged_png() {
    damage(Kind::Png);
}

#[test]
fn damaged_jpeg() {
    damage(Kind::Jpeg);
}
