//! Random programs against brute force: happens-before as reachability in a graph of all actions, overlap as
//! an intersection of sets.

use super::regions::bytes_of;
use super::*;
use std::collections::BTreeSet;

/// One earlier access, for the oracle.
struct Past {
    node: usize,
    buffer: usize,
    kind: Kind,
    bytes: BTreeSet<usize>,
}

/// The graph, as the set of ancestors of every node.
#[derive(Default)]
struct Graph {
    ancestors: Vec<BTreeSet<usize>>,
    /// Of each stream: the last node.
    last: Vec<Option<usize>>,
    /// What the host has waited for.
    host: Vec<usize>,
    past: Vec<Past>,
}

impl Graph {
    fn node(&mut self, after: impl IntoIterator<Item = usize>) -> usize {
        let mut set = BTreeSet::new();
        for node in after {
            set.extend(&self.ancestors[node]);
            set.insert(node);
        }
        self.ancestors.push(set);
        self.ancestors.len() - 1
    }

    /// The next action of a stream: after the stream's last, what the host waited for, and `more`.
    fn step(&mut self, stream: usize, more: Option<usize>) -> usize {
        let after: Vec<usize> = self.host.iter().copied().chain(self.last[stream]).chain(more).collect();
        let node = self.node(after);
        self.last[stream] = Some(node);
        node
    }

    fn races(&self, node: usize, buffer: usize, kind: Kind, bytes: &BTreeSet<usize>) -> bool {
        let conflicts = |past: &&Past| {
            past.buffer == buffer && (past.kind == Kind::Write || kind == Kind::Write) && !past.bytes.is_disjoint(bytes)
        };
        self.past.iter().filter(conflicts).any(|past| !self.ancestors[node].contains(&past.node))
    }
}

fn random_layout(dice: &mut Dice) -> Layout {
    let whole = Layout::contiguous(&[4, 6]);
    match dice.below(8) {
        0..2 => whole,
        2 => whole.permute(&[1, 0]),
        3 => whole.select(0, dice.below(4)),
        4 => whole.select(1, dice.below(6)),
        5 => {
            let (start, step) = (dice.below(3), 1 + dice.below(3));
            whole.slice(1, start, step, dice.below(1 + (6 - start) / step))
        }
        6 => whole.slice(0, dice.below(2), 2, 2).slice(1, dice.below(4), 1, 1 + dice.below(2)),
        _ => Layout {
            shape: [3].as_slice().into(),
            strides: [dice.below(8) as isize].as_slice().into(),
            offset: dice.below(8),
        },
    }
}

fn small_layout(dice: &mut Dice) -> Layout {
    let whole = Layout::contiguous(&[12, 16]);
    let row = whole.select(0, dice.below(12));
    match dice.below(3) {
        0 => row.slice(0, dice.below(13), 1, 1 + dice.below(3)),
        1 => row.slice(0, dice.below(6), 1 + dice.below(3), 3),
        _ => whole.select(1, dice.below(16)).slice(0, dice.below(10), 1, 1 + dice.below(2)),
    }
}

struct Weights {
    streams: usize,
    buffers: usize,
    steps: usize,
    /// Out of 100: accesses. The rest is shared by all that orders.
    accesses: usize,
    host: bool,
    /// Many small parts of a larger buffer instead of few large ones.
    parts: bool,
    /// Lines that the program has.
    lines: usize,
}

/// Returns how many accesses raced.
fn run(seed: u64, weights: &Weights) -> usize {
    let mut dice = Dice(seed);
    let bytes = if weights.parts { 768 } else { 96 };
    let mut clocks = Clocks::new();
    let lanes: Vec<Lane> = (0..weights.streams).map(|n| clocks.stream(stream(n as u32))).collect();
    let mut buffers: Vec<BufferClock> = (0..weights.buffers).map(|_| BufferClock::new(bytes)).collect();
    let mut graph = Graph { last: vec![None; weights.streams], ..Graph::default() };
    let mut events: Vec<(EventClock, usize)> = Vec::new();
    // Accesses by stream, with their nodes: positions that the host can wait for.
    let mut positions: Vec<(Lane, u64, usize)> = Vec::new();
    let mut races = 0;
    for step in 0..weights.steps {
        let s = dice.below(weights.streams);
        let lane = lanes[s];
        if dice.below(100) < weights.accesses {
            let buffer = dice.below(weights.buffers);
            let kind = [Kind::Read, Kind::Write][dice.below(2)];
            let layout = if weights.parts { small_layout(&mut dice) } else { random_layout(&mut dice) };
            let access = Use { origin: line((step % weights.lines) as u16 + 1), ..whole(kind, &layout) };
            let node = graph.step(s, None);
            let bytes = bytes_of(&layout, 4);
            let expected = graph.races(node, buffer, kind, &bytes);
            let asked = clocks.conflict(&mut buffers[buffer], lane, &access);
            let reported = clocks.access(&mut buffers[buffer], lane, &access);
            assert_eq!(reported.is_some(), expected, "seed {seed}, step {step}: {reported:?}");
            assert_eq!(asked, reported, "seed {seed}, step {step}");
            if let Some(conflict) = reported {
                let earlier = conflict.earlier.origin.user.line() as usize;
                assert!(earlier <= weights.lines && conflict.later.origin == access.origin);
            }
            races += usize::from(expected);
            // An access to no element is none.
            if !bytes.is_empty() {
                graph.past.push(Past { node, buffer, kind, bytes });
            }
            positions.push((lane, clocks.position(lane), node));
            continue;
        }
        match dice.below(if weights.host { 8 } else { 5 }) {
            0 | 1 => {
                let node = graph.step(s, None);
                events.push((clocks.record(lane), node));
            }
            2 | 3 if !events.is_empty() => {
                let (event, node) = &events[dice.below(events.len())];
                clocks.wait(lane, event);
                graph.step(s, Some(*node));
            }
            4 => {
                let other = dice.below(weights.streams);
                clocks.wait_stream(lane, lanes[other]);
                let record = graph.step(other, None);
                graph.step(s, Some(record));
            }
            5 => {
                clocks.host_sync(lane);
                let node = graph.step(s, None);
                graph.host.push(node);
            }
            6 if !events.is_empty() => {
                let (event, node) = &events[dice.below(events.len())];
                clocks.host_sync_event(event);
                graph.host.push(*node);
            }
            7 if !positions.is_empty() => {
                let (lane, position, node) = positions[dice.below(positions.len())];
                clocks.host_wait(lane, position);
                graph.host.push(node);
            }
            _ => (),
        }
    }
    races
}

#[test]
fn short_programs_agree_with_the_oracle() {
    let mut racy = 0;
    let programs = 30_000;
    for seed in 0..programs {
        let mut dice = Dice(seed ^ 0x5eed);
        let weights = Weights {
            streams: 2 + dice.below(3),
            buffers: 1 + dice.below(2),
            steps: 10 + dice.below(20),
            accesses: 20 + dice.below(60),
            host: dice.below(2) == 0,
            parts: false,
            lines: 30,
        };
        racy += usize::from(run(seed, &weights) > 0);
    }
    assert!(racy > 10_000 && racy < programs as usize - 1000, "{racy} of {programs} have races");
}

/// Long enough that lists are cleaned up and parts joined, too short for anything to be forgotten. Host waits for single accesses are left to the
/// short programs: joined parts count as done together.
#[test]
fn long_programs_agree_with_the_oracle() {
    for seed in 0..100 {
        for accesses in [60, 90, 97] {
            run(
                seed,
                &Weights {
                    streams: 2,
                    buffers: 1,
                    steps: 300,
                    accesses,
                    host: false,
                    parts: accesses > 60,
                    lines: 1 + seed as usize % 5,
                },
            );
        }
    }
}
