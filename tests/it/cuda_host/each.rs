//! A program over many tensors by one launch: each member gets what the host gives it alone.

use super::HostGpu;
use super::fused::{Memory, wave};
use tscript::DType;
use tscript::internals::kernel::abi::{RawView, Threads};
use tscript::internals::kernel::cuda::{Gpu, Hold};
use tscript::internals::kernel::fused::cuda::{Each, Table, fused};
use tscript::internals::kernel::fused::host;
use tscript::internals::kernel::program::Program;
use tscript::internals::op::formula::{Formula, Written};

/// `p += -lr * (m = 0.9 m + g * factor)`: two operands that are written, one that is read, one number for all. A fifth
/// operand is a number that is not 0 where nothing is to be changed.
fn momentum(dtypes: &[DType]) -> Written {
    let f = if dtypes.len() == 5 { Formula::skipping(dtypes, 4) } else { Formula::new(dtypes) };
    let m = f.get(1) * 0.9 + f.get(2) * f.get(3);
    f.set(0, f.get(0) + f.set(1, m) * -0.125);
    f.written()
}

/// How many elements behind a multiple of 16 bytes operands lie.
#[derive(Clone, Copy, Debug, Default)]
struct Shift {
    lines: usize,
    number: usize,
}

/// Memory of the operands of one member; every fifth is `flag`.
fn member(n: usize, dtypes: &[DType], shift: Shift, salt: usize, flag: f64) -> Vec<(Memory, RawView)> {
    let make = |(operand, &dtype): (usize, &DType)| {
        let (count, shift) = if operand >= 3 { (1, shift.number) } else { (n, shift.lines) };
        let value = |i| if operand == 4 { flag } else { wave(i * (operand + 2) + salt) };
        let memory = Memory::new(dtype, &[count + shift], &[1], value);
        let mut view = memory.view.clone();
        view.ptr = view.ptr.wrapping_add(shift * dtype.size_bytes());
        view.shape[0] = n;
        view.strides[0] = if operand >= 3 { 0 } else { 1 };
        (memory, view)
    };
    dtypes.iter().enumerate().map(make).collect()
}

fn check(dtypes: &[DType], sizes: &[usize], shift: Shift) {
    check_with(dtypes, sizes, shift, 0.0);
}

fn check_with(dtypes: &[DType], sizes: &[usize], shift: Shift, flag: f64) {
    let Some(mut gpu) = HostGpu::open() else { return };
    let formula = momentum(dtypes);
    let scalars: Vec<u64> = formula.scalars.iter().map(|x| x.to_bits()).collect();
    let columns: Vec<usize> = formula.slots.iter().map(|&(operand, _)| operand).collect();
    let program = Program::new(formula.instrs, formula.regs, 0);
    let make = || -> Vec<Vec<(Memory, RawView)>> {
        sizes.iter().enumerate().map(|(salt, &n)| member(n, dtypes, shift, salt, flag)).collect()
    };
    let (ours, theirs) = (make(), make());
    let views =
        |member: &[(Memory, RawView)]| -> Vec<RawView> { columns.iter().map(|&c| member[c].1.clone()).collect() };
    for (member, &n) in theirs.iter().zip(sizes) {
        // SAFETY: every memory is as large as its view.
        unsafe { host::run(&program, &[n], &views(member), &scalars, &Threads::ONE, &[]) };
    }
    let addresses: Vec<u64> = ours.iter().flatten().map(|(_, view)| view.ptr as u64).collect();
    let sizes_wide: Vec<u64> = sizes.iter().map(|&n| n as u64).collect();
    let table = Table { columns: &columns, width: dtypes.len(), addresses: &addresses, sizes: &sizes_wide };
    let largest = (0..sizes.len()).max_by_key(|&at| sizes[at]).expect("a member");
    Each::default().run(&program, &views(&ours[largest]), &table, &scalars, &mut gpu).expect("the recorder launches");
    for (at, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        for (operand, (a, b)) in a.iter().zip(b).enumerate() {
            assert_eq!(a.0.values(), b.0.values(), "{dtypes:?}, {shift:?}: operand {operand} of member {at}");
            let before = &member(sizes[at], dtypes, shift, at, flag)[operand].0;
            let is_written = operand < 2 && flag == 0.0;
            assert_eq!(a.0.values() == before.values(), !is_written, "operand {operand} of member {at}, {flag}");
        }
    }
    // One launch, or as many as the arguments' size asks for.
    assert_eq!(gpu.launches > 1, sizes.len() > 64, "{} launches", gpu.launches);
    // Vectors wherever the lines allow them.
    let smallest = dtypes.iter().map(|dtype| dtype.size_bytes()).min().expect("an operand");
    let vector = if shift.lines == 0 { (16 / smallest).clamp(2, 8) } else { 1 };
    let blocks: usize = sizes.iter().map(|n| (n / vector).div_ceil(256).max(1)).sum();
    assert!(gpu.launches > 1 || gpu.grid == [blocks as u32, 1, 1], "{dtypes:?}, {shift:?}: {:?} blocks", gpu.grid);
}

/// Steps for a compile test.
pub fn queue(gpu: &mut dyn Gpu) {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16] {
        let dtypes = [dtype; 4];
        let formula = momentum(&dtypes);
        let columns: Vec<usize> = formula.slots.iter().map(|&(operand, _)| operand).collect();
        let program = Program::new(formula.instrs, formula.regs, 0);
        let one = member(9, &dtypes, Shift::default(), 0, 0.0);
        let views: Vec<RawView> = columns.iter().map(|&c| one[c].1.clone()).collect();
        let addresses: Vec<u64> = one.iter().map(|(_, view)| view.ptr as u64).collect();
        let table = Table { columns: &columns, width: 4, addresses: &addresses, sizes: &[9] };
        Each::default().run(&program, &views, &table, &[0; 8], gpu).expect("the recorder launches");
    }
}

#[test]
fn members_of_any_size_are_stepped_by_one_launch() {
    let odd = Shift { lines: 1, number: 0 };
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16] {
        let sizes = [1, 3, 4, 5, 255, 256, 1024, 1027, 4096, 7000];
        check(&[dtype; 4], &sizes, Shift::default());
        check(&[dtype; 4], &sizes, odd);
        check(&[dtype; 4], &[17], Shift::default());
    }
    check(&[DType::BF16, DType::F32, DType::BF16, DType::F32], &[5, 800, 31], Shift::default());
}

/// A step that a scaler of gradients takes.
#[test]
fn where_a_number_says_so_nothing_is_changed() {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16] {
        let dtypes = [dtype, dtype, dtype, DType::F64, DType::F32];
        for flag in [0.0, 1.0, 3.0] {
            check_with(&dtypes, &[4096, 5, 7001], Shift::default(), flag);
            check_with(&dtypes, &[4096, 5, 7001], Shift { lines: 1, number: 1 }, flag);
        }
    }
}

/// As the numbers of a step lie, one behind the other.
#[test]
fn a_number_beside_lines_lies_anywhere() {
    for dtype in [DType::F32, DType::BF16] {
        check(&[dtype, dtype, dtype, DType::F64], &[4096, 1, 7001], Shift { lines: 0, number: 1 });
    }
    check(&[DType::F64; 4], &[4096], Shift { lines: 1, number: 1 });
}

#[test]
fn a_long_table_takes_several_launches() {
    let sizes: Vec<usize> = (0..150).map(|i| 1 + i * 7 % 90).collect();
    check(&[DType::F32; 4], &sizes, Shift::default());
}

/// The first kernel of a step decides by a word and its bound, and tells those that follow by another word.
#[test]
fn a_step_of_one_block_decides_whether_it_is_held() {
    let Some(mut gpu) = HostGpu::open() else { return };
    let f = Formula::new(&[DType::F64]);
    f.set(0, f.get(0) + 1.0);
    let f = f.written();
    let scalars: Vec<u64> = f.scalars.iter().map(|x| x.to_bits()).collect();
    let columns = vec![0; f.slots.len()];
    let program = Program::new(f.instrs, f.regs, 0);
    let memory = Memory::new(DType::F64, &[1], &[1], |_| 5.0);
    let mut view = memory.view.clone();
    (view.shape[0], view.strides[0]) = (1, 0);
    let views = vec![view; columns.len()];
    let addresses = [memory.view.ptr as u64];
    let table = Table { columns: &columns, width: 1, addresses: &addresses, sizes: &[1] };
    let (mut held, mut word) = (7u32, 40u64);
    let (held, word) = (&raw mut held, &raw mut word);
    let mut each = Each::default();
    let mut count = |hold: Hold| {
        gpu.hold = hold;
        each.run(&program, &views, &table, &scalars, &mut gpu).expect("the recorder launches");
        // SAFETY: kernels have ended, and the word lives.
        (memory.values()[0], unsafe { held.read() })
    };
    let of = |word: u64, bound: u64| Hold { held: held as u64, word, bound };
    assert_eq!(count(of(word as u64, 40)), (5.0, 1), "a fault at the bound is before the step");
    assert_eq!(count(of(0, 0)), (5.0, 1), "what follows is held too");
    assert_eq!(count(of(word as u64, 39)), (6.0, 0), "a later fault holds nothing");
    assert_eq!(count(of(0, 0)), (7.0, 0));
    assert_eq!(count(Hold::default()), (8.0, 0), "a step that is never held");
}

/// A map over one tensor takes vectors beside a number as well.
#[test]
fn a_map_beside_a_number_lies_anywhere() {
    let Some(mut gpu) = HostGpu::open() else { return };
    let dtypes = [DType::F32; 4];
    let formula = momentum(&dtypes);
    let scalars: Vec<u64> = formula.scalars.iter().map(|x| x.to_bits()).collect();
    let columns: Vec<usize> = formula.slots.iter().map(|&(operand, _)| operand).collect();
    let program = Program::new(formula.instrs, formula.regs, 0);
    let mut blocks = |shift: Shift| {
        let (ours, theirs) = (member(5000, &dtypes, shift, 3, 0.0), member(5000, &dtypes, shift, 3, 0.0));
        let views = |operands: &[(Memory, RawView)]| -> Vec<RawView> {
            columns.iter().map(|&c| operands[c].1.clone()).collect()
        };
        fused(&program, &[5000], &views(&ours), &scalars, &mut gpu).expect("the recorder launches");
        // SAFETY: every memory is as large as its view.
        unsafe { host::run(&program, &[5000], &views(&theirs), &scalars, &Threads::ONE, &[]) };
        assert!(ours[0].0.values() == theirs[0].0.values(), "{shift:?}");
        gpu.grid[0]
    };
    let vectors = blocks(Shift::default());
    assert_eq!(blocks(Shift { lines: 0, number: 1 }), vectors);
    assert!(blocks(Shift { lines: 1, number: 0 }) > vectors, "lines at odd places have no vectors");
}
