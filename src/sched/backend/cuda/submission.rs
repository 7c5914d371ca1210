//! A window on its way to an NVIDIA GPU: each step is launched at once on the window's stream, or held back for a graph.

use super::Cuda;
use super::device::CudaDevice;
use super::kept::Kept;
use super::lane::{Decision, Gated, Lane};
use super::marks::Marks;
use super::touch::OnStream;
use crate::base::device_id::DeviceId;
use crate::device::cuda::Stream;
use crate::kernel::abi::{Call, Faults};
use crate::kernel::cuda::GpuError;
use crate::kernel::fused::cuda as fused;
use crate::sched::backend::step::{Command, Decides, Failure, Report, StepCall, Submission, Submitted};
use crate::sched::backend::{Window, through_host};
use crate::sched::memory::ward::Ward;
use crate::sched::order::cause::Cause;
use crate::sched::order::gate::Gate;
use crate::sched::profile::timeline;
use crate::sched::runtime::threads;
use crate::sched::window::node::Node;
use std::sync::Arc;

pub(super) struct Launching<'a> {
    cuda: &'a Cuda,
    device: &'a Arc<CudaDevice>,
    window: Window<'a>,
    /// None where none could be made.
    stream: Option<Arc<Stream>>,
    /// Error slots that were given out, with their addresses and the nodes that own them.
    slots: Vec<(u32, u64, usize)>,
    /// The gate that the device has decided over last, or decides over next.
    gated: Option<Gated>,
    marks: Option<Marks>,
}

impl<'a> Launching<'a> {
    pub fn new(cuda: &'a Cuda, window: Window<'a>) -> Launching<'a> {
        let device = &cuda.devices[window.device as usize];
        let stream = cuda.lanes.begin(window.stream, &window.after);
        if let Some(stream) = &stream {
            let replay = window.prepared.get::<Kept>().take_replay(window.stream);
            device.begin_window(window.stream, replay, stream);
        }
        let marks = stream.as_ref().and_then(|stream| Marks::begin(device, window.clock?, stream));
        Launching { cuda, device, window, stream, slots: Vec::new(), gated: None, marks }
    }

    /// Lets the device decide whether the steps of a gate are held, on the grounds that the host would find later.
    fn begin_gate(&mut self, gate: &Arc<Gate>, device_of: &dyn Fn(u32) -> DeviceId) {
        if self.gated.as_ref().is_some_and(|gated| Arc::ptr_eq(&gated.gate, gate)) {
            return;
        }
        self.gated = None;
        let word = |(stream, last): (u32, u64)| {
            let device = device_of(stream);
            let (DeviceId::Cuda(index), true) = (device, gate.devices().contains(&device)) else { return None };
            Some((self.cuda.devices[index as usize].slots.lock().first_fault_address(stream)?, last))
        };
        let mut conditions: Vec<(u64, u64)> = gate.streams().filter_map(word).collect();
        let slots = Cause::open_ones(gate.causes());
        // An error slot that is used holds a position.
        let used = slots.iter().map(|cause| cause.device_slot()).filter(|&at| at != 0).map(|at| (at, u64::MAX - 1));
        conditions.extend(used);
        if conditions.is_empty() {
            // No work before it can fail.
            return;
        }
        let Some(held) = self.device.slots.lock().held_word(self.window.stream) else { return };
        self.gated = Some(Gated { gate: gate.clone(), held, conditions, state: Decision::Open });
    }

    /// Launches the step's own kernels, where there are any.
    fn launch(&mut self, stream: &Stream, call: &StepCall<'_>, report: &mut Report) -> Result<(), GpuError> {
        let gated = self.gated.as_mut().filter(|_| !call.may_end);
        let kept = self.window.prepared.get::<Kept>();
        let mut lane = Lane {
            stream,
            device: self.device,
            memory: self.window.memory,
            slot: self.window.stream,
            gated,
            owners: call.owners,
            nodes: call.nodes,
            taken: &mut self.slots,
            scratch: Vec::new(),
        };
        match &call.command {
            Command::Fused { program, shape, views, table } => {
                kept.fused(call.at).run(program, shape, views, table, &mut lane)
            }
            Command::Each { each, node, scalars, lines: true, .. } => {
                let (on_gpu, table, views) = kept.each(call.at).fill(each, node);
                on_gpu.run(&each.program, views, &table, scalars, &mut lane)
            }
            Command::Each { each, node, scalars, lines: false, members } => {
                members.try_for_each(each, node, |shape, views| {
                    fused::fused(&each.program, shape, views, scalars, &mut lane)
                })
            }
            Command::Kernel { kernel, attrs, operands, seed, offset } => {
                let Some(launch) = kernel.cuda else { return Err(GpuError::Unsupported("this kernel")) };
                let slot = Faults::default();
                let of_host = Call {
                    inputs: &operands.inputs,
                    outputs: &operands.outputs,
                    attrs,
                    threads: threads(),
                    faults: &slot,
                    seed: *seed,
                    offset: *offset,
                };
                let done = launch(&of_host, &mut lane);
                if !matches!(done, Err(GpuError::Unsupported(_))) {
                    report.take(std::slice::from_ref(&slot), call.owners);
                }
                done
            }
        }
    }

    /// Runs a step that has no kernels on copies in host memory, after all that was held back. Waits.
    fn run_on_copies(&self, stream: &Stream, call: &StepCall<'_>, report: &mut Report) -> Result<(), GpuError> {
        let slots: Vec<Faults> = call.owners.iter().map(|_| Faults::default()).collect();
        let (stop, room) = (self.window.stop, self.window.room);
        let ward = Ward::new(stop, room, stop.run(), call.may_end);
        let aside = self.device.tell(|replay, products| replay.stop_replay(products));
        let done = aside.and_then(|()| through_host::run(&OnStream(stream), &call.command, &slots, &ward));
        report.take(&slots, call.owners);
        report.end = done.map_err(|error| GpuError::Device(Box::new(error)))?.err();
        Ok(())
    }

    /// A launch that did not happen. Of a dead device it is told where work ends (`fault/last_words.rs`): the cause may be
    /// queued before this.
    fn note_failure(stream: &Stream, error: GpuError, report: &mut Report) {
        if stream.context().death().is_none() {
            let is_out_of_memory = matches!(error, GpuError::OutOfMemory { .. });
            report.failure = Some(Failure { is_out_of_memory, said: error.to_string() });
        }
    }

    /// Starts the window's graph, where its steps were held back for one.
    fn end_graph(&mut self, stream: &Stream, report: &mut Report) {
        // A trace wants the time of each step.
        let wanted = self.window.graphs && self.window.clock.is_none();
        let recorder = || if wanted { self.device.recorder(stream) } else { None };
        if let Err(error) = self.device.tell(|replay, products| replay.end(products, &recorder)) {
            Launching::note_failure(stream, GpuError::Device(Box::new(error)), report);
        }
        let replay = self.device.end_window();
        self.window.prepared.get::<Kept>().replays.push((self.window.stream, replay));
    }
}

impl Submission for Launching<'_> {
    fn decides(&self) -> Decides {
        Decides::Device
    }

    fn is_usable(&self) -> bool {
        self.stream.is_some()
    }

    fn guard(&mut self, gate: &Arc<Gate>, _of: &[usize], device_of: &dyn Fn(u32) -> DeviceId) {
        gate.launch();
        if self.stream.is_some() {
            self.begin_gate(gate, device_of);
        }
    }

    fn skip(&mut self, nodes: &[Node], of: &[usize]) {
        self.end_step(nodes, of);
    }

    fn step(&mut self, call: &StepCall<'_>, report: &mut Report) {
        let Some(stream) = self.stream.clone() else { return };
        self.cuda.break_by_plan(&stream, &self.window);
        let done = match self.launch(&stream, call, report) {
            Err(GpuError::Unsupported(_)) => self.run_on_copies(&stream, call, report),
            done => done,
        };
        if let Err(error) = done {
            Launching::note_failure(&stream, error, report);
        }
        self.end_step(call.nodes, call.of);
    }

    fn end(&mut self, _nodes: &[Node], report: &mut Report) -> Submitted {
        if let Some(stream) = self.stream.clone() {
            self.end_graph(&stream, report);
        }
        Submitted {
            sequence: self.cuda.lanes.end(self.window.stream),
            slots: std::mem::take(&mut self.slots),
            timing: self.marks.take().map(Marks::timing),
            ..Submitted::default()
        }
    }
}

impl Launching<'_> {
    /// Everything queued since the last mark is one step.
    fn end_step(&mut self, nodes: &[Node], of: &[usize]) {
        if let (Some(marks), Some(stream)) = (self.marks.take(), &self.stream) {
            self.marks = marks.end_step(stream, of.iter().map(|&at| timeline::part(&nodes[at])).collect());
        }
    }
}
