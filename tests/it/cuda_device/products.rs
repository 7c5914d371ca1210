//! Matrix products against sums in f64 on the host.

use super::*;
use tscript::device::cuda::blas::{
    Blas, Epilogue, Factor, Outcome, Product, Stored, Target, WORKSPACE_BYTES, Workspace,
};

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + (GELU * (x + 0.044715 * x * x * x)).tanh())
}

const GELU: f64 = 0.797_884_560_802_865_4;

fn gelu_slope(x: f64) -> f64 {
    let t = (GELU * (x + 0.044715 * x * x * x)).tanh();
    0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * GELU * (1.0 + 3.0 * 0.044715 * x * x)
}

/// Sizes, dtype and everything else of one product on the device.
struct Case<'a> {
    stream: &'a Stream,
    workspace: Workspace,
    sizes: [usize; 3],
    batch: usize,
    element: Element,
    result: Element,
    precision: Precision,
    stored: (Stored, Stored),
    /// Elements between the end of a row and the next row.
    gap: usize,
}

/// What the host computes: A and B as the device has them, z (m, n) for each of the batch.
struct Expected {
    a: Vec<f64>,
    b: Vec<f64>,
    z: Vec<f64>,
}

impl Case<'_> {
    fn factor(&self, rows: usize, columns: usize, stored: Stored, address: u64) -> (Factor, usize) {
        let (down, across) = if stored == Stored::Plain { (rows, columns) } else { (columns, rows) };
        let stride = across + self.gap;
        (Factor { address, stored, row_stride: stride as u64, batch_stride: (down * stride) as u64 }, down * stride)
    }

    fn at(factor: &Factor, batch: usize, row: usize, column: usize) -> usize {
        let (row, column) = if factor.stored == Stored::Plain { (row, column) } else { (column, row) };
        batch * factor.batch_stride as usize + row * factor.row_stride as usize + column
    }

    /// Runs it; `None`: the library has no way.
    fn run(
        &self,
        blas: &mut Blas,
        (alpha, beta): (f64, f64),
        epilogue: Epilogue,
        bias: &Buffer,
        auxiliary: Target,
    ) -> Option<(Vec<f64>, Expected)> {
        let [m, n, k] = self.sizes;
        let (mut a, elements_a) = self.factor(m, k, self.stored.0, 0);
        let (mut b, elements_b) = self.factor(k, n, self.stored.1, 0);
        let (va, vb) = (numbers(self.batch * elements_a, 1), numbers(self.batch * elements_b, 2));
        let vc = numbers(self.batch * m * n, 3);
        let buffers = [upload(self.stream, self.element, &va), upload(self.stream, self.element, &vb)];
        let c = upload(self.stream, self.result, &vc);
        (a.address, b.address) = (buffers[0].address, buffers[1].address);
        let product = Product {
            m: m as u64,
            n: n as u64,
            k: k as u64,
            batch: self.batch as u32,
            element: self.element,
            result: self.result,
            precision: self.precision,
            a,
            b,
            c: Target { address: c.address, row_stride: n as u64, batch_stride: (m * n) as u64 },
            alpha,
            beta,
            epilogue,
            bias: bias.address,
            auxiliary,
        };
        let outcome = blas.matmul(&product, self.stream, self.workspace).unwrap_or_else(|error| panic!("{error}"));
        if outcome == Outcome::Unsupported {
            return None;
        }
        let found = download(self.stream, self.result, &c);
        let (va, vb, vc) = (rounded(self.element, &va), rounded(self.element, &vb), rounded(self.result, &vc));
        let mut z = Vec::with_capacity(found.len());
        for batch in 0..self.batch {
            for row in 0..m {
                for column in 0..n {
                    let term = |i| va[Self::at(&a, batch, row, i)] * vb[Self::at(&b, batch, i, column)];
                    z.push(alpha * (0..k).map(term).sum::<f64>() + beta * vc[(batch * m + row) * n + column]);
                }
            }
        }
        let dense = |factor: &Factor, values: &[f64], rows: usize, columns: usize| {
            let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
            places.map(|(row, column)| values[Self::at(factor, 0, row, column)]).collect()
        };
        let expected = Expected { a: dense(&a, &va, m, k), b: dense(&b, &vb, k, n), z };
        Some((found, expected))
    }

    /// What a result of this dtype may be off.
    fn tolerance(&self) -> f64 {
        match (self.element, self.result, self.precision) {
            (_, Element::F16, _) => 2e-2,
            (_, Element::Bf16, _) => 1.5e-1,
            (Element::F32, _, Precision::Tf32) => 5e-2,
            (Element::F64, ..) => 1e-12,
            _ => 1e-4,
        }
    }

    fn check(&self, what: &str, found: &[f64], expected: &[f64]) {
        let worst = found.iter().zip(expected).map(|(f, e)| (f - e).abs()).fold(0.0, f64::max);
        assert_eq!(found.len(), expected.len());
        let kind = (self.element, self.result, self.precision, self.stored);
        assert!(worst <= self.tolerance() && worst.is_finite(), "{what}, {kind:?}, {:?}: off by {worst:e}", self.sizes);
    }
}

#[test]
fn products_are_those_of_the_host() {
    let Some((_alone, context)) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let start = Instant::now();
    let mut blas = Blas::open(context).expect("no error").expect("cuBLASLt");
    eprintln!("cuBLASLt opened in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    let scratch = Buffer::new(context, WORKSPACE_BYTES);
    let workspace = Workspace { address: scratch.address, bytes: WORKSPACE_BYTES };
    let none = Buffer::new(context, 4);
    let both = [Stored::Plain, Stored::Transposed];
    for &(element, result, precision) in KINDS {
        for stored in both.into_iter().flat_map(|a| both.map(|b| (a, b))) {
            for (sizes, batch, gap) in
                [([48, 40, 64], 1, 0), ([33, 17, 29], 1, 0), ([16, 24, 32], 3, 8), ([1, 5, 7], 1, 3), ([5, 1, 1], 2, 0)]
            {
                let case = Case { stream: &stream, workspace, sizes, batch, element, result, precision, stored, gap };
                for scales in [(1.0, 0.0), (0.5, -2.0)] {
                    let run = case.run(&mut blas, scales, Epilogue::None, &none, Target::default());
                    match run {
                        Some((found, expected)) => case.check("a product", &found, &expected.z),
                        None => eprintln!("unsupported: {element:?} {precision:?} {stored:?} {sizes:?} × {batch}"),
                    }
                }
            }
        }
    }
    eprintln!("{} plans", blas.plans());
    let [x, y] = [(); 2].map(|()| Buffer::new(context, 4096 * 4096 * 4));
    let big = Product {
        m: 4096,
        n: 4096,
        k: 4096,
        batch: 1,
        element: Element::F32,
        result: Element::F32,
        precision: Precision::Full,
        a: Factor { address: x.address, stored: Stored::Plain, row_stride: 4096, batch_stride: 0 },
        b: Factor { address: x.address, stored: Stored::Plain, row_stride: 4096, batch_stride: 0 },
        c: Target { address: y.address, row_stride: 4096, batch_stride: 0 },
        alpha: 1.0,
        beta: 0.0,
        epilogue: Epilogue::None,
        bias: 0,
        auxiliary: Target::default(),
    };
    stream.fill(x.address, 0x3c, x.bytes).expect("a fill");
    for &(element, result, precision) in KINDS {
        let product = Product { element, result, precision, ..big };
        // f64 matrices would not fit: a quarter of each.
        let side = if element == Element::F64 { 2048 } else { 4096 };
        let product = Product { m: side, n: side, k: side, ..product };
        let ns = cost(5, || {
            for _ in 0..4 {
                blas.matmul(&product, &stream, workspace).expect("a product");
            }
            stream.wait().expect("its end");
        });
        let flops = 2.0 * (side as f64).powi(3) * 4.0;
        eprintln!("{side}³ {element:?} {precision:?} → {result:?}: {:.1} TFLOP/s", flops / ns / 1e3);
    }
    let small = Product { m: 64, n: 64, k: 64, ..big };
    let ns = cost(200, || blas.matmul(&small, &stream, workspace).expect("a product"));
    stream.wait().expect("its end");
    eprintln!("a small known product: {:.2} µs of the host's time", ns / 1e3);
}

#[test]
fn epilogues_are_those_of_the_host() {
    let Some((_alone, context)) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let mut blas = Blas::open(context).expect("no error").expect("cuBLASLt");
    let scratch = Buffer::new(context, WORKSPACE_BYTES);
    let workspace = Workspace { address: scratch.address, bytes: WORKSPACE_BYTES };
    let sizes @ [m, n, k] = [32, 48, 64];
    let both = [Stored::Plain, Stored::Transposed];
    let mut lacking = Vec::new();
    for &(element, result, precision) in KINDS {
        for stored in both.into_iter().flat_map(|a| both.map(|b| (a, b))) {
            let case = Case { stream: &stream, workspace, sizes, batch: 1, element, result, precision, stored, gap: 0 };
            let bias = rounded(result, &numbers(n, 5));
            let vector = upload(&stream, result, &bias);
            let forward: [Forward; 5] = [
                (Epilogue::Bias, |z, b| z + b),
                (Epilogue::Relu, |z, _| z.max(0.0)),
                (Epilogue::ReluBias, |z, b| (z + b).max(0.0)),
                (Epilogue::Gelu, |z, _| gelu(z)),
                (Epilogue::GeluBias, |z, b| gelu(z + b)),
            ];
            for (epilogue, apply) in forward {
                match case.run(&mut blas, (1.0, 0.0), epilogue, &vector, Target::default()) {
                    Some((found, expected)) => {
                        let z = expected.z.iter().enumerate().map(|(at, &z)| apply(z, bias[at % n]));
                        case.check(&format!("{epilogue:?}"), &found, &z.collect::<Vec<_>>());
                    }
                    None => lacking.push((epilogue, element, precision, stored)),
                }
            }
            sums(&case, &mut blas, &mut lacking, m, n, k);
            slopes(&case, &mut blas, &mut lacking, &vector, &bias);
        }
    }
    let usual = |e: &Epilogue| matches!(e, Epilogue::Bias | Epilogue::ReluBias | Epilogue::GeluBias);
    for line in &lacking {
        eprintln!("unsupported: {line:?}");
    }
    let wrong: Vec<_> = lacking.iter().filter(|(e, element, ..)| usual(e) && *element != Element::F64).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// An epilogue and what it makes of z and the bias.
type Forward = (Epilogue, fn(f64, f64) -> f64);
type Lacking = Vec<(Epilogue, Element, Precision, (Stored, Stored))>;

/// Sums of the factors beside the product.
fn sums(case: &Case, blas: &mut Blas, lacking: &mut Lacking, m: usize, n: usize, k: usize) {
    for (epilogue, length) in [(Epilogue::RowSumsOfA, m), (Epilogue::ColumnSumsOfB, n)] {
        let vector = upload(case.stream, case.result, &vec![0.0; length]);
        let Some((found, expected)) = case.run(blas, (1.0, 0.0), epilogue, &vector, Target::default()) else {
            lacking.push((epilogue, case.element, case.precision, case.stored));
            continue;
        };
        case.check(&format!("{epilogue:?}"), &found, &expected.z);
        let of_a = |row: usize| (0..k).map(|i| expected.a[row * k + i]).sum::<f64>();
        let of_b = |column: usize| (0..k).map(|i| expected.b[i * n + column]).sum::<f64>();
        let host = (0..length).map(|at| if epilogue == Epilogue::RowSumsOfA { of_a(at) } else { of_b(at) });
        let vector = download(case.stream, case.result, &vector);
        case.check(&format!("the vector of {epilogue:?}"), &vector[..length], &host.collect::<Vec<_>>());
    }
}

/// What the forward pass leaves behind, and the backward pass takes up.
fn slopes(case: &Case, blas: &mut Blas, lacking: &mut Lacking, vector: &Buffer, bias: &[f64]) {
    let [m, n, _] = case.sizes;
    let buffer = Buffer::new(case.stream.context(), m * 128 * 8);
    let target = |row_stride: usize| Target {
        address: buffer.address,
        row_stride: row_stride as u64,
        batch_stride: (m * row_stride) as u64,
    };
    let passes = [
        (Epilogue::ReluBiasAuxiliary, [Epilogue::ReluSlope, Epilogue::ReluSlopeColumnSums], target(128)),
        (Epilogue::GeluBiasAuxiliary, [Epilogue::GeluSlope, Epilogue::GeluSlopeColumnSums], target(n)),
    ];
    for (forward, backward, auxiliary) in passes {
        let Some((found, expected)) = case.run(blas, (1.0, 0.0), forward, vector, auxiliary) else {
            lacking.push((forward, case.element, case.precision, case.stored));
            continue;
        };
        let before: Vec<f64> = expected.z.iter().enumerate().map(|(at, z)| z + bias[at % n]).collect();
        let is_relu = forward == Epilogue::ReluBiasAuxiliary;
        let after = before.iter().map(|&z| if is_relu { z.max(0.0) } else { gelu(z) });
        case.check(&format!("{forward:?}"), &found, &after.collect::<Vec<_>>());
        for epilogue in backward {
            let sums = upload(case.stream, case.result, &vec![0.0; n]);
            let Some((found, expected)) = case.run(blas, (1.0, 0.0), epilogue, &sums, auxiliary) else {
                lacking.push((epilogue, case.element, case.precision, case.stored));
                continue;
            };
            let slope = |z: f64| if is_relu { f64::from(z > 0.0) } else { gelu_slope(z) };
            let z: Vec<f64> = expected.z.iter().zip(&before).map(|(z, &at)| z * slope(at)).collect();
            // A slope is as wrong as its rounded argument makes it, times z.
            let loose = |found: &[f64], expected: &[f64], what: &str| {
                for (f, e) in found.iter().zip(expected) {
                    assert!((f - e).abs() <= case.tolerance() * (3.0 + e.abs()), "{what} {:?}: {f} {e}", case.element);
                }
            };
            loose(&found, &z, &format!("{epilogue:?}"));
            if matches!(epilogue, Epilogue::ReluSlopeColumnSums | Epilogue::GeluSlopeColumnSums) {
                let host: Vec<f64> = (0..n).map(|column| (0..m).map(|row| z[row * n + column]).sum()).collect();
                loose(&download(case.stream, case.result, &sums)[..n], &host, &format!("the vector of {epilogue:?}"));
            }
        }
    }
}
