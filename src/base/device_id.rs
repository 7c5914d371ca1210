//! Names of devices: `cpu`, `cuda:1`.

use std::fmt;

/// Which device: the host, or the CUDA device (real or simulated) with an index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum DeviceId {
    Cpu,
    Cuda(u16),
}

impl DeviceId {
    pub const fn is_cuda(self) -> bool {
        matches!(self, DeviceId::Cuda(_))
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceId::Cpu => f.write_str("cpu"),
            DeviceId::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

/// What a script may write: `"cpu"`, `"cuda"` (the current CUDA device) or `"cuda:1"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceSpec {
    Cpu,
    CurrentCuda,
    Cuda(u16),
}

impl From<DeviceId> for DeviceSpec {
    fn from(device: DeviceId) -> DeviceSpec {
        match device {
            DeviceId::Cpu => DeviceSpec::Cpu,
            DeviceId::Cuda(index) => DeviceSpec::Cuda(index),
        }
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceSpec::Cpu => f.write_str("cpu"),
            DeviceSpec::CurrentCuda => f.write_str("cuda"),
            DeviceSpec::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

impl DeviceSpec {
    /// `cpu` or `cuda`.
    pub const fn kind(self) -> &'static str {
        match self {
            DeviceSpec::Cpu => "cpu",
            DeviceSpec::CurrentCuda | DeviceSpec::Cuda(_) => "cuda",
        }
    }

    /// The index of a CUDA device, if it was given.
    pub const fn index(self) -> Option<u16> {
        match self {
            DeviceSpec::Cuda(index) => Some(index),
            DeviceSpec::Cpu | DeviceSpec::CurrentCuda => None,
        }
    }

    pub fn parse(text: &str) -> Option<DeviceSpec> {
        match text {
            "cpu" | "cpu:0" => Some(DeviceSpec::Cpu),
            "cuda" => Some(DeviceSpec::CurrentCuda),
            _ => {
                let digits = text.strip_prefix("cuda:")?;
                let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
                digits.parse().ok().filter(|_| plain).map(DeviceSpec::Cuda)
            }
        }
    }
}
