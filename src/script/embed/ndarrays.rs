//! Tensors from and to arrays of the crate `ndarray` (cargo feature `ndarray`).

use crate::base::code;
use crate::base::diag::Diag;
use crate::script::embed::exchange::{Element, Tensor};
use crate::script::error::Error;
use ndarray::{Array, ArrayD, Dimension, IxDyn};

impl Tensor {
    /// A tensor over the elements of an array: not copied if no stride is negative and the array uses all of its
    /// memory from the first element on.
    ///
    /// # Errors
    /// E0210 for a layout that tensors do not support.
    ///
    /// ```
    /// use tscript::Tensor;
    ///
    /// let x = Tensor::from_ndarray(ndarray::array![[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.to_ndarray::<f32>()?[[1, 0]], 3.0);
    /// # Ok::<(), tscript::Error>(())
    /// ```
    pub fn from_ndarray<T: Element, D: Dimension>(array: Array<T, D>) -> Result<Tensor, Error> {
        let shape = array.shape().to_vec();
        let strides = array.strides().to_vec();
        let first = array.iter().next().is_some() && strides.iter().all(|&stride| stride >= 0);
        if !first {
            return Tensor::from_vec(array.iter().copied().collect(), &shape);
        }
        match array.into_raw_vec_and_offset() {
            (elements, None | Some(0)) => Tensor::from_strided(elements, &shape, &strides),
            (mut elements, Some(offset)) => {
                elements.drain(..offset);
                Tensor::from_strided(elements, &shape, &strides)
            }
        }
    }

    /// All elements as an array. Waits until they are computed.
    ///
    /// # Errors
    /// E0202 if the elements have another type, and the late error of the work that was to compute them.
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>, Error> {
        let elements = self.to_vec::<T>()?;
        let array = ArrayD::from_shape_vec(IxDyn(&self.shape()), elements);
        array.map_err(|error| Error::new(Diag::error(code::INTERNAL, error.to_string()), &Default::default()))
    }
}
