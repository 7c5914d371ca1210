//! Stable diagnostic codes with their titles.

use std::fmt;

/// A stable code such as E0201.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Code(pub u16);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "E{:04}", self.0)
    }
}

macro_rules! codes {
    ($($name:ident = $number:literal, $title:literal;)*) => {
        $(#[doc = $title] pub const $name: Code = Code($number);)*
        /// Every code with its general title, in order.
        pub const ALL: &[(Code, &str)] = &[$((Code($number), $title)),*];
    };
}

codes! {
    SYNTAX = 101, "the text is not a script";
    UNKNOWN_VARIABLE = 102, "a variable that does not exist";
    UNKNOWN_FUNCTION = 103, "a function or method that does not exist";
    UNKNOWN_PROPERTY = 104, "a property that does not exist";
    SOURCE_TOO_LARGE = 105, "a source beyond the limits";
    MODULE_NOT_FOUND = 106, "a module that cannot be found";
    CIRCULAR_IMPORT = 107, "modules that import each other";
    THROWN = 108, "an error thrown by the script";
    ASSERTION = 109, "an assertion that does not hold";
    CONSTANT = 110, "a change of a constant";
    BORROWED = 111, "a value changed while a method of it is at work";
    COUNTED = 112, "a loop's second name, which counts";
    LOST_CHANGE = 114, "a change that nobody sees";
    UNUSED = 115, "a variable or an import that is never used";
    LOST = 116, "a value that is thrown away";
    UNREACHABLE = 117, "a statement that is never reached";
    NEVER_EQUAL = 118, "values that are never equal";
    DIVIDED = 119, "a comment where a division was meant";
    UNFILLED = 120, "a string that shows `${..}` as it is written";
    SHAPE = 201, "shapes that do not fit";
    DTYPE = 202, "a dtype that the operation does not take";
    UNKNOWN_KEYWORD = 203, "an unknown keyword argument";
    ARGUMENT_TYPE = 204, "an argument of the wrong type";
    MISSING_ARGUMENT = 205, "a required argument that was not given";
    VALUE = 206, "an argument whose value is out of bounds";
    INDEX = 207, "an index out of range, known at the call";
    EXTRA_ARGUMENT = 208, "more arguments than the operation takes";
    DIM = 209, "a dimension that the tensor does not have";
    TOO_LARGE = 210, "a size that does not fit in memory arithmetic";
    TRUTH = 211, "the truth of a tensor with several elements";
    AMBIGUOUS_INDEX = 212, "an index with two meanings";
    UNKNOWN_DTYPE = 213, "an unknown dtype";
    ARITHMETIC = 214, "arithmetic on numbers that has no result";
    TYPE = 215, "an operator or value of the wrong type";
    KERNEL_TEXT = 216, "the text of a kernel that does not compile";
    TARGET_SHAPE = 217, "a loss of a target with another shape";
    DEVICE_MISMATCH = 301, "tensors on different devices";
    UNKNOWN_DEVICE = 302, "an unknown device";
    NO_CUDA = 303, "a CUDA device where there is none";
    OUT_OF_MEMORY = 304, "out of memory";
    EVENT = 305, "an event that is not ready for this";
    STREAM = 306, "a stream that cannot be used";
    KERNEL_DEVICE = 307, "a CUDA kernel where no NVIDIA GPU runs it";
    KERNEL_INDEX = 401, "an index out of range, found while computing";
    KERNEL_LABEL = 402, "a class label out of range, found while computing";
    KERNEL_PROBABILITY = 403, "invalid probabilities, found while computing";
    KERNEL_DIVISION = 404, "integer division by zero, found while computing";
    KERNEL_NOT_POSITIVE = 405, "a matrix that is not positive-definite";
    KERNEL_SINGULAR = 406, "a singular matrix";
    CHECK_NOT_FINITE = 407, "the first operation that made NaN or infinity";
    DEVICE_LOST = 408, "a lost device";
    KERNEL_CONVERGE = 409, "a decomposition that did not converge";
    LAUNCH_FAILED = 410, "work that a device could not run";
    KERNEL_VALUE = 411, "a value that an operation does not take, found while computing";
    RACE = 501, "an access that nothing orders";
    FILE = 601, "a file that cannot be read or written";
    FILE_FORMAT = 602, "a damaged or unsupported file";
    FILE_KIND = 603, "a file extension with no format";
    FILE_ACCESS = 604, "a file outside the permitted folders";
    GRAD_STALE = 701, "a saved tensor that was changed in place";
    GRAD_LEAF = 702, "an in-place change of a leaf that requires gradients";
    GRAD_NONE = 703, "a gradient of something that has none";
    GRAD_SHAPE = 704, "backward from a tensor with several elements";
    GRAD_STOP = 705, "an operation without a gradient";
    GRAD_FREED = 706, "a second backward through a freed graph";
    GRAD_VIEW = 707, "an in-place change that a view does not allow";
    GRAD_OWN = 708, "a function of the script that backward cannot use";
    GRAD_INFERENCE = 709, "a tensor of `inference_mode` in the gradient graph";
    VMAP = 710, "what `vmap` cannot do for all samples at once";
    TRANSFORM = 711, "a function transform and values that do not fit it";
    LIMIT_OPERATIONS = 801, "the limit of operations";
    LIMIT_DEPTH = 802, "the limit of nested calls";
    INTERRUPTED = 803, "an interrupted script";
    LIMIT_MEMORY = 804, "the session's limit of memory";
    FOREIGN_TENSOR = 805, "a tensor of another session";
    INTERNAL = 806, "an internal error";
    LIMIT_SIZE = 807, "a string, array or map beyond the limits";
    LIMIT_TIME = 808, "the limit of time";
    HOST_FUNCTION = 809, "a function of the host program that failed";
}

impl Code {
    /// The general title, as `tscript explain` lists it.
    pub fn title(self) -> &'static str {
        ALL.iter().find(|(code, _)| *code == self).map_or("an error", |(_, title)| title)
    }

    /// `E0201`, `e201` or `201`.
    pub fn parse(text: &str) -> Option<Code> {
        let digits = text.strip_prefix(['E', 'e']).unwrap_or(text);
        let number: u16 = digits.parse().ok()?;
        ALL.iter().map(|(code, _)| *code).find(|code| code.0 == number)
    }
}
