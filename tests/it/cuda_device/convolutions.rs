//! Convolutions against sums in f64 on the host, in all three directions: through the library, and from a script with
//! the library and without it.

use super::*;
use tscript::internals::device::cuda::blas::{Outcome, Workspace};
use tscript::internals::device::cuda::dnn::{Addresses, Convolution, Direction, Dnn, Image, Run};

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
        deterministic: true,
        dims,
        x: Image::dense(x, dims),
        w: Image::dense(w, dims),
        y: Image::dense(y, dims),
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
    assert!(dnn.scratch(&Convolution { dims: 4, ..convolution([1; 5], 2, 1, 1, 1, [1, 0, 1]) }, &NOWHERE) == Ok(None));
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
    let cases_of_f64 = 3 * cases.len();
    for (name, case) in cases {
        let images = [&case.x, &case.w, &case.y].map(|image| elements(image, case.dims));
        let given: Vec<Vec<f64>> = (0..3).map(|at| numbers(images[at], 10 + at as u64)).collect();
        for &(element, result, precision) in KINDS.iter().filter(|(element, result, _)| element == result) {
            let values: Vec<Vec<f64>> = given.iter().map(|values| rounded(element, values)).collect();
            for direction in [Direction::Forward, Direction::InputGradient, Direction::WeightGradient] {
                let buffers: Vec<Buffer> = values.iter().map(|values| upload(&stream, element, values)).collect();
                let at = Addresses { x: buffers[0].address, w: buffers[1].address, y: buffers[2].address };
                let convolution = Convolution { direction, element, precision, ..case };
                let Some(bytes) = dnn.scratch(&convolution, &at).expect("an answer") else {
                    lacking += 1;
                    eprintln!("unsupported: {name} {element:?} {precision:?} {direction:?}");
                    continue;
                };
                let scratch = Buffer::new(context, bytes);
                let run = |bytes| Run { convolution, at, workspace: Workspace { address: scratch.address, bytes } };
                if bytes > 0 {
                    assert_eq!(dnn.convolve(&run(bytes - 1), &stream), Ok(Outcome::Unsupported));
                }
                let outcome = dnn.convolve(&run(bytes), &stream).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(outcome, Outcome::Queued);
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
    // Every one but f64, which may be left to us.
    assert!(lacking <= cases_of_f64, "{lacking} of {cases_of_f64}");
}

const NOWHERE: Addresses = Addresses { x: 256, w: 256, y: 256 };

/// Every form and dtype on the GPU and, in f64, on the host: the result and all gradients, as far apart as the largest
/// value is large.
const SCRIPT: &str = r#"
manual_seed(3);
let cases = [
    ["a signal", [2, 6, 20], [8, 3, 5], |x, w, b| conv1d(x, w, b, #{stride: 2, padding: 2, groups: 2})],
    ["a dilated signal", [3, 4, 19], [6, 4, 3], |x, w, b| conv1d(x, w, b, #{dilation: 3})],
    ["an image", [3, 8, 12, 10], [16, 8, 3, 3], |x, w, b| conv2d(x, w, b, #{padding: 1})],
    ["an odd image", [2, 3, 13, 11], [5, 3, 5, 4], |x, w, b| conv2d(x, w, b, #{stride: [2, 3], padding: [2, 1]})],
    ["dilated", [2, 4, 12, 12], [8, 4, 3, 3], |x, w, b| conv2d(x, w, b, #{padding: 2, dilation: 2})],
    ["in groups", [2, 8, 9, 9], [12, 2, 3, 3], |x, w, b| conv2d(x, w, b, #{padding: 1, groups: 4})],
    ["by depth", [2, 8, 14, 14], [8, 1, 3, 3], |x, w, b| conv2d(x, w, b, #{stride: 2, padding: 1, groups: 8})],
    ["of one tap", [2, 16, 7, 7], [8, 16, 1, 1], |x, w, b| conv2d(x, w, b)],
    ["of one tap, apart", [2, 16, 7, 7], [8, 16, 1, 1], |x, w, b| conv2d(x, w, b, #{stride: 2})],
    ["same", [1, 3, 8, 9], [4, 3, 4, 3], |x, w, b| conv2d(x, w, b, #{padding: "same"})],
    ["a volume", [2, 4, 6, 7, 5], [6, 4, 3, 2, 3], |x, w, b| conv3d(x, w, b, #{padding: [1, 0, 1]})],
    ["a flat volume", [2, 4, 1, 7, 5], [6, 4, 1, 3, 3], |x, w, b| conv3d(x, w, b, #{padding: [1, 1, 1]})],
    ["back a signal", [2, 6, 9], [6, 4, 4], |x, w, b| conv_transpose1d(x, w, b, #{stride: 2, padding: 1})],
    ["back an image", [2, 8, 6, 5], [8, 3, 3, 3], |x, w, b| conv_transpose2d(x, w, b, #{stride: 2, padding: 1, output_padding: 1})],
    ["back in groups", [2, 8, 6, 5], [8, 2, 3, 3], |x, w, b| conv_transpose2d(x, w, b, #{dilation: 2, output_padding: 1, groups: 2})],
    ["back a volume", [1, 4, 3, 4, 3], [4, 5, 2, 3, 2], |x, w, b| conv_transpose3d(x, w, b, #{stride: [1, 2, 1]})],
];
let all = |f, values, device, dtype| {
    let leaves = [];
    for value in values { leaves.push(value.to(device).to(dtype).detach().requires_grad_()); }
    let y = f.call(leaves[0], leaves[1], leaves[2]);
    let slope = (arange(0, y.numel()) % 7 - 2).reshape(y.shape).to(device).to(dtype);
    (y * slope).sum().backward();
    let found = [y.detach()];
    for leaf in leaves { found.push(leaf.grad); }
    found
};
let compare = |dtype, bound| {
    for case in cases {
        let filters = if case[0].starts_with("back") { case[2][1] * (if case[0] == "back in groups" { 2 } else { 1 }) } else { case[2][0] };
        let values = [];
        for shape in [case[1], case[2], [filters]] { values.push(randn(shape).to(dtype)); }
        let found = all.call(case[3], values, "cuda", dtype);
        let exact = all.call(case[3], values, "cpu", "f64");
        for i in 0..4 {
            let off = ((found[i].cpu().double() - exact[i]).abs().max() / exact[i].abs().max()).item();
            if !(off < bound) { print(`${case[0]}, ${dtype}, ${i}: ${off}`); }
        }
    }
};
compare.call("f64", 1e-13);
compare.call("f32", 4e-6);
compare.call("f16", 2e-3);
compare.call("bf16", 1.6e-2);
set_float32_matmul_precision("high");
compare.call("f32", 4e-3);
print("compared");
"#;

#[test]
fn scripts_convolve_with_the_library_and_without_it() {
    if gpu().is_none() {
        return;
    }
    for hidden in ["", "Dnn", "Dnn,BlasLt"] {
        for graphs in ["0", "1"] {
            let environment = [("TSCRIPT_TEST_HIDE", hidden), ("TSCRIPT_CUDA_GRAPHS", graphs)];
            let (out, reported, status) = run(&[], &environment, SCRIPT);
            assert_eq!((out.as_str(), status), ("compared\n", 0), "without {hidden}: {reported}");
        }
    }
}

/// Steps that repeat become a graph with the library's kernels in it, and give the same numbers.
#[test]
fn steps_with_convolutions_give_the_same_as_graphs() {
    if gpu().is_none() {
        return;
    }
    let script = r#"
import "nn" as nn;
import "optim" as optim;
manual_seed(1);
use_deterministic_algorithms(true);
let layers = [nn::conv2d(3, 8, 3, #{padding: 1}), nn::relu(), nn::conv2d(8, 16, 3, #{stride: 2}), nn::relu(), nn::flatten(), nn::linear(16 * 49, 10)];
let model = nn::sequential(layers).cuda();
let opt = optim::sgd(model.parameters(), #{lr: 0.05});
let x = randn([32, 3, 16, 16], #{device: "cuda"});
let y = randint(0, 10, [32], #{device: "cuda"});
let told = [];
for step in 0..40 {
    opt.zero_grad();
    let loss = cross_entropy(model.forward(x), y);
    loss.backward();
    opt.step();
    if step % 8 == 7 { told.push(loss.item()); }
}
print(told);
let again = conv2d(x, model.layers[0].weight);
for i in 0..5 { if !equal(conv2d(x, model.layers[0].weight), again) { print("other bits"); } }
"#;
    let (with, reported, status) = run(&[], &[], script);
    assert_eq!(status, 0, "{reported}");
    let (without, reported, status) = run(&[], &[("TSCRIPT_CUDA_GRAPHS", "0")], script);
    assert_eq!(status, 0, "{reported}");
    assert_eq!(with, without);
    assert!(!with.contains("other") && with.lines().count() == 1, "{with}");
}
