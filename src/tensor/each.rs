//! Records a formula over lists of tensors: members of one device and of the same dtypes go into one node.

use super::engine::Engine;
use super::history;
use super::inplace::expanded;
use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::base::layout::{Layout, Shape};
use crate::base::number_hash::Numbers;
use crate::op::formula::Formula;
use crate::op::tensor::{Buffer, Tensor, View};
use crate::sched::window::each::EachProgram;
use crate::sched::window::node::{Input, Work};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// What must be the same for members of one node.
type Kind = (DeviceId, SmallVec<[DType; 6]>);

/// Runs the formula for each member of the lists, which are of one length, or empty where it does not look. A member
/// of no dimensions stands beside every element.
pub fn each(e: &mut Engine, lists: &[&[Tensor]], formula: &mut dyn FnMut(&mut Formula)) -> Result<()> {
    let kind = |member: usize| -> Kind {
        let dtype = |list: &&[Tensor]| list.get(member).map_or(DType::F32, Tensor::dtype);
        (lists[0][member].device(), lists.iter().map(dtype).collect())
    };
    let all = lists.first().map_or(0, |list| list.len());
    let mut left: Vec<usize> = (0..all).filter(|&member| lists[0][member].numel() > 0).collect();
    while let Some(&first) = left.first() {
        let wanted = kind(first);
        let (same, others) = left.into_iter().partition(|&member| kind(member) == wanted);
        left = others;
        let mut written = Formula::new(&wanted.1);
        formula(&mut written);
        let scalars: Box<[u64]> = written.scalars.iter().map(|number| number.to_bits()).collect();
        let program = e.rt.each_program(written);
        record(e, lists, &same, &program, &scalars)?;
    }
    Ok(())
}

/// The members of one node so far.
struct Part {
    lines: bool,
    inputs: SmallVec<[Input; 3]>,
    outputs: SmallVec<[Arc<View>; 1]>,
    read: Numbers<*const Buffer>,
    written: Numbers<*const Buffer>,
}

fn record(
    e: &mut Engine,
    lists: &[&[Tensor]],
    members: &[usize],
    program: &Arc<EachProgram>,
    scalars: &[u64],
) -> Result<()> {
    let begin = |lines| Part {
        lines,
        inputs: SmallVec::with_capacity(members.len() * program.loads),
        outputs: SmallVec::with_capacity(members.len() * program.stores),
        read: Numbers::default(),
        written: Numbers::default(),
    };
    let end = |e: &mut Engine, part: Part| {
        let (each, scalars, lines) = (program.clone(), scalars.into(), part.lines);
        if part.outputs.is_empty() {
            return Ok(());
        }
        e.record(Work::Each { each, scalars, lines }, part.inputs, part.outputs)
    };
    let mut part = begin(true);
    for &member in members {
        let mut views: SmallVec<[Arc<View>; 8]> = SmallVec::new();
        for &(operand, stored) in &program.slots {
            let tensor = &lists[operand][member];
            if stored {
                if tensor.view().layout.repeated().next().is_some() {
                    return Err(expanded());
                }
                history::check_inplace(e, tensor, tensor.requires_grad())?;
            }
            views.push(tensor.view());
        }
        let lines = flatten(&mut views);
        let conflict = views.iter().zip(&program.slots).any(|(view, (_, stored))| {
            let buffer = Arc::as_ptr(&view.buffer);
            part.written.contains(&buffer) || *stored && part.read.contains(&buffer)
        });
        if conflict || lines != part.lines {
            let done = std::mem::replace(&mut part, begin(lines));
            end(e, done)?;
        }
        for (view, &(_, stored)) in views.into_iter().zip(&program.slots) {
            if stored {
                part.written.insert(Arc::as_ptr(&view.buffer));
                part.outputs.push(view);
            } else {
                // A shared number may be read by all; it is never written.
                part.read.insert(Arc::as_ptr(&view.buffer));
                part.inputs.push(Input::View(view));
            }
        }
    }
    end(e, part)
}

/// Sees a member's views as dense lines, where all lie in memory in the same order and without holes.
fn flatten(views: &mut [Arc<View>]) -> bool {
    let Some(first) = views.iter().map(|view| &view.layout).max_by_key(|layout| layout.ndim()) else { return true };
    let (shape, strides) = (first.shape.clone(), first.strides.clone());
    let is_number = |view: &View| view.layout.ndim() == 0 && !shape.is_empty();
    let same = |layout: &Layout| {
        let mut dims = shape.iter().zip(&strides).zip(&layout.strides);
        layout.shape == shape && dims.all(|((&size, ours), theirs)| size == 1 || ours == theirs)
    };
    if !is_dense(first) || !views.iter().filter(|view| !is_number(view)).all(|view| same(&view.layout)) {
        return false;
    }
    let count: usize = shape.iter().product();
    for view in views.iter_mut().filter(|view| !is_number(view) && view.layout.ndim() != 1) {
        let line: Shape = smallvec![count];
        let layout = Layout { shape: line, strides: smallvec![1], offset: view.layout.offset };
        *view = Arc::new(View::new(view.buffer.clone(), layout, view.dtype));
    }
    true
}

/// Without holes and overlaps, whatever the order of dims.
fn is_dense(layout: &Layout) -> bool {
    if layout.is_contiguous() {
        return true;
    }
    let dims = layout.shape.iter().zip(&layout.strides).filter(|(size, _)| **size != 1);
    let mut dims: SmallVec<[(isize, usize); 6]> = dims.map(|(&size, &stride)| (stride, size)).collect();
    dims.sort_unstable();
    let mut expected = 1;
    dims.iter().all(|&(stride, size)| {
        let fits = stride == expected;
        expected *= size as isize;
        fits
    })
}
