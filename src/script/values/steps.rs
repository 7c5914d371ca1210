//! Integers at equal distances: what a range comes to, and the value of `range(start, stop, step)`.

use std::fmt;
use std::ops::RangeInclusive;

#[derive(Clone, Copy, Debug)]
pub struct Steps {
    start: i64,
    /// As it was written.
    stop: i64,
    /// Up to 2^64, of the range of all integers.
    count: u128,
    step: i64,
}

impl Steps {
    /// Up to an integer that is not among them; none with a step of 0.
    pub fn new(start: i64, stop: i64, step: i64) -> Option<Steps> {
        let (distance, size) = (stop as i128 - start as i128, u128::from(step.unsigned_abs()));
        let goes_there = distance != 0 && (distance > 0) == (step > 0);
        let count = if goes_there { distance.unsigned_abs().div_ceil(size.max(1)) } else { 0 };
        (step != 0).then_some(Steps { start, stop, count, step })
    }

    pub fn of(range: RangeInclusive<i64>) -> Steps {
        let count = (*range.end() as i128 - *range.start() as i128 + 1).max(0).unsigned_abs();
        Steps { start: *range.start(), stop: *range.end(), count, step: 1 }
    }

    pub fn count(self) -> u128 {
        self.count
    }

    fn at(self, place: u64) -> i64 {
        // Right by 2^64 and more, which cancel out.
        self.start.wrapping_add((place as i64).wrapping_mul(self.step))
    }

    /// The integer at a place, from the end where it is negative.
    pub fn get(self, place: i64) -> Option<i64> {
        let place = if place < 0 { place as i128 + self.count as i128 } else { place as i128 };
        let place = u64::try_from(place).ok().filter(|place| u128::from(*place) < self.count);
        place.map(|place| self.at(place))
    }

    pub fn iter(self) -> impl Iterator<Item = i64> {
        (0..self.count).map(move |place| self.at(place as u64))
    }

    pub fn has(self, value: i64) -> bool {
        let distance = value as i128 - self.start as i128;
        let (place, rest) = (distance / self.step as i128, distance % self.step as i128);
        rest == 0 && place >= 0 && place.unsigned_abs() < self.count
    }
}

/// Ranges of the same integers are equal.
impl PartialEq for Steps {
    fn eq(&self, other: &Steps) -> bool {
        let starts = self.count == 0 || self.start == other.start;
        self.count == other.count && starts && (self.count < 2 || self.step == other.step)
    }
}

/// As Python writes it.
impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "range({}, {}, {})", self.start, self.stop, self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_of_pythons_ranges() {
        let all = |start, stop, step| Steps::new(start, stop, step).map(|steps| steps.iter().collect::<Vec<_>>());
        assert_eq!(all(0, 10, 3), Some(vec![0, 3, 6, 9]));
        assert_eq!(all(10, 0, -4), Some(vec![10, 6, 2]));
        assert_eq!(all(0, 10, -1), Some(vec![]));
        assert_eq!(all(0, 1, 0), None);
        assert_eq!(all(i64::MAX - 7, i64::MAX, 5), Some(vec![i64::MAX - 7, i64::MAX - 2]));
        assert_eq!(all(i64::MIN, i64::MAX, i64::MAX), Some(vec![i64::MIN, -1, i64::MAX - 1]));
        let steps = Steps::new(0, 10, 3).expect("a step");
        assert_eq!((steps.get(-1), steps.get(3), steps.get(4), steps.get(-5)), (Some(9), Some(9), None, None));
        assert_eq!((steps.has(6), steps.has(7), steps.has(12), steps.has(-3)), (true, false, false, false));
        assert_eq!(Steps::of(i64::MIN..=i64::MAX).count(), 1 << 64);
        assert_eq!(Steps::of(RangeInclusive::new(1, 0)).count(), 0);
        assert_eq!(steps, Steps::new(0, 12, 3).expect("a step"));
        assert!(Steps::new(0, 0, 2) == Steps::new(5, 1, 3) && steps != Steps::new(0, 10, 4).expect("a step"));
    }
}
