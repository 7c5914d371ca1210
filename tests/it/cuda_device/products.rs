//! Matrix products against sums in f64 on the host.

use super::*;
use tscript::internals::device::cuda::blas::{
    Blas, Factor, Outcome, Product, Stored, Target, WORKSPACE_BYTES, Workspace,
};

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

    /// Runs it: what the device made, and what the host makes of it (m, n), for each of the batch. `None`: the library has
    /// no way.
    fn run(&self, blas: &mut Blas, (alpha, beta): (f64, f64), bias: Option<&Buffer>) -> Option<(Vec<f64>, Vec<f64>)> {
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
            bias: bias.map_or(0, |bias| bias.address),
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
        Some((found, z))
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
    let both = [Stored::Plain, Stored::Transposed];
    for &(element, result, precision) in KINDS {
        for stored in both.into_iter().flat_map(|a| both.map(|b| (a, b))) {
            for (sizes, batch, gap) in
                [([48, 40, 64], 1, 0), ([33, 17, 29], 1, 0), ([16, 24, 32], 3, 8), ([1, 5, 7], 1, 3), ([5, 1, 1], 2, 0)]
            {
                let case = Case { stream: &stream, workspace, sizes, batch, element, result, precision, stored, gap };
                for scales in [(1.0, 0.0), (0.5, -2.0)] {
                    let run = case.run(&mut blas, scales, None);
                    match run {
                        Some((found, z)) => case.check("a product", &found, &z),
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
        bias: 0,
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
fn a_bias_is_added_as_on_the_host() {
    let Some((_alone, context)) = gpu() else { return };
    let stream = Stream::new(context, 0).expect("a stream");
    let mut blas = Blas::open(context).expect("no error").expect("cuBLASLt");
    let scratch = Buffer::new(context, WORKSPACE_BYTES);
    let workspace = Workspace { address: scratch.address, bytes: WORKSPACE_BYTES };
    let sizes @ [_, n, _] = [32, 48, 64];
    let both = [Stored::Plain, Stored::Transposed];
    let mut lacking = Vec::new();
    for &(element, result, precision) in KINDS {
        for stored in both.into_iter().flat_map(|a| both.map(|b| (a, b))) {
            let case = Case { stream: &stream, workspace, sizes, batch: 1, element, result, precision, stored, gap: 0 };
            let bias = rounded(result, &numbers(n, 5));
            let vector = upload(&stream, result, &bias);
            match case.run(&mut blas, (1.0, 0.0), Some(&vector)) {
                Some((found, z)) => {
                    let z = z.iter().enumerate().map(|(at, &z)| z + bias[at % n]);
                    case.check("a product with a bias", &found, &z.collect::<Vec<_>>());
                }
                None => lacking.push((element, precision, stored)),
            }
        }
    }
    for line in &lacking {
        eprintln!("unsupported: {line:?}");
    }
    lacking.retain(|(element, ..)| *element != Element::F64);
    assert!(lacking.is_empty(), "{lacking:?}");
}
