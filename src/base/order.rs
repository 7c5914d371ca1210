//! Sorts short lists that nobody waits for: names, dims, rows of tables.
//!
//! Not: the standard library's sorts for these. They are compiled anew for each type and each key, 5 to 15 KB of code a
//! time, for a speed that such lists do not need. Here the one piece of code sorts positions.

use std::cmp::Ordering;

/// The positions `0..n` in order; those of equals stay as they were.
pub fn order(n: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..n).collect();
    positions.sort_by(|&a, &b| compare(a, b));
    positions
}

/// As `slice::sort_by`.
pub fn sort_by<T>(list: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut from = order(list.len(), &mut |a, b| compare(&list[a], &list[b]));
    // Along each cycle an element is swapped to where it belongs; a place that is done names itself.
    for start in 0..from.len() {
        let mut at = start;
        while from[at] != start {
            let next = std::mem::replace(&mut from[at], at);
            list.swap(at, next);
            at = next;
        }
        from[at] = at;
    }
}

/// As `slice::sort_by_key`.
pub fn sort_by_key<T, K: Ord>(list: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(list, |a, b| key(a).cmp(&key(b)));
}

/// As `slice::sort`.
pub fn sort<T: Ord>(list: &mut [T]) {
    sort_by(list, T::cmp);
}

#[cfg(test)]
mod tests {
    #[test]
    fn as_the_standard_library_sorts() {
        for n in [0, 1, 2, 5, 40, 257] {
            let list: Vec<(usize, String)> = (0..n).map(|i| (i * 7919 % 13, i.to_string())).collect();
            let (mut ours, mut theirs) = (list.clone(), list);
            super::sort_by_key(&mut ours, |one| one.0);
            theirs.sort_by_key(|one| one.0);
            assert_eq!(ours, theirs);
            super::sort(&mut ours);
            theirs.sort();
            assert_eq!(ours, theirs);
        }
    }
}
