//! The sources of simulated devices with their own tests, and nothing else of the project.
#![allow(dead_code)]

#[path = "../../../src/device"]
pub mod device {
    pub mod clock;
    pub mod queues;
    pub mod simulated;
    pub mod stop;
    pub mod virtual_time;
}
