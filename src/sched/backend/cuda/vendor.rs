//! Translates calls of kernels into those of a vendor's libraries. Does not know whether the libraries are installed.

use crate::base::dtype::DType;
use crate::device::cuda::blas::{Element, Factor, Precision, Product, Target};
use crate::device::cuda::dnn::recurrent::{Places as LayerPlaces, Recurrent, Task as Pass};
use crate::device::cuda::dnn::{Addresses, Convolution, Direction, Image};
use crate::device::cuda::fft::{Kind, Side, Signals};
use crate::device::cuda::solver::{Number, Places, Problem, Right, Task};
use crate::kernel::cuda::{
    ConvCall, ConvOrder, ConvPart, DecomposeCall, Decomposition, MatmulCall, Matrix, RecurrentCall, RecurrentTask,
    RightVectors, Transform, TransformCall, TransformSide,
};
use crate::kernel::recurrent::layer::Layer;

fn element(dtype: DType) -> Option<Element> {
    match dtype {
        DType::F16 => Some(Element::F16),
        DType::BF16 => Some(Element::Bf16),
        DType::F32 => Some(Element::F32),
        DType::F64 => Some(Element::F64),
        _ => None,
    }
}

/// A product as the library takes it; none if it does not support it.
pub fn product(call: &MatmulCall, tf32: bool) -> Option<Product> {
    let (element, result) = (element(call.dtype)?, element(call.result)?);
    let (m, n, k) = (call.m as u64, call.n as u64, call.k as u64);
    let factor = |matrix: &Matrix, rows, columns| {
        Factor::of_strides(matrix.ptr as u64, (rows, columns), [matrix.row, matrix.column, matrix.batch])
    };
    let dense = (call.c.column == 1 || n == 1) && call.c.row >= 0 && call.c.batch >= 0;
    let c = Target {
        address: call.c.ptr as u64,
        row_stride: if m == 1 { n } else { call.c.row as u64 },
        batch_stride: call.c.batch as u64,
    };
    if !dense {
        return None;
    }
    Some(Product {
        m,
        n,
        k,
        batch: u32::try_from(call.batch).ok()?,
        element,
        result,
        precision: if tf32 { Precision::Tf32 } else { Precision::Full },
        a: factor(&call.a, m, k)?,
        b: factor(&call.b, k, n)?,
        c,
        alpha: 1.0,
        beta: call.beta as f64,
        bias: call.bias as u64,
    })
}

/// A decomposition as the library takes it; none if it has no such dtype.
pub fn decomposition(call: &DecomposeCall) -> Option<Problem> {
    let number = match (call.dtype, call.complex) {
        (DType::F32, false) => Number::F32,
        (DType::F64, false) => Number::F64,
        (DType::F32, true) => Number::C64,
        (DType::F64, true) => Number::C128,
        _ => return None,
    };
    let task = match call.task {
        Decomposition::Eigh { vectors, upper } => Task::Eigh { vectors, upper },
        Decomposition::Svd { vectors } => Task::Svd { vectors },
        Decomposition::Eig => Task::Eig,
        Decomposition::Reflectors => Task::Reflectors,
        Decomposition::Orthonormal { k } => Task::Orthonormal { k },
        Decomposition::Lu => Task::Lu,
        Decomposition::LuSolve { sides } => Task::LuSolve { sides },
        Decomposition::Cholesky => Task::Cholesky,
    };
    let DecomposeCall { m, n, count, .. } = *call;
    let [a, values, left, right, info] =
        [call.a, call.values, call.left, call.right, call.info].map(|place| place as u64);
    Some(Problem { task, number, m, n, count, at: Places { a, values, left, right, info } })
}

/// Signals as the library takes them.
pub fn signals(call: &TransformCall) -> Signals {
    let side = |side: &TransformSide| Side {
        embed: side.embed.map(|n| n as i64),
        stride: side.stride as i64,
        distance: side.distance as i64,
    };
    Signals {
        kind: match call.kind {
            Transform::Whole { .. } => Kind::Whole,
            Transform::ToHalf => Kind::ToHalf,
            Transform::FromHalf => Kind::FromHalf,
        },
        double: call.dtype == DType::F64,
        rank: call.rank,
        lengths: call.lengths.map(|n| n as i64),
        count: call.count as i64,
        from: side(&call.from),
        to: side(&call.to),
    }
}

pub fn right_vectors(right: Right) -> RightVectors {
    match right {
        Right::Plain => RightVectors::Plain,
        Right::Adjoint => RightVectors::Adjoint,
    }
}

/// A convolution as the library takes it, and the order of its operands; none if it does not support it.
///
/// Not in f32 throughout: gradients of a 1x1 kernel, which take half the time as products, and gradients of inputs,
/// which take half the time as forward convolutions (64 images of 56², 256 → 64 and 3×3, 64 → 64, on an H100), with strides by
/// their phases.
pub fn convolution(call: &ConvCall, tf32: bool, deterministic: bool) -> Option<(Convolution, Addresses)> {
    let (element, g) = (element(call.dtype)?, &call.geometry);
    let whole = element == Element::F64 || element == Element::F32 && !tf32;
    let forward =
        element == Element::F32 && call.part == ConvPart::InputGradient && (g.has_forward_gradient() || g.has_phases());
    if whole && (g.is_product() || forward) {
        return None;
    }
    // A leading dim of size 1 without padding is dropped.
    let is_flat = [g.input[0], g.kernel[0], g.output[0]] == [1; 3] && g.padding[0] == 0;
    let skip = usize::from(is_flat);
    let image = |outer: [usize; 2], spatial: [usize; 3]| {
        let mut sizes = [1i64; 5];
        let given = outer.into_iter().chain(spatial.into_iter().skip(skip));
        sizes.iter_mut().zip(given).for_each(|(to, n)| *to = n as i64);
        match call.order {
            ConvOrder::ChannelsFirst => Image::dense(sizes, 3 - skip),
            ConvOrder::ChannelsLast => Image::channels_last(sizes, 3 - skip),
        }
    };
    let steps = |given: [usize; 3]| std::array::from_fn(|dim| given.get(dim + skip).map_or(1, |&n| n as i64));
    let convolution = Convolution {
        direction: match call.part {
            ConvPart::Output => Direction::Forward,
            ConvPart::InputGradient => Direction::InputGradient,
            ConvPart::WeightGradient => Direction::WeightGradient,
        },
        element,
        precision: if tf32 && element == Element::F32 { Precision::Tf32 } else { Precision::Full },
        deterministic,
        dims: 3 - skip,
        x: image([g.batch, g.groups * g.channels], g.input),
        w: image([g.groups * g.filters, g.channels], g.kernel),
        y: image([g.batch, g.groups * g.filters], g.output),
        stride: steps(g.stride),
        padding: std::array::from_fn(|dim| g.padding.get(dim + skip).map_or(0, |&n| n as i64)),
        dilation: steps(g.dilation),
    };
    Some((convolution, Addresses { x: call.x as u64, w: call.w as u64, y: call.y as u64 }))
}

/// A recurrent layer as the library takes it; none if it has no such dtype or sizes.
pub fn recurrent(layer: &Layer, dtype: DType, biased: bool, tf32: bool) -> Option<Recurrent> {
    let element = element(dtype)?;
    let size = |n: usize| i32::try_from(n).ok();
    size(layer.rows() * layer.inputs.max(layer.width()))?;
    Some(Recurrent {
        mode: layer.mode as i32,
        steps: size(layer.steps)?,
        batch: size(layer.batch)?,
        inputs: size(layer.inputs)?,
        hidden: size(layer.hidden)?,
        biased,
        element,
        precision: if tf32 && element == Element::F32 { Precision::Tf32 } else { Precision::Full },
    })
}

/// Its addresses, and what is computed.
pub fn pass(call: &RecurrentCall) -> (LayerPlaces, Pass) {
    let [x, y, hx, cx, weights, reserve] =
        [call.x, call.y, call.hx, call.cx, call.weights, call.reserve].map(|at| at as u64);
    let pass = match call.task {
        RecurrentTask::Forward { hy, cy } => Pass::Forward { hy: hy as u64, cy: cy as u64 },
        RecurrentTask::Backward { dy, dx, dhy, dhx, dcy, dcx, dweights } => {
            let [dy, dx, dhy, dhx, dcy, dcx, dweights] = [dy, dx, dhy, dhx, dcy, dcx, dweights].map(|at| at as u64);
            Pass::Backward { dy, dx, dhy, dhx, dcy, dcx, dweights }
        }
    };
    (LayerPlaces { x, y, hx, cx, weights, reserve }, pass)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::conv::geometry::Geometry;

    const GEOMETRY: Geometry = Geometry {
        batch: 2,
        groups: 3,
        channels: 4,
        filters: 5,
        input: [1, 9, 8],
        output: [1, 4, 8],
        kernel: [1, 3, 3],
        stride: [1, 2, 1],
        padding: [0, 1, 2],
        dilation: [1, 1, 2],
    };

    const CALL: ConvCall = ConvCall {
        part: ConvPart::Output,
        dtype: DType::F32,
        order: ConvOrder::ChannelsFirst,
        x: 256 as *mut u8,
        w: 512 as *mut u8,
        y: 1024 as *mut u8,
        geometry: GEOMETRY,
    };

    #[test]
    fn a_convolution_has_two_dims_where_the_third_has_size_one() {
        let (flat, at) = convolution(&CALL, false, true).expect("f32");
        assert_eq!((flat.dims, at.w), (2, 512));
        assert_eq!((flat.x.sizes, flat.x.strides), ([2, 12, 9, 8, 1], [864, 72, 8, 1, 1]));
        assert_eq!(flat.w.sizes, [15, 4, 3, 3, 1]);
        assert_eq!(flat.y.sizes, [2, 15, 4, 8, 1]);
        assert_eq!((flat.stride, flat.padding, flat.dilation), ([2, 1, 1], [1, 2, 0], [1, 2, 1]));
        let (last, _) = convolution(&ConvCall { order: ConvOrder::ChannelsLast, ..CALL }, false, true).expect("f32");
        assert_eq!((last.x.sizes, last.x.strides[..4].to_vec()), (flat.x.sizes, vec![864, 1, 96, 12]));
        let padded = ConvCall { geometry: Geometry { padding: [1, 1, 2], output: [3, 4, 8], ..GEOMETRY }, ..CALL };
        let (deep, _) = convolution(&padded, false, true).expect("f32");
        assert_eq!((deep.dims, deep.x.sizes), (3, [2, 12, 1, 9, 8]));
        assert_eq!((deep.stride, deep.padding, deep.dilation), ([1, 2, 1], [1, 1, 2], [1, 1, 2]));
    }

    #[test]
    fn a_1x1_kernel_is_a_product_without_tensor_cores() {
        let product =
            Geometry { groups: 1, kernel: [1; 3], stride: [1; 3], padding: [0; 3], output: [1, 9, 8], ..GEOMETRY };
        let one = ConvCall { geometry: product, ..CALL };
        let taken = |dtype, tf32| convolution(&ConvCall { dtype, ..one }, tf32, true).is_some();
        assert_eq!([taken(DType::F32, false), taken(DType::F64, true)], [false; 2]);
        assert_eq!([taken(DType::F32, true), taken(DType::BF16, false)], [true; 2]);
        assert!(
            convolution(&ConvCall { geometry: Geometry { stride: [1, 2, 1], ..product }, ..one }, false, true)
                .is_some()
        );
    }

    #[test]
    fn gradients_of_inputs_are_forward_where_they_can() {
        let forward = Geometry {
            groups: 1,
            stride: [1; 3],
            padding: [0, 1, 1],
            dilation: [1, 1, 2],
            output: [1, 9, 6],
            ..GEOMETRY
        };
        let like = ConvCall { part: ConvPart::InputGradient, geometry: forward, ..CALL };
        let taken = |call: ConvCall, tf32| convolution(&call, tf32, true).is_some();
        assert!(forward.has_forward_gradient() && !taken(like, false) && taken(like, true));
        assert!(taken(ConvCall { dtype: DType::F64, ..like }, false));
        assert!(taken(ConvCall { part: ConvPart::WeightGradient, ..like }, false));
        for other in [
            Geometry { stride: [1, 2, 1], output: [1, 5, 6], ..forward },
            Geometry { padding: [0, 3, 1], output: [1, 13, 6], ..forward },
            Geometry { output: [1, 9, 5], ..forward },
            Geometry { groups: 2, ..forward },
        ] {
            assert!(!other.has_forward_gradient() && taken(ConvCall { geometry: other, ..like }, false), "{other:?}");
        }
    }

    #[test]
    fn only_f32_is_rounded_for_tensor_cores() {
        let precision =
            |dtype, tf32| convolution(&ConvCall { dtype, ..CALL }, tf32, true).map(|(made, _)| made.precision);
        assert_eq!(precision(DType::F32, true), Some(Precision::Tf32));
        assert_eq!(precision(DType::F32, false), Some(Precision::Full));
        assert_eq!(precision(DType::BF16, true), Some(Precision::Full));
        assert_eq!(precision(DType::I64, true), None);
    }
}
