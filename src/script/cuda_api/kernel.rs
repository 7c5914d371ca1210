//! `cuda::kernel(source, name)`: kernels whose CUDA text the script gives, called as CuPy's `RawKernel`.

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::base::quoted::Quoted;
use crate::fail;
use crate::kernel::custom::{self, Custom, signature};
use crate::op::elementwise::Value;
use crate::sched::backend::Compiled;
use crate::script::bind::convert::integer;
use crate::script::bind::native::{given, native, text};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::tensor_api::elementwise::{argument, quoted};
use crate::script::values::calling;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::tensor::custom_kernel::{self, Geometry, NAME};
use crate::tensor::hooks::GradMode;
use rhai::{Array, Dynamic, FnPtr, Map, NativeCallContext};
use std::sync::Arc;

/// Bound: threads of a block, and blocks and threads along each dimension, on every GPU that is supported.
const MOST_THREADS: u64 = 1024;
const MOST_BLOCK: [u32; 3] = [1024, 1024, 64];
const MOST_GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];

/// A kernel of a script.
struct Handle {
    custom: &'static Custom,
    text: Quoted,
    /// What runs where no NVIDIA GPU does.
    host: Option<FnPtr>,
}

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    native(module, host, NAME, move |_, engine, [source, name, fallback, types]| {
        let site = if engine.origin.inner.is_none() { engine.origin.user } else { engine.origin.inner };
        let source = quoted(&shared, site, (0, "source"), source)?;
        kernel(&shared, source, &text("name", name)?, given(fallback), given(types))
    });
}

fn kernel(
    host: &Arc<Host>,
    source: Quoted,
    name: &str,
    fallback: Option<&Dynamic>,
    types: Option<&Dynamic>,
) -> Result<Dynamic> {
    let fallback = match fallback.map(Dynamic::flatten_clone) {
        Some(value) if value.is_fnptr() => Some(value.cast::<FnPtr>()),
        Some(value) => fail!(ARGUMENT_TYPE, "`host` is a closure, not {}", type_names::of_value(&value)),
        None => None,
    };
    let types = types.map(words).transpose()?;
    let params = signature::read(&source, name, types.as_deref())?;
    if !params.iter().any(|param| param.is_written) {
        let diag = Diag::error(code::KERNEL_TEXT, format!("the kernel `{name}` writes nothing"));
        return Err(diag.help("a result is a pointer that is not `const`: `float* y`"));
    }
    let handle = Handle { custom: custom::known(&source.text, name, params), text: source, host: fallback };
    compile_now(host, &handle)?;
    let handle = Arc::new(handle);
    let host = host.clone();
    let call = move |context: NativeCallContext, values: &mut [&mut Dynamic]| -> Native {
        let values: Vec<Dynamic> = values.iter().map(|value| value.flatten_clone()).collect();
        launch(&host, &context, &handle, &values)
    };
    #[allow(deprecated)]
    let pointer = FnPtr::from_fn("kernel", call);
    pointer.map(Dynamic::from).map_err(|error| Diag::error(code::INTERNAL, error.to_string()))
}

fn words(value: &Dynamic) -> Result<Vec<String>> {
    let list = value.read_lock::<Array>().map(|list| list.clone());
    let all = list.and_then(|list| list.iter().map(|word| word.clone().into_string().ok()).collect::<Option<Vec<_>>>());
    all.ok_or_else(|| {
        let found = type_names::of_value(value);
        Diag::error(code::ARGUMENT_TYPE, format!("`types` is an array of strings, not {found}"))
    })
}

/// The text is compiled when it is given: for the current CUDA device where it is a real one, and as a check where there
/// is none and the compiler is found.
fn compile_now(host: &Host, handle: &Handle) -> Result<()> {
    if let Ok(DeviceId::Cuda(index)) = host.rt.current_cuda()
        && !matches!(compile_for(host, handle, DeviceId::Cuda(index))?, Compiled::Never)
    {
        return Ok(());
    }
    #[cfg(feature = "cuda")]
    if let Some(log) = check::log(handle.custom) {
        return Err(faulty(handle, &log));
    }
    Ok(())
}

fn compile_for(host: &Host, handle: &Handle, device: DeviceId) -> Result<Compiled> {
    match host.rt.compile_kernel(device, handle.custom)? {
        Compiled::Faulty(log) => Err(faulty(handle, &log)),
        Compiled::Failed(why) => Err(Diag::error(
            code::LAUNCH_FAILED,
            format!("the kernel `{}` cannot be compiled: {why}", handle.custom.entry),
        )),
        done => Ok(done),
    }
}

/// The compiler's first error, at its place in the text.
#[cold]
fn faulty(handle: &Handle, log: &str) -> Box<Diag> {
    let mut lines = log.lines();
    while let Some(line) = lines.next() {
        let Some((number, message)) = error_in(line) else { continue };
        let (shown, caret) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
        let source = handle.text.text.lines().nth(number - 1).unwrap_or("");
        let range = place(&handle.text, number, source, shown, caret);
        let diag = Diag::error(code::KERNEL_TEXT, format!("the kernel does not compile: {message}"));
        let more = log.lines().filter_map(error_in).count() - 1;
        let diag = if more > 0 { diag.note(format!("and {more} more of the compiler's errors")) } else { diag };
        return handle.text.mark(diag, range, "here");
    }
    Diag::error(code::KERNEL_TEXT, "the kernel does not compile").note(log.trim_end().to_string())
}

/// `kernel.cu(3): error: message`: the line and the message.
fn error_in(line: &str) -> Option<(usize, &str)> {
    let (number, rest) = line.strip_prefix("kernel.cu(")?.split_once(')')?;
    let message = rest.strip_prefix(": error")?.split_once(": ")?.1;
    let number = number.parse().ok().filter(|number| *number > 0)?;
    Some((number, message))
}

/// The name or sign above the compiler's caret; the whole line where there is none.
fn place(text: &Quoted, number: usize, source: &str, shown: &str, caret: &str) -> std::ops::Range<usize> {
    let start = text.offset(number, 1);
    let blank = source.len() - source.trim_start().len();
    let column = caret.find('^').filter(|_| caret.trim() == "^" && shown.trim() == source.trim());
    let Some(column) = column else { return start + blank..start + source.trim_end().len() };
    // The compiler shows the line with an indentation of its own.
    let column = (column + blank).saturating_sub(shown.len() - shown.trim_start().len()).min(source.len());
    let rest = source.get(column..).unwrap_or("");
    let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()).max(1);
    start + column..start + column + length
}

#[cfg(feature = "cuda")]
mod check {
    //! Compiles texts without a GPU, to find their errors.

    use crate::device::cuda::{KernelError, Text, nvrtc};
    use crate::kernel::cuda::{OPTIONS, headers};
    use crate::kernel::custom::Custom;

    /// A GPU that every text of today is written for.
    const CAPABILITY: (u32, u32) = (8, 0);

    /// The compiler's messages, if it is found and the text has errors.
    pub fn log(custom: &Custom) -> Option<String> {
        let source = &custom.source;
        let text =
            Text { name: "kernel.cu", text: &source.text, headers: headers(), options: OPTIONS, key: source.key };
        match nvrtc::compile(&text, CAPABILITY) {
            Err(KernelError::Text { log, .. }) => Some(log),
            _ => None,
        }
    }
}

/// `k(grid, block, args, #{shared_mem: 0})`.
fn launch(host: &Arc<Host>, context: &NativeCallContext, handle: &Handle, values: &[Dynamic]) -> Native {
    let raised = |diag| host.raise(context, diag, "");
    let (shape, list) = call_of(values).map_err(with_name).map_err(raised)?;
    let args = list.iter().zip(&handle.custom.params).map(|(value, param)| argument(value, &param.name));
    let args: Vec<Value> = args.collect::<Result<_>>().map_err(with_name).map_err(raised)?;
    let ready = host.call(context, |engine| {
        if list.len() != handle.custom.params.len() {
            // Says how many there are.
            let all: Vec<Value> = list.iter().map(|_| Value::Number(Scalar::Int(0))).collect();
            custom_kernel::device(engine, handle.custom, &all).map_err(with_name)?;
        }
        let device = custom_kernel::device(engine, handle.custom, &args).map_err(with_name)?;
        let runs = device.is_cuda() && matches!(compile_for(host, handle, device)?, Compiled::Runs);
        if runs {
            custom_kernel::launch(engine, handle.custom, shape, &args)?;
        } else if handle.host.is_none() {
            return Err(nowhere(host, handle.custom, device));
        }
        Ok(runs)
    })?;
    match &handle.host {
        Some(closure) if !ready => {
            // As the kernel's, what it writes is no part of the gradient graph.
            let _restore = GradMode::set(&host.rt, false);
            calling::call(context, closure, None, list).map(|_| Dynamic::UNIT)
        }
        _ => Ok(Dynamic::UNIT),
    }
}

#[cold]
fn with_name(mut diag: Box<Diag>) -> Box<Diag> {
    diag.message = format!("`{NAME}`: {}", diag.message);
    diag
}

#[cold]
fn nowhere(host: &Host, custom: &Custom, device: DeviceId) -> Box<Diag> {
    let kind = match device {
        DeviceId::Cpu => "its tensors are on the CPU".to_string(),
        device => match host.rt.device_facts(device).is_ok_and(|facts| facts.is_simulated) {
            true => format!("{device} is simulated"),
            false => format!("{device} runs no CUDA"),
        },
    };
    Diag::error(code::KERNEL_DEVICE, format!("the CUDA kernel `{}` cannot run: {kind}", custom.entry)).help(
        "write `host: |..| ..` beside the text, a closure of the same arguments that runs elsewhere, or use `elementwise(..)`, which runs on every device",
    )
}

/// Grid, block, shared memory, and the arguments.
fn call_of(values: &[Dynamic]) -> Result<(Geometry, Array)> {
    let (grid, block, args, options) = match values {
        [grid, block, args] => (grid, block, args, None),
        [grid, block, args, options] => (grid, block, args, Some(options)),
        _ => {
            let diag = Diag::error(code::MISSING_ARGUMENT, format!("a launch takes 3 arguments, not {}", values.len()));
            return Err(diag.help("`k(grid, block, args)`, for example `k([n / 256], [256], [x, y, n])`"));
        }
    };
    let (grid, block) = (sizes("grid", grid, MOST_GRID)?, sizes("block", block, MOST_BLOCK)?);
    let threads: u64 = block.iter().map(|&size| u64::from(size)).product();
    if threads > MOST_THREADS {
        fail!(VALUE, "a block of {block:?} has {threads} threads, and a block may have {MOST_THREADS}");
    }
    let Some(list) = args.read_lock::<Array>() else {
        fail!(ARGUMENT_TYPE, "the arguments of the kernel are an array, not {}", type_names::of_value(args));
    };
    let list = list.iter().map(Dynamic::flatten_clone).collect();
    Ok((Geometry { grid, block, shared: options.map_or(Ok(0), shared)? }, list))
}

fn shared(options: &Dynamic) -> Result<u32> {
    if let Some(bytes) = integer(options) {
        return size("shared_mem", bytes, 0, u32::MAX);
    }
    let Some(options) = options.read_lock::<Map>() else {
        fail!(ARGUMENT_TYPE, "`shared_mem` is a number of bytes, not {}", type_names::of_value(options));
    };
    if let Some(other) = options.keys().find(|name| *name != "shared_mem") {
        return Err(crate::base::suggest::unknown_keyword(other, &["shared_mem"]));
    }
    let Some(value) = options.get("shared_mem") else { return Ok(0) };
    match integer(value) {
        Some(bytes) => size("shared_mem", bytes, 0, u32::MAX),
        None => fail!(ARGUMENT_TYPE, "`shared_mem` is a number of bytes, not {}", type_names::of_value(value)),
    }
}

/// One to three sizes; further ones are 1.
fn sizes(name: &str, value: &Dynamic, most: [u32; 3]) -> Result<[u32; 3]> {
    let wrong = || {
        let found = type_names::of_value(value);
        Diag::error(code::ARGUMENT_TYPE, format!("`{name}` is an integer or an array of one to three, not {found}"))
    };
    let numbers: Vec<i64> = match value.read_lock::<Array>() {
        Some(list) => list.iter().map(integer).collect::<Option<_>>().ok_or_else(wrong)?,
        None => vec![integer(value).ok_or_else(wrong)?],
    };
    if numbers.is_empty() || numbers.len() > 3 {
        fail!(VALUE, "`{name}` has {} sizes, and may have one to three", numbers.len());
    }
    let mut found = [1; 3];
    for (at, number) in numbers.into_iter().enumerate() {
        found[at] = size(name, number, 1, most[at])?;
    }
    Ok(found)
}

fn size(name: &str, number: i64, least: u32, most: u32) -> Result<u32> {
    match u32::try_from(number) {
        Ok(size) if (least..=most).contains(&size) => Ok(size),
        _ => fail!(VALUE, "{number} is no size of `{name}`: from {least} to {most}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, log: &str) -> String {
        let text = Quoted::plain(text);
        let custom = custom::known(&text.text, "f", Vec::new());
        let diag = faulty(&Handle { custom, text, host: None }, log);
        assert_eq!(diag.code, code::KERNEL_TEXT);
        format!("{}\n{}", diag.message, diag.notes.join("\n"))
    }

    #[test]
    fn errors_of_the_compiler_have_their_places() {
        let text = "extern \"C\" __global__ void f(float* x) {\n    x[0] = y;\n}";
        let log = "kernel.cu(2): error: identifier \"y\" is undefined\n      x[0] = y;\n             ^\n\n1 error detected in the compilation of \"kernel.cu\".\n";
        assert_eq!(
            shown(text, log),
            "the kernel does not compile: identifier \"y\" is undefined\nin the text\n      x[0] = y;\n             ^"
        );
        // Without a caret the whole line is meant.
        let log = "kernel.cu(2): error #20: identifier \"y\" is undefined\n";
        assert!(shown(text, log).ends_with("      x[0] = y;\n      ^^^^^^^^^"));
        assert_eq!(shown(text, "no line\n"), "the kernel does not compile\nno line");
    }
}
