//! Steps on copies in host memory, for operations without a kernel on a kind of device. With it every operation works
//! on every device, and a new kind of device needs nothing else.

use super::host;
use super::step::Command;
use super::touch::{self, Span};
use crate::kernel::abi::{Faults, RawView};
use crate::kernel::guard::End;
use crate::sched::memory::kernel_context::KernelContext;
use crate::sched::window::plan::Operands;
use std::sync::Arc;

/// Memory that the host cannot access directly.
pub trait Remote {
    type Error;
    /// The bytes, after all work that was queued before.
    fn fetch(&self, span: &Span) -> Result<Vec<u8>, Self::Error>;
    /// Writes bytes, which are read before this returns or before [`Remote::wait`] does.
    fn store(&self, span: &Span, bytes: &[u8]) -> Result<(), Self::Error>;
    /// Waits until all stores have ended.
    fn wait(&self) -> Result<(), Self::Error>;
}

/// Runs a step on copies. The outer error is the device's; the inner says why the step did not finish.
pub fn run<R: Remote>(
    remote: &R,
    command: &Command<'_>,
    slots: &[Faults],
    kernel_context: &KernelContext<'_>,
) -> Result<Result<(), End>, R::Error> {
    match command {
        Command::Fused { program, shape, views, table } => {
            let mut copies = Copies::of(remote, views.iter())?;
            let fetched = Arc::new(copies.all_near(views));
            let done = host::run(&Command::Fused { program, shape, views: &fetched, table }, slots, kernel_context);
            copies.store(views)?;
            Ok(done)
        }
        Command::Kernel { kernel, attrs, operands, seed, offset } => {
            let mut copies = Copies::of(remote, operands.inputs.iter().chain(&operands.outputs))?;
            let inputs = copies.all_near(&operands.inputs);
            let copied = Arc::new(Operands { inputs, outputs: copies.all_near(&operands.outputs) });
            let (kernel, seed, offset) = (*kernel, *seed, *offset);
            let done =
                host::run(&Command::Kernel { kernel, attrs, operands: &copied, seed, offset }, slots, kernel_context);
            copies.store(&operands.outputs)?;
            Ok(done)
        }
        Command::Each { each, node, scalars, .. } => {
            for member in 0..each.members(node) {
                let views = each.views(node, member);
                let mut copies = Copies::of(remote, views.iter())?;
                let fetched = copies.all_near(&views);
                let shape = each.shape(node, member);
                let done = touch::run_fused(&each.program, shape, &fetched, scalars, &[], kernel_context);
                copies.store(&views)?;
                if done.is_err() {
                    return Ok(done);
                }
            }
            Ok(Ok(()))
        }
    }
}

/// Host copies of a device's memory, in the order of its addresses. Views may share bytes without being the same, as those of
/// the real and the imaginary parts of complex numbers do: one copy serves them, so that none writes back what another has
/// changed.
struct Copies<'a, R> {
    remote: &'a R,
    spans: Vec<(Span, Vec<u8>)>,
}

impl<'a, R: Remote> Copies<'a, R> {
    fn of<'v>(remote: &'a R, views: impl Iterator<Item = &'v RawView>) -> Result<Self, R::Error> {
        let mut ranges: Vec<(u64, u64)> = views.map(range).filter(|(start, end)| start < end).collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, known| {
            let share = next.0 < known.1;
            if share {
                known.1 = known.1.max(next.1);
            }
            share
        });
        let fetched = |(start, end): (u64, u64)| {
            let span = Span::new(start as *mut u8, (end - start) as usize);
            remote.fetch(&span).map(|copy| (span, copy))
        };
        let spans: Result<Vec<_>, R::Error> = ranges.into_iter().map(fetched).collect();
        Ok(Copies { remote, spans: spans? })
    }

    /// The view on the host copy of its memory.
    fn near(&mut self, view: &RawView) -> RawView {
        let (start, end) = range(view);
        let found = self.spans.iter_mut().find(|(span, _)| start < end && holds(span, start));
        let ptr = match found {
            Some((span, copy)) => copy.as_mut_ptr().wrapping_offset(view.ptr as isize - span.address() as isize),
            // A view without elements is not read.
            None => std::ptr::NonNull::dangling().as_ptr(),
        };
        RawView { ptr, ..view.clone() }
    }

    fn all_near(&mut self, views: &[RawView]) -> Vec<RawView> {
        views.iter().map(|view| self.near(view)).collect()
    }

    /// Writes back what may have changed.
    fn store(&self, views: &[RawView]) -> Result<(), R::Error> {
        let written = |span: &Span| views.iter().map(range).any(|(start, end)| start < end && holds(span, start));
        for (span, copy) in self.spans.iter().filter(|(span, _)| written(span)) {
            self.remote.store(span, copy)?;
        }
        self.remote.wait()
    }
}

/// The addresses of a view's bytes: the first, and that behind the last.
fn range(view: &RawView) -> (u64, u64) {
    let (low, bytes) = extent(view);
    let start = view.ptr.wrapping_offset(low) as u64;
    (start, start + bytes as u64)
}

fn holds(span: &Span, address: u64) -> bool {
    (span.address()..span.address() + span.len() as u64).contains(&address)
}

/// The byte range of a view: the offset of its lowest byte from its first element, and its length.
fn extent(view: &RawView) -> (isize, usize) {
    let elem = view.dtype.size_bytes() as isize;
    if view.numel() == 0 {
        return (0, 0);
    }
    let (mut low, mut high) = (0isize, 0isize);
    for (&size, &stride) in view.shape.iter().zip(&view.strides) {
        let reach = (size as isize - 1) * stride;
        low += reach.min(0);
        high += reach.max(0);
    }
    (low * elem, ((high - low + 1) * elem) as usize)
}
