//! Shape, strides and offset of a tensor inside its buffer, counted in elements.
//!
//! All arithmetic is checked: a shape whose product overflows is an error value, never a wrap.

use smallvec::SmallVec;

/// Sizes of dimensions; up to six without an allocation.
pub type Shape = SmallVec<[usize; 6]>;
/// Strides in elements; may be negative only inside kernels, never in a tensor.
pub type Strides = SmallVec<[isize; 6]>;

/// A strided window on a buffer, in elements.
#[derive(PartialEq, Eq, Hash, Debug, Default)]
pub struct Layout {
    pub shape: Shape,
    pub strides: Strides,
    pub offset: usize,
}

impl Clone for Layout {
    /// Not: derived. The `clone` of `SmallVec` copies element by element.
    fn clone(&self) -> Layout {
        Layout {
            shape: Shape::from_slice(&self.shape),
            strides: Strides::from_slice(&self.strides),
            offset: self.offset,
        }
    }
}

/// Number of elements of a shape; `None` when it does not fit.
pub fn numel(shape: &[usize]) -> Option<usize> {
    // A size of 0 makes the product 0 even if the other sizes overflow.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size)).filter(|&n| n <= isize::MAX as usize)
}

/// Row-major strides; a size of 0 counts as 1, as in PyTorch.
pub fn contiguous_strides(shape: &[usize]) -> Strides {
    // Not: in place for few dims, where each access would ask whether the list is inline.
    let mut few = [1isize; 6];
    let mut many;
    let strides: &mut [isize] = match few.get_mut(..shape.len()) {
        Some(few) => few,
        None => {
            many = vec![1; shape.len()];
            &mut many
        }
    };
    let mut next = 1isize;
    for (stride, &size) in strides.iter_mut().zip(shape).rev() {
        *stride = next;
        next = next.saturating_mul(size.max(1) as isize);
    }
    Strides::from_slice(strides)
}

/// The shape that both broadcast to, as in NumPy; `None` when they do not.
pub fn broadcast(a: &[usize], b: &[usize]) -> Option<Shape> {
    let ndim = a.len().max(b.len());
    let size = |shape: &[usize], dim: usize| {
        let missing = ndim - shape.len();
        if dim < missing { 1 } else { shape[dim - missing] }
    };
    (0..ndim)
        .map(|dim| match (size(a, dim), size(b, dim)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// The layout of a new element-wise result: its dims follow each other in memory as those of the operands do, the first
/// operand before the others, as in PyTorch. Row-major where the operands say nothing.
pub fn of_operands<'a>(shape: &[usize], operands: impl Iterator<Item = &'a Layout> + Clone) -> Layout {
    let mut result = Layout::contiguous(shape);
    if shape.len() < 2 || operands.clone().all(Layout::is_contiguous) {
        return result;
    }
    let wide: SmallVec<[Strides; 4]> = operands.map(|layout| layout.broadcast_to(shape).strides).collect();
    // Whether dim `a` lies further inside than dim `b`; `None` where no operand tells.
    let is_inner = |a: usize, b: usize| {
        let told = |strides: &Strides| strides[a] != 0 && strides[b] != 0 && strides[a] != strides[b];
        let told = wide.iter().find(|strides| told(strides)).filter(|_| shape[a] != 1 && shape[b] != 1);
        told.map(|strides| strides[a] < strides[b])
    };
    let mut order: SmallVec<[usize; 6]> = (0..shape.len()).collect();
    for start in 1..order.len() {
        let mut at = start;
        for before in (0..start).rev() {
            match is_inner(order[before], order[at]) {
                Some(true) => {
                    order.swap(before, at);
                    at = before;
                }
                Some(false) => break,
                None => {}
            }
        }
    }
    let mut next = 1isize;
    for &dim in order.iter().rev() {
        result.strides[dim] = next;
        next = next.saturating_mul(shape[dim].max(1) as isize);
    }
    result
}

/// An order of the elements in memory that a script asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryFormat {
    /// Row-major.
    Contiguous,
    /// Pixels one after another, each with its channels: `[batch, channels, height, width]`.
    ChannelsLast,
    /// The same with a depth before the height.
    ChannelsLast3d,
}

impl MemoryFormat {
    /// By its name; none for `preserve_format`, which asks for no order.
    pub fn parse(name: &str) -> Option<MemoryFormat> {
        Some(match name {
            "contiguous_format" => MemoryFormat::Contiguous,
            "channels_last" => MemoryFormat::ChannelsLast,
            "channels_last_3d" => MemoryFormat::ChannelsLast3d,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            MemoryFormat::Contiguous => "contiguous_format",
            MemoryFormat::ChannelsLast => "channels_last",
            MemoryFormat::ChannelsLast3d => "channels_last_3d",
        }
    }

    /// The dims from the innermost to the outermost one; none where the format has another number of dims.
    fn order(self, ndim: usize) -> Option<&'static [usize]> {
        match (self, ndim) {
            (MemoryFormat::ChannelsLast, 4) => Some(&[1, 3, 2, 0]),
            (MemoryFormat::ChannelsLast3d, 5) => Some(&[1, 4, 3, 2, 0]),
            _ => None,
        }
    }

    /// The number of dims that it is for.
    pub fn ndim(self) -> Option<usize> {
        match self {
            MemoryFormat::Contiguous => None,
            MemoryFormat::ChannelsLast => Some(4),
            MemoryFormat::ChannelsLast3d => Some(5),
        }
    }

    /// A dense layout in this order; none where the format has another number of dims.
    pub fn layout(self, shape: &[usize]) -> Option<Layout> {
        let mut layout = Layout::contiguous(shape);
        if self != MemoryFormat::Contiguous {
            let mut next = 1isize;
            for &dim in self.order(shape.len())? {
                layout.strides[dim] = next;
                next = next.saturating_mul(shape[dim].max(1) as isize);
            }
        }
        Some(layout)
    }

    /// Whether a layout is dense in this order.
    pub fn is_of(self, layout: &Layout) -> bool {
        if self == MemoryFormat::Contiguous {
            return layout.is_contiguous();
        }
        let Some(order) = self.order(layout.ndim()) else { return false };
        let mut expected = 1isize;
        order.iter().all(|&dim| {
            let (size, fits) = (layout.shape[dim], layout.strides[dim] == expected);
            if size != 1 {
                expected = expected.wrapping_mul(size as isize);
            }
            size == 1 || fits
        })
    }

    /// The order that strides suggest, as PyTorch takes them: row-major unless they clearly are of another.
    pub fn suggested(layout: &Layout) -> MemoryFormat {
        let others = [MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d];
        others.into_iter().find(|format| format.resembles(layout)).unwrap_or(MemoryFormat::Contiguous)
    }

    fn resembles(self, layout: &Layout) -> bool {
        let Some(order) = self.order(layout.ndim()).filter(|_| layout.strides[1] != 0) else { return false };
        let mut least = 0isize;
        order.iter().all(|&dim| {
            let (size, stride) = (layout.shape[dim], layout.strides[dim]);
            // Batches of single elements say nothing.
            let is_told = size != 0 && stride >= least && !(dim == 0 && least == layout.strides[1]);
            least = if size > 1 { stride.saturating_mul(size as isize) } else { stride };
            is_told
        })
    }
}

impl Layout {
    /// The same places, counted in elements of half the size.
    pub fn doubled(&self) -> Layout {
        // Strides of no elements may be as large as numbers are.
        let strides = self.strides.iter().map(|stride| stride.saturating_mul(2)).collect();
        Layout { shape: Shape::from_slice(&self.shape), strides, offset: self.offset * 2 }
    }

    pub fn contiguous(shape: &[usize]) -> Layout {
        Layout { shape: Shape::from_slice(shape), strides: contiguous_strides(shape), offset: 0 }
    }

    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements. Invariant: a layout is only made for shapes whose product fits, or that have a size of 0.
    pub fn numel(&self) -> usize {
        self.shape.iter().fold(1, |product: usize, &size| product.wrapping_mul(size))
    }

    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Row-major and contiguous, at any offset.
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1isize;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if size != 1 {
                if stride != expected {
                    return self.is_empty();
                }
                expected = expected.wrapping_mul(size as isize);
            }
        }
        true
    }

    /// The expanded dimensions: size above 1 and stride 0, as `broadcast_to` makes them; none where there are no elements.
    pub fn repeated(&self) -> impl Iterator<Item = usize> + '_ {
        let dims = if self.is_empty() { 0..0 } else { 0..self.ndim() };
        dims.filter(|&dim| self.shape[dim] > 1 && self.strides[dim] == 0)
    }

    /// Whether two indices may touch one element. Exact for layouts made of slices and permutations, careful for others.
    pub fn may_overlap(&self) -> bool {
        if self.is_contiguous() {
            return false;
        }
        let dims = self.strides.iter().map(|&s| s as usize).zip(self.shape.iter().copied());
        let mut dims: SmallVec<[(usize, usize); 8]> = dims.filter(|&(_, n)| n > 1).collect();
        dims.sort_unstable();
        let mut reach = 0;
        dims.into_iter().any(|(stride, n)| {
            let clash = stride <= reach;
            reach += stride * (n - 1);
            clash
        })
    }

    /// Offset of the lowest element and one past the highest; `None` for an empty layout.
    pub fn extent(&self) -> Option<(usize, usize)> {
        if self.is_empty() {
            return None;
        }
        let last: usize = self.shape.iter().zip(&self.strides).map(|(&n, &s)| (n - 1) * s as usize).sum();
        Some((self.offset, self.offset + last + 1))
    }

    /// The layout expanded to the shape `to` (stride 0 for sizes of 1 and new dims). Precondition: this layout's shape
    /// broadcasts to `to`.
    pub fn broadcast_to(&self, to: &[usize]) -> Layout {
        let missing = to.len() - self.ndim();
        let (shape, own): (&[usize], &[isize]) = (&self.shape, &self.strides);
        let mut strides = Strides::new();
        for (dim, &size) in to.iter().enumerate() {
            let repeats = dim < missing || (shape[dim - missing] == 1 && size != 1);
            strides.push(if repeats { 0 } else { own[dim - missing] });
        }
        Layout { shape: Shape::from_slice(to), strides, offset: self.offset }
    }

    pub fn permute(&self, dims: &[usize]) -> Layout {
        Layout {
            shape: dims.iter().map(|&d| self.shape[d]).collect(),
            strides: dims.iter().map(|&d| self.strides[d]).collect(),
            offset: self.offset,
        }
    }

    /// The elements `start, start + step, ..` of one dimension, `len` of them.
    pub fn slice(&self, dim: usize, start: usize, step: usize, len: usize) -> Layout {
        let mut out = self.clone();
        if len > 0 {
            out.offset += start * self.strides[dim] as usize;
        }
        out.shape[dim] = len;
        // The stride of a dim of size 1 is never used; it is not multiplied, so that it cannot overflow.
        if len > 1 {
            out.strides[dim] *= step as isize;
        }
        out
    }

    /// One index of a dimension, which is removed.
    pub fn select(&self, dim: usize, index: usize) -> Layout {
        let mut out = Layout {
            shape: Shape::from_slice(&self.shape[..dim]),
            strides: Strides::from_slice(&self.strides[..dim]),
            offset: self.offset + index * self.strides[dim] as usize,
        };
        out.shape.extend_from_slice(&self.shape[dim + 1..]);
        out.strides.extend_from_slice(&self.strides[dim + 1..]);
        out
    }

    /// A new dimension of size 1 before `dim`.
    pub fn unsqueeze(&self, dim: usize) -> Layout {
        let mut out = self.clone();
        let stride = if dim < self.ndim() { self.shape[dim] as isize * self.strides[dim] } else { 1 };
        out.shape.insert(dim, 1);
        out.strides.insert(dim, stride);
        out
    }

    /// The same memory with another shape, if strides allow it (PyTorch's `computeStride`).
    pub fn view(&self, shape: &[usize]) -> Option<Layout> {
        if self.is_empty() {
            return Some(Layout { offset: self.offset, ..Layout::contiguous(shape) });
        }
        let mut strides: Strides = SmallVec::from_elem(0, shape.len());
        let mut view_dim = shape.len();
        let mut chunk_stride = self.strides.last().copied().unwrap_or(1);
        let (mut tensor_numel, mut view_numel) = (1usize, 1usize);
        for dim in (0..self.ndim()).rev() {
            tensor_numel *= self.shape[dim];
            let chunk_ends =
                dim == 0 || (self.shape[dim - 1] != 1 && self.strides[dim - 1] != tensor_numel as isize * chunk_stride);
            if !chunk_ends {
                continue;
            }
            while view_dim > 0 && (view_numel < tensor_numel || shape[view_dim - 1] == 1) {
                view_dim -= 1;
                strides[view_dim] = view_numel as isize * chunk_stride;
                view_numel *= shape[view_dim];
            }
            if view_numel != tensor_numel {
                return None;
            }
            if dim > 0 {
                chunk_stride = self.strides[dim - 1];
                (tensor_numel, view_numel) = (1, 1);
            }
        }
        if self.ndim() == 0 {
            strides = contiguous_strides(shape);
            view_dim = 0;
        }
        (view_dim == 0).then(|| Layout { shape: Shape::from_slice(shape), strides, offset: self.offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_needs_compatible_strides() {
        let x = Layout::contiguous(&[2, 3, 4]);
        assert_eq!(x.view(&[6, 4]).unwrap().strides.as_slice(), [4, 1]);
        assert!(x.permute(&[1, 0, 2]).view(&[6, 4]).is_none());
        assert_eq!(x.permute(&[1, 0, 2]).view(&[3, 2, 2, 2]).unwrap().strides.as_slice(), [4, 12, 2, 1]);
        assert_eq!(Layout::contiguous(&[]).view(&[1, 1]).unwrap().shape.as_slice(), [1, 1]);
    }

    /// Strides as PyTorch gives them.
    #[test]
    fn results_lie_as_operands_do() {
        let of = |shape: &[usize], operands: &[&Layout]| of_operands(shape, operands.iter().copied()).strides.to_vec();
        let x = Layout::contiguous(&[2, 3, 4]);
        let moved = x.permute(&[2, 0, 1]);
        assert_eq!(of(&[4, 2, 3], &[&moved]), [1, 12, 4]);
        assert_eq!(of(&[2, 3, 4], &[&x]), [12, 4, 1]);
        // The first operand decides, where it tells anything.
        let plain = Layout::contiguous(&[4, 2, 3]);
        assert_eq!(of(&[4, 2, 3], &[&moved, &plain]), [1, 12, 4]);
        assert_eq!(of(&[4, 2, 3], &[&plain, &moved]), [6, 3, 1]);
        let row = Layout::contiguous(&[3]);
        assert_eq!(of(&[4, 2, 3], &[&row, &moved]), [1, 12, 4]);
        // Gaps are closed, and what is expanded has no place of its own.
        assert_eq!(of(&[2, 2, 4], &[&x.slice(1, 0, 2, 2).permute(&[0, 1, 2])]), [8, 4, 1]);
        assert_eq!(of(&[4, 2, 2], &[&x.slice(1, 0, 2, 2).permute(&[2, 0, 1])]), [1, 8, 4]);
        let column = Layout::contiguous(&[3, 1]);
        assert_eq!(of(&[3, 5], &[&column.broadcast_to(&[3, 5])]), [5, 1]);
        assert_eq!(
            of(&[3, 5], &[&column.broadcast_to(&[3, 5]), &Layout::contiguous(&[5, 3]).permute(&[1, 0])]),
            [1, 3]
        );
    }

    #[test]
    fn broadcasting() {
        assert_eq!(broadcast(&[3, 1], &[4]).unwrap().as_slice(), [3, 4]);
        assert!(broadcast(&[3], &[4]).is_none());
        assert_eq!(broadcast(&[0], &[1]).unwrap().as_slice(), [0]);
    }

    #[test]
    fn overflow_is_seen() {
        assert_eq!(numel(&[usize::MAX, 2]), None);
        assert_eq!(numel(&[usize::MAX, 2, 0]), Some(0));
    }
}
