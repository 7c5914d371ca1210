//! cuDNN's functions for recurrent layers, and the objects that describe them. Knows no layers.

use super::super::super::error::{DriverError, constant};
use super::super::super::library::functions;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

pub type Status = u32;
pub type Object = *mut c_void;
/// A device address.
pub type Place = *mut c_void;

functions! {
    Dnn ["libcudnn_ops.so.9", "libcudnn_adv.so.9"];
    error_string = "cudnnGetErrorString": fn(Status) -> *const c_char;
    create_layer = "cudnnCreateRNNDescriptor": fn(*mut Object) -> Status;
    destroy_layer = "cudnnDestroyRNNDescriptor": fn(Object) -> Status;
    // Layer, algorithm, cell, biases, direction, input mode, type of data, of sums, of math, sizes of input, state and projection,
    // layers, dropout, flags.
    set_layer = "cudnnSetRNNDescriptor_v8": fn(Object, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, Object,
        u32) -> Status;
    create_dropout = "cudnnCreateDropoutDescriptor": fn(*mut Object) -> Status;
    destroy_dropout = "cudnnDestroyDropoutDescriptor": fn(Object) -> Status;
    set_dropout = "cudnnSetDropoutDescriptor": fn(Object, Object, f32, Place, usize, u64) -> Status;
    create_data = "cudnnCreateRNNDataDescriptor": fn(*mut Object) -> Status;
    destroy_data = "cudnnDestroyRNNDataDescriptor": fn(Object) -> Status;
    // Data, type, layout, steps, samples, width, steps of each sample, padding.
    set_data = "cudnnSetRNNDataDescriptor": fn(Object, i32, i32, i32, i32, i32, *const i32, *mut c_void) -> Status;
    create_tensor = "cudnnCreateTensorDescriptor": fn(*mut Object) -> Status;
    destroy_tensor = "cudnnDestroyTensorDescriptor": fn(Object) -> Status;
    set_tensor = "cudnnSetTensorNdDescriptor": fn(Object, i32, i32, *const i32, *const i32) -> Status;
    // Handle, layer, whether it trains, data; bytes of scratch memory and of what is kept.
    space_sizes = "cudnnGetRNNTempSpaceSizes": fn(Object, Object, i32, Object, *mut usize, *mut usize) -> Status;
    weight_size = "cudnnGetRNNWeightSpaceSize": fn(Object, Object, *mut usize) -> Status;
    // Handle, layer, its number, bytes of the weights, weights, gate; descriptor and address of matrix and bias.
    weight_params = "cudnnGetRNNWeightParams": fn(Object, Object, i32, usize, Place, i32, Object, *mut Place, Object,
        *mut Place) -> Status;
    // Handle, layer, whether it trains, lengths; x, y, state before and after, cell before and after, each with its descriptor;
    // weights, scratch memory, what is kept, each with its bytes before.
    forward = "cudnnRNNForward": fn(Object, Object, i32, *const i32, Object, Place, Object, Place, Object, Place, Place,
        Object, Place, Place, usize, Place, usize, Place, usize, Place) -> Status;
    // Handle, layer, lengths; y, dy, dx, state, its gradients after and before, the same of the cell; as above.
    backward_data = "cudnnRNNBackwardData_v8": fn(Object, Object, *const i32, Object, Place, Place, Object, Place, Object,
        Place, Place, Place, Object, Place, Place, Place, usize, Place, usize, Place, usize, Place) -> Status;
    // Handle, layer, whether gradients are added, lengths; x, state, y; as above.
    backward_weights = "cudnnRNNBackwardWeights_v8": fn(Object, Object, i32, *const i32, Object, Place, Object, Place,
        Object, Place, usize, Place, usize, Place, usize, Place) -> Status;
}

impl Functions {
    pub fn check(&self, call: &'static str, status: Status) -> Result<(), DriverError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the function returns a constant text, the name of the status.
        let name = unsafe { constant((self.error_string)(status)) }.unwrap_or("CUDNN_STATUS, a code without a name");
        Err(DriverError { call, code: status, name, text: "cuDNN refused" })
    }
}

/// A description that is owned.
pub struct Described {
    pub raw: Object,
    destroy: unsafe extern "C" fn(Object) -> Status,
}

impl Described {
    /// # Safety
    /// The functions make and destroy one kind of description.
    unsafe fn new(
        functions: &Functions,
        create: unsafe extern "C" fn(*mut Object) -> Status,
        destroy: unsafe extern "C" fn(Object) -> Status,
    ) -> Result<Described, DriverError> {
        let mut raw = null_mut();
        // SAFETY: the call writes one pointer, to `raw`.
        functions.check("a description of cuDNN", unsafe { create(&mut raw) })?;
        Ok(Described { raw, destroy })
    }

    pub fn layer(f: &Functions) -> Result<Described, DriverError> {
        // SAFETY: both are of layers.
        unsafe { Described::new(f, f.create_layer, f.destroy_layer) }
    }

    pub fn dropout(f: &Functions) -> Result<Described, DriverError> {
        // SAFETY: both are of dropout.
        unsafe { Described::new(f, f.create_dropout, f.destroy_dropout) }
    }

    pub fn data(f: &Functions) -> Result<Described, DriverError> {
        // SAFETY: both are of data.
        unsafe { Described::new(f, f.create_data, f.destroy_data) }
    }

    pub fn tensor(f: &Functions) -> Result<Described, DriverError> {
        // SAFETY: both are of tensors.
        unsafe { Described::new(f, f.create_tensor, f.destroy_tensor) }
    }
}

impl Drop for Described {
    fn drop(&mut self) {
        // SAFETY: the description is alive, and nobody can use it after this.
        let _ = unsafe { (self.destroy)(self.raw) };
    }
}
