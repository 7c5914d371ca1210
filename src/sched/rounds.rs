//! Windows end where a round of a loop ends, so that each round makes the same windows, whose plans and graphs are known:
//! a model that runs in a loop, whose results nobody reads meanwhile, would otherwise be cut anywhere.
//!
//! Loops are told apart by how deep they are, the outermost first. The rounds of the outermost loop that is seen at work end
//! windows; those of loops inside it, as over the layers of a model, do not, unless one round fills a window.

use crate::base::limits::WINDOW_NODES;

/// Bound: kernels in a window that ends with a round. A window of maps alone goes on: they are fused across rounds.
pub const ROUND_KERNELS: usize = 8;

/// The loop whose rounds end windows.
pub struct LoopRounds {
    depth: u32,
    /// How many nodes were recorded when one of its rounds ended last.
    at: u64,
    /// How many were recorded when a step of training ended last, if one did.
    trained: Option<u64>,
}

impl Default for LoopRounds {
    fn default() -> LoopRounds {
        LoopRounds { depth: u32::MAX, at: 0, trained: None }
    }
}

impl LoopRounds {
    /// A round of a loop ends, so many nodes having been recorded: whether windows end with it.
    pub fn ends(&mut self, depth: u32, recorded: u64) -> bool {
        // Rounds of training end windows at the optimizer's step.
        if self.trained.is_some_and(|trained| recorded - trained <= WINDOW_NODES as u64) {
            return false;
        }
        if depth > self.depth && recorded - self.at <= WINDOW_NODES as u64 {
            return false;
        }
        (self.depth, self.at) = (depth, recorded);
        true
    }

    /// A step of training ends.
    pub fn train(&mut self, recorded: u64) {
        self.trained = Some(recorded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of recorded nodes at which windows end, of rounds of (depth, nodes).
    fn ends(rounds: &[(u32, u64)]) -> Vec<u64> {
        let (mut known, mut recorded, mut ends) = (LoopRounds::default(), 0, Vec::new());
        for &(depth, nodes) in rounds {
            recorded += nodes;
            if known.ends(depth, recorded) {
                ends.push(recorded);
            }
        }
        ends
    }

    #[test]
    fn the_outermost_loop_ends_windows() {
        // Three layers and a head, again and again: the first call ends at each layer.
        let call = [(2, 20), (2, 20), (2, 20), (1, 5)];
        assert_eq!(ends(&[call, call, call].concat()), [20, 40, 60, 65, 130, 195]);
    }

    #[test]
    fn a_long_round_ends_with_its_inner_rounds() {
        let call = [(2, 400), (2, 400), (2, 400), (1, 5)];
        assert_eq!(ends(&[call, call].concat()), [400, 800, 1200, 1205, 2005, 2405, 2410]);
    }

    #[test]
    fn loops_of_training_end_none() {
        let mut known = LoopRounds::default();
        known.train(90);
        assert!(!known.ends(0, 100));
        assert!(known.ends(0, 700));
    }

    #[test]
    fn another_loop_takes_over() {
        assert_eq!(ends(&[(1, 100), (1, 100), (3, 300), (3, 300), (3, 300)]), [100, 200, 800, 1100]);
    }
}
