//! Faults that a user injects into simulated devices: `alloc:3@cuda:1`, `launch:20@cuda:0`, `lost:50@cuda:1`.
//!
//! Counts requests and launches and decides which of them fails. Knows no memory and no queue.

use crate::base::device_id::{DeviceId, DeviceSpec};
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The n-th request for memory fails, its retry included.
    Alloc,
    /// The n-th launch fails.
    Launch,
    /// The device is lost at the n-th launch.
    Lost,
}

/// One fault; `nth` counts from 1, on that device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedFault {
    pub kind: FaultKind,
    pub nth: u64,
    pub device: DeviceId,
}

impl PlannedFault {
    /// Reads `kind:n@cuda:i`; the error is a sentence for the user.
    pub fn parse(text: &str) -> Result<PlannedFault, String> {
        let form = || {
            format!(
                "`{text}` is not a fault to simulate; write `alloc:3@cuda:1`, `launch:20@cuda:0` or `lost:50@cuda:1`"
            )
        };
        let (what, device) = text.split_once('@').ok_or_else(form)?;
        let (kind, nth) = what.split_once(':').ok_or_else(form)?;
        let kind = match kind {
            "alloc" => FaultKind::Alloc,
            "launch" => FaultKind::Launch,
            "lost" => FaultKind::Lost,
            _ => return Err(form()),
        };
        let digits = !nth.is_empty() && nth.bytes().all(|byte| byte.is_ascii_digit());
        let nth = nth.parse().ok().filter(|&nth| digits && nth > 0);
        let nth = nth.ok_or_else(|| format!("`{text}`: the number after `:` counts from 1"))?;
        match DeviceSpec::parse(device) {
            Some(DeviceSpec::Cuda(index)) => Ok(PlannedFault { kind, nth, device: DeviceId::Cuda(index) }),
            _ => Err(format!("`{text}`: only a simulated device such as `cuda:0` can fail")),
        }
    }
}

/// The outcome of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Runs,
    Fails,
    /// The device is lost, for this launch and all later ones.
    DeviceLost,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    allocs: u64,
    launches: u64,
    lost: bool,
}

/// All planned faults of a session, and the counts of each device.
#[derive(Default)]
pub struct FaultPlan {
    faults: Vec<PlannedFault>,
    devices: BTreeMap<DeviceId, Counts>,
}

impl FaultPlan {
    pub fn new(faults: Vec<PlannedFault>) -> FaultPlan {
        FaultPlan { faults, devices: BTreeMap::new() }
    }

    fn strikes(&self, kind: FaultKind, nth: u64, device: DeviceId) -> bool {
        self.faults.contains(&PlannedFault { kind, nth, device })
    }

    /// Counts a request for memory; false if it has to fail. Called once for each request, before any retry.
    pub fn may_alloc(&mut self, device: DeviceId) -> bool {
        if self.faults.is_empty() {
            return true;
        }
        let counts = self.devices.entry(device).or_default();
        counts.allocs += 1;
        let nth = counts.allocs;
        !self.strikes(FaultKind::Alloc, nth, device)
    }

    /// Counts a launch.
    pub fn launch(&mut self, device: DeviceId) -> Fate {
        if self.faults.is_empty() {
            return Fate::Runs;
        }
        let counts = self.devices.entry(device).or_default();
        if counts.lost {
            return Fate::DeviceLost;
        }
        counts.launches += 1;
        let nth = counts.launches;
        if self.strikes(FaultKind::Lost, nth, device) {
            self.devices.entry(device).or_default().lost = true;
            return Fate::DeviceLost;
        }
        if self.strikes(FaultKind::Launch, nth, device) { Fate::Fails } else { Fate::Runs }
    }

    pub fn is_lost(&self, device: DeviceId) -> bool {
        self.devices.get(&device).is_some_and(|counts| counts.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: DeviceId = DeviceId::Cuda(1);

    fn plan(texts: &[&str]) -> FaultPlan {
        FaultPlan::new(texts.iter().map(|text| PlannedFault::parse(text).expect("well formed")).collect())
    }

    #[test]
    fn faults_are_read() {
        let fault = PlannedFault::parse("alloc:3@cuda:1");
        assert_eq!(fault, Ok(PlannedFault { kind: FaultKind::Alloc, nth: 3, device: ONE }));
        for bad in ["", "alloc", "alloc:3", "alloc@cuda:1", "oom:3@cuda:1", "alloc:0@cuda:1", "alloc:+3@cuda:1"] {
            assert!(PlannedFault::parse(bad).is_err(), "{bad}");
        }
        for bad in ["lost:1@cpu", "lost:1@cuda", "lost:1@cuda:01", "lost:99999999999999999999@cuda:1"] {
            assert!(PlannedFault::parse(bad).is_err_and(|text| text.contains(bad)), "{bad}");
        }
    }

    #[test]
    fn only_the_nth_request_of_that_device_fails() {
        let mut plan = plan(&["alloc:2@cuda:1", "alloc:4@cuda:1"]);
        assert_eq!([(); 5].map(|()| plan.may_alloc(ONE)), [true, false, true, false, true]);
        assert_eq!([(); 5].map(|()| plan.may_alloc(DeviceId::Cuda(0))), [true; 5]);
    }

    #[test]
    fn a_lost_device_stays_lost_and_others_go_on() {
        use Fate::*;
        let mut plan = plan(&["launch:2@cuda:1", "lost:4@cuda:1"]);
        assert_eq!([(); 6].map(|()| plan.launch(ONE)), [Runs, Fails, Runs, DeviceLost, DeviceLost, DeviceLost]);
        assert!(plan.is_lost(ONE) && !plan.is_lost(DeviceId::Cuda(0)));
        assert_eq!(plan.launch(DeviceId::Cuda(0)), Runs);
    }
}
