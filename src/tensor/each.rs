//! Records a formula over lists of tensors: members of one device and of the same dtypes go into one node.

use super::engine::Engine;
use super::history;
use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::base::layout::{Layout, Shape};
use crate::base::number_hash::Numbers;
use crate::op::formula::Formula;
use crate::op::infer;
use crate::op::tensor::{Buffer, Tensor, View};
use crate::sched::window::each::EachProgram;
use crate::sched::window::node::{Input, Work};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// What must be equal for the members of one node.
type Kind = (DeviceId, SmallVec<[DType; 6]>);

/// The tensor of a list for a member: a list of one tensor is shared by all members.
fn of_member<'a>(list: &&'a [Tensor], member: usize) -> Option<&'a Tensor> {
    if list.len() == 1 { list.first() } else { list.get(member) }
}

/// Runs the formula for each member of the lists, which have equal length, or one tensor for all members, or are
/// empty if unused. A tensor of no dimensions is combined with every element. Where `found_inf` of the engine is not 0
/// nothing is changed.
pub fn each(e: &mut Engine, lists: &[&[Tensor]], formula: &mut dyn FnMut(&Formula)) -> Result<()> {
    let kind = |member: usize| -> Kind {
        let dtype = |list: &&[Tensor]| of_member(list, member).map_or(DType::F32, Tensor::dtype);
        (lists[0][member].device(), lists.iter().map(dtype).collect())
    };
    let all = lists.first().map_or(0, |list| list.len());
    let mut left: Vec<usize> = (0..all).filter(|&member| lists[0][member].numel() > 0).collect();
    while let Some(&first) = left.first() {
        let wanted = kind(first);
        let (same, others) = left.into_iter().partition(|&member| kind(member) == wanted);
        left = others;
        let skip = e.found_inf.iter().find(|found| found.device() == wanted.0).cloned();
        let mut operands: SmallVec<[&[Tensor]; 12]> = SmallVec::from_slice(lists);
        let mut dtypes = wanted.1;
        if let Some(found) = &skip {
            operands.push(std::slice::from_ref(found));
            dtypes.push(found.dtype());
        }
        let sheet = match &skip {
            Some(_) => Formula::skipping(&dtypes, lists.len()),
            None => Formula::new(&dtypes),
        };
        formula(&sheet);
        let written = sheet.written();
        let scalars: Box<[u64]> = written.scalars.iter().map(|number| number.to_bits()).collect();
        let program = e.rt.each_program(written);
        record(e, &operands, &same, &program, &scalars)?;
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
    // A stored tensor is compared with all that others use; loaded ones need no comparison.
    let stored: u64 = program.slots.iter().filter(|(_, stored)| *stored).fold(0, |all, &(at, _)| all | 1 << at);
    let is_stored = |operand: usize| stored >> operand & 1 != 0;
    let mut part = begin(true);
    for &member in members {
        let mut views: SmallVec<[Arc<View>; 8]> = SmallVec::new();
        for &(operand, stored) in &program.slots {
            let tensor = of_member(&lists[operand], member).expect("a list that is looked at");
            if stored {
                if tensor.view().layout.repeated().next().is_some() {
                    return Err(infer::expanded());
                }
                history::check_inplace(e, tensor, tensor.requires_grad())?;
            }
            views.push(tensor.view());
        }
        let lines = flatten(&mut views);
        let conflict = views.iter().zip(&program.slots).any(|(view, &(operand, stored))| {
            let buffer = Arc::as_ptr(&view.buffer);
            let looked_at = stored || !is_stored(operand);
            looked_at && (part.written.contains(&buffer) || stored && part.read.contains(&buffer))
        });
        if conflict || lines != part.lines {
            let done = std::mem::replace(&mut part, begin(lines));
            end(e, done)?;
        }
        for (view, &(operand, stored)) in views.into_iter().zip(&program.slots) {
            if stored {
                part.written.insert(Arc::as_ptr(&view.buffer));
                part.outputs.push(view);
            } else {
                // A shared number may be read by all; it is never written.
                if !is_stored(operand) {
                    part.read.insert(Arc::as_ptr(&view.buffer));
                }
                part.inputs.push(Input::View(view));
            }
        }
    }
    end(e, part)
}

/// A member's views as contiguous lines, if all have the same order in memory and no gaps.
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

/// Without gaps and overlaps, for any order of dims.
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
