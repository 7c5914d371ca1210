//! How long the functions of scripts ran, for `--profile`: each with its calls, its time, the time of its own lines, and
//! how much of that passed in operations and waits.

use crate::base::span::Site;
use std::collections::HashMap;

/// Bound: calls kept as slices of a trace, about 50 MB.
const MAX_SLICES: usize = 500_000;

/// A time of the session, and how much of it has passed in operations and waits.
#[derive(Clone, Copy, Default, Debug)]
pub struct Moment {
    pub now_ns: u64,
    pub busy_ns: u64,
}

/// A function by its name and the place where it stands.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FunctionName {
    pub name: String,
    pub at: Site,
}

/// What a function took.
#[derive(Clone, Copy, Default, Debug)]
pub struct FunctionTime {
    pub calls: u64,
    /// With the functions that it called; of calls inside each other the outermost counts.
    pub total_ns: u64,
    /// Without them.
    pub own_ns: u64,
    /// Of that, in operations and waits.
    pub busy_ns: u64,
}

/// One call, for a trace.
#[derive(Clone, Copy, Debug)]
pub struct CallSlice {
    pub function: usize,
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// All functions that ran.
#[derive(Clone, Default, Debug)]
pub struct FunctionTimes {
    pub functions: Vec<(FunctionName, FunctionTime)>,
    pub slices: Vec<CallSlice>,
    numbers: HashMap<FunctionName, usize>,
    open: Vec<Open>,
    /// How many calls of each function are open.
    depths: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Open {
    function: usize,
    begun: Moment,
    /// What functions that it called took.
    inside: Moment,
}

impl FunctionTimes {
    pub fn enter(&mut self, name: &str, at: Site, now: Moment) {
        let key = FunctionName { name: name.to_string(), at };
        let next = self.functions.len();
        let function = *self.numbers.entry(key.clone()).or_insert(next);
        if function == next {
            self.functions.push((key, FunctionTime::default()));
            self.depths.push(0);
        }
        self.depths[function] += 1;
        self.open.push(Open { function, begun: now, inside: Moment::default() });
    }

    pub fn leave(&mut self, now: Moment) {
        let Some(Open { function, begun, inside }) = self.open.pop() else { return };
        let took = Moment {
            now_ns: now.now_ns.saturating_sub(begun.now_ns),
            busy_ns: now.busy_ns.saturating_sub(begun.busy_ns),
        };
        self.depths[function] -= 1;
        let is_outermost = self.depths[function] == 0;
        let time = &mut self.functions[function].1;
        time.calls += 1;
        time.total_ns += if is_outermost { took.now_ns } else { 0 };
        let own_ns = took.now_ns.saturating_sub(inside.now_ns);
        time.own_ns += own_ns;
        // A wait inside a launch is measured twice.
        time.busy_ns += took.busy_ns.saturating_sub(inside.busy_ns).min(own_ns);
        if let Some(around) = self.open.last_mut() {
            around.inside.now_ns += took.now_ns;
            around.inside.busy_ns += took.busy_ns;
        }
        if self.slices.len() < MAX_SLICES {
            self.slices.push(CallSlice { function, begin_ns: begun.now_ns, end_ns: now.now_ns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(now_ns: u64, busy_ns: u64) -> Moment {
        Moment { now_ns, busy_ns }
    }

    #[test]
    fn own_times_add_up_to_the_whole() {
        let mut times = FunctionTimes::default();
        times.enter("main", Site(1), at(0, 0));
        times.enter("f", Site(2), at(10, 0));
        times.enter("f", Site(2), at(20, 5));
        times.leave(at(50, 25));
        times.leave(at(60, 25));
        times.leave(at(100, 30));
        let of = |name: &str| times.functions.iter().find(|(key, _)| key.name == name).expect("it ran").1;
        let (main, f) = (of("main"), of("f"));
        assert_eq!((main.calls, main.total_ns, main.own_ns, main.busy_ns), (1, 100, 50, 5));
        assert_eq!((f.calls, f.total_ns, f.own_ns, f.busy_ns), (2, 50, 50, 25));
        assert_eq!(times.slices.len(), 3);
    }
}
