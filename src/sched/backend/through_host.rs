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
    let mut copies = Copies { remote, spans: Vec::new() };
    match command {
        Command::Fused { program, shape, views, table } => {
            let fetched = Arc::new(copies.fetch_all(views)?);
            let done = host::run(&Command::Fused { program, shape, views: &fetched, table }, slots, kernel_context);
            copies.store(views)?;
            Ok(done)
        }
        Command::Kernel { kernel, attrs, operands, seed, offset } => {
            let inputs = copies.fetch_all(&operands.inputs)?;
            let copied = Arc::new(Operands { inputs, outputs: copies.fetch_all(&operands.outputs)? });
            let (kernel, seed, offset) = (*kernel, *seed, *offset);
            let done =
                host::run(&Command::Kernel { kernel, attrs, operands: &copied, seed, offset }, slots, kernel_context);
            copies.store(&operands.outputs)?;
            Ok(done)
        }
        Command::Each { each, node, scalars, .. } => {
            for member in 0..each.members(node) {
                let mut copies = Copies { remote, spans: Vec::new() };
                let views = each.views(node, member);
                let fetched = copies.fetch_all(&views)?;
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

/// Host copies of a device's memory, one for each distinct span.
struct Copies<'a, R> {
    remote: &'a R,
    spans: Vec<(Span, Vec<u8>)>,
}

impl<R: Remote> Copies<'_, R> {
    /// The view on a host copy of its memory.
    fn fetch(&mut self, view: &RawView) -> Result<RawView, R::Error> {
        let (low, bytes) = extent(view);
        let span = Span::new(view.ptr.wrapping_offset(low), bytes);
        let known = self.spans.iter().position(|(s, _)| s.address() == span.address() && s.len() == span.len());
        let at = match known {
            Some(at) => at,
            None => {
                let copy = self.remote.fetch(&span)?;
                self.spans.push((span, copy));
                self.spans.len() - 1
            }
        };
        Ok(RawView { ptr: self.spans[at].1.as_mut_ptr().wrapping_offset(-low), ..view.clone() })
    }

    fn fetch_all(&mut self, views: &[RawView]) -> Result<Vec<RawView>, R::Error> {
        views.iter().map(|view| self.fetch(view)).collect()
    }

    /// Writes back what may have changed.
    fn store(&self, views: &[RawView]) -> Result<(), R::Error> {
        let written = |span: &Span| {
            let starts = |view: &RawView| view.ptr.wrapping_offset(extent(view).0) as u64 == span.address();
            views.iter().any(starts)
        };
        for (span, copy) in self.spans.iter().filter(|(span, _)| written(span)) {
            self.remote.store(span, copy)?;
        }
        self.remote.wait()
    }
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
