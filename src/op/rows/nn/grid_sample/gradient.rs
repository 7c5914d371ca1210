//! The gradients of `grid_sample` written in other rows, for gradients of gradients: the places become positions of neighbors
//! and weights by element-wise maps, the neighbors are gathered, and their gradients scattered.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::kernel::resample::grid::{CUBIC, LINEAR, REFLECTION, ZEROS};
use crate::op::emit::Emit;
use crate::op::expr::{Expr, compute_all};
use crate::op::rows::indexing::gather::{GATHER, SCATTER_ADD};
use crate::op::rows::nn::activation::HARDTANH;
use crate::op::rows::pointwise::arith::FMOD;
use crate::op::rows::pointwise::power::MINIMUM;
use crate::op::rows::pointwise::unary::{FLOOR, ROUND};
use crate::op::rows::shape::view::{EXPAND, RESHAPE, SELECT};
use crate::op::tensor::{Meta, Tensor};

/// How to sample (the numbers of the kernel), and the shape of the image.
pub struct Sampler {
    pub between: i64,
    pub outside: i64,
    pub align: bool,
    pub image: Shape,
}

/// A neighbor along a dimension: its position, its weight, and the derivative of that by the position of the place.
#[derive(Clone, Copy)]
struct Tap<'c> {
    at: Expr<'c>,
    weight: Expr<'c>,
    slope: Expr<'c>,
}

impl Sampler {
    fn last(&self, d: usize) -> f64 {
        self.image[d + 2] as f64 - 1.0
    }

    /// Pixels of dimension `d` for a step of 1 of the place.
    fn step(&self, d: usize) -> f64 {
        0.5 * if self.align { self.last(d) } else { self.last(d) + 1.0 }
    }

    /// From -1..1 to pixels of dimension `d`.
    fn pixels<'c>(&self, place: Expr<'c>, d: usize) -> Expr<'c> {
        let from = (place + 1.0) * self.step(d);
        if self.align { from } else { from - 0.5 }
    }

    /// What is added to a position so that mirrors stand at 0 and at `span`; and `span`.
    fn mirrors(&self, d: usize) -> (f64, f64) {
        if self.align { (0.0, self.last(d)) } else { (0.5, self.last(d) + 1.0) }
    }

    /// Positions held or mirrored into the image.
    fn inside<'c>(&self, x: Expr<'c>, d: usize) -> Expr<'c> {
        if self.outside == ZEROS {
            return x;
        }
        let (shift, span) = self.mirrors(d);
        let x = match self.outside {
            REFLECTION if span == 0.0 => x * 0.0,
            REFLECTION => {
                let extra = (x + shift).abs().with(&FMOD, 2.0 * span);
                extra.with(&MINIMUM, 2.0 * span - extra) - shift
            }
            _ => x,
        };
        x.call(&HARDTANH, args![0.0, self.last(d)])
    }

    /// The derivative of `inside`, which is the same all around.
    fn turn<'c>(&self, x: Expr<'c>, d: usize) -> Expr<'c> {
        let x = x.detach();
        if self.outside == ZEROS {
            return x * 0.0 + 1.0;
        }
        let held = self.inside(x, d);
        let moves = held.greater(0.0).and(held.less(self.last(d)));
        let (shift, span) = self.mirrors(d);
        if self.outside != REFLECTION || span == 0.0 {
            return moves.choose(1.0, x * 0.0);
        }
        let x = x + shift;
        let sign = x.less(0.0).choose(-1.0, x * 0.0 + 1.0);
        let back = x.abs().with(&FMOD, 2.0 * span).greater(span);
        moves.choose(back.choose(-sign, sign), x * 0.0)
    }

    /// The neighbors along dimension `d`, of places `[N, 1, places]`.
    fn taps<'c>(&self, place: Expr<'c>, d: usize) -> Vec<Tap<'c>> {
        let x = self.pixels(place, d);
        let step = self.step(d);
        match self.between {
            LINEAR => {
                let turn = self.turn(x, d) * step;
                let x = self.inside(x, d);
                let low = x.of(&FLOOR).detach();
                let up = x - low;
                vec![Tap { at: low, weight: 1.0 - up, slope: -turn }, Tap { at: low + 1.0, weight: up, slope: turn }]
            }
            CUBIC => {
                let low = x.of(&FLOOR).detach();
                let at = |k: usize| self.inside(low + (k as f64 - 1.0), d).of(&FLOOR);
                let weights = cubic(x - low).into_iter().enumerate();
                weights.map(|(k, [weight, slope])| Tap { at: at(k), weight, slope: slope * step }).collect()
            }
            _ => {
                let at = self.inside(x, d).of(&ROUND).detach();
                vec![Tap { at, weight: at * 0.0 + 1.0, slope: at * 0.0 }]
            }
        }
    }

    /// Is a whole position in the image? And the position, harmless where it is not, as i64.
    fn index<'c>(&self, x: Expr<'c>, d: usize) -> (Expr<'c>, Expr<'c>) {
        let known = x.greater_equal(0.0).and(x.less_equal(self.last(d)));
        (known, known.choose(x, 0.0).cast(DType::I64))
    }

    /// Whether neighbors, one along each dimension, are in the image; their positions in a plane, for all channels.
    fn positions<'c>(&self, taps: &[Tap<'c>]) -> (Expr<'c>, Expr<'c>) {
        let (mut known, mut flat) = self.index(taps[0].at, 0);
        for (d, tap) in taps.iter().enumerate().skip(1) {
            let (also, index) = self.index(tap.at, d);
            (known, flat) = (known.and(also), flat * Scalar::Int(self.image[d + 2] as i64) + index);
        }
        let channels = self.image[1];
        let flat = flat.then(|e, flat| {
            let shape = [flat.shape()[0], channels, flat.shape()[2]];
            e.call(&EXPAND, args![flat, shape.as_slice()])
        });
        (known, flat)
    }

    /// The gradients of the image (`x`: zeros, or the image, `[N, C, pixels]`) and of the places, one of `[N, 1, places]` for
    /// each dimension; `axes`: the neighbors along each.
    fn sums<'c>(
        &self,
        g: Expr<'c>,
        [dx, x]: [Option<Expr<'c>>; 2],
        axes: &[Vec<Tap<'c>>],
    ) -> (Option<Expr<'c>>, Vec<Expr<'c>>) {
        let (mut dx, mut slopes): (_, Vec<Option<Expr<'c>>>) = (dx, vec![None; axes.len()]);
        let count: usize = axes.iter().map(Vec::len).product();
        for corner in 0..count {
            let mut rest = corner;
            let mut taps = Vec::new();
            for axis in axes.iter().rev() {
                taps.insert(0, axis[rest % axis.len()]);
                rest /= axis.len();
            }
            let (known, flat) = self.positions(&taps);
            let product = |but: usize| {
                let factor = |(d, tap): (usize, &Tap<'c>)| if d == but { tap.slope } else { tap.weight };
                taps.iter().enumerate().map(factor).reduce(|a, b| a * b)
            };
            if let (Some(sum), Some(weight)) = (dx, product(usize::MAX)) {
                let share = (g * weight).zero_unless(known);
                dx = Some(sum.then(|e, sum| e.call(&SCATTER_ADD, args![sum, 2, &flat.tensor()?, &share.tensor()?])));
            }
            if let Some(x) = x {
                let read = x.then_with(flat, |e, x, flat| e.call(&GATHER, args![x, 2, flat])).zero_unless(known);
                let share = (g * read).sum_keepdim(1);
                for (d, slope) in slopes.iter_mut().enumerate() {
                    let term = product(d).map(|factor| share * factor);
                    *slope = match (*slope, term) {
                        (Some(sum), Some(term)) => Some(sum + term),
                        (sum, term) => sum.or(term),
                    };
                }
            }
        }
        (dx, slopes.into_iter().flatten().collect())
    }

    /// The gradients of the image and of the places (those that are to be made) of the gradient `g` of the result.
    pub fn gradients(
        &self,
        e: &mut dyn Emit,
        [g, grid]: [&Tensor; 2],
        x: Option<&Tensor>,
        makes_dx: bool,
    ) -> Result<[Option<Tensor>; 2]> {
        let (narrow, image) = (grid.dtype(), self.image.as_slice());
        // Sums are at least f32.
        let wide = if narrow == DType::F64 { DType::F64 } else { DType::F32 };
        let like = Meta { shape: grid.shape(), dtype: wide, device: grid.device() };
        let n = image.len() - 2;
        let count: usize = grid.shape()[1..=n].iter().product();
        let [samples, channels] = [image[0], image[1]];
        let planes = [samples, channels, image[2..].iter().product()];
        let made = compute_all(e, |c| {
            let g = shaped(c.of(g).cast(wide), &[samples, channels, count]);
            let places = shaped(c.of(grid).cast(wide), &[samples, 1, count, n]);
            // Places name the last dimension first.
            let axes: Vec<_> = (0..n).map(|d| self.taps(places.call(&SELECT, args![3, n - 1 - d]), d)).collect();
            let x = x.map(|x| shaped(c.of(x).cast(wide), &planes));
            let zeros = makes_dx.then(|| g.then(|e, _| e.full(&planes, Scalar::Int(0), &like)));
            let (dx, slopes) = self.sums(g, [zeros, x], &axes);
            let shape = [samples, 1, count, 1];
            let columns = slopes.into_iter().rev().map(|slope| shaped(slope, &shape));
            let dgrid = columns.reduce(|all, column| all.cat(column, 3));
            let dx = dx.map(|dx| shaped(dx, image).cast(narrow));
            let dgrid = dgrid.map(|dgrid| shaped(dgrid, &grid.shape()).cast(narrow));
            [dx.unwrap_or(g), dgrid.unwrap_or(g)]
        })?;
        let [dx, dgrid] = made;
        Ok([makes_dx.then_some(dx), x.map(|_| dgrid)])
    }
}

fn shaped<'c>(x: Expr<'c>, shape: &[usize]) -> Expr<'c> {
    x.call(&RESHAPE, args![shape])
}

/// Weights of the four neighbors at distance `t` from the second (Keys' kernel with a = -3/4), and their derivatives.
fn cubic<'c>(t: Expr<'c>) -> [[Expr<'c>; 2]; 4] {
    const A: f64 = -0.75;
    let far = |x: Expr<'c>| ((x * A - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    let near = |x: Expr<'c>| (x * (A + 2.0) - (A + 3.0)) * x * x + 1.0;
    let far_slope = |x: Expr<'c>| (x * (3.0 * A) - 10.0 * A) * x + 8.0 * A;
    let near_slope = |x: Expr<'c>| (x * (3.0 * (A + 2.0)) - 2.0 * (A + 3.0)) * x;
    let (before, after, beyond) = (t + 1.0, 1.0 - t, 2.0 - t);
    [
        [far(before), far_slope(before)],
        [near(t), near_slope(t)],
        [near(after), -near_slope(after)],
        [far(beyond), -far_slope(beyond)],
    ]
}
