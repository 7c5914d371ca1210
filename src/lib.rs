//! tscript: Rhai with tensors. A script reads like PyTorch without Python; a Rust program holds a [`Session`].
//!
//! ```
//! use tscript::{Session, Tensor};
//!
//! let mut session = Session::builder().seed(1).build()?;
//! session.set("x", Tensor::from_slice(&[1.0f32, 2.0], &[2])?)?;
//! session.run_str("model", "fn predict(x) { (x * 2).sum() } let y = x + 1;")?;
//!
//! let y: Tensor = session.get("y")?;
//! assert_eq!(y.to_vec::<f32>()?, [2.0, 3.0]);
//!
//! let sum: Tensor = session.call("predict", (y,))?;
//! assert_eq!(sum.to_vec::<f32>()?, [10.0]);
//!
//! let failure = session.run_str("wrong", "x + tensor([1.0, 2.0, 3.0])").unwrap_err();
//! assert_eq!(failure.code(), "E0201");
//! # Ok::<(), tscript::Error>(())
//! ```

pub mod base;
pub mod device;
pub mod files;
pub mod kernel;
pub mod op;
pub mod sched;
pub mod script;
pub mod tensor;
pub mod tools;

pub use base::dtype::DType;
pub use script::Dynamic;
pub use script::error::Error;
pub use script::exchange::Tensor;
pub use device::metered::Metered;
pub use script::builder::Builder;
pub use device::dlpack::Dlpack;
pub use script::exchange::Element;
pub use script::passing::{Arguments, FromScript, IntoScript, Opaque, Value};
pub use script::register::{Function, Method, Object, Outcome, Type};
pub use script::session::{InterruptHandle, Races, Session};
