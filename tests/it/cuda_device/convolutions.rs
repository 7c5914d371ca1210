//! Convolutions against sums in f64 on the host, in all three directions.

use super::*;
use tscript::device::cuda::blas::{Outcome, Workspace};
use tscript::device::cuda::dnn::{Addresses, Convolution, Direction, Dnn, Image};

const WORKSPACE: usize = 256 << 20;

fn dense(sizes: [i64; 5], dims: usize) -> Image {
    let mut strides = [1; 5];
    for at in (0..dims + 1).rev() {
        strides[at] = strides[at + 1] * sizes[at + 1];
    }
    Image { sizes, strides }
}

fn elements(image: &Image, dims: usize) -> usize {
    image.sizes[..dims + 2].iter().product::<i64>() as usize
}

/// A convolution of `x` by `filters` filters; two dims or three.
fn convolution(x: [i64; 5], dims: usize, filters: i64, kernel: i64, groups: i64, step: [i64; 3]) -> Convolution {
    let [stride, padding, dilation] = step;
    let out = |size: i64| (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
    let (mut w, mut y) = ([filters, x[1] / groups, 1, 1, 1], [x[0], filters, 1, 1, 1]);
    for at in 2..dims + 2 {
        (w[at], y[at]) = (kernel, out(x[at]));
    }
    Convolution {
        direction: Direction::Forward,
        element: Element::F32,
        precision: Precision::Full,
        dims,
        x: dense(x, dims),
        w: dense(w, dims),
        y: dense(y, dims),
        stride: [stride; 3],
        padding: [padding; 3],
        dilation: [dilation; 3],
    }
}

/// Every product of an element of x and one of w, with the element of y that it goes to. Two dims are three, the last of 1.
fn terms(c: &Convolution, mut visit: impl FnMut(usize, usize, usize)) {
    let three =
        |image: &Image| -> Vec<i64> { (0..5).map(|at| if at < c.dims + 2 { image.sizes[at] } else { 1 }).collect() };
    let (x, w, y) = (three(&c.x), three(&c.w), three(&c.y));
    let index = |sizes: &[i64], at: [i64; 5]| at.iter().zip(sizes).fold(0, |sum, (i, size)| sum * size + i) as usize;
    let per_group = y[1] * w[1] / x[1];
    // The third dim of two has a size of 1: no padding there.
    let place = |dim: usize, out: i64, tap: i64| {
        if dim >= c.dims { Some(0) } else { Some(out * c.stride[dim] - c.padding[dim] + tap * c.dilation[dim]) }
            .filter(|&at| (0..x[dim + 2]).contains(&at))
    };
    for (n, f) in (0..y[0]).flat_map(|n| (0..y[1]).map(move |f| (n, f))) {
        let first = f / per_group * w[1];
        for (channel, out) in (0..w[1]).flat_map(|channel| (0..y[2] * y[3] * y[4]).map(move |out| (channel, out))) {
            let out = [out / (y[3] * y[4]), out / y[4] % y[3], out % y[4]];
            for tap in 0..w[2] * w[3] * w[4] {
                let tap = [tap / (w[3] * w[4]), tap / w[4] % w[3], tap % w[4]];
                let at: Option<Vec<i64>> = (0..3).map(|dim| place(dim, out[dim], tap[dim])).collect();
                let Some(at) = at else { continue };
                visit(
                    index(&x, [n, first + channel, at[0], at[1], at[2]]),
                    index(&w, [f, channel, tap[0], tap[1], tap[2]]),
                    index(&y, [n, f, out[0], out[1], out[2]]),
                );
            }
        }
    }
}

#[test]
fn convolutions_are_those_of_the_host() {
    let Some((_alone, context)) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let mut dnn = Dnn::open(context).expect("no error").expect("cuDNN");
    let scratch = Buffer::new(context, WORKSPACE);
    let workspace = Workspace { address: scratch.address, bytes: WORKSPACE };
    let cases = [
        ("plain", convolution([2, 8, 9, 7, 0], 2, 16, 3, 1, [1, 1, 1])),
        ("stride", convolution([2, 8, 11, 8, 0], 2, 8, 3, 1, [2, 1, 1])),
        ("dilation", convolution([1, 8, 12, 12, 0], 2, 8, 3, 1, [1, 2, 2])),
        ("groups", convolution([2, 8, 9, 7, 0], 2, 16, 3, 2, [1, 1, 1])),
        ("depthwise", convolution([2, 8, 9, 7, 0], 2, 8, 3, 8, [1, 1, 1])),
        ("1 by 1", convolution([2, 16, 5, 6, 0], 2, 8, 1, 1, [1, 0, 1])),
        ("odd", convolution([1, 3, 8, 8, 0], 2, 5, 5, 1, [1, 2, 1])),
        ("three dims", convolution([1, 4, 5, 6, 7], 3, 8, 3, 1, [1, 1, 1])),
    ];
    let mut lacking = 0;
    for (name, case) in cases {
        let images = [&case.x, &case.w, &case.y].map(|image| elements(image, case.dims));
        let given: Vec<Vec<f64>> = (0..3).map(|at| numbers(images[at], 10 + at as u64)).collect();
        for &(element, result, precision) in KINDS.iter().filter(|(element, result, _)| element == result) {
            let values: Vec<Vec<f64>> = given.iter().map(|values| rounded(element, values)).collect();
            for direction in [Direction::Forward, Direction::InputGradient, Direction::WeightGradient] {
                let buffers: Vec<Buffer> = values.iter().map(|values| upload(&stream, element, values)).collect();
                let at = Addresses { x: buffers[0].address, w: buffers[1].address, y: buffers[2].address };
                let convolution = Convolution { direction, element, precision, ..case };
                let outcome =
                    dnn.convolve(&convolution, at, &stream, workspace).unwrap_or_else(|error| panic!("{error}"));
                if outcome == Outcome::Unsupported {
                    lacking += 1;
                    eprintln!("unsupported: {name} {element:?} {precision:?} {direction:?}");
                    continue;
                }
                let target = match direction {
                    Direction::InputGradient => 0,
                    Direction::WeightGradient => 1,
                    Direction::Forward => 2,
                };
                let (mut sums, mut sizes) = (vec![0.0; images[target]], vec![0.0; images[target]]);
                terms(&case, |x, w, y| {
                    let (to, product) = match direction {
                        Direction::InputGradient => (x, values[1][w] * values[2][y]),
                        Direction::WeightGradient => (w, values[0][x] * values[2][y]),
                        Direction::Forward => (y, values[0][x] * values[1][w]),
                    };
                    sums[to] += product;
                    sizes[to] += product.abs();
                });
                let found = download(&stream, result, &buffers[target]);
                let (step, term) = match (element, precision) {
                    (Element::F16, _) => (1e-3, 1e-6),
                    (Element::Bf16, _) => (8e-3, 1e-6),
                    (Element::F32, Precision::Tf32) => (1e-6, 2e-3),
                    (Element::F32, Precision::Full) => (1e-6, 3e-6),
                    (Element::F64, _) => (1e-14, 1e-14),
                };
                for (at, ((f, e), size)) in found.iter().zip(&sums).zip(&sizes).enumerate() {
                    let allowed = step * e.abs() + term * size + 1e-12;
                    assert!(
                        (f - e).abs() <= allowed,
                        "{name} {element:?} {precision:?} {direction:?} at {at}: {f}, not {e}"
                    );
                }
            }
        }
    }
    eprintln!("{} plans, {lacking} unsupported", dnn.plans());
    speed(&mut dnn, &stream, workspace);
}

/// 3 by 3 on 64 channels of 56 by 56, 64 images: the convolution that PyTorch was timed with.
fn speed(dnn: &mut Dnn, stream: &Stream, workspace: Workspace) {
    let case = convolution([64, 64, 56, 56, 0], 2, 64, 3, 1, [1, 1, 1]);
    let buffers = [&case.x, &case.w, &case.y].map(|image| Buffer::new(stream.context(), elements(image, 2) * 4));
    buffers.iter().for_each(|buffer| stream.fill(buffer.address, 0x3c, buffer.bytes).expect("a fill"));
    let at = Addresses { x: buffers[0].address, w: buffers[1].address, y: buffers[2].address };
    for (element, precision) in [
        (Element::F32, Precision::Full),
        (Element::F32, Precision::Tf32),
        (Element::F16, Precision::Full),
        (Element::Bf16, Precision::Full),
    ] {
        for direction in [Direction::Forward, Direction::InputGradient, Direction::WeightGradient] {
            let convolution = Convolution { direction, element, precision, ..case };
            let start = Instant::now();
            let outcome = dnn.convolve(&convolution, at, stream, workspace).expect("a convolution");
            let first = ms(start.elapsed());
            stream.wait().expect("its end");
            let ns = cost(5, || {
                for _ in 0..10 {
                    dnn.convolve(&convolution, at, stream, workspace).expect("a convolution");
                }
                stream.wait().expect("its end");
            });
            eprintln!("{element:?} {precision:?} {direction:?}: {:.1} µs, {outcome:?}, first {first:.1} ms", ns / 1e4);
        }
    }
}
