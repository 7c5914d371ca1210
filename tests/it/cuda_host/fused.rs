//! Generated kernels against the CPU's: every function, every layout, every reduction.

use super::HostGpu;
use tscript::DType;
use tscript::internals::base::bytes::{element, push_element};
use tscript::internals::base::dtype::Scalar;
use tscript::internals::base::layout::{Shape, Strides, contiguous_strides};
use tscript::internals::kernel::abi::{Faults, RawView, Threads};
use tscript::internals::kernel::cuda::{ConvCall, Gpu, GpuError, Launch, MatmulCall, Source};
use tscript::internals::kernel::elementwise;
use tscript::internals::kernel::fused::cuda as device;
use tscript::internals::kernel::fused::host;
use tscript::internals::kernel::program::{Check, Class, Draw, Epilogue, Function, Instr, Program, ReduceKind};

/// Memory of a view, with room for holes.
pub struct Memory {
    words: Vec<u64>,
    pub view: RawView,
}

impl Memory {
    pub fn new(dtype: DType, shape: &[usize], strides: &[isize], values: impl Fn(usize) -> f64) -> Memory {
        let extent: isize = shape.iter().zip(strides).map(|(&n, &s)| (n.max(1) as isize - 1) * s).sum();
        let count = extent as usize + 1;
        let mut words = vec![0u64; count + 2];
        let ptr = (words.as_mut_ptr() as usize).next_multiple_of(16) as *mut u8;
        for i in 0..count {
            // SAFETY: `count` elements of at most 8 bytes.
            unsafe { put(ptr, dtype, i, values(i)) };
        }
        let view = RawView { ptr, dtype, shape: Shape::from_slice(shape), strides: Strides::from_slice(strides) };
        Memory { words, view }
    }

    /// Everything, holes too.
    pub fn values(&self) -> Vec<f64> {
        // SAFETY: inside the vector, whose last two words may be what alignment took.
        (0..self.words.len() - 2).map(|i| unsafe { get(self.view.ptr, self.view.dtype, i) }).collect()
    }
}

unsafe fn put(ptr: *mut u8, dtype: DType, i: usize, x: f64) {
    // Half of the truth values of a test with numbers of both signs.
    let x = if dtype == DType::Bool { (x > 0.0) as u8 as f64 } else { x };
    let mut bytes = Vec::new();
    push_element(&mut bytes, Scalar::Float(x), dtype);
    // SAFETY: whoever calls this names an element of the memory at `ptr`, which is of this dtype.
    unsafe { bytes.as_ptr().copy_to(ptr.add(i * bytes.len()), bytes.len()) };
}

unsafe fn get(ptr: *mut u8, dtype: DType, i: usize) -> f64 {
    let size = dtype.size_bytes();
    // SAFETY: whoever calls this names an element of the memory at `ptr`, which is of this dtype.
    element(unsafe { std::slice::from_raw_parts(ptr.add(i * size), size) }, dtype).to_f64()
}

pub fn wave(i: usize) -> f64 {
    ((i as f64 * 0.7548776662466927).fract() - 0.45) * 9.0
}

/// A program with its operands.
struct Case {
    program: Program,
    shape: Vec<usize>,
    inputs: Vec<Memory>,
    outputs: Vec<(DType, Vec<usize>, Vec<isize>)>,
}

/// Keeps the texts of launches instead of running them.
#[derive(Default)]
struct Recorder(Vec<Source>);

impl Gpu for Recorder {
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), GpuError> {
        self.0.push(launch.source.clone());
        Ok(())
    }
    fn scratch(&mut self, _: usize) -> Result<*mut u8, GpuError> {
        Ok(std::ptr::null_mut())
    }
    fn fill_zero(&mut self, _: *mut u8, _: usize) -> Result<(), GpuError> {
        Ok(())
    }
    fn copy(&mut self, _: *mut u8, _: *const u8, _: usize) -> Result<(), GpuError> {
        Ok(())
    }
    fn matmul(&mut self, _: &MatmulCall) -> Result<bool, GpuError> {
        Ok(false)
    }
    fn convolve(&mut self, _: &ConvCall) -> Result<bool, GpuError> {
        Ok(false)
    }
    fn convolves_transposed(&mut self, _: &ConvCall) -> Result<bool, GpuError> {
        Ok(false)
    }
    fn multiprocessors(&self) -> u32 {
        132
    }
    fn capability(&self) -> (u32, u32) {
        (9, 0)
    }
    fn fault_slot(&mut self, _: usize) -> Result<*mut u8, GpuError> {
        Ok(std::ptr::null_mut())
    }
}

/// Generated texts for a compile test: every function, every reduction, the forms of layouts.
pub fn texts() -> Vec<Source> {
    let mut recorder = Recorder::default();
    let all = function_cases()
        .into_iter()
        .map(|(case, _)| case)
        .chain(layout_cases(&[&[9, 33, 16], &[70, 90]]))
        .chain(reduction_cases(&[(&[64, 33, 40], 1), (&[3000], 1)]));
    for case in all {
        let outputs: Vec<Memory> =
            case.outputs.iter().map(|(d, shape, strides)| Memory::new(*d, shape, strides, |_| 0.0)).collect();
        let views: Vec<RawView> = case.inputs.iter().chain(&outputs).map(|m| m.view.clone()).collect();
        device::fused(&case.program, &case.shape, &views, &[0; 8], &mut recorder).expect("the recorder launches");
    }
    super::each::queue(&mut recorder);
    recorder.0
}

impl Case {
    fn compare(&self, table: &[u64], tolerance: f64) {
        compare(&self.program, &self.shape, &self.inputs, &self.outputs, table, tolerance);
    }
}

/// Runs a program on both; every element of the outputs' memory must agree within `tolerance` parts (0: all bits).
fn compare(
    program: &Program,
    shape: &[usize],
    inputs: &[Memory],
    outputs: &[(DType, Vec<usize>, Vec<isize>)],
    table: &[u64],
    tolerance: f64,
) {
    let Some(mut gpu) = HostGpu::open() else { return };
    let make = || -> Vec<Memory> {
        outputs.iter().map(|(dtype, shape, strides)| Memory::new(*dtype, shape, strides, |_| 7.0)).collect()
    };
    let (ours, theirs) = (make(), make());
    let views = |outputs: &[Memory]| -> Vec<RawView> { inputs.iter().chain(outputs).map(|m| m.view.clone()).collect() };
    let faults: Vec<Faults> = (0..4).map(|_| Faults::default()).collect();
    // SAFETY: every memory is as large as its view.
    unsafe { host::run(program, shape, &views(&theirs), table, &Threads::ONE, &faults) };
    device::fused(program, shape, &views(&ours), table, &mut gpu).expect("the recorder launches");
    for (n, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        for (i, (x, y)) in a.values().into_iter().zip(b.values()).enumerate() {
            let same = x == y
                || (x.is_nan() && y.is_nan())
                || (x - y).abs() <= tolerance * y.abs().max(if tolerance > 1e-5 { 0.02 } else { 1e-30 });
            assert!(
                same,
                "output {n}, element {i} of {shape:?}: {x:e}, host {y:e}\n{:?}\ninputs {:?}",
                program.instrs,
                inputs.iter().map(|m| m.values().get(i).copied()).collect::<Vec<_>>()
            );
        }
    }
    for (node, slot) in gpu.slots.iter().enumerate() {
        assert_eq!(slot.read(), faults[node].take(), "fault of node {node}");
    }
    // Where blocks can count, the last one does what was a launch of its own, with the same result.
    let launches = std::mem::take(&mut gpu.launches);
    gpu.counters = vec![0; 64];
    let again = make();
    device::fused(program, shape, &views(&again), table, &mut gpu).expect("the recorder launches");
    assert_eq!(gpu.launches, launches.min(1));
    assert_eq!(gpu.counters, [0; 64], "counters");
    for (a, b) in ours.iter().zip(&again) {
        let same = |(x, y): (&f64, &f64)| x == y || (x.is_nan() && y.is_nan());
        assert!(a.values().iter().zip(&b.values()).all(same), "{shape:?} {:?}", program.instrs);
    }
}

fn representative(class: Class) -> DType {
    match class {
        Class::Bool => DType::Bool,
        Class::I64 => DType::I64,
        Class::F32 => DType::F32,
        Class::F64 => DType::F64,
    }
}

/// Values at which functions differ, then some everywhere.
fn telling(i: usize, class: Class, arg: usize) -> f64 {
    const FLOATS: [f64; 14] =
        [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 2.5, -2.5, 1e-30, 12345.678, 3.0];
    const INTS: [f64; 9] = [0.0, 1.0, -1.0, 7.0, -7.0, 64.0, 63.0, 1e15, -12.0];
    match class {
        Class::Bool => ((i >> arg) & 1) as f64,
        Class::I64 => {
            let n = i / INTS.len().pow(arg as u32);
            if i < 81 * 9 { INTS[n % INTS.len()] } else { (wave(i + arg * 31) * 5.0).trunc() }
        }
        _ => {
            let n = i / FLOATS.len().pow(arg as u32);
            if i < 14 * 14 * 14 { FLOATS[n % FLOATS.len()] } else { wave(i * (arg + 1) + arg) }
        }
    }
}

/// How far apart the two libraries may be, in parts of a result.
fn tolerance(name: &str, class: Class) -> f64 {
    match class {
        // Random counts of arguments near where they jump, and what is built on the two libraries' lgamma.
        Class::F64 if ["poisson", "binomial", "igamma", "igammac", "ndtri"].contains(&name) => 1e-4,
        Class::F64
            if [
                "erfcx",
                "ndtr",
                "log_ndtr",
                "i0e",
                "i1e",
                "bessel_j0",
                "bessel_j1",
                "bessel_y0",
                "bessel_y1",
                "bessel_k0",
                "bessel_k1",
                "bessel_k0e",
                "bessel_k1e",
                "digamma",
                "polygamma1",
                "zeta",
                "i0",
                "i1",
                "lgamma",
                "erfinv",
            ]
            .contains(&name) =>
        {
            1e-9
        }
        Class::F64 => 1e-11,
        Class::F32
            if [
                "logit",
                "logaddexp",
                "logaddexp2",
                "softplus",
                "logsigmoid",
                "tanhshrink",
                "mish",
                "mish_grad",
                "gelu_erf",
                "gelu_erf_grad",
                "gelu_tanh",
                "gelu_tanh_grad",
                "silu_grad",
                "sinc",
                "softplus_grad",
                "xlogy",
            ]
            .contains(&name) =>
        {
            1e-4
        }
        // In float on the GPU, in double on the host: around their roots as much as around 1.
        Class::F32 if ["digamma", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"].contains(&name) => 1e-4,
        Class::F32
            if ["i0", "i1", "i0e", "i1e", "bessel_k0", "bessel_k1", "bessel_k0e", "bessel_k1e", "log_ndtr", "ndtr"]
                .contains(&name) =>
        {
            2e-6
        }
        Class::F32 => 5e-7,
        _ => 0.0,
    }
}

#[test]
fn functions_agree_with_the_host() {
    for (case, apart) in function_cases() {
        case.compare(&[], apart);
    }
}

/// Every variant of every function, many of one kind in a program, with how far results may be apart.
fn function_cases() -> Vec<(Case, f64)> {
    let mut cases = Vec::new();
    type Variants = Vec<(&'static Function, usize)>;
    let mut kinds: Vec<(Vec<Class>, Variants)> = Vec::new();
    let missing: Vec<&str> = elementwise::all().filter(|f| !device::knows(f)).map(|f| f.name).collect();
    assert!(missing.is_empty(), "these have no CUDA text: {missing:?}");
    // Those of 16-bit floats take values that are some.
    let rounded = |f: &Function| f.name.starts_with("nextafter_");
    for function in elementwise::all().filter(|f| device::knows(f)) {
        for (at, variant) in function.variants.iter().enumerate() {
            match kinds
                .iter_mut()
                .find(|(args, list)| args == variant.args && list.len() < 24 && rounded(list[0].0) == rounded(function))
            {
                Some((_, list)) => list.push((function, at)),
                None => kinds.push((variant.args.to_vec(), vec![(function, at)])),
            }
        }
    }
    let n = 4000;
    for (args, list) in &kinds {
        let mut instrs = Vec::new();
        let mut regs: Vec<Class> = args.clone();
        for arg in 0..args.len() {
            instrs.push(Instr::Load { slot: arg as u16, out: arg as u16 });
        }
        let mut outputs = Vec::new();
        let mut apart: f64 = 0.0;
        for (function, at) in list {
            let out = regs.len() as u16;
            let variant = &function.variants[*at];
            instrs.push(Instr::Apply { function, variant: *at as u16, args: [0, 1, 2, 3], out });
            regs.push(variant.out);
            instrs.push(Instr::Store { reg: out, slot: (args.len() + outputs.len()) as u16 });
            outputs.push((representative(variant.out), vec![n], vec![1]));
            apart = apart.max(tolerance(function.name, variant.out));
        }
        let inputs: Vec<Memory> = args
            .iter()
            .enumerate()
            .map(|(arg, &class)| {
                Memory::new(representative(class), &[n], &[1], |i| {
                    if rounded(list[0].0) { (wave(i * (arg + 1)) * 3.0).round() } else { telling(i, class, arg) }
                })
            })
            .collect();
        cases.push((Case { program: Program::new(instrs, regs, 0), shape: vec![n], inputs, outputs }, apart));
    }
    cases
}

fn apply(function: &'static Function, classes: &[Class], args: [u16; 4], out: u16) -> Instr {
    Instr::Apply { function, variant: function.variant(classes).expect("a variant of these classes") as u16, args, out }
}

const F2: [Class; 2] = [Class::F32, Class::F32];

/// relu(x * a + b) * 0.5 + x with a scalar, and a second result in bf16.
fn chain() -> Program {
    use elementwise as f;
    let instrs = vec![
        Instr::Load { slot: 0, out: 0 },
        Instr::Load { slot: 1, out: 1 },
        Instr::Scalar { index: 0, class: Class::F32, out: 2 },
        apply(&f::MUL, &F2, [0, 1, 0, 0], 3),
        apply(&f::ADD, &F2, [3, 1, 0, 0], 3),
        apply(&f::RELU, &F2[..1], [3, 0, 0, 0], 3),
        apply(&f::MUL, &F2, [3, 2, 0, 0], 3),
        Instr::Store { reg: 3, slot: 2 },
        Instr::Cast { reg: 3, from: Class::F32, to: DType::BF16, out: 3 },
        Instr::Store { reg: 3, slot: 3 },
    ];
    Program::new(instrs, vec![Class::F32; 4], 0)
}

fn layouts(shape: &[usize]) -> Vec<Vec<isize>> {
    let dense: Vec<isize> = contiguous_strides(shape).to_vec();
    let mut columns: Vec<isize> = vec![1; shape.len()];
    for d in 1..shape.len() {
        columns[d] = columns[d - 1] * shape[d - 1] as isize;
    }
    let row = (0..shape.len()).map(|d| (d + 1 == shape.len()) as isize).collect();
    let wide = dense.iter().map(|s| s * 2).collect();
    vec![dense, columns, row, wide, vec![0; shape.len()]]
}

#[test]
fn maps_of_every_layout() {
    let shapes: [&[usize]; 8] = [&[], &[0, 3], &[5], &[1000], &[64, 32], &[70, 90], &[9, 33, 16], &[2, 3, 4, 5, 6]];
    for case in layout_cases(&shapes) {
        case.compare(&[0.5f64.to_bits()], 0.0);
    }
}

fn layout_cases(shapes: &[&[usize]]) -> Vec<Case> {
    let mut cases = Vec::new();
    for &shape in shapes {
        let all = layouts(shape);
        for (i, x) in all.iter().enumerate() {
            for (j, a) in all.iter().enumerate() {
                for out in [0, 1, 3].into_iter().filter(|&out| i == 0 || j == 0 || out == 0) {
                    let out = all[out].clone();
                    let inputs = vec![
                        Memory::new(DType::F32, shape, x, wave),
                        Memory::new(DType::F16, shape, a, |i| wave(i + 5)),
                    ];
                    let outputs = vec![(DType::F32, shape.to_vec(), out.clone()), (DType::BF16, shape.to_vec(), out)];
                    cases.push(Case { program: chain(), shape: shape.to_vec(), inputs, outputs });
                }
            }
        }
    }
    cases
}

/// A product of complex numbers by their parts: slots 0 and 1, 2 and 3, and 4 and 5 are the parts of one tensor.
fn complex_product(class: Class) -> Program {
    use elementwise as f;
    let two = [class, class];
    let mut instrs: Vec<Instr> = (0..4).map(|slot| Instr::Load { slot, out: slot }).collect();
    instrs.extend([
        apply(&f::MUL, &two, [0, 2, 0, 0], 4),
        apply(&f::MUL, &two, [1, 3, 0, 0], 5),
        apply(&f::SUB, &two, [4, 5, 0, 0], 4),
        apply(&f::MUL, &two, [0, 3, 0, 0], 5),
        apply(&f::MUL, &two, [1, 2, 0, 0], 6),
        apply(&f::ADD, &two, [5, 6, 0, 0], 5),
        Instr::Store { reg: 4, slot: 4 },
        Instr::Store { reg: 5, slot: 5 },
    ]);
    Program::new(instrs, vec![class; 7], 0)
}

/// Parts that lie side by side are loaded and stored together, where rows allow it.
#[test]
fn parts_of_complex_numbers() {
    let Some(mut gpu) = HostGpu::open() else { return };
    // Shape, strides of the operands and of the result in elements, and whether the first operand begins off a multiple of 16.
    type Layouts = (&'static [usize], [&'static [isize]; 3], bool);
    let cases: [Layouts; 6] = [
        (&[1003], [&[2], &[2], &[2]], false),
        (&[1003], [&[2], &[2], &[2]], true),
        (&[6, 8], [&[16, 2], &[0, 2], &[16, 2]], false),
        (&[6, 5], [&[10, 2], &[0, 2], &[10, 2]], false),
        (&[6, 5], [&[11, 2], &[10, 2], &[13, 2]], false),
        (&[7, 4], [&[0, 0], &[8, 2], &[8, 2]], false),
    ];
    for (shape, strides, shifted) in cases {
        for (class, dtype) in [(Class::F32, DType::F32), (Class::F64, DType::F64)] {
            let program = complex_product(class);
            let run = |gpu: Option<&mut HostGpu>| {
                let memory: Vec<Memory> =
                    (0..3).map(|n| Memory::new(dtype, &[3000], &[1], |i| wave(i + n * 77))).collect();
                let part = |n: usize, which: usize| {
                    let skipped = which + if shifted && n == 0 { 2 } else { 0 };
                    let ptr = memory[n].view.ptr.wrapping_add(skipped * dtype.size_bytes());
                    RawView { ptr, dtype, shape: Shape::from_slice(shape), strides: Strides::from_slice(strides[n]) }
                };
                let views: Vec<RawView> = (0..6).map(|slot| part(slot / 2, slot % 2)).collect();
                match gpu {
                    Some(gpu) => device::fused(&program, shape, &views, &[], gpu).expect("the launch runs"),
                    // SAFETY: every memory is as large as its views.
                    None => unsafe { host::run(&program, shape, &views, &[], &Threads::ONE, &[]) },
                }
                let mut texts = Recorder::default();
                device::fused(&program, shape, &views, &[], &mut texts).expect("the recorder launches");
                (memory[2].values(), texts.0[0].text.contains("z.x[2 * v]"))
            };
            let ((ours, together), (theirs, _)) = (run(Some(&mut gpu)), run(None));
            assert_eq!(ours, theirs, "{shape:?} {strides:?} {dtype}");
            let off = shifted && dtype == DType::F32;
            assert_eq!(together, !off, "{shape:?} {strides:?} {dtype}");
        }
    }
}

#[test]
fn casts_positions_and_draws() {
    let n = 1003;
    let classes =
        [(Class::Bool, DType::Bool), (Class::I64, DType::I64), (Class::F32, DType::F32), (Class::F64, DType::F64)];
    for (from, dtype) in classes {
        let mut instrs = vec![Instr::Load { slot: 0, out: 0 }];
        let mut regs = vec![from];
        let mut outputs = Vec::new();
        for to in DType::REAL {
            let out = regs.len() as u16;
            instrs.push(Instr::Cast { reg: 0, from, to, out });
            instrs.push(Instr::Store { reg: out, slot: 1 + outputs.len() as u16 });
            regs.push(Class::of(to));
            outputs.push((to, vec![n], vec![1]));
        }
        let values = |i: usize| match i {
            0 => f64::NAN,
            1 => 1e30,
            2 => -1e30,
            3 => f64::INFINITY,
            4 => 70000.0,
            _ => wave(i) * 40.0,
        };
        let inputs = [Memory::new(dtype, &[n], &[1], values)];
        compare(&Program::new(instrs, regs, 0), &[n], &inputs, &outputs, &[], 0.0);
    }
    for (shape, strides) in [(vec![n], vec![1]), (vec![17, 64], vec![64, 1]), (vec![17, 64], vec![1, 17])] {
        let draws = [
            (Draw::Uniform, Class::F32),
            (Draw::Uniform, Class::F64),
            (Draw::Word, Class::I64),
            (Draw::Integer, Class::I64),
            (Draw::Normal, Class::F32),
            (Draw::Normal, Class::F64),
        ];
        for normal in [false, true] {
            let (mut instrs, mut regs, mut outputs) = (
                vec![Instr::Position { out: 0 }, Instr::Store { reg: 0, slot: 0 }],
                vec![Class::I64],
                vec![(DType::I64, shape.clone(), strides.clone())],
            );
            for (draw, class) in draws.into_iter().filter(|(draw, _)| (*draw == Draw::Normal) == normal) {
                let out = regs.len() as u16;
                instrs.push(Instr::Random { draw, class, seed: 0, out });
                instrs.push(Instr::Store { reg: out, slot: outputs.len() as u16 });
                regs.push(class);
                outputs.push((representative(class), shape.clone(), strides.clone()));
            }
            let table = [42, 7, (-5i64) as u64, 1000];
            let mut program = Program::new(instrs, regs, 0);
            compare(&program, &shape, &[], &outputs, &table, if normal { 3e-7 } else { 0.0 });
            // The dims of a step are not always in the order in which the script sees them.
            if shape.len() == 2 && !normal {
                program = Program::new(program.instrs, program.regs, 1);
                program.order.extend([1, 0]);
                let slot = outputs.len() as u16;
                program.instrs.push(Instr::Reduce { kind: ReduceKind::Sum, reg: 3, class: Class::I64, slot });
                outputs.push((DType::I64, shape[..1].to_vec(), vec![1]));
                compare(&program, &shape, &[], &outputs, &table, 0.0);
            }
        }
    }
}

#[test]
fn division_by_zero_is_reported_at_the_lowest_position() {
    let instrs = vec![
        Instr::Load { slot: 0, out: 0 },
        Instr::Load { slot: 1, out: 1 },
        Instr::Check { check: Check::NonZero, reg: 1, node: 0 },
        apply(&elementwise::FLOOR_DIV, &[Class::I64, Class::I64], [0, 1, 0, 0], 2),
        Instr::Store { reg: 2, slot: 2 },
    ];
    let mut program = Program::new(instrs, vec![Class::I64; 3], 0);
    let x = Memory::new(DType::I32, &[50, 40], &[40, 1], wave);
    let y = Memory::new(DType::I64, &[50, 40], &[1, 50], |i| if i % 301 == 77 { 0.0 } else { 1.0 + i as f64 });
    let (inputs, outputs) = ([x, y], [(DType::I64, vec![50, 40], vec![40, 1])]);
    compare(&program, &[50, 40], &inputs, &outputs, &[], 0.0);
    program = Program::new(program.instrs, program.regs, 0);
    program.order.extend([1, 0]);
    compare(&program, &[50, 40], &inputs, &outputs, &[], 0.0);
}

#[test]
fn bad_values_are_reported_at_the_lowest_position() {
    let checked = [&elementwise::PROBABILITY, &elementwise::DEVIATION, &elementwise::FINITE];
    for function in checked {
        for (class, dtype) in [(Class::F32, DType::F32), (Class::F32, DType::BF16), (Class::F64, DType::F64)] {
            for bad in [1.5, -0.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let (_, check) = function.check.expect("it checks");
                let instrs = vec![
                    Instr::Load { slot: 0, out: 0 },
                    Instr::Check { check, reg: 0, node: 0 },
                    apply(function, &[class], [0; 4], 1),
                    Instr::Store { reg: 1, slot: 1 },
                ];
                let x = Memory::new(dtype, &[300], &[1], |i| if i == 201 || i == 250 { bad } else { 0.25 });
                let program = Program::new(instrs, vec![class; 2], 0);
                compare(&program, &[300], &[x], &[(dtype, vec![300], vec![1])], &[], 0.0);
            }
        }
    }
}

#[test]
fn reductions() {
    let shapes: [(&[usize], usize); 9] = [
        (&[5], 1),
        (&[3000], 1),
        (&[40, 7], 1),
        (&[3, 5000], 1),
        (&[7, 0], 1),
        (&[0, 7], 1),
        (&[33, 64, 5], 2),
        (&[64, 33, 40], 1),
        (&[1], 1),
    ];
    for case in reduction_cases(&shapes) {
        case.compare(&[], 2e-5);
    }
}

fn reduction_cases(shapes: &[(&[usize], usize)]) -> Vec<Case> {
    use ReduceKind::*;
    let mut cases = Vec::new();
    for (class, dtype) in [
        (Class::F32, DType::F32),
        (Class::F32, DType::BF16),
        (Class::F64, DType::F64),
        (Class::I64, DType::I32),
        (Class::Bool, DType::Bool),
    ] {
        let kinds: &[ReduceKind] = match class {
            Class::Bool => &[Any, All],
            _ => &[Sum, Prod, Min, Max, ArgMin, ArgMax],
        };
        for &(shape, reduced) in shapes {
            let kept = shape[..shape.len() - reduced].to_vec();
            let empty = shape[kept.len()..].contains(&0);
            for layout in layouts(shape).into_iter().take(4) {
                let mut instrs = vec![Instr::Load { slot: 0, out: 0 }];
                let mut outputs: Vec<(DType, Vec<usize>, Vec<isize>)> = Vec::new();
                // Long products run over, in an order of their own.
                let long = shape[kept.len()..].iter().product::<usize>() > 200;
                let defined = |kind: &&ReduceKind| {
                    (!empty || matches!(kind, Sum | Prod | Any | All)) && !(long && matches!(kind, Prod))
                };
                for &kind in kinds.iter().filter(defined) {
                    let arg = matches!(kind, ArgMin | ArgMax);
                    instrs.push(Instr::Reduce { kind, reg: 0, class, slot: 1 + outputs.len() as u16 });
                    let out = if arg { DType::I64 } else { representative(class) };
                    outputs.push((out, kept.clone(), contiguous_strides(&kept).to_vec()));
                }
                let values = |i: usize| {
                    if class == Class::Bool {
                        wave(i)
                    } else {
                        (wave(i) * 4.0).round() * 0.25 + (i == 1234) as u8 as f64 * 100.0
                    }
                };
                let input = Memory::new(dtype, shape, &layout, values);
                let program = Program::new(instrs, vec![class], reduced);
                cases.push(Case { program, shape: shape.to_vec(), inputs: vec![input], outputs });
            }
        }
    }
    cases
}

/// A prologue, a stored intermediate and NaN.
#[test]
fn a_reduction_with_a_prologue() {
    use elementwise as f;
    let instrs = vec![
        Instr::Load { slot: 0, out: 0 },
        Instr::Load { slot: 1, out: 1 },
        apply(&f::MUL, &F2, [0, 1, 0, 0], 2),
        Instr::Store { reg: 2, slot: 2 },
        Instr::Reduce { kind: ReduceKind::Sum, reg: 2, class: Class::F32, slot: 3 },
        Instr::Reduce { kind: ReduceKind::Max, reg: 0, class: Class::F32, slot: 4 },
    ];
    let program = Program::new(instrs, vec![Class::F32; 3], 1);
    for (shape, strides) in [([50, 64], [64, 1]), ([64, 50], [1, 64]), ([3, 4096], [4096, 1]), ([4096, 30], [1, 4096])]
    {
        let x = Memory::new(DType::F32, &shape, &strides, |i| if i == 77 { f64::NAN } else { wave(i) });
        let y = Memory::new(DType::F16, &shape, &[0, 1], wave);
        let outputs = [
            (DType::F32, shape.to_vec(), strides.to_vec()),
            (DType::F16, vec![shape[0]], vec![2]),
            (DType::F64, vec![shape[0]], vec![1]),
        ];
        compare(&program, &shape, &[x, y], &outputs, &[], 2e-3);
    }
}

/// What follows from two results and another operand, one of them in place, rows and columns, whole and in parts.
#[test]
fn a_reduction_with_an_epilogue() {
    use elementwise as f;
    for (shape, strides) in [
        ([50, 64], [64, 1]),
        ([64, 50], [1, 64]),
        ([3, 4096], [4096, 1]),
        ([4096, 30], [1, 4096]),
        ([1, 70_000], [70_000, 1]),
        ([0, 5], [5, 1]),
        ([5, 0], [1, 1]),
    ] {
        let mut program = Program::new(
            vec![
                Instr::Load { slot: 0, out: 0 },
                Instr::Reduce { kind: ReduceKind::Sum, reg: 0, class: Class::F32, slot: 1 },
                Instr::Reduce { kind: ReduceKind::Prod, reg: 0, class: Class::F32, slot: 2 },
            ],
            vec![Class::F32],
            1,
        );
        let after = Program::new(
            vec![
                Instr::Load { slot: 0, out: 0 },
                Instr::Scalar { index: 0, class: Class::F32, out: 1 },
                apply(&f::MUL, &F2, [0, 1, 0, 0], 2),
                Instr::Store { reg: 2, slot: 0 },
                Instr::Load { slot: 1, out: 3 },
                apply(&f::ADD, &F2, [2, 3, 0, 0], 4),
                apply(&f::ERFINV, &F2[..1], [4, 0, 0, 0], 4),
                Instr::Cast { reg: 4, from: Class::F32, to: DType::BF16, out: 5 },
                Instr::Store { reg: 5, slot: 2 },
            ],
            vec![Class::F32; 6],
            0,
        );
        program.epilogue = Some(Box::new(Epilogue {
            program: after,
            slots: [1, 3, 4].into_iter().collect(),
            first: 3,
            unread: Default::default(),
        }));
        let x = Memory::new(DType::F32, &shape, &strides, |i| wave(i) * 0.01);
        let kept = vec![shape[0]];
        let outputs = [
            (DType::F32, kept.clone(), vec![1]),
            (DType::F32, kept.clone(), vec![1]),
            (DType::F16, kept.clone(), vec![2]),
            (DType::BF16, kept, vec![3]),
        ];
        compare(&program, &shape, &[x], &outputs, &[0.125f64.to_bits()], 2e-2);
    }
}
