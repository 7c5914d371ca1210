//! Points of several streams, as one list by stream.

use crate::device::queues::Point;
use smallvec::SmallVec;

/// Slot of the host's own window; device streams have the others.
pub const HOST: u32 = 0;

/// At most one point for each stream, sorted by stream.
pub type Points = SmallVec<[Point; 4]>;

/// Raises a list by a point.
pub(in crate::sched) fn raise(list: &mut Points, point: Point) {
    match list.binary_search_by_key(&point.stream, |other| other.stream) {
        Ok(at) => list[at].sequence = list[at].sequence.max(point.sequence),
        Err(at) => list.insert(at, point),
    }
}

/// Raises a list by all points of another, in one pass, since a thousand streams may wait for a thousand.
pub(in crate::sched) fn merge(list: &mut Points, other: &[Point]) {
    if other.len() < 4 {
        other.iter().for_each(|&point| raise(list, point));
        return;
    }
    let mut merged = Points::with_capacity(list.len().max(other.len()));
    let (mut a, mut b) = (list.iter().copied().peekable(), other.iter().copied().peekable());
    while let (Some(left), Some(right)) = (a.peek().copied(), b.peek().copied()) {
        let sequence = match left.stream.cmp(&right.stream) {
            std::cmp::Ordering::Equal => left.sequence.max(right.sequence),
            std::cmp::Ordering::Less => left.sequence,
            std::cmp::Ordering::Greater => right.sequence,
        };
        merged.push(Point { stream: left.stream.min(right.stream), sequence });
        let _ = (left.stream <= right.stream).then(|| a.next());
        let _ = (right.stream <= left.stream).then(|| b.next());
    }
    merged.extend(a.chain(b));
    *list = merged;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares lists of points with a map.
    #[test]
    fn merging_points_takes_the_later_of_each_stream() {
        let mut state = 7u64;
        let mut draw = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for _ in 0..300 {
            let mut lists = [Points::new(), Points::new()];
            let mut expected = std::collections::BTreeMap::new();
            for list in &mut lists {
                for _ in 0..draw(9) {
                    let point = Point { stream: draw(8) as u32, sequence: draw(100) };
                    raise(list, point);
                    let known = expected.entry(point.stream).or_insert(0);
                    *known = point.sequence.max(*known);
                }
            }
            let [mut list, other] = lists;
            merge(&mut list, &other);
            let got: Vec<(u32, u64)> = list.iter().map(|point| (point.stream, point.sequence)).collect();
            assert_eq!(got, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
