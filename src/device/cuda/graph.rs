//! CUDA graphs: the work of a stream, captured once and launched again as one. `replay.rs` decides when that pays.
//!
//! Addresses and parameters are those at the time of capture, so they must stay valid.

use super::context::Context;
use super::error::{DriverError, driver};
use super::launch::Shape;
use super::module::Function;
use super::stream::Stream;
use cudarc::driver::sys;
use smallvec::SmallVec;
use std::ffi::c_void;

/// A captured graph (`CUgraph`).
pub struct Recording {
    context: &'static Context,
    handle: sys::CUgraph,
}

/// An instantiated graph (`CUgraphExec`).
pub struct Graph {
    context: &'static Context,
    handle: sys::CUgraphExec,
    /// Its nodes identify the kernels whose parameters change, so it lives as long as the graph.
    _recording: Recording,
}

/// A node of a recording; also identifies the node in the instantiated graph.
pub struct Node(sys::CUgraphNode);

// SAFETY: a node is a name within its graph.
unsafe impl Send for Node {}

// SAFETY: a graph may be used from any thread, by one at a time, which `&mut` and ownership give.
unsafe impl Send for Recording {}
// SAFETY: for `Sync` as for `Send`: a graph may be used from any thread, by one at a time, which `&mut` and ownership
// give.
unsafe impl Send for Graph {}

impl Stream {
    /// Begins stream capture in relaxed mode: work is recorded and not run; this and other threads may call CUDA
    /// meanwhile, for example to load a kernel or to reserve memory.
    pub fn begin_recording(&self) -> Result<(), DriverError> {
        let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
        self.context().make_current()?;
        // SAFETY: the stream lives as long as `self`, which destroys it when dropped.
        self.context().note(unsafe { driver!(cuStreamBeginCapture_v2(self.handle(), mode)) })
    }

    /// Ends the capture, also one that failed; then the error says so and nothing was run.
    pub fn end_recording(&self) -> Result<Recording, DriverError> {
        self.context().make_current()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the handle is alive; the call writes one pointer.
        self.context().note(unsafe { driver!(cuStreamEndCapture(self.handle(), &mut handle)) })?;
        if handle.is_null() {
            return Err(DriverError::refused("cuStreamEndCapture", "there is no recording"));
        }
        Ok(Recording { context: self.context(), handle })
    }

    /// The node that was recorded last. Precondition: only one stream is captured.
    pub fn last_recorded(&self) -> Result<Node, DriverError> {
        self.context().make_current()?;
        let mut status = sys::CUstreamCaptureStatus_enum::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut last, mut count) = (std::ptr::null(), 0usize);
        let (id, graph, mut edges) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null());
        // SAFETY: the handle is alive; the call writes the four values, and takes null for the others.
        self.context().note(unsafe {
            driver!(cuStreamGetCaptureInfo_v3(self.handle(), &mut status, id, graph, &mut last, &mut edges, &mut count))
        })?;
        if count != 1 || last.is_null() {
            return Err(DriverError::refused("cuStreamGetCaptureInfo", "the recording has no last node"));
        }
        // SAFETY: the call reported that there is one, and it stays until the next call for this stream.
        Ok(Node(unsafe { *last }))
    }

    pub fn is_recording(&self) -> Result<bool, DriverError> {
        self.context().make_current()?;
        let mut status = sys::CUstreamCaptureStatus_enum::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the handle is alive; the call writes one value.
        self.context().note(unsafe { driver!(cuStreamIsCapturing(self.handle(), &mut status)) })?;
        Ok(status != sys::CUstreamCaptureStatus_enum::CU_STREAM_CAPTURE_STATUS_NONE)
    }
}

impl Recording {
    /// Number of launches, copies and fills.
    pub fn nodes(&self) -> Result<usize, DriverError> {
        self.context.make_current()?;
        let mut count = 0;
        // SAFETY: the handle is alive; without a list the call only writes the count.
        self.context.note(unsafe { driver!(cuGraphGetNodes(self.handle, std::ptr::null_mut(), &mut count)) })?;
        Ok(count)
    }

    /// Instantiates the graph. Cost: 0.2 ms for 100 small kernels.
    pub fn instantiate(self) -> Result<Graph, DriverError> {
        self.context.make_current()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the handle is alive; the call writes one pointer.
        self.context.note(unsafe { driver!(cuGraphInstantiateWithFlags(&mut handle, self.handle, 0)) })?;
        Ok(Graph { context: self.context, handle, _recording: self })
    }
}

impl Graph {
    /// Sets the parameters of a kernel, each at its offset, for later launches; launches under way are not affected.
    /// Cost: 0.35 µs.
    pub fn set_kernel(
        &mut self,
        node: &Node,
        function: &Function,
        shape: &Shape,
        parameters: &[u8],
    ) -> Result<(), DriverError> {
        if parameters.len() != function.parameter_bytes() {
            return Err(DriverError::refused("cuGraphExecKernelNodeSetParams", "the parameters have another size"));
        }
        self.context.make_current()?;
        let base = parameters.as_ptr();
        let mut pointers: SmallVec<[*mut c_void; 16]> =
            function.parameters().iter().map(|(offset, _)| base.wrapping_add(*offset).cast_mut().cast()).collect();
        let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
        let params = sys::CUDA_KERNEL_NODE_PARAMS {
            func: function.handle(),
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: shape.shared_bytes,
            kernelParams: pointers.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kern: std::ptr::null_mut(),
            ctx: std::ptr::null_mut(),
        };
        // SAFETY: both handles are alive; the parameters have the bytes that the kernel reads, and are copied.
        self.context.note(unsafe { driver!(cuGraphExecKernelNodeSetParams_v2(self.handle, node.0, &params)) })
    }

    /// Launches the graph. Cost: 1.1 µs for the call, and 0.95 µs of the device's time for a small kernel.
    pub fn launch(&mut self, stream: &Stream) -> Result<(), DriverError> {
        self.context.make_current()?;
        // SAFETY: both handles are alive; addresses in the graph are the recorder's business.
        self.context.note(unsafe { driver!(cuGraphLaunch(self.handle, stream.handle())) })
    }

    /// Uploads the graph to the device before its first launch.
    pub fn upload(&mut self, stream: &Stream) -> Result<(), DriverError> {
        self.context.make_current()?;
        // SAFETY: graph and stream live as long as `self` and `stream`, which destroy them when dropped.
        self.context.note(unsafe { driver!(cuGraphUpload(self.handle, stream.handle())) })
    }

    /// Updates the graph with the parameters of a recording of the same topology, for later launches. False: the
    /// topology differs, the graph is unchanged, and a new one must be instantiated.
    pub fn update(&mut self, recording: &Recording) -> Result<bool, DriverError> {
        const UPDATE_FAILURE: u32 = 910;
        self.context.make_current()?;
        let mut info = sys::CUgraphExecUpdateResultInfo_st {
            result: sys::CUgraphExecUpdateResult_enum::CU_GRAPH_EXEC_UPDATE_SUCCESS,
            errorNode: std::ptr::null_mut(),
            errorFromNode: std::ptr::null_mut(),
        };
        // SAFETY: both handles are alive; the call writes the struct.
        match unsafe { driver!(cuGraphExecUpdate_v2(self.handle, recording.handle, &mut info)) } {
            Ok(()) => Ok(true),
            Err(error) if error.code == UPDATE_FAILURE => Ok(false),
            Err(error) => self.context.note(Err(error)),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: the handle is alive, and nobody can use it after this.
            let _ = unsafe { driver!(cuGraphDestroy(self.handle)) };
        }
    }
}

impl Drop for Graph {
    /// The driver lets a launch that is under way finish first.
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: the handle is alive, and nobody can use it after this.
            let _ = unsafe { driver!(cuGraphExecDestroy(self.handle)) };
        }
    }
}
