//! Kernels whose text a script gives: each argument arrives with the type that the text says.

use super::HostGpu;
use super::fused::Memory;
use tscript::DType;
use tscript::internals::base::quoted::Quoted;
use tscript::internals::kernel::abi::{Call, Faults, Threads};
use tscript::internals::kernel::custom::signature::{self, Parameter};
use tscript::internals::kernel::custom::{Argument, CUSTOM, attributes, known};

const TEXT: &str = "#include \"common/base.cuh\"
TS_KERNEL void mixed(const float* x, double by, short n, bool on, unsigned char c, long long m, float* y, unsigned k) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < k) y[i] = x[i] * by + n + (on ? 1000 : 0) + c * 0.25f + m + gridDim.y;
}
";

#[test]
fn arguments_arrive_as_the_text_says() {
    let Some(mut gpu) = HostGpu::open() else { return };
    let plain = TEXT.replace("TS_KERNEL", "extern \"C\" __global__");
    let params = signature::read(&Quoted::plain(&plain), "mixed", None).expect("the parameters");
    let written: Vec<bool> = params.iter().map(|param: &Parameter| param.is_written).collect();
    assert_eq!(written, [false, false, false, false, false, false, true, false]);
    let kernel = known(TEXT, "mixed", params.clone());
    assert!(std::ptr::eq(kernel, known(TEXT, "mixed", params)), "a text is known once");
    let x = Memory::new(DType::F32, &[70], &[1], |i| i as f64);
    let y = Memory::new(DType::F32, &[70], &[1], |_| -1.0);
    let args = [
        Argument::Operand(0),
        Argument::Number(2.5f64.to_bits()),
        Argument::Number((-3i64) as u64),
        Argument::Number(1),
        Argument::Number(8),
        Argument::Number((-(1i64 << 20)) as u64),
        Argument::Operand(1),
        Argument::Number(66),
    ];
    let attrs = attributes(kernel, [3, 2, 1], [32, 1, 1], 0, &args);
    let (inputs, outputs) = ([x.view.clone(), y.view.clone()], [y.view.clone()]);
    let faults = Faults::default();
    let call = Call {
        inputs: &inputs,
        outputs: &outputs,
        attrs: &attrs,
        threads: &Threads::ONE,
        faults: &faults,
        seed: 0,
        offset: 0,
    };
    CUSTOM.cuda.expect("a launch")(&call, &mut gpu).expect("it runs");
    for (i, value) in y.values().into_iter().take(70).enumerate() {
        let expected = i as f64 * 2.5 - 3.0 + 1000.0 + 2.0 - f64::from(1 << 20) + 2.0;
        assert_eq!(value, if i < 66 { f64::from(expected as f32) } else { -1.0 }, "element {i}");
    }
}
