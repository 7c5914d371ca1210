//! Hands a planned window to an NVIDIA GPU: each step is launched at once on the window's stream.

use super::lane::{Lane, fused_through_host, through_host};
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Focus};
use crate::device::cuda::replay::Replay;
use crate::device::cuda::{DriverError, Stream};
use crate::device::queues::Point;
use crate::kernel::abi::{Call, Faults};
use crate::kernel::cuda;
use crate::kernel::cuda::GpuError;
use crate::kernel::fused::cuda as fused;
use crate::kernel::launches;
use crate::sched::backend::device_set::{CudaDevice, CudaSet};
use crate::sched::execute::host::Found;
use crate::sched::fault::ledger::Entry;
use crate::sched::fault::suspects::Cause;
use crate::sched::order::gate::Gate;
use crate::sched::profile::timeline;
use crate::sched::race::StreamName;
use crate::sched::runtime::{Runtime, State, end_pending, threads};
use crate::sched::window::each;
use crate::sched::window::node::{Node, Work};
use crate::sched::window::plan::{EachStep, Plan, Step, view_of};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Nodes that are queued between two looks at what has ended, so that the memory of nodes that are done with is in the
/// processor's cache when it is used again.
pub const LOOK_NODES: usize = 128;
/// For how many nodes a window counts at least.
/// Bound: asking the device costs as much as a small window's launch; whoever wants to know asks by himself.
pub const LEAST_NODES: usize = 16;

/// What came of a window's launches.
struct Launched {
    /// Where it was queued.
    name: StreamName,
    /// Error slots that were given out, with their addresses and the nodes that own them.
    slots: Vec<(u32, u64, usize)>,
    known: Found,
    /// The gate that the device has decided last, and where it keeps that.
    gated: Option<(Arc<Gate>, u64)>,
}

/// What a plan became on a stream the last time.
fn take_replay(plan: &mut Plan, slot: u32) -> Replay {
    let known = plan.replays.iter().position(|(known, _)| *known == slot);
    known.map(|at| plan.replays.swap_remove(at).1).unwrap_or_default()
}

impl Runtime {
    pub(in crate::sched) fn submit_cuda(
        &self,
        state: &mut State,
        slot: u32,
        nodes: Vec<Node>,
        plan: &mut Plan,
        set: &CudaSet,
    ) {
        let sequence = state.streams[slot as usize].submitted + 1;
        let after = std::mem::take(&mut state.streams[slot as usize].waits);
        let stream = set.lanes.begin(slot, &after);
        let name = state.streams[slot as usize].name;
        let mut launched = Launched { name, slots: Vec::new(), known: Found::default(), gated: None };
        let device = match nodes[0].outputs[0].buffer.device {
            DeviceId::Cuda(index) => &set.devices[index as usize],
            DeviceId::Cpu => unreachable!("the window of a GPU's stream"),
        };
        match &stream {
            Some(stream) => device.begin_window(slot, take_replay(plan, slot), stream),
            None => launched.known.push((0, self.unusable(set, &nodes[0]))),
        }
        let mut timing = self.begin_timing(set, stream.as_deref());
        for (step, last_uses) in plan.steps.iter_mut().zip(&plan.last_uses) {
            let gate = nodes[step.nodes()[0]].gate.as_ref();
            let ended = self.options.stop.drops(self.options.stop.run());
            if gate.is_some() {
                let device = name.device;
                launched.known.iter().for_each(|(at, diag)| state.ledger.note(diag, slot, device, nodes[*at].number));
            }
            if gate.is_some_and(|gate| gate.is_known_held() || (ended && gate.leave_out())) {
                // What is known need not be asked of the device.
            } else if ended && gate.is_none() {
                launched.known.extend(step.nodes().iter().map(|&at| (at, self.left_out(&nodes[at]))));
            } else if let Some(stream) = &stream {
                if let Some(gate) = gate {
                    gate.launch();
                    self.launch_gate(state, set, stream, slot, gate, &mut launched);
                }
                self.launch_step(set, stream, slot, &nodes, step, &mut launched);
                if timing.is_some() {
                    let parts = step.nodes().iter().map(|&at| timeline::part(&nodes[at])).collect();
                    self.end_step(&mut timing, Some(stream), parts);
                }
            }
            self.note_uses(&nodes, step, slot, sequence);
            for &(node, operand) in last_uses {
                let buffer = &view_of(&nodes[node as usize], operand).buffer;
                if !buffer.is_live() && buffer.has_memory() {
                    buffer.home.release(buffer);
                }
            }
        }
        if let Some(stream) = &stream {
            self.end_window(device, stream, &nodes[0], &mut launched);
            plan.replays.push((slot, device.end_window()));
        }
        end_pending(plan, &nodes);
        let sequence = set.lanes.end(slot);
        state.streams[slot as usize].submitted = sequence;
        state.streams[slot as usize].last_work = (nodes.last().map_or(0, |node| node.number), sequence);
        let Launched { slots, known, .. } = launched;
        state.since_look += nodes.len().max(LEAST_NODES);
        let entry = Entry { slots, known, timing, ..Entry::new(Point { stream: slot, sequence }, nodes) };
        let device = state.streams[slot as usize].name.device;
        state.ledger.push(entry, device);
        if state.since_look >= LOOK_NODES {
            state.since_look = 0;
            // An interruption is noticed by the script at its next step.
            let _ = self.harvest_front(state);
        }
    }

    /// Starts the window's graph, where its steps were held back for one.
    fn end_window(&self, device: &CudaDevice, stream: &Stream, first: &Node, launched: &mut Launched) {
        // A trace wants the time of each step.
        let recorder = || if self.options.graphs && self.timeline.is_none() { device.recorder(stream) } else { None };
        match device.tell(|replay, products| replay.end(products, &recorder)) {
            Ok(counts) => {
                self.queued.fetch_add(counts.queued, Ordering::Relaxed);
                self.replayed.fetch_add(counts.replayed, Ordering::Relaxed);
            }
            Err(error) if stream.context().death().is_none() => {
                let error = GpuError::Device(Box::new(error));
                launched.known.push((0, self.failed(first.outputs[0].buffer.device, first, error)));
            }
            Err(_) => {}
        }
    }

    /// Lets the device decide whether the steps of a gate are held, on the grounds that the host would find later.
    fn launch_gate(
        &self,
        state: &State,
        set: &CudaSet,
        stream: &Stream,
        slot: u32,
        gate: &Arc<Gate>,
        launched: &mut Launched,
    ) {
        if launched.gated.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, gate)) {
            return;
        }
        launched.gated = None;
        let DeviceId::Cuda(own) = launched.name.device else { return };
        let word = |(stream, last): (u32, u64)| {
            let device = state.streams[stream as usize].name.device;
            let (DeviceId::Cuda(index), true) = (device, gate.devices().contains(&device)) else { return None };
            Some((set.devices[index as usize].slots.lock().first_fault_address(stream)?, last))
        };
        let mut conditions: Vec<(u64, u64)> = gate.streams().filter_map(word).collect();
        let slots = Cause::open_ones(gate.causes());
        // An error slot that is used holds a position.
        let used = slots.iter().map(|cause| cause.gpu_slot()).filter(|&at| at != 0).map(|at| (at, u64::MAX - 1));
        conditions.extend(used);
        let device = &set.devices[own as usize];
        let Some(held) = device.slots.lock().held_word(slot) else { return };
        let memories = self.gpus().expect("the device exists").gpu(launched.name.device);
        let (scratch, taken) = (Vec::new(), &mut Vec::new());
        let mut lane = Lane { stream, device, memories, slot, held: 0, owners: &[], nodes: &[], taken, scratch };
        // A launch that fails is told of the step's own, which comes next.
        if cuda::gate::gate(held, &conditions, &mut lane).is_ok() {
            launched.gated = Some((gate.clone(), held));
        }
    }

    fn launch_step(
        &self,
        set: &CudaSet,
        stream: &Stream,
        slot: u32,
        nodes: &[Node],
        step: &mut Step,
        launched: &mut Launched,
    ) {
        let first = step.nodes()[0];
        let device = nodes[first].outputs[0].buffer.device;
        let DeviceId::Cuda(index) = device else { return };
        self.break_by_plan(stream, device);
        let gpus = self.gpus().expect("the device exists");
        let mut slots = Vec::new();
        let cuda = &set.devices[index as usize];
        let held = nodes[first].gate.as_ref().and(launched.gated.as_ref()).map_or(0, |(_, held)| *held);
        let memories = gpus.gpu(device);
        let lane = |owners, taken| {
            let scratch = Vec::new();
            Lane { stream, device: cuda, memories, slot, held, owners, nodes, taken, scratch }
        };
        // Steps that run through host memory come after all that was held back.
        let aside = || {
            self.host_runs.fetch_add(1, Ordering::Relaxed);
            cuda.tell(|replay, products| replay.step_aside(products))
        };
        // Why a step that ran on the host did not come to its end.
        let mut ended = None;
        let ward = self.ward(nodes[first].gate.is_none());
        let done = match step {
            Step::Fused(fused) => {
                if !self.fill_fused(nodes, fused, &mut launched.known) {
                    return;
                }
                let native = {
                    let mut lane = lane(&fused.fallible, &mut slots);
                    fused.on_gpu.run(&fused.program, &fused.shape, &fused.views, &fused.table, &mut lane)
                };
                match native {
                    Err(GpuError::Unsupported(_)) => {
                        let faults: Vec<Faults> = fused.fallible.iter().map(|_| Faults::default()).collect();
                        let (program, views, table) = (&fused.program, &fused.views, &fused.table);
                        let run = || fused_through_host(stream, program, &fused.shape, views, table, &faults, &ward);
                        let done = aside().and_then(|()| run()).map(|done| ended = done.err());
                        for (slot, &at) in faults.iter().zip(&fused.fallible) {
                            if let Some(found) = slot.take() {
                                let (node, place) = (&nodes[at], launched.name.to_string());
                                launched.known.push((at, self.diagnose(found, node, &place)));
                            }
                        }
                        done.map_err(|error| GpuError::Device(Box::new(error)))
                    }
                    other => other,
                }
            }
            Step::Each(step) => {
                let node = &nodes[first];
                let Some((each, scalars, lines)) = each::of(node) else { return };
                if !self.ensure_all(node, first, &mut launched.known) {
                    return;
                }
                let mut lane = lane(&[], &mut slots);
                let EachStep { on_gpu, lines: table, .. } = &mut **step;
                let native = if lines {
                    let views = each.views(node, 0);
                    on_gpu.run(&each.program, &views, &table.fill(each, node), scalars, &mut lane)
                } else {
                    let one = |member| {
                        let shape = each.shape(node, member);
                        fused::fused(&each.program, shape, &each.views(node, member), scalars, &mut lane)
                    };
                    (0..each.members(node)).try_for_each(one)
                };
                drop(lane);
                match native {
                    // Said before anything was launched: it is the program that has no text.
                    Err(GpuError::Unsupported(_)) => {
                        let mut one = |member| -> Result<(), DriverError> {
                            let views = each.views(node, member);
                            let shape = each.shape(node, member);
                            let done = fused_through_host(stream, &each.program, shape, &views, scalars, &[], &ward)?;
                            ended = ended.take().or(done.err());
                            Ok(())
                        };
                        let done = aside().and_then(|()| (0..each.members(node)).try_for_each(&mut one));
                        done.map_err(|error| GpuError::Device(Box::new(error)))
                    }
                    other => other,
                }
            }
            Step::Kernel(at) => {
                let node = &nodes[*at];
                let Work::Kernel { host, attrs, seed, offset } = &node.work else { unreachable!("a kernel step") };
                let Some((inputs, outputs)) = self.operands(node, *at, &mut launched.known) else { return };
                let faults = Faults::default();
                let call = Call {
                    inputs: &inputs,
                    outputs: &outputs,
                    attrs,
                    threads: threads(),
                    faults: &faults,
                    seed: *seed,
                    offset: *offset,
                };
                let native = match launches::entry(*host) {
                    Some(entry) => entry(&call, &mut lane(std::slice::from_ref(at), &mut slots)),
                    None => Err(GpuError::Unsupported("this kernel")),
                };
                let done = match native {
                    Err(GpuError::Unsupported(_)) => {
                        let run = || through_host(stream, *host, &call, &ward);
                        let done = aside().and_then(|()| run()).map(|done| ended = done.err());
                        done.map_err(|error| GpuError::Device(Box::new(error)))
                    }
                    other => other,
                };
                if let Some(found) = faults.take() {
                    let place = launched.name.to_string();
                    launched.known.push((*at, self.diagnose(found, node, &place)));
                }
                done
            }
        };
        if let Some(end) = ended {
            let place = launched.name.to_string();
            launched.known.extend(step.nodes().iter().map(|&at| (at, self.ended(&end, &nodes[at], &place))));
        }
        launched.slots.append(&mut slots);
        // Of a dead context it is told where work ends (`last_words`): the cause may be queued before this.
        if let Err(error) = done
            && stream.context().death().is_none()
        {
            launched.known.push((first, self.failed(device, &nodes[first], error)));
        }
    }

    /// A device that cannot be opened counts as lost.
    #[cold]
    fn unusable(&self, set: &CudaSet, node: &Node) -> Arc<Diag> {
        let device = node.outputs[0].buffer.device;
        self.lose(device);
        let mut diag =
            Diag::error(code::DEVICE_LOST, format!("{device} cannot be used: no stream could be made there"));
        let mut gpus = (0..).map(DeviceId::Cuda).zip(&set.devices);
        if let Some((dead, _)) = gpus.find(|(other, gpu)| *other != device && gpu.context.death().is_some()) {
            diag = diag
                .note(format!("{dead} was lost before, and CUDA gives a process nothing new on any GPU after that"));
        }
        self.late(
            diag.label(node.origin, Focus::Expression, format!("queued here, on {device}")),
            node.number,
            node.trail,
        )
    }

    /// A launch that did not happen, on a device that lives.
    #[cold]
    fn failed(&self, device: DeviceId, node: &Node, error: GpuError) -> Arc<Diag> {
        let text = format!("queued here, on {device}");
        let diag = match &error {
            GpuError::OutOfMemory { .. } => Diag::error(code::OUT_OF_MEMORY, format!("out of memory on {device}")),
            _ => Diag::error(code::LAUNCH_FAILED, format!("{device} could not run `{}`", node.name)),
        };
        self.late(diag.label(node.origin, Focus::Expression, text).note(error.to_string()), node.number, node.trail)
    }
}
