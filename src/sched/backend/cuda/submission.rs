//! A window that is being submitted to an NVIDIA GPU: each step is launched at once on the window's stream, or
//! collected for a graph.

use super::Cuda;
use super::cached::{Cached, Recording};
use super::device::CudaDevice;
use super::lane::{Decision, Gated, Lane};
use super::step_times::StepTimes;
use super::touch::OnStream;
use crate::base::device_id::DeviceId;
use crate::device::cuda::Stream;
use crate::kernel::abi::{Call, Faults};
use crate::kernel::cuda::GpuError;
use crate::kernel::fused::cuda as fused;
use crate::sched::backend::step::{Command, Decides, Failure, Report, StepCall, Submission, Submitted};
use crate::sched::backend::{Window, through_host};
use crate::sched::memory::kernel_context::KernelContext;
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
    /// None if none could be created.
    stream: Option<Arc<Stream>>,
    /// Error slots that were allocated, with their addresses and the nodes that own them.
    slots: Vec<(u32, u64, usize)>,
    /// The gate that the device has evaluated last, or evaluates next.
    gated: Option<Gated>,
    marks: Option<StepTimes>,
}

impl<'a> Launching<'a> {
    pub fn new(cuda: &'a Cuda, window: Window<'a>) -> Launching<'a> {
        let device = &cuda.devices[window.device as usize];
        let stream = cuda.lanes.begin(window.stream, &window.after);
        if let Some(stream) = &stream {
            let replay = window.prepared.get::<Cached>().take_replay(window.stream, window.layouts);
            device.begin_window(window.stream, replay, stream);
        }
        let marks = stream.as_ref().and_then(|stream| StepTimes::begin(device, window.clock?, stream));
        Launching { cuda, device, window, stream, slots: Vec::new(), gated: None, marks }
    }

    /// Lets the device decide whether the steps of a gate are held, by the same conditions that the host would check
    /// later.
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
        // An error slot that was written holds a position.
        let used = slots.iter().map(|cause| cause.device_slot()).filter(|&at| at != 0).map(|at| (at, u64::MAX - 1));
        conditions.extend(used);
        if conditions.is_empty() {
            // No work before it can fail.
            return;
        }
        let Some(held) = self.device.slots.lock().held_word(self.window.stream) else { return };
        self.gated = Some(Gated { gate: gate.clone(), held, conditions, state: Decision::Open });
    }

    /// Launches the step's own kernels, if it has any.
    fn launch(&mut self, stream: &Stream, call: &StepCall<'_>, report: &mut Report) -> Result<(), GpuError> {
        let gated = self.gated.as_mut().filter(|_| !call.may_end);
        let cached = self.window.prepared.get::<Cached>();
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
                cached.fused(call.at).run(program, shape, views, table, &mut lane)
            }
            Command::Each { each, node, scalars, lines: true, .. } => {
                let (on_gpu, table, views) = cached.each(call.at).fill(each, node);
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

    /// Runs a step without kernels on copies in host memory, after all collected commands. Waits.
    fn run_on_copies(&self, stream: &Stream, call: &StepCall<'_>, report: &mut Report) -> Result<(), GpuError> {
        let slots: Vec<Faults> = call.owners.iter().map(|_| Faults::default()).collect();
        let (stop, room) = (self.window.stop, self.window.room);
        let kernel_context = KernelContext::new(stop, room, stop.run(), call.may_end);
        let aside = self.device.with_replay(|replay, products| replay.stop_replay(products));
        let done = aside.and_then(|()| through_host::run(&OnStream(stream), &call.command, &slots, &kernel_context));
        report.take(&slots, call.owners);
        report.end = done.map_err(|error| GpuError::Device(Box::new(error)))?.err();
        Ok(())
    }

    /// Records a launch that failed. If the device is lost, that is reported where work ends
    /// (`fault/loss_report.rs`): the cause may be earlier work.
    fn note_failure(stream: &Stream, error: GpuError, report: &mut Report) {
        if stream.context().death().is_none() {
            let is_out_of_memory = matches!(error, GpuError::OutOfMemory { .. });
            report.failure = Some(Failure { is_out_of_memory, said: error.to_string() });
        }
    }

    /// Launches the window's graph, if its steps were collected for one.
    fn end_graph(&mut self, stream: &Stream, report: &mut Report) {
        // A trace needs the time of each step.
        let use_graph = self.window.graphs && self.window.clock.is_none();
        let recorder = || if use_graph { self.device.recorder(stream) } else { None };
        if let Err(error) = self.device.with_replay(|replay, products| replay.end(products, &recorder)) {
            Launching::note_failure(stream, GpuError::Device(Box::new(error)), report);
        }
        let replay = self.device.end_window();
        let Window { stream: slot, layouts, .. } = self.window;
        self.window.prepared.get::<Cached>().recordings.push(Recording { slot, layouts, replay });
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
            timing: self.marks.take().map(StepTimes::timing),
            ..Submitted::default()
        }
    }
}

impl Launching<'_> {
    /// Everything queued since the last time stamp is one step.
    fn end_step(&mut self, nodes: &[Node], of: &[usize]) {
        if let (Some(marks), Some(stream)) = (self.marks.take(), &self.stream) {
            self.marks = marks.end_step(stream, of.iter().map(|&at| timeline::part(&nodes[at])).collect());
        }
    }
}
