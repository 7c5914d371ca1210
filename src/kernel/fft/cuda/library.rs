//! Transforms by the vendor's library: up to three dims at once, from where the operand lies to where the result is to lie,
//! if the library can say where that is; else from or to a copy.
//!
//! The library sums without factors, of whole signals, forward from real numbers and inversely to them. What differs is done
//! by the passes of `moves.rs`: none for a forward transform of a whole signal, one for a factor.

use super::super::host::Task;
use super::super::host::lines::Kind;
use super::moves::{Change, Numbers, Way};
use crate::base::dtype::DType;
use crate::base::layout::Shape;
use crate::kernel::abi::RawView;
use crate::kernel::cuda::{Gpu, GpuError, Transform, TransformCall, TransformSide};

/// The library's bound.
const RANK: usize = 3;
/// Bound: calls for one transform, when the other dims do not lie behind each other; from here on a copy is faster.
const CALLS: usize = 8;
/// Bound of what the passes take.
const DIMS: usize = 8;

/// Where a side of a transform lies: numbers from one signal to the next in each of the other dims, and within a signal.
struct Lies {
    side: TransformSide,
    others: Vec<usize>,
}

/// How numbers lie for transforms along dims, in this order; `None`: not as the library could say it.
fn lies(numbers: &Numbers, dims: &[usize], others: &[usize]) -> Option<Lies> {
    if !numbers.is_aligned() {
        return None;
    }
    let parts = 1 + numbers.second.is_some() as isize;
    let stride = |d: usize| usize::try_from(numbers.strides[d] / parts).ok();
    let mut embed = [1; RANK];
    let last = dims.len() - 1;
    let step = stride(dims[last])?;
    if step == 0 {
        return None;
    }
    let mut inside = step;
    for at in (1..dims.len()).rev() {
        let outer = stride(dims[at - 1])?;
        embed[at] = outer / inside;
        if outer % inside != 0 || embed[at] < numbers.shape[dims[at]] {
            return None;
        }
        inside = outer;
    }
    embed[0] = numbers.shape[dims[0]];
    let others: Option<Vec<usize>> = others.iter().map(|&d| stride(d)).collect();
    Some(Lies { side: TransformSide { ptr: numbers.at, embed, stride: step, distance: 0 }, others: others? })
}

/// The calls that transform all signals along dims, of which the last is the half one of real numbers; `None`: too many, or
/// the library could not say where the numbers lie.
fn calls(
    kind: Transform,
    (dims, lengths): (&[usize], &[usize]),
    from: &Numbers,
    to: &Numbers,
) -> Option<Vec<TransformCall>> {
    let others: Vec<usize> = (0..from.shape.len()).filter(|d| !dims.contains(d) && from.shape[*d] != 1).collect();
    let (source, target) = (lies(from, dims, &others)?, lies(to, dims, &others)?);
    // Dims that lie behind each other on both sides are one.
    let mut batch: Vec<(usize, usize, usize)> = Vec::new();
    for (at, &d) in others.iter().enumerate() {
        let (size, steps) = (from.shape[d], (source.others[at], target.others[at]));
        match batch.last_mut() {
            Some(outer) if (outer.1, outer.2) == (steps.0 * size, steps.1 * size) => {
                *outer = (outer.0 * size, steps.0, steps.1);
            }
            _ => batch.push((size, steps.0, steps.1)),
        }
    }
    let most = (0..batch.len()).max_by_key(|&at| batch[at].0);
    let (count, from_distance, to_distance) = most.map_or((1, 1, 1), |at| batch.remove(at));
    let times: usize = batch.iter().map(|outer| outer.0).product();
    if times > CALLS || count > 1 && (from_distance == 0 || to_distance == 0) {
        return None;
    }
    let mut sizes = [1; RANK];
    sizes[..dims.len()].copy_from_slice(lengths);
    let call = |number: usize| {
        let (mut rest, mut places) = (number, [0, 0]);
        for (size, from_step, to_step) in batch.iter().rev() {
            places = [places[0] + rest % size * from_step, places[1] + rest % size * to_step];
            rest /= size;
        }
        let side = |numbers: &Numbers, side: TransformSide, place: usize, distance: usize| {
            let parts = 1 + numbers.second.is_some() as usize;
            let ptr = side.ptr.wrapping_add(place * parts * numbers.dtype.size_bytes());
            TransformSide { ptr, distance, ..side }
        };
        TransformCall {
            kind,
            dtype: from.dtype,
            rank: dims.len(),
            lengths: sizes,
            count,
            from: side(from, source.side, places[0], from_distance),
            to: side(to, target.side, places[1], to_distance),
        }
    };
    let all: Vec<TransformCall> = (0..times).map(call).collect();
    let aligned = |side: &TransformSide| (side.ptr as usize).is_multiple_of(2 * from.dtype.size_bytes());
    all.iter().all(|call| aligned(&call.from) && aligned(&call.to)).then_some(all)
}

/// Dims that are transformed together, the half one of real numbers last, with their lengths.
struct Group {
    dims: Vec<usize>,
    lengths: Vec<usize>,
}

impl Group {
    fn lists(&self) -> (&[usize], &[usize]) {
        (&self.dims, &self.lengths)
    }
}

/// Groups of dims, the innermost ones first. Dims of which transforms have length 1 are none.
fn groups(task: &Task, half: Option<usize>) -> Vec<Group> {
    let mut all: Vec<(usize, usize)> = task.dims.iter().copied().zip(task.lengths.iter().copied()).collect();
    all.retain(|&(dim, length)| length > 1 || half == Some(dim));
    // The half one counts as the innermost.
    crate::base::order::by(&mut all, |a, b| (half == Some(a.0), a.0).cmp(&(half == Some(b.0), b.0)));
    let group = |part: &[(usize, usize)]| Group {
        dims: part.iter().map(|pair| pair.0).collect(),
        lengths: part.iter().map(|pair| pair.1).collect(),
    };
    all.rchunks(RANK).map(group).collect()
}

/// One transform as the library does it.
struct Plan<'a> {
    task: &'a Task,
    dtype: DType,
    kind: Transform,
    half: Option<usize>,
    groups: Vec<Group>,
    /// Before: what the library reads, with the pass that makes it if that is not the operand.
    from: Numbers,
    before: Option<Change<'a>>,
    /// The library's result.
    to: Numbers,
    /// It is the result's memory, or is copied there.
    in_place: bool,
}

/// Sizes along the dims as transforms have them; half of them and one more along `half`.
fn sizes(shape: &Shape, task: &Task, half: Option<usize>) -> Shape {
    let mut shape = shape.clone();
    for (&dim, &length) in task.dims.iter().zip(&task.lengths) {
        shape[dim] = if half == Some(dim) { length / 2 + 1 } else { length };
    }
    shape
}

impl Plan<'_> {
    /// The calls in order, with all numbers where they lie now.
    fn calls(&self) -> Option<Vec<TransformCall>> {
        let (first, rest) = self.groups.split_first()?;
        let mut all = Vec::new();
        match self.kind {
            // The half dim is the last one to be transformed.
            Transform::FromHalf => {
                for group in rest {
                    let whole = Transform::Whole { inverse: true };
                    all.extend(calls(whole, group.lists(), &self.from, &self.from)?);
                }
                all.extend(calls(self.kind, first.lists(), &self.from, &self.to)?);
            }
            Transform::ToHalf | Transform::Whole { .. } => {
                let mut half = self.to.clone();
                half.shape = sizes(&half.shape, self.task, self.half);
                let inverse = self.kind == Transform::Whole { inverse: true };
                all.extend(calls(self.kind, first.lists(), &self.from, &half)?);
                for group in rest {
                    all.extend(calls(Transform::Whole { inverse }, group.lists(), &half, &half)?);
                }
            }
        }
        Some(all)
    }
}

/// Transforms by the library; false, and nothing is launched, where there is none or it cannot.
pub fn run(kind: Kind, task: &Task, [x, y]: [&RawView; 2], gpu: &mut dyn Gpu) -> Result<bool, GpuError> {
    let dtype = y.dtype;
    let (x, y) = (Numbers::of(x, task.pairs[0]), Numbers::of(y, task.pairs[1]));
    let from_real = kind == Kind::Whole && !task.pairs[0];
    // The spectrum of real numbers has two halves, of which the second is made from the first.
    let half = match kind {
        Kind::Whole if from_real => {
            let long = task.dims.iter().zip(&task.lengths).filter(|(_, length)| **length > 1);
            long.map(|(dim, _)| *dim).max()
        }
        Kind::Whole => None,
        Kind::ToHalf | Kind::FromHalf => task.dims.last().copied(),
    };
    let groups = groups(task, half);
    let is_short = half.is_some_and(|half| task.dims.iter().zip(&task.lengths).any(|(&d, &n)| d == half && n < 2));
    if groups.is_empty() || is_short || y.shape.len() > DIMS || from_real && !task.pairs[1] {
        return Ok(false);
    }
    let Some(mut plan) = plan(kind, task, dtype, (half, groups), [&x, &y]) else { return Ok(false) };
    for call in plan.calls().unwrap_or_default() {
        if !gpu.transforms(&call)? {
            return Ok(false);
        }
    }
    if let Some(change) = plan.before {
        plan.from.place(gpu)?;
        change.run(&x, &plan.from, gpu)?;
    }
    if !plan.in_place {
        plan.to.place(gpu)?;
    }
    for call in plan.calls().unwrap_or_default() {
        gpu.transform(&call)?;
    }
    after(&plan, kind, from_real, &y, gpu)?;
    Ok(true)
}

/// What the library reads and writes: the operand and the result, or copies.
fn plan<'a>(
    kind: Kind,
    task: &'a Task,
    dtype: DType,
    (half, groups): (Option<usize>, Vec<Group>),
    [x, y]: [&Numbers; 2],
) -> Option<Plan<'a>> {
    let change = Change { dims: &task.dims, lengths: &task.lengths, half, ..Change::COPY };
    let (kind, spectrum) = match kind {
        Kind::Whole if half.is_some() => (Transform::ToHalf, None),
        Kind::Whole => (Transform::Whole { inverse: task.flag }, None),
        Kind::ToHalf => (Transform::ToHalf, half),
        Kind::FromHalf => (Transform::FromHalf, half),
    };
    let from_half = kind == Transform::FromHalf;
    // The library overwrites half spectra, so it gets a copy, with the factor.
    let halves = Change { way: Way::Halves, conjugate: task.flag, scale: task.scale, middle: task.middle, ..change };
    let from_shape = sizes(&x.shape, task, if from_half { half } else { None });
    let to_shape = sizes(&y.shape, task, if from_half { None } else { spectrum });
    let complex = [kind != Transform::ToHalf, !from_half];
    let dims = &groups.first()?.dims;
    let order: Vec<usize> = (0..x.shape.len()).collect();
    let grouped = |shape: &Shape, complex| Numbers::dense(dtype, shape, dims, complex);
    let row_major = |shape: &Shape, complex| Numbers::dense(dtype, shape, &order, complex);
    // In place where nothing is missing; what is cut of the operand is not read.
    let is_enough = x.shape.iter().zip(&from_shape).all(|(given, needed)| given >= needed);
    let is_operand = is_enough && !from_half && x.second.is_some() == complex[0];
    let is_result = y.shape == to_shape && y.second.is_some() == complex[1];
    let (mut whole, result) = (x.clone(), y.clone());
    whole.shape = from_shape.clone();
    let sources =
        [is_operand.then_some(whole), Some(row_major(&from_shape, complex[0])), Some(grouped(&from_shape, complex[0]))];
    let targets = [is_result.then_some(result), Some(grouped(&to_shape, complex[1]))];
    let mut made =
        Plan { task, dtype, kind, half, groups, from: x.clone(), before: None, to: y.clone(), in_place: true };
    // The fewest passes first.
    for (from, to) in [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)] {
        let (Some(source), Some(target)) = (&sources[from], &targets[to]) else { continue };
        (made.from, made.to, made.in_place) = (source.clone(), target.clone(), to == 0);
        made.before = match from {
            0 => None,
            _ if from_half => Some(halves),
            _ => Some(Change { half: None, ..change }),
        };
        if made.calls().is_some() {
            return Some(made);
        }
    }
    None
}

/// The passes after the library's: the other half, factors, the result's sizes.
fn after(plan: &Plan<'_>, kind: Kind, from_real: bool, y: &Numbers, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let (task, half) = (plan.task, plan.half);
    debug_assert_eq!(plan.dtype, y.dtype);
    let change = Change { dims: &task.dims, lengths: &task.lengths, ..Change::COPY };
    let change = match kind {
        Kind::Whole if from_real => {
            let mirror = Change { way: Way::Mirror, half, conjugate: task.flag, scale: task.scale, ..change };
            mirror.run(&plan.to, &plan.to, gpu)?;
            change
        }
        Kind::Whole => Change { scale: task.scale, ..change },
        Kind::ToHalf => Change { half, conjugate: task.flag, scale: task.scale, middle: task.middle, ..change },
        Kind::FromHalf => change,
    };
    if plan.in_place && !change.conjugate && change.scale == 1.0 && change.middle == 1.0 {
        return Ok(());
    }
    change.run(&plan.to, y, gpu)
}
