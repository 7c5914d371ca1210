//! Overlap, containment and union of regions against sets of bytes.

use super::super::region::Region;
use super::*;
use std::collections::BTreeSet;

pub(super) fn bytes_of(layout: &Layout, elem_bytes: usize) -> BTreeSet<usize> {
    let mut elements = vec![layout.offset];
    for (&size, &stride) in layout.shape.iter().zip(&layout.strides) {
        let copies = |at: usize| (0..size).map(move |k| at + k * stride as usize);
        elements = elements.into_iter().flat_map(copies).collect();
    }
    elements.into_iter().flat_map(|element| element * elem_bytes..(element + 1) * elem_bytes).collect()
}

/// Any shape and strides at all, overlapping itself too.
fn wild(dice: &mut Dice, spread: usize) -> (Layout, usize) {
    let ndim = dice.below(5);
    let shape = (0..ndim).map(|_| 1 + dice.below(4)).collect();
    let strides = (0..ndim).map(|_| dice.below(spread) as isize).collect();
    (Layout { shape, strides, offset: dice.below(60) }, [1, 2, 4][dice.below(3)])
}

#[test]
fn overlap_is_exact() {
    let mut dice = Dice(1);
    let (mut overlapping, mut apart) = (0, 0);
    for case in 0..60_000 {
        let spread = [4, 12, 40][case % 3];
        let (a, b) = (wild(&mut dice, spread), wild(&mut dice, spread));
        let (x, y) = (bytes_of(&a.0, a.1), bytes_of(&b.0, b.1));
        let (first, second) = (Region::of(&a.0, a.1), Region::of(&b.0, b.1));
        let expected = !x.is_disjoint(&y);
        assert_eq!(first.overlaps(&second), expected, "{a:?} {b:?}");
        assert_eq!(second.overlaps(&first), expected, "{a:?} {b:?}");
        if first.contains(&second) {
            assert!(y.is_subset(&x), "{a:?} {b:?}");
        }
        overlapping += u32::from(expected);
        apart += u32::from(!expected);
    }
    assert!(overlapping > 5000 && apart > 5000, "{overlapping} {apart}");
}

#[test]
fn a_union_is_exact_or_not_made() {
    let mut dice = Dice(2);
    let mut made = 0;
    for _ in 0..60_000 {
        let (a, elem) = wild(&mut dice, 6);
        let b = Layout {
            offset: a.offset + dice.below(8),
            ..if dice.below(2) == 0 { a.clone() } else { wild(&mut dice, 6).0 }
        };
        let (first, second) = (Region::of(&a, elem), Region::of(&b, elem));
        if let Some(joined) = first.join(&second) {
            made += 1;
            let union: BTreeSet<usize> = bytes_of(&a, elem).union(&bytes_of(&b, elem)).copied().collect();
            let mut layout = Layout { offset: joined.start as usize, ..Layout::default() };
            for repeat in &joined.repeats {
                layout.shape.push(repeat.count as usize);
                layout.strides.push(repeat.stride as isize);
            }
            layout.shape.push(joined.run as usize);
            layout.strides.push(1);
            assert_eq!(bytes_of(&layout, 1), union, "{a:?} {b:?}");
        }
    }
    assert!(made > 5000, "{made}");
}

#[test]
fn large_layouts_are_decided_without_looking_at_each_element() {
    let big = Layout::contiguous(&[1 << 14, 1 << 14]);
    let (even, odd) = (big.slice(1, 0, 2, 1 << 13), big.slice(1, 1, 2, 1 << 13));
    let region = |layout: &Layout| Region::of(layout, 4);
    assert!(!region(&even).overlaps(&region(&odd)));
    assert!(region(&even).overlaps(&region(&big.slice(1, 3, 3, 5000))));
    let transposed = big.permute(&[1, 0]).slice(0, 1, 2, 1 << 13).slice(1, 5, 7, 2000);
    assert!(!region(&even).overlaps(&region(&transposed)));
    assert!(region(&odd).overlaps(&region(&transposed)));
    // Strides without a common divisor that meet in one element only, far out.
    let line = |stride, count, offset| Layout {
        shape: [count].as_slice().into(),
        strides: [stride as isize].as_slice().into(),
        offset,
    };
    let (a, b) = (line(1_000_003, 1_000_000, 0), line(999_983, 1_000_000, 999_983 * 1_000_003 - 999_983 * 999_999));
    assert!(region(&a).overlaps(&region(&b)));
    assert!(!region(&line(1_000_003, 999_983, 0)).overlaps(&region(&b)));
    // Two dims against two others, with holes of every width.
    let grid = |s: isize, t: isize, n: usize, offset| Layout {
        shape: [n, n].as_slice().into(),
        strides: [s, t].as_slice().into(),
        offset,
    };
    assert!(!region(&grid(6000, 6, 900, 0)).overlaps(&region(&grid(9000, 12, 700, 3))));
    assert!(region(&grid(6000, 6, 900, 0)).overlaps(&region(&grid(9000, 15, 700, 3))));
}

#[test]
fn the_same_bytes_are_the_same_region() {
    let x = Layout::contiguous(&[4, 6, 8]);
    let region = |layout: &Layout| Region::of(layout, 4);
    assert_eq!(region(&x.permute(&[2, 0, 1])), Region::whole(4 * 6 * 8 * 4));
    assert_eq!(region(&x.slice(2, 1, 1, 3).permute(&[1, 2, 0])), region(&x.slice(2, 1, 1, 3)));
    assert_eq!(region(&x.broadcast_to(&[5, 4, 6, 8])), Region::whole(4 * 6 * 8 * 4));
    assert_eq!(Region::of(&Layout::contiguous(&[8]), 2), Region::of(&Layout::contiguous(&[4]), 4));
}
