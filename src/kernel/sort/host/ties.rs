//! PyTorch's unstable algorithms, for the same order of equal elements.
//!
//! PyTorch selects and sorts with the algorithms of GNU's C++ library (`sort`, `nth_element`, `partial_sort`), whose
//! exchanges determine the order of equal elements, and with its own quickselect (`kthvalue`). They are reimplemented
//! here step by step and used only if elements are equal; otherwise any algorithm gives the same result. `less` is a
//! strict weak order.

use crate::kernel::guard;

/// Bound: elements of a pass between two calls of `guard::check`; some microseconds.
const PASS: usize = 4096;

/// `std::sort`: introsort with a final insertion sort.
pub fn sort<T: Copy>(x: &mut [T], less: impl Fn(&T, &T) -> bool + Copy) {
    if x.len() < 2 {
        return;
    }
    intro_sort(x, 2 * x.len().ilog2(), less);
    let head = x.len().min(16);
    insertion_sort(&mut x[..head], less);
    for i in head..x.len() {
        insert(x, i, less);
    }
}

fn intro_sort<T: Copy>(x: &mut [T], depth: u32, less: impl Fn(&T, &T) -> bool + Copy) {
    let (mut last, mut depth) = (x.len(), depth);
    while last > 16 {
        if depth == 0 {
            return partial_sort(&mut x[..last], last, less);
        }
        depth -= 1;
        let cut = partition(&mut x[..last], less);
        intro_sort(&mut x[cut..last], depth, less);
        last = cut;
    }
}

/// `std::nth_element`: introselect.
pub fn nth_element<T: Copy>(x: &mut [T], nth: usize, less: impl Fn(&T, &T) -> bool + Copy) {
    let (mut first, mut last) = (0, x.len());
    let mut depth = if last > 0 { 2 * last.ilog2() } else { 0 };
    while last - first > 3 {
        if depth == 0 {
            heap_select(&mut x[first..last], nth + 1 - first, less);
            x.swap(first, nth);
            return;
        }
        depth -= 1;
        let cut = first + partition(&mut x[first..last], less);
        if cut <= nth { first = cut } else { last = cut }
    }
    insertion_sort(&mut x[first..last], less);
}

/// `std::partial_sort`: the first `middle` in order, by a heap.
pub fn partial_sort<T: Copy>(x: &mut [T], middle: usize, less: impl Fn(&T, &T) -> bool + Copy) {
    heap_select(x, middle, less);
    for last in (1..middle).rev() {
        pop_heap(x, last, last, less);
    }
}

/// PyTorch's `quick_select_template`: afterwards `x[k]` is the k-th element in order.
pub fn quick_select<T: Copy>(x: &mut [T], k: usize, less: impl Fn(&T, &T) -> bool) {
    let (mut left, mut right) = (0usize, x.len() - 1);
    loop {
        if right <= left {
            return;
        }
        // In the worst case there are as many passes as elements.
        if right - left > PASS {
            guard::check();
        }
        if right == left + 1 {
            if less(&x[right], &x[left]) {
                x.swap(left, right);
            }
            return;
        }
        x.swap(left + (right - left) / 2, left + 1);
        if less(&x[right], &x[left + 1]) {
            x.swap(left + 1, right);
        }
        if less(&x[right], &x[left]) {
            x.swap(left, right);
        }
        if less(&x[left], &x[left + 1]) {
            x.swap(left + 1, left);
        }
        let pivot = x[left];
        let (mut i, mut j) = (left + 1, right);
        loop {
            i += 1;
            while less(&x[i], &pivot) {
                i += 1;
            }
            j -= 1;
            while less(&pivot, &x[j]) {
                j -= 1;
            }
            if j < i {
                break;
            }
            x.swap(i, j);
        }
        x.swap(left, j);
        if j <= k {
            left = i;
        }
        if j >= k {
            match j.checked_sub(1) {
                Some(before) => right = before,
                None => return,
            }
        }
    }
}

fn insertion_sort<T: Copy>(x: &mut [T], less: impl Fn(&T, &T) -> bool + Copy) {
    for i in 1..x.len() {
        if less(&x[i], &x[0]) {
            x[..=i].rotate_right(1);
        } else {
            insert(x, i, less);
        }
    }
}

/// Moves element `i` left, to the position after the last one that is not larger.
fn insert<T: Copy>(x: &mut [T], i: usize, less: impl Fn(&T, &T) -> bool) {
    let value = x[i];
    let mut at = i;
    while at > 0 && less(&value, &x[at - 1]) {
        x[at] = x[at - 1];
        at -= 1;
    }
    x[at] = value;
}

/// Partitions around the median of three; returns the start of the right part.
fn partition<T: Copy>(x: &mut [T], less: impl Fn(&T, &T) -> bool) -> usize {
    let n = x.len();
    let (a, b, c) = (1, n / 2, n - 1);
    let median = if less(&x[a], &x[b]) {
        if less(&x[b], &x[c]) {
            b
        } else if less(&x[a], &x[c]) {
            c
        } else {
            a
        }
    } else if less(&x[a], &x[c]) {
        a
    } else if less(&x[b], &x[c]) {
        c
    } else {
        b
    };
    x.swap(0, median);
    let (mut first, mut last) = (1, n);
    loop {
        while less(&x[first], &x[0]) {
            first += 1;
        }
        last -= 1;
        while less(&x[0], &x[last]) {
            last -= 1;
        }
        if first >= last {
            return first;
        }
        x.swap(first, last);
        first += 1;
    }
}

fn heap_select<T: Copy>(x: &mut [T], middle: usize, less: impl Fn(&T, &T) -> bool + Copy) {
    for parent in (0..middle / 2).rev() {
        let value = x[parent];
        adjust_heap(x, parent, middle, value, less);
    }
    for i in middle..x.len() {
        if less(&x[i], &x[0]) {
            pop_heap(x, middle, i, less);
        }
    }
}

/// Moves the top of the heap to `result`, and the element there into the heap.
fn pop_heap<T: Copy>(x: &mut [T], length: usize, result: usize, less: impl Fn(&T, &T) -> bool) {
    let value = x[result];
    x[result] = x[0];
    adjust_heap(x, 0, length, value, less);
}

fn adjust_heap<T: Copy>(x: &mut [T], hole: usize, length: usize, value: T, less: impl Fn(&T, &T) -> bool) {
    let (top, mut hole, mut child) = (hole, hole, hole);
    while child < (length - 1) / 2 {
        child = 2 * (child + 1);
        if less(&x[child], &x[child - 1]) {
            child -= 1;
        }
        x[hole] = x[child];
        hole = child;
    }
    if length.is_multiple_of(2) && length >= 2 && child == (length - 2) / 2 {
        child = 2 * (child + 1);
        x[hole] = x[child - 1];
        hole = child - 1;
    }
    while hole > top && less(&x[(hole - 1) / 2], &value) {
        x[hole] = x[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    x[hole] = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(n: usize, values: usize) -> Vec<(usize, usize)> {
        (0..n).map(|i| (i * 7919 % 1009 % values, i)).collect()
    }

    #[test]
    fn all_of_them_order() {
        let less = |a: &(usize, usize), b: &(usize, usize)| a.0 < b.0;
        for (n, values) in [(1, 3), (2, 1), (17, 4), (100, 5), (1000, 1000), (3000, 7), (500, 1)] {
            let mut sorted = data(n, values);
            sorted.sort();
            let keys: Vec<usize> = sorted.iter().map(|x| x.0).collect();
            let mut x = data(n, values);
            sort(&mut x, less);
            assert!(x.iter().map(|x| x.0).eq(keys.iter().copied()));
            for k in [1, n / 3 + 1, n] {
                let mut x = data(n, values);
                partial_sort(&mut x, k, less);
                assert!(x[..k].iter().map(|x| x.0).eq(keys[..k].iter().copied()));
                let mut x = data(n, values);
                nth_element(&mut x, k - 1, less);
                assert_eq!(x[k - 1].0, keys[k - 1]);
                let mut x = data(n, values);
                quick_select(&mut x, k - 1, less);
                assert_eq!(x[k - 1].0, keys[k - 1]);
            }
        }
    }

    /// The results of `std::sort` and `std::nth_element` of GNU's library.
    #[test]
    fn equal_elements_end_where_they_do_in_cpp() {
        let less = |a: &(usize, usize), b: &(usize, usize)| a.0 < b.0;
        let mut x: Vec<(usize, usize)> = (0..20).map(|i| (i % 2, i)).collect();
        sort(&mut x, less);
        assert_eq!(x.iter().map(|x| x.1).collect::<Vec<_>>(), CPP_SORT);
        let mut x: Vec<(usize, usize)> = (0..20).map(|i| (i % 3, i)).collect();
        nth_element(&mut x, 9, less);
        assert_eq!(x.iter().map(|x| x.1).collect::<Vec<_>>(), CPP_NTH);
        let mut x: Vec<(usize, usize)> = (0..20).map(|i| (i % 3, i)).collect();
        partial_sort(&mut x, 4, less);
        assert_eq!(x.iter().map(|x| x.1).collect::<Vec<_>>(), CPP_PARTIAL);
    }

    const CPP_SORT: [usize; 20] = [0, 2, 18, 4, 6, 16, 8, 10, 14, 12, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1];
    const CPP_NTH: [usize; 20] = [15, 0, 9, 12, 6, 19, 10, 18, 3, 13, 16, 11, 8, 7, 14, 5, 4, 17, 2, 1];
    const CPP_PARTIAL: [usize; 20] = [6, 3, 9, 0, 2, 5, 1, 7, 8, 4, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19];
}
