//! What a step does with each unit after its products, over vectors of units: the gates' functions, and their derivatives.

use crate::kernel::host::real::Real;
use crate::kernel::host::simd::{Portable, Simd, level, levels};
use crate::kernel::host::vector::Vector;
use crate::kernel::matmul::host::product::Matrix;
use crate::kernel::recurrent::layer::Mode;

/// A step of some samples. Each matrix has a row for a sample; units of a gate are adjacent.
pub struct Forward<T> {
    pub mode: Mode,
    pub rows: usize,
    pub hidden: usize,
    /// Sums of the gates; they become what the gradient reads (`Mode::kept`) if `keeps`.
    pub gates: Matrix<T>,
    pub keeps: bool,
    /// GRU: what the state adds to the gates.
    pub from_state: Matrix<T>,
    /// What is added to the gates, and for GRU to what the state adds: one row for all samples.
    pub biases: [Matrix<T>; 2],
    /// The state before the step.
    pub before: Matrix<T>,
    /// LSTM: the cell before and after the step.
    pub cell_before: Matrix<T>,
    pub cell: Matrix<T>,
    pub out: Matrix<T>,
}

/// The gradient of a step of some samples.
pub struct Backward<T> {
    pub mode: Mode,
    pub rows: usize,
    pub hidden: usize,
    /// What the forward pass kept; of a plain layer its output.
    pub kept: Matrix<T>,
    pub before: Matrix<T>,
    pub cell_before: Matrix<T>,
    /// Gradient of the output of this step.
    pub grad_out: Matrix<T>,
    /// Gradient of the state that the next step gives; becomes the part of that of the state before that no product gives.
    pub grad_state: Matrix<T>,
    /// Gradient of the cell, after the step and then before it.
    pub grad_cell: Matrix<T>,
    /// Gradients of the gates' sums. GRU: of n, r, z, and of what the state adds to n.
    pub to: Matrix<T>,
}

/// A type with gates.
pub trait Gated: Real {
    /// # Safety
    /// The matrices have the rows and units that the step names.
    unsafe fn forward(step: &Forward<Self>);
    /// # Safety
    /// As `forward`.
    unsafe fn backward(step: &Backward<Self>);
}

impl Gated for f32 {
    unsafe fn forward(step: &Forward<f32>) {
        // SAFETY: the level is the machine's; the rest is this function's contract.
        unsafe { levels!(<S> fn(step: &Forward<f32>) { forward::<f32, S>(step) })[level()](step) }
    }
    unsafe fn backward(step: &Backward<f32>) {
        // SAFETY: the level is the machine's; the rest is this function's contract.
        unsafe { levels!(<S> fn(step: &Backward<f32>) { backward::<f32, S>(step) })[level()](step) }
    }
}

/// Not: vectors of the machine; most of the time goes to functions of one number.
impl Gated for f64 {
    unsafe fn forward(step: &Forward<f64>) {
        // SAFETY: portable vectors need no instructions; the rest is this function's contract.
        unsafe { forward::<f64, Portable>(step) }
    }
    unsafe fn backward(step: &Backward<f64>) {
        // SAFETY: portable vectors need no instructions; the rest is this function's contract.
        unsafe { backward::<f64, Portable>(step) }
    }
}

/// Up to a vector of units, `n` of them at `from`; the other lanes are 0.
#[inline(always)]
unsafe fn take<T: Real, V: Vector<Elem = T>>(from: *const T, n: usize) -> V {
    // SAFETY: the elements exist, and no vector has more than 16 lanes.
    unsafe {
        if n == V::N {
            return V::load(from);
        }
        let mut lanes = [T::ZERO; 16];
        std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), n);
        V::load(lanes.as_ptr())
    }
}

/// Stores the first `n` lanes.
#[inline(always)]
unsafe fn put<T: Real, V: Vector<Elem = T>>(x: V, to: *mut T, n: usize) {
    // SAFETY: the elements exist, and no vector has more than 16 lanes.
    unsafe {
        if n == V::N {
            return x.store(to);
        }
        let mut lanes = [T::ZERO; 16];
        x.store(lanes.as_mut_ptr());
        std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, n);
    }
}

#[inline(always)]
unsafe fn sigmoid<T: Real, S: Simd>(x: T::In<S>) -> T::In<S> {
    // SAFETY: the machine is of level `S`.
    unsafe {
        let one = T::In::<S>::splat(T::ONE);
        one.div(one.add(T::exp_in::<S>(T::In::<S>::splat(T::ZERO).sub(x))))
    }
}

/// `1 - x`.
#[inline(always)]
unsafe fn rest<T: Real, V: Vector<Elem = T>>(x: V) -> V {
    // SAFETY: the machine has the vector's instructions.
    unsafe { V::splat(T::ONE).sub(x) }
}

#[inline(always)]
unsafe fn forward<T: Real, S: Simd>(p: &Forward<T>) {
    // SAFETY: positions are below the rows and units of the step; the machine is of level `S`.
    unsafe {
        for row in 0..p.rows {
            for unit in (0..p.hidden).step_by(T::In::<S>::N) {
                let n = (p.hidden - unit).min(T::In::<S>::N);
                let at = |matrix: Matrix<T>, gate: usize| matrix.at(row, gate * p.hidden + unit);
                let sum = |gate: usize| {
                    let bias: T::In<S> = take(at(p.biases[0], gate), n);
                    bias.add(take(at(p.gates, gate), n))
                };
                match p.mode {
                    Mode::Lstm => {
                        let (i, f) = (sigmoid::<T, S>(sum(0)), sigmoid::<T, S>(sum(1)));
                        let (g, o) = (T::tanh_in::<S>(sum(2)), sigmoid::<T, S>(sum(3)));
                        let cell = f.fma(take(at(p.cell_before, 0), n), i.mul(g));
                        put(cell, at(p.cell, 0), n);
                        put(o.mul(T::tanh_in::<S>(cell)), at(p.out, 0), n);
                        if p.keeps {
                            for (gate, x) in [i, f, g, o].into_iter().enumerate() {
                                put(x, at(p.gates, gate), n);
                            }
                        }
                    }
                    Mode::Gru => {
                        let state = |gate: usize| {
                            let bias: T::In<S> = take(at(p.biases[1], gate), n);
                            bias.add(take(at(p.from_state, gate), n))
                        };
                        let r = sigmoid::<T, S>(sum(0).add(state(0)));
                        let z = sigmoid::<T, S>(sum(1).add(state(1)));
                        let added = state(2);
                        let new = T::tanh_in::<S>(r.fma(added, sum(2)));
                        let before: T::In<S> = take(at(p.before, 0), n);
                        put(z.fma(before, rest(z).mul(new)), at(p.out, 0), n);
                        if p.keeps {
                            for (gate, x) in [r, z, new, added].into_iter().enumerate() {
                                put(x, at(p.gates, gate), n);
                            }
                        }
                    }
                    Mode::Tanh => put(T::tanh_in::<S>(sum(0)), at(p.out, 0), n),
                    // `max` gives its second operand if either is NaN.
                    Mode::Relu => put(T::In::<S>::splat(T::ZERO).max(sum(0)), at(p.out, 0), n),
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn backward<T: Real, S: Simd>(p: &Backward<T>) {
    // SAFETY: positions are below the rows and units of the step; the machine is of level `S`.
    unsafe {
        for row in 0..p.rows {
            for unit in (0..p.hidden).step_by(T::In::<S>::N) {
                let n = (p.hidden - unit).min(T::In::<S>::N);
                let at = |matrix: Matrix<T>, gate: usize| matrix.at(row, gate * p.hidden + unit);
                let kept = |gate: usize| take::<T, T::In<S>>(at(p.kept, gate), n);
                let arrived: T::In<S> = take(at(p.grad_out, 0), n);
                let g = arrived.add(take(at(p.grad_state, 0), n));
                match p.mode {
                    Mode::Lstm => {
                        let [i, f, new, o] = [kept(0), kept(1), kept(2), kept(3)];
                        let squashed = T::tanh_in::<S>(kept(4));
                        let slope = rest(squashed.mul(squashed));
                        let cell = g.mul(o).fma(slope, take(at(p.grad_cell, 0), n));
                        let before: T::In<S> = take(at(p.cell_before, 0), n);
                        put(cell.mul(new).mul(i).mul(rest(i)), at(p.to, 0), n);
                        put(cell.mul(before).mul(f).mul(rest(f)), at(p.to, 1), n);
                        put(cell.mul(i).mul(rest(new.mul(new))), at(p.to, 2), n);
                        put(g.mul(squashed).mul(o).mul(rest(o)), at(p.to, 3), n);
                        put(cell.mul(f), at(p.grad_cell, 0), n);
                    }
                    Mode::Gru => {
                        let [r, z, new, added] = [kept(0), kept(1), kept(2), kept(3)];
                        let before: T::In<S> = take(at(p.before, 0), n);
                        let to_new = g.mul(rest(z)).mul(rest(new.mul(new)));
                        put(to_new, at(p.to, 0), n);
                        put(to_new.mul(added).mul(r).mul(rest(r)), at(p.to, 1), n);
                        put(g.mul(before.sub(new)).mul(z).mul(rest(z)), at(p.to, 2), n);
                        put(to_new.mul(r), at(p.to, 3), n);
                        put(g.mul(z), at(p.grad_state, 0), n);
                    }
                    Mode::Tanh => {
                        let y = kept(0);
                        put(g.mul(rest(y.mul(y))), at(p.to, 0), n);
                    }
                    Mode::Relu => {
                        let zero = T::In::<S>::splat(T::ZERO);
                        put(zero.less(kept(0), g, zero), at(p.to, 0), n);
                    }
                }
            }
        }
    }
}
