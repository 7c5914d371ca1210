//! Races through the runtime: random programs as scripts, whose reports must be those of an oracle that looks at
//! every pair of accesses and at every path of orderings between them; the language's example; what must never be
//! reported; the three modes.

use super::scripts::{builder, run};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tscript::Races;
use tscript::internals::tools::render::{Coloring, render_error};
use tscript::{Error, Session};

type Told = Arc<Mutex<Vec<Error>>>;

fn listening(builder: tscript::Builder) -> (tscript::Builder, Told) {
    let reported: Told = Arc::default();
    let sink = reported.clone();
    (builder.on_warning(move |warning| sink.lock().expect("no panic").push(warning.clone())), reported)
}

/// Warnings of a script on two simulated GPUs.
fn warnings(text: &str) -> Vec<Error> {
    let (builder, reported) = listening(builder().simulate_gpus(2));
    let ran = run(builder, "race.rhai", text);
    assert!(ran.result.is_ok(), "{:?}", ran.result.err());
    reported.lock().expect("no panic").clone()
}

const EXAMPLE: &str = "let s = stream(#{device: \"cuda\"});
let a = empty([100, 100], #{device: \"cuda\"}).normal_();

with_stream(s, || a.sum());
";

#[test]
fn the_example_of_the_language_page_is_reported_as_shown() {
    let reported = warnings(EXAMPLE);
    let shown: Vec<String> = reported.iter().map(|warning| render_error(warning, Coloring::Off)).collect();
    let expected = "warning[E0501]: `sum` reads memory that `normal_` may still be writing
   ╭─[ race.rhai:4:21 ]
 2 │ let a = empty([100, 100], #{device: \"cuda\"}).normal_();
   │                                              ────┬────
   │                                                  ╰────── written here, on cuda:0 stream 0
 4 │ with_stream(s, || a.sum());
   │                     ──┬──
   │                       ╰──── read here, on cuda:0 stream 1, with nothing ordering the two
   │ help: before line 4, write `s.wait_stream(default_stream());`
";
    assert_eq!(shown, [expected]);
}

/// What the advice names is there on the line that it names.
#[test]
fn advice_can_be_followed() {
    let make = "let a = randn([100, 100], #{device: \"cuda\"});";
    for (text, helps) in [
        (
            format!(
                "fn work(a) {{\n    a.sum()\n}}\nlet s = stream();\n{make}\nlet b = with_stream(s) {{ work(a) }};\nprint(b.shape);"
            ),
            vec!["before line 2, write `current_stream().wait_stream(default_stream());`"],
        ),
        (
            format!(
                "let f = |a| {{\n    a.sum()\n}};\nlet s = stream();\n{make}\nlet b = with_stream(s) {{ f(a) }};\nprint(b.shape);"
            ),
            vec!["before line 2, write `current_stream().wait_stream(default_stream());`"],
        ),
        (
            format!(
                "{make}\nsynchronize();\nfor k in 0..2 {{\n    let s = stream();\n    with_stream(s) {{ a += 1; }}\n}}\nset_stream(stream());\nlet d = a * 3;\nprint(d.shape);"
            ),
            vec![
                "before line 5, write `s.wait_stream(before);`, where `before` is the stream of line 5 as it was then, kept in a variable",
                "before line 8, write `current_stream().wait_stream(s);`, where `s` is the stream of line 5",
            ],
        ),
    ] {
        let found: Vec<String> =
            warnings(&text).iter().map(|warning| warning.help().unwrap_or_default().to_string()).collect();
        assert_eq!(found, helps, "{text}");
    }
}

#[test]
fn races_can_be_warnings_errors_or_ignored() {
    let (refusing, reported) = listening(builder().simulate_gpus(1).races(Races::Error));
    let ran = run(refusing, "race.rhai", &format!("{EXAMPLE}print(\"on\");"));
    let error = ran.result.expect_err("refused");
    assert_eq!((error.code().as_str(), error.location().map(|at| at.line)), ("E0501", Some(4)));
    assert!(ran.printed.is_empty() && reported.lock().expect("no panic").is_empty());
    let caught = "try { with_stream(s, || a.sum()); } catch (e) { print(e.code); }\na.sum();\ns.wait_stream(default_stream());\nprint(with_stream(s, || (a * 0).sum()).item());";
    let text = EXAMPLE.replace("with_stream(s, || a.sum());", caught);
    let ran = run(builder().simulate_gpus(1).races(Races::Error), "race.rhai", &text);
    assert!(ran.result.is_ok(), "{:?}", ran.result.err());
    assert_eq!(ran.printed, "E0501\n0.0\n");
    // `--check` waits for each operation, and its waits order nothing.
    let checked = builder().simulate_gpus(1).check(true).races(Races::Error);
    let error = run(checked, "race.rhai", EXAMPLE).result.expect_err("refused");
    assert_eq!(error.code().as_str(), "E0501");
    for quiet in [builder().races(Races::Off), builder().blocking(true)] {
        let (quiet, reported) = listening(quiet.simulate_gpus(1));
        assert!(run(quiet, "race.rhai", EXAMPLE).result.is_ok());
        assert!(reported.lock().expect("no panic").is_empty());
    }
}

#[test]
fn a_pair_of_lines_is_reported_once() {
    let text = "let s = stream(#{device: \"cuda:0\"});
let a = zeros([4], #{device: \"cuda:0\"});
for n in 0..20 {
    a.add_(1.0);
    with_stream(s, || a.mul_(2.0));
}";
    let reported = warnings(text);
    let mut pairs: Vec<BTreeSet<usize>> = reported.iter().map(lines).collect();
    pairs.sort();
    assert_eq!(pairs, [BTreeSet::from([4, 5])], "{reported:?}");
}

/// The lines that a warning names.
fn lines(warning: &Error) -> BTreeSet<usize> {
    let line = |label: &tscript::internals::base::diag::Label| {
        warning.sources().location(label.origin.user).map_or(0, |at| at.line)
    };
    warning.diag().labels.iter().map(line).collect()
}

#[test]
fn races_in_the_library_and_in_backward_name_the_users_lines() {
    let text = "import \"nn\" as nn;
let s = stream(#{device: \"cuda:0\"});
let m = nn::linear(4, 4).to(\"cuda:0\");
let x = ones([2, 4], #{device: \"cuda:0\"});
let y = with_stream(s, || m.forward(x));";
    let reported = warnings(text);
    assert!(!reported.is_empty() && reported.iter().all(|warning| lines(warning).contains(&5)), "{reported:?}");
    let text = "let s = stream(#{device: \"cuda:0\"});
let w = ones([4], #{device: \"cuda:0\", requires_grad: true});
s.wait_stream(default_stream(0));
let y = with_stream(s, || (w * w).sum());
default_stream(0).wait_stream(s);
let g = zeros([4], #{device: \"cuda:0\"});
y.backward();
with_stream(s, || { w.grad.add_(1.0); });";
    let reported = warnings(text);
    assert!(reported.iter().all(|warning| lines(warning).contains(&8)), "{reported:?}");
}

/// Each of these is ordered, by the script or by what the language promises.
#[test]
fn ordered_accesses_are_never_reported() {
    for text in [
        // Host reads wait by themselves.
        "let s = stream(#{device: \"cuda:0\"}); let a = with_stream(s, || ones([4], #{device: \"cuda:0\"}) * 2); print(a); print(a[1].item()); a.to_array();",
        // What the host has waited for is over.
        "let s = stream(#{device: \"cuda:0\"}); let a = ones([4], #{device: \"cuda:0\"}) * 2; a.sum().item(); default_stream(0).synchronize(); with_stream(s, || a.add_(1.0));",
        "let s = stream(#{device: \"cuda:0\"}); let a = ones([4], #{device: \"cuda:0\"}) * 2; while !default_stream(0).query() { } with_stream(s, || a.add_(1.0));",
        "let s = stream(#{device: \"cuda:0\"}); let a = ones([4], #{device: \"cuda:0\"}) * 2; let e = event(); e.record(); while !e.query() { } with_stream(s, || a.add_(1.0));",
        // Parts that do not meet, in columns.
        "let s = stream(#{device: \"cuda:0\"}); let a = zeros([6, 6], #{device: \"cuda:0\"}); s.wait_stream(default_stream(0)); a[[.., 0..3]].add_(1.0); with_stream(s, || a[[.., 3..6]].add_(1.0));",
        // Both only read.
        "let s = stream(#{device: \"cuda:0\"}); let a = zeros([6], #{device: \"cuda:0\"}); s.wait_stream(default_stream(0)); let x = a + 1; let y = with_stream(s, || a + 2);",
        // Memory that comes back from another stream.
        "let s = stream(#{device: \"cuda:0\"}); for n in 0..50 { let a = ones([1000], #{device: \"cuda:0\"}) * n; s.wait_stream(default_stream(0)); let b = with_stream(s, || a + 1); with_stream(s, || ones([1000], #{device: \"cuda:0\"}) * 2); }",
        // Copies order the current streams of both devices.
        "let a = ones([4], #{device: \"cuda:0\"}) * 2; let b = a.to(\"cuda:1\"); b.add_(1.0); a.add_(1.0); let c = b.to(\"cuda:0\"); c.add_(a); a.copy_(b); a.add_(1.0); b.zero_();",
        // Backward on the streams of its forward.
        "let s = stream(#{device: \"cuda:0\"}); let w = ones([4], #{device: \"cuda:0\", requires_grad: true}); for n in 0..3 { let a = (w * 2).relu(); s.wait_stream(default_stream(0)); let b = with_stream(s, || (a * w).sum()); default_stream(0).wait_stream(s); b.backward(); w.grad.zero_(); }",
        "let s = stream(#{device: \"cuda:0\"}); let t = stream(#{device: \"cuda:1\"}); let a = ones([4], #{device: \"cuda:0\"}); stream_barrier([s, t, default_stream(0)]); let b = with_stream(s, || a * 2); stream_barrier([s, t, default_stream(0)]); a.zero_(); b.zero_();",
    ] {
        assert!(warnings(text).is_empty(), "{text}\n{:?}", warnings(text));
    }
}

/// A generator that needs no crate (xorshift64*).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

/// One access to elements of a named tensor.
struct Access {
    line: usize,
    writes: bool,
    tensor: usize,
    elements: BTreeSet<usize>,
    point: usize,
}

/// Everything that is ordered, as a graph: what comes after what.
#[derive(Default)]
struct Oracle {
    /// For each point, those that it directly comes after.
    after: Vec<Vec<usize>>,
    /// The last point of each stream, and of what the host knows.
    last: [usize; STREAMS],
    host: usize,
    accesses: Vec<Access>,
}

const STREAMS: usize = 5;
/// Streams of the programs with their devices; 0 and 3 are the default streams.
const NAMES: [(&str, usize); STREAMS] =
    [("default_stream(0)", 0), ("s1", 0), ("s2", 0), ("default_stream(1)", 1), ("t1", 1)];
/// Tensors with their devices, of 4 rows and 6 columns.
const TENSORS: [(&str, usize); 3] = [("a", 0), ("b", 0), ("c", 1)];

impl Oracle {
    fn new() -> Oracle {
        Oracle { after: vec![Vec::new()], ..Oracle::default() }
    }

    fn point(&mut self, after: Vec<usize>) -> usize {
        self.after.push(after);
        self.after.len() - 1
    }

    /// Something is queued on a stream.
    fn queue(&mut self, stream: usize) -> usize {
        let point = self.point(vec![self.last[stream], self.host]);
        self.last[stream] = point;
        point
    }

    fn wait(&mut self, stream: usize, other: usize) {
        self.last[stream] = self.point(vec![self.last[stream], other]);
    }

    fn host_waits(&mut self, points: Vec<usize>) {
        let all = points.into_iter().chain([self.host]).collect();
        self.host = self.point(all);
    }

    fn comes_after(&self, point: usize, other: usize) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![point]);
        while let Some(at) = open.pop() {
            if at == other {
                return true;
            }
            if at > other && seen.insert(at) {
                open.extend(&self.after[at]);
            }
        }
        false
    }

    /// For each line that races, the earlier lines with which it does.
    fn races(&self) -> BTreeMap<usize, BTreeSet<usize>> {
        let mut found: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (n, later) in self.accesses.iter().enumerate() {
            for earlier in &self.accesses[..n] {
                let conflict = (later.writes || earlier.writes)
                    && later.tensor == earlier.tensor
                    && !later.elements.is_disjoint(&earlier.elements);
                if conflict && later.point != earlier.point && !self.comes_after(later.point, earlier.point) {
                    found.entry(later.line).or_default().insert(earlier.line);
                }
            }
        }
        found
    }
}

/// A part of a tensor: rows and columns.
fn part(random: &mut Random, tensor: usize) -> (String, BTreeSet<usize>) {
    let range = |random: &mut Random, n: usize| {
        let start = random.below(n);
        (start, start + 1 + random.below(n - start))
    };
    let (rows, columns) = match random.below(4) {
        0 => ((0, 4), (0, 6)),
        1 => (range(random, 4), (0, 6)),
        2 => ((0, 4), range(random, 6)),
        _ => (range(random, 4), range(random, 6)),
    };
    let elements = (rows.0..rows.1).flat_map(|row| (columns.0..columns.1).map(move |column| row * 6 + column));
    let name = TENSORS[tensor].0;
    (format!("{name}[[{}..{}, {}..{}]]", rows.0, rows.1, columns.0, columns.1), elements.collect())
}

/// What a line of a program does, for the oracle, once it is known what the script printed.
enum Line {
    Op {
        stream: usize,
        reads: Vec<(usize, BTreeSet<usize>)>,
        writes: Vec<(usize, BTreeSet<usize>)>,
    },
    /// The current streams of two devices order themselves around a copy.
    Copy {
        from: usize,
        to: usize,
    },
    WaitStream(usize, usize),
    Record(usize),
    WaitEvent(usize),
    SyncStream(usize),
    SyncEvent,
    Query(usize),
    ReadItem(usize, usize),
    Nothing,
}

fn program(random: &mut Random, length: usize) -> (String, Vec<Line>) {
    let mut text = String::from(
        "synchronize(); let s1 = stream(#{device: \"cuda:0\"}); let s2 = stream(#{device: \"cuda:0\"}); let t1 = stream(#{device: \"cuda:1\"}); let e = event(); \
         let a = zeros([4, 6], #{device: \"cuda:0\"}); let b = zeros([4, 6], #{device: \"cuda:0\"}); let c = zeros([4, 6], #{device: \"cuda:1\"}); synchronize();\n",
    );
    let mut lines = vec![Line::Nothing];
    for number in 2..2 + length {
        let stream = random.below(STREAMS);
        let (name, device) = NAMES[stream];
        let mine: Vec<usize> = (0..TENSORS.len()).filter(|&tensor| TENSORS[tensor].1 == device).collect();
        let tensor = mine[random.below(mine.len())];
        let (written, elements) = part(random, tensor);
        let op = |call: String, reads, writes| {
            (format!("with_stream({name}) {{ {call} }}"), Line::Op { stream, reads, writes })
        };
        let (code, line) = match random.below(16) {
            0..=2 => op(format!("{written}.fill_(1.0);"), vec![], vec![(tensor, elements)]),
            3..=4 => op(format!("{written}.add_(1.0);"), vec![(tensor, elements.clone())], vec![(tensor, elements)]),
            5..=7 => op(format!("{written}.sum();"), vec![(tensor, elements)], vec![]),
            8 => {
                let other = random.below(STREAMS);
                (format!("{name}.wait_stream({});", NAMES[other].0), Line::WaitStream(stream, other))
            }
            9..=10 => (format!("e.record({name});"), Line::Record(stream)),
            11 => (format!("{name}.wait_event(e);"), Line::WaitEvent(stream)),
            12 => match random.below(3) {
                0 => (format!("{name}.synchronize();"), Line::SyncStream(stream)),
                1 => ("e.synchronize();".to_string(), Line::SyncEvent),
                _ => (format!("if {name}.query() {{ print({number}); }}"), Line::Query(stream)),
            },
            13 => {
                let element = random.below(24);
                let (name, row, column) = (TENSORS[tensor].0, element / 6, element % 6);
                (format!("{name}[{row}, {column}].item();"), Line::ReadItem(tensor, element))
            }
            14 => (format!("c.copy_({});", TENSORS[tensor % 2].0), Line::Copy { from: tensor % 2, to: 2 }),
            _ => (format!("{}.copy_(c);", TENSORS[tensor % 2].0), Line::Copy { from: 2, to: tensor % 2 }),
        };
        text += &code;
        text.push('\n');
        lines.push(line);
    }
    (text, lines)
}

fn judge(lines: Vec<Line>, printed: &str) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut oracle = Oracle::new();
    let mut event: Option<usize> = None;
    for (at, line) in lines.into_iter().enumerate() {
        let line_number = at + 1;
        let note = |oracle: &mut Oracle, point, writes, tensor, elements| {
            oracle.accesses.push(Access { line: line_number, writes, tensor, elements, point });
        };
        match line {
            Line::Nothing => {}
            Line::Op { stream, reads, writes } => {
                let point = oracle.queue(stream);
                reads.into_iter().for_each(|(tensor, elements)| note(&mut oracle, point, false, tensor, elements));
                writes.into_iter().for_each(|(tensor, elements)| note(&mut oracle, point, true, tensor, elements));
            }
            Line::Copy { from, to } => {
                // The default streams are current; the source's one carries the copy.
                let stream_of = |tensor: usize| if TENSORS[tensor].1 == 0 { 0 } else { 3 };
                let (source, target) = (stream_of(from), stream_of(to));
                let before = oracle.last[target];
                oracle.wait(source, before);
                let point = oracle.queue(source);
                note(&mut oracle, point, false, from, (0..24).collect());
                note(&mut oracle, point, true, to, (0..24).collect());
                oracle.wait(target, point);
            }
            Line::WaitStream(stream, other) => {
                let other = oracle.last[other];
                oracle.wait(stream, other);
            }
            Line::Record(stream) => event = Some(oracle.last[stream]),
            Line::WaitEvent(stream) => event.into_iter().for_each(|event| oracle.wait(stream, event)),
            Line::SyncStream(stream) => oracle.host_waits(vec![oracle.last[stream]]),
            Line::SyncEvent => event.into_iter().for_each(|event| oracle.host_waits(vec![event])),
            Line::Query(stream) => {
                if printed.lines().any(|line| line == line_number.to_string()) {
                    oracle.host_waits(vec![oracle.last[stream]]);
                }
            }
            Line::ReadItem(tensor, element) => {
                let wrote =
                    |access: &&Access| access.writes && access.tensor == tensor && access.elements.contains(&element);
                let points = oracle.accesses.iter().filter(wrote).map(|access| access.point).collect();
                oracle.host_waits(points);
            }
        }
    }
    oracle.races()
}

#[test]
fn random_programs_are_judged_as_an_oracle_judges_them() {
    let (mut races, mut quiet) = (0, 0);
    for seed in 1..=8u64 {
        let printed = Arc::new(Mutex::new(String::new()));
        let sink = printed.clone();
        let (builder, reported) = listening(Session::builder().simulate_gpus(2).simulate_seed(seed));
        let builder = builder.output(move |line| *sink.lock().expect("no panic") += &format!("{line}\n"));
        let mut session = builder.build().expect("a session starts");
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for round in 0..40 {
            let length = 4 + random.below(28);
            let (text, lines_of) = program(&mut random, length);
            printed.lock().expect("no panic").clear();
            reported.lock().expect("no panic").clear();
            session.run_str("program", &text).unwrap_or_else(|error| panic!("{error:#}\n{text}"));
            let expected = judge(lines_of, &printed.lock().expect("no panic"));
            let mut found: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for warning in reported.lock().expect("no panic").iter() {
                let line = |n: usize| {
                    let label = &warning.diag().labels[n];
                    warning.sources().location(label.origin.user).map_or(0, |at| at.line)
                };
                found.entry(line(0)).or_default().insert(line(1));
            }
            let context = || format!("seed {seed}, round {round}\n{text}\nwanted {expected:?}\nfound {found:?}");
            // An access that races with several others tells the latest of them.
            assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{}", context());
            assert!(found.iter().all(|(line, earlier)| earlier.is_subset(&expected[line])), "{}", context());
            races += found.len();
            quiet += expected.is_empty() as usize;
        }
    }
    assert!(races > 300 && quiet > 10, "{races} races, {quiet} programs without one");
}
