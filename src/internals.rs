//! What the project's own tests and fuzzers reach of the library's inside. No program may rely on it: it changes without
//! notice. It names items rather than floors, so that the compiler still says what nobody uses.

pub mod base {
    pub use crate::base::{code, rng};

    pub mod attr {
        pub use crate::base::attr::Attr;
    }
    pub mod bytes {
        pub use crate::base::bytes::{element, push_element};
    }
    pub mod diag {
        pub use crate::base::diag::{Diag, Label, Result, Severity};
    }
    pub mod dtype {
        pub use crate::base::dtype::{DType, Scalar};
    }
    pub mod explain {
        pub use crate::base::explain::explain;
    }
    pub mod layout {
        pub use crate::base::layout::{Shape, Strides, contiguous_strides};
    }
    pub mod print {
        pub use crate::base::print::{PrintOptions, Printed, format};
    }
    pub mod quoted {
        pub use crate::base::quoted::Quoted;
    }
    pub mod span {
        pub use crate::base::span::Site;
    }
}

pub mod device {
    pub mod cache {
        pub use crate::device::cache::{Cache, RawMemory};
    }
    #[cfg(feature = "cuda")]
    pub mod cuda {
        pub use crate::device::cuda::hash;
        pub use crate::device::cuda::{
            Context, DriverError, Event, KernelError, Kernels, Shape, Stream, Text, Timeline, Timing, Waited, open,
        };

        pub mod blas {
            pub use crate::device::cuda::blas::{
                Blas, Element, Factor, Outcome, Precision, Product, Stored, Target, WORKSPACE_BYTES, Workspace,
            };
        }
        pub mod kernel_cache {
            pub use crate::device::cuda::kernel_cache::Cubins;
        }
        pub mod dnn {
            pub use crate::device::cuda::dnn::{Addresses, Convolution, Direction, Dnn, Image, Run};
        }
        pub mod expandable {
            pub use crate::device::cuda::expandable::ExpandableMemory;
        }
        pub mod memory {
            pub use crate::device::cuda::memory::{DeviceMemory, Mapped, PinnedMemory};
        }
        pub mod nvrtc {
            pub use crate::device::cuda::nvrtc::compile;
        }
        pub mod staging {
            pub use crate::device::cuda::staging::Staging;
        }
    }
}

pub mod files {
    pub use crate::files::{Array, Kind, Named, Value, read, read_bytes, read_columns, write, write_bytes};

    pub mod image {
        pub use crate::files::image::resized;
    }
}

pub mod kernel {
    pub use crate::kernel::elementwise;

    pub mod custom {
        pub use crate::kernel::custom::{Argument, CUSTOM, attributes, known};

        pub mod signature {
            pub use crate::kernel::custom::signature::{Parameter, read};
        }
    }
    pub mod abi {
        pub use crate::kernel::abi::{Call, Faults, HostFn, RawView, Threads};
    }
    #[cfg(feature = "cuda")]
    pub mod cuda {
        pub use crate::kernel::cuda::{
            ConvCall, ConvOrder, ConvPart, FaultSlot, Gpu, GpuError, Hold, Launch, MatmulCall, OPTIONS, Param,
            RecurrentCall, RecurrentRoom, RecurrentTask, Source, Transform, TransformCall, TransformSide, headers,
        };
    }
    pub mod fused {
        #[cfg(feature = "cuda")]
        pub use crate::kernel::fused::cuda;
        pub use crate::kernel::fused::host;
    }
    pub use crate::kernel::FAMILIES;

    pub mod structs {
        pub use crate::kernel::structs::{Layout, Structs};
    }

    pub mod family {
        pub use crate::kernel::family::{Family, Kernel};
    }
    pub mod program {
        pub use crate::kernel::program::{Check, Class, Draw, Epilogue, Function, Instr, Program, ReduceKind};
    }

    pub use crate::kernel::{
        attention, conv, copy, ctc, fft, index, linalg, loss, matmul, norm, pool, random, recurrent, resample, scan,
        search, select, softmax, sort,
    };
}

pub mod op {
    pub mod chapter {
        pub use crate::op::chapter::Chapter;
    }
    pub mod formula {
        pub use crate::op::formula::{Formula, Written};
    }
    pub mod row {
        pub use crate::op::row::{CallForm, Default, Kind, Op, Param};
    }
    pub mod rows {
        pub use crate::op::rows::FAMILIES;
    }
    pub mod table {
        pub use crate::op::table::all;
    }
}

pub mod script {
    pub mod library {
        pub mod texts {
            pub use crate::script::library::texts::STD;
        }
    }
    pub mod manual {
        pub use crate::script::manual::{
            CHAPTERS, Form, Function, Native, Page, Sample, functions, names, native, natives, page, written,
        };
    }
    pub mod session {
        pub mod compiled {}
        pub mod handle {
            pub use crate::script::session::handle::PlannedFault;
        }
    }
    pub mod source {
        pub use crate::script::source::SourceMap;
    }
}

#[cfg(feature = "cli")]
pub mod tools {
    pub mod command {
        pub use crate::tools::command::{Command, Settings, commands, parse};
    }
    pub mod profile {
        pub use crate::tools::profile::{chrome_trace, table};
    }
    pub mod render {
        pub use crate::tools::render::{Coloring, render_error};
    }
    pub mod run {
        pub use crate::tools::run::builder;
    }
}
