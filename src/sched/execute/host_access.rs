//! Reads and writes of tensor memory by the host: these wait for queued work.

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::layout::Layout;
use crate::base::span::Origin;
use crate::device::lent::Lent;
use crate::op::tensor::{Held, View};
use crate::sched::backend::touch::Span;
use crate::sched::fault::ledger::Access;
use crate::sched::fault::poison;
use crate::sched::order::points::HOST;
use crate::sched::runtime::{Runtime, State};
use crate::sched::window::node::{Input, Node, Work};
use smallvec::smallvec;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Runtime {
    /// Waits for the last write of the view's buffer, on any stream; raises the fault that reached it.
    pub fn settle(&self, view: &Arc<View>) -> Result<()> {
        let fault = {
            let _waiting = self.waiting("reading a value");
            let mut state = self.state.lock();
            self.wait_written(&mut state, view)?;
            poison::of(view)
        };
        if let Some((_, fault)) = fault {
            self.mark_reported(&fault);
            return Err(Box::new((*fault).clone()));
        }
        // The memory of a lost device is gone, also where no fault reached it.
        self.check_device(&mut self.state.lock(), view.buffer.device)?;
        self.give_memory(&view.buffer)
    }

    /// All elements of a view after everything that writes it has run; none if a fault has reached them, which stays
    /// unreported. Does not order streams: a script must do that itself.
    pub fn peek_elements(&self, view: &Arc<View>) -> Option<Vec<u8>> {
        {
            let mut state = self.state.lock();
            self.flush_buffer(&mut state, &view.buffer);
            self.wait_buffer(&mut state, &view.buffer, Access::Read).ok()?;
        }
        if poison::of(view).is_some() || !view.buffer.has_memory() || self.is_lost(view.buffer.device) {
            return None;
        }
        self.gather(view).ok()
    }

    /// All elements of a settled view, copied from the bytes between its first and its last element; queues nothing.
    fn gather(&self, view: &Arc<View>) -> Result<Vec<u8>> {
        let (elem, layout) = (view.dtype.size_bytes(), &view.layout);
        // The offset of the lowest element, or of the highest, from the first one.
        let extent = |below: bool| -> isize {
            let dims = layout.shape.iter().zip(&layout.strides).filter(|(_, stride)| (**stride < 0) == below);
            dims.map(|(&size, &stride)| (size as isize - 1) * stride).sum()
        };
        let (low, high) = (extent(true), extent(false));
        let first = layout.offset.wrapping_add_signed(low) * elem;
        let span = Span::new(view.buffer.ptr().wrapping_add(first), (high - low + 1) as usize * elem);
        let bytes = self.read_span(view.buffer.device, span)?;
        if layout.is_contiguous() {
            return Ok(bytes);
        }
        let mut out = Vec::with_capacity(layout.numel() * elem);
        let mut index = vec![0usize; layout.ndim()];
        for _ in 0..layout.numel() {
            let at: isize = index.iter().zip(&layout.strides).map(|(&i, &s)| i as isize * s).sum();
            let at = (at - low) as usize * elem;
            out.extend_from_slice(&bytes[at..at + elem]);
            for dim in (0..index.len()).rev() {
                index[dim] += 1;
                if index[dim] < layout.shape[dim] {
                    break;
                }
                index[dim] = 0;
            }
        }
        Ok(out)
    }

    fn wait_written(&self, state: &mut State, view: &Arc<View>) -> Result<()> {
        self.flush_buffer(state, &view.buffer);
        if view.buffer.device.is_cuda() || view.buffer.in_flight.load(Ordering::Acquire) > 0 {
            self.wait_buffer(state, &view.buffer, Access::Read)?;
            self.watch_host_read(state, view);
        }
        self.host_came_after_writer(state, &view.buffer);
        Ok(())
    }

    /// Before the host reads: waits for the last write of the view, on any stream. A fault that has reached it is not
    /// raised here, but follows the copy.
    pub fn wait_before_read(&self, view: &Arc<View>) -> Result<()> {
        let _waiting = self.waiting("copy to the host");
        self.wait_written(&mut self.state.lock(), view)
    }

    /// Before the host's window runs: waits for copies between its buffers and devices.
    pub(in crate::sched) fn wait_for_copies(&self, state: &mut State, nodes: &[Node]) -> Result<()> {
        for node in nodes {
            let reads = node.reads().map(|view| (view, Access::Read));
            for (view, access) in reads.chain(node.outputs.iter().map(|view| (view, Access::Write))) {
                if view.buffer.in_flight.load(Ordering::Acquire) > 0 {
                    self.wait_buffer(state, &view.buffer, access)?;
                    self.follow_poison(state, HOST, view);
                }
                self.host_came_after_writer(state, &view.buffer);
                self.watch_host_read(state, view);
            }
        }
        Ok(())
    }

    /// Fills a new contiguous view of host memory.
    pub fn upload(&self, view: &View, bytes: &[u8]) -> Result<()> {
        self.give_memory(&view.buffer)?;
        let size = view.layout.numel() * view.dtype.size_bytes();
        assert_eq!(size, bytes.len(), "as many bytes as the view has");
        Span::new(view.ptr(), size).write(bytes);
        Ok(())
    }

    /// Memory of a settled view of the host, for another library; `keeper` holds its tensor.
    pub fn lend_out(&self, view: &View, keeper: impl std::any::Any + Send + Sync) -> Lent {
        crate::sched::backend::touch::lend_out(view, keeper)
    }

    /// All elements of a settled view, row-major.
    pub fn download(&self, view: &Arc<View>) -> Result<Vec<u8>> {
        let size = view.layout.numel() * view.dtype.size_bytes();
        if size == 0 {
            return Ok(Vec::new());
        }
        if view.layout.is_contiguous() {
            return self.read_span(view.buffer.device, Span::new(view.ptr(), size));
        }
        // Bound: elements that are gathered here, one by one.
        const FEW: usize = 256;
        self.host_room(size)?;
        if view.layout.numel() > FEW || !self.reaches_memory(view.buffer.device) {
            let dense = Held::new(self.densify(view, "to_host", Origin::NONE)?);
            self.settle(dense.view())?;
            return self.download(dense.view());
        }
        let elem = view.dtype.size_bytes();
        let mut out = Vec::with_capacity(size);
        let mut index = vec![0usize; view.layout.ndim()];
        for _ in 0..view.layout.numel() {
            let at: isize = index.iter().zip(&view.layout.strides).map(|(&i, &s)| i as isize * s).sum();
            out.extend_from_slice(&self.peek_bytes(view, view.layout.offset.wrapping_add_signed(at))[..elem]);
            for dim in (0..index.len()).rev() {
                index[dim] += 1;
                if index[dim] < view.layout.shape[dim] {
                    break;
                }
                index[dim] = 0;
            }
        }
        Ok(out)
    }

    /// One element of a settled view's buffer.
    pub fn peek_bytes(&self, view: &View, element: usize) -> [u8; 8] {
        let elem = view.dtype.size_bytes();
        let mut out = [0u8; 8];
        let at = view.buffer.ptr().wrapping_add(element * elem);
        // A lost GPU returns nothing; the fault was reported by the wait for it.
        let bytes = self.read_span(view.buffer.device, Span::new(at, elem)).unwrap_or_else(|_| vec![0; elem]);
        out[..elem].copy_from_slice(&bytes);
        out
    }

    /// Whether the host can access a device's memory by its address.
    fn reaches_memory(&self, device: DeviceId) -> bool {
        device == DeviceId::Cpu || self.gpus().is_none_or(|gpus| gpus.backend.shares_memory())
    }

    /// Bytes of a device that no work writes any more.
    fn read_span(&self, device: DeviceId, span: Span) -> Result<Vec<u8>> {
        let (DeviceId::Cuda(index), Some(gpus)) = (device, self.gpus()) else { return Ok(span.read()) };
        let read = gpus.backend.read(index, &span);
        read.map_err(|said| Diag::error(code::DEVICE_LOST, format!("{device} was lost")).note(said))
    }

    /// The same values as a dense view on the same device: the copy is queued there.
    pub fn densify(&self, view: &Arc<View>, name: &'static str, origin: Origin) -> Result<Arc<View>> {
        if view.layout.is_contiguous() {
            return Ok(view.clone());
        }
        let bytes = view.layout.numel() * view.dtype.size_bytes();
        let buffer = self.buffer(view.buffer.device, bytes, false);
        let dense = Arc::new(View::new(buffer, Layout::contiguous(view.shape()), view.dtype));
        let work = Work::Map { function: None, args: smallvec![view.dtype], result: view.dtype, check: None };
        let inputs = smallvec![Input::View(view.clone())];
        let outputs = smallvec![dense.clone()];
        self.record(Node { name, origin, work, inputs, outputs, ..Node::default() })?;
        Ok(dense)
    }
}
