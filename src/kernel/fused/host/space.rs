//! The iteration space of a step: dims in the order of memory, merged where every view allows it, cut into boxes of a
//! tile's size. Knows strides and not what is computed.

use smallvec::{SmallVec, smallvec};

/// One dim of the space.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Dim {
    pub size: usize,
    pub reduced: bool,
}

/// Dims outermost first; `strides[dim * columns + column]` in bytes, one column per view and a last one for
/// the position (in elements), where it is asked for.
#[derive(Debug)]
pub(crate) struct Space {
    pub dims: SmallVec<[Dim; 6]>,
    pub strides: SmallVec<[isize; 32]>,
    pub columns: usize,
}

impl Clone for Space {
    /// Not: derived. The `clone` of `SmallVec` copies element by element.
    fn clone(&self) -> Space {
        let (dims, strides) = (SmallVec::from_slice(&self.dims), SmallVec::from_slice(&self.strides));
        Space { dims, strides, columns: self.columns }
    }
}

impl Space {
    pub fn stride(&self, dim: usize, column: usize) -> isize {
        self.strides[dim * self.columns + column]
    }

    pub fn numel(&self) -> usize {
        self.dims.iter().map(|dim| dim.size).product()
    }

    fn swap(&mut self, i: usize, j: usize) {
        self.dims.swap(i, j);
        for column in 0..self.columns {
            self.strides.swap(i * self.columns + column, j * self.columns + column);
        }
    }

    /// Moves dim `from` to place `to`, keeping the order of the others.
    pub fn move_dim(&mut self, from: usize, to: usize) {
        let (mut at, step) = (from, if from < to { 1 } else { -1 });
        while at != to {
            let next = at.wrapping_add_signed(step);
            self.swap(at, next);
            at = next;
        }
    }

    /// Sorts dims by falling strides of the first column of `priority` in which two dims differ. `fixed(i, j)` forbids
    /// the exchange of two adjacent dims.
    pub fn sort(&mut self, priority: &[u16], fixed: impl Fn(Dim, Dim) -> bool) {
        for start in 1..self.dims.len() {
            let mut at = start;
            while at > 0 && !fixed(self.dims[at - 1], self.dims[at]) && self.inner_first(at - 1, at, priority) {
                self.swap(at - 1, at);
                at -= 1;
            }
        }
    }

    /// Whether dim `i` has smaller strides than dim `j`, so that it should be further inside.
    fn inner_first(&self, i: usize, j: usize, priority: &[u16]) -> bool {
        for &column in priority {
            let (a, b) = (self.stride(i, column as usize).abs(), self.stride(j, column as usize).abs());
            if a != 0 && b != 0 && a != b {
                return a < b;
            }
        }
        false
    }

    /// Merges adjacent dims that are one contiguous dim in every column.
    pub fn merge(&mut self) {
        let mut last = 0;
        for dim in 1..self.dims.len() {
            let inner = self.dims[dim];
            let even = self.dims[last].reduced == inner.reduced
                && (0..self.columns)
                    .all(|column| self.stride(last, column) == self.stride(dim, column) * inner.size as isize);
            let size = if even { self.dims[last].size * inner.size } else { inner.size };
            if !even {
                last += 1;
            }
            self.dims[last] = Dim { size, ..inner };
            for column in 0..self.columns {
                self.strides[last * self.columns + column] = self.stride(dim, column);
            }
        }
        if !self.dims.is_empty() {
            self.dims.truncate(last + 1);
            self.strides.truncate((last + 1) * self.columns);
        }
    }

    /// Adds outer dims of size 1 until there are `count`.
    pub fn pad(&mut self, count: usize) {
        self.pad_at(0, self.dims.len(), count, false);
    }

    /// Adds dims of size 1 before dim `at`, so that the `have` dims there become at least `count`; returns their
    /// number.
    pub fn pad_at(&mut self, at: usize, have: usize, count: usize, reduced: bool) -> usize {
        for _ in have..count {
            self.dims.insert(at, Dim { size: 1, reduced });
            self.strides.insert_many(at * self.columns, std::iter::repeat_n(0, self.columns));
        }
        have.max(count)
    }

    /// Moves dims that remain before reduced ones (except that the last dim stays last if it remains and `output_is_inner`),
    /// merges, and returns the number of leading dims that remain.
    pub fn partition(&mut self, output_is_inner: bool) -> usize {
        let end = self.dims.len() - output_is_inner as usize;
        let mut output_dims = 0;
        for dim in 0..end {
            if !self.dims[dim].reduced {
                self.move_dim(dim, output_dims);
                output_dims += 1;
            }
        }
        self.merge();
        self.dims.iter().take_while(|dim| !dim.reduced).count()
    }
}

/// Consecutive dims of a space, cut into boxes over the last three of them.
pub(crate) struct Grid<'a> {
    pub space: &'a Space,
    /// First dim and number of dims.
    pub first: usize,
    pub count: usize,
    /// Elements of a full box along the last three dims.
    pub full: [usize; 3],
}

/// A position of an iteration over boxes.
#[derive(Clone)]
pub(crate) struct Place {
    /// Index in boxes (last three dims) or elements (others) of each dim.
    index: SmallVec<[usize; 6]>,
    /// Offset of each column at the box's first element.
    pub offsets: SmallVec<[isize; 8]>,
    /// Elements of this box.
    pub counts: [usize; 3],
}

impl Grid<'_> {
    fn box_size(&self, dim: usize) -> usize {
        if dim + 3 >= self.count { self.full[dim + 3 - self.count] } else { 1 }
    }

    fn boxes_along(&self, dim: usize) -> usize {
        self.space.dims[self.first + dim].size.div_ceil(self.box_size(dim))
    }

    /// Number of boxes.
    pub fn boxes(&self) -> usize {
        (0..self.count).map(|dim| self.boxes_along(dim)).product()
    }

    /// Box number `n`, with `base` added to every column's offset.
    pub fn place(&self, mut n: usize, base: &[isize]) -> Place {
        let mut index: SmallVec<[usize; 6]> = smallvec![0; self.count];
        for dim in (0..self.count).rev() {
            let boxes = self.boxes_along(dim);
            (index[dim], n) = (n % boxes, n / boxes);
        }
        let mut place = Place { index, offsets: SmallVec::from_slice(base), counts: [0; 3] };
        for dim in 0..self.count {
            let steps = (place.index[dim] * self.box_size(dim)) as isize;
            if steps != 0 {
                for column in 0..self.space.columns {
                    place.offsets[column] += steps * self.space.stride(self.first + dim, column);
                }
            }
        }
        self.count_elements(&mut place);
        place
    }

    /// Row-major number of the box's first element within the grid.
    pub fn elements_before(&self, place: &Place) -> usize {
        (0..self.count).fold(0, |before, dim| {
            before * self.space.dims[self.first + dim].size + place.index[dim] * self.box_size(dim)
        })
    }

    /// Advances to the next box.
    pub fn advance(&self, place: &mut Place) {
        for dim in (0..self.count).rev() {
            let (size, boxes) = (self.box_size(dim) as isize, self.boxes_along(dim));
            let steps = if place.index[dim] + 1 < boxes { 1 } else { 1 - boxes as isize };
            place.index[dim] = place.index[dim].wrapping_add_signed(steps);
            for column in 0..self.space.columns {
                place.offsets[column] += steps * size * self.space.stride(self.first + dim, column);
            }
            if steps == 1 {
                break;
            }
        }
        self.count_elements(place);
    }

    fn count_elements(&self, place: &mut Place) {
        for i in 0..3 {
            let dim = self.count - 3 + i;
            let start = place.index[dim] * self.full[i];
            place.counts[i] = self.full[i].min(self.space.dims[self.first + dim].size - start);
        }
    }

    /// Byte strides of a column along the box.
    pub fn box_strides(&self, column: usize) -> [isize; 3] {
        let last = self.first + self.count - 3;
        [0, 1, 2].map(|i| self.space.stride(last + i, column))
    }

    /// Whether every box of a column with elements of `size` bytes is contiguous.
    pub fn is_dense(&self, column: usize, size: usize) -> bool {
        let strides = self.box_strides(column);
        let last = self.first + self.count - 3;
        let [_, r, c] = [0, 1, 2].map(|i| self.space.dims[last + i].size);
        let [q_full, r_full, c_full] = self.full;
        (c_full == 1 || strides[2] == size as isize)
            && (r_full == 1 || (c_full == c && strides[1] == (c * size) as isize))
            && (q_full == 1 || (r_full == r && c_full == c && strides[0] == (r * c * size) as isize))
    }
}

/// A box of at most `tile` elements over three dims of the given sizes.
pub(crate) fn fit(sizes: [usize; 3], tile: usize) -> [usize; 3] {
    let [q, r, c] = sizes.map(|size| size.max(1));
    // A row longer than a tile is cut into equal parts, not into full ones and a short one.
    if c > tile {
        return [1, 1, c.div_ceil(c.div_ceil(tile)).next_multiple_of(64).min(tile)];
    }
    let rows = (tile / c).clamp(1, r);
    let planes = if rows == r { (tile / (c * r)).clamp(1, q) } else { 1 };
    [planes, rows, c]
}
