//! Kernels whose CUDA text the script gives. The text is a value: a launch finds it by its number, so that one static
//! kernel stands for all of them.

pub mod signature;

use super::abi::Call;
use super::family::Kernel;
use crate::base::attr::{Attr, Attrs, Ints};
#[cfg(feature = "cuda")]
use crate::kernel::cuda::{Gpu, GpuError, Launch, Param, Source};
use parking_lot::RwLock;
use signature::Parameter;

/// A kernel's text, name and parameters.
#[derive(Debug)]
pub struct Custom {
    pub text: String,
    pub entry: String,
    pub params: Vec<Parameter>,
    #[cfg(feature = "cuda")]
    pub source: Source,
    number: usize,
}

/// Bound: one for each different text, name and parameters of the process; loaded kernels stay loaded, too.
static KNOWN: RwLock<Vec<&'static Custom>> = RwLock::new(Vec::new());

/// The kernel of a text; the same one for the same text, name and parameters.
pub fn known(text: &str, entry: &str, params: Vec<Parameter>) -> &'static Custom {
    let mut all = KNOWN.write();
    let same = |custom: &&&Custom| custom.text == text && custom.entry == entry && custom.params == params;
    if let Some(custom) = all.iter().find(same) {
        return custom;
    }
    let custom: &'static Custom = Box::leak(Box::new(Custom {
        text: text.to_string(),
        entry: entry.to_string(),
        params,
        #[cfg(feature = "cuda")]
        source: Source::new(text.to_string()),
        number: all.len(),
    }));
    all.push(custom);
    custom
}

/// An argument of a launch: an operand of the node, by its place among the inputs, or the bytes of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    Operand(usize),
    /// The lowest bytes count, as many as the parameter has.
    Number(u64),
}

/// The attributes of a launch.
pub fn attributes(custom: &Custom, grid: [u32; 3], block: [u32; 3], shared: u32, args: &[Argument]) -> Attrs {
    let mut words = Ints::new();
    for sizes in [grid, block] {
        words.extend(sizes.map(i64::from));
    }
    words.push(shared as i64);
    for arg in args {
        words.extend(match arg {
            Argument::Operand(at) => [0, *at as i64],
            Argument::Number(bits) => [1, *bits as i64],
        });
    }
    [Attr::Int(custom.number as i64), Attr::Ints(words)].into_iter().collect()
}

pub static CUSTOM: Kernel = Kernel {
    name: "kernel",
    host: nowhere,
    #[cfg(feature = "cuda")]
    cuda: Some(launch),
};

/// There is no form of it for the host: launches for other devices are refused before they are recorded.
///
/// # Safety
/// As every kernel on the host; it touches nothing.
unsafe fn nowhere(call: &Call<'_>) {
    call.faults.spoil();
}

#[cfg(feature = "cuda")]
fn launch(call: &Call<'_>, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let [Attr::Int(number), Attr::Ints(words)] = call.attrs else {
        return Err(GpuError::Device("a launch without its attributes".into()));
    };
    let custom = KNOWN.read()[*number as usize];
    let size = |at: usize| words[at] as u32;
    let words_of_args: Vec<[i64; 2]> = words[7..].chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    let bytes: Vec<[u8; 8]> = words_of_args.iter().map(|[_, value]| value.to_le_bytes()).collect();
    let args: Vec<Param<'_>> = words_of_args
        .iter()
        .zip(&bytes)
        .zip(&custom.params)
        .map(|((word, bytes), param)| match word {
            [0, at] => Param::Pointer(call.inputs[*at as usize].ptr),
            _ => Param::Bytes(&bytes[..param.size_bytes()]),
        })
        .collect();
    gpu.launch(&Launch {
        source: &custom.source,
        entry: &custom.entry,
        grid: [size(0), size(1), size(2)],
        block: [size(3), size(4), size(5)],
        shared_bytes: size(6),
        args: &args,
    })
}
