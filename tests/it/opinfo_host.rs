//! How the judge of `opinfo.rs` reaches the language: by text alone. Inputs are written as literals, results come
//! back as arrays, so that nothing but a session that runs a text is needed.

use super::opinfo::Data;
use rhai::{Array, Dynamic};
use std::fmt::Write as _;
use tscript::sched::runtime::Options;
use tscript::script::session::{Session, diagnostic};

/// Variables in, a text, variables out.
pub trait Host {
    /// Sets `inputs`, runs `text`, reads the variables `results`.
    fn run(&mut self, inputs: &[(String, Data)], text: &str, results: &[String]) -> Result<Vec<Data>, String>;
}

/// A session; one for each file of cases.
pub struct Engine(Session);

impl Engine {
    pub fn new() -> Engine {
        Engine(Session::new(Options::default()))
    }
}

impl Host for Engine {
    fn run(&mut self, inputs: &[(String, Data)], text: &str, results: &[String]) -> Result<Vec<Data>, String> {
        let mut script = String::new();
        for (name, data) in inputs {
            let _ = writeln!(script, "let {name} = {};", literal(data));
        }
        script += text;
        let reads: Vec<String> =
            results.iter().map(|r| format!("[{r}.dtype.to_string(), {r}.shape, {r}.flatten().to_array()]")).collect();
        let _ = write!(script, "[{}]", reads.join(", "));
        let value = self.0.run_str(&script).map_err(|failure| match diagnostic(&failure) {
            Some(diag) => format!("{}: {}", diag.code, diag.message),
            None => failure.to_string(),
        })?;
        let rows = value.into_array().map_err(str::to_string)?;
        rows.into_iter().map(data).collect()
    }
}

/// `tensor([..]).reshape([..])`, exact for every dtype.
fn literal(data: &Data) -> String {
    let dtype = &data.dtype;
    let count: usize = data.shape.iter().product();
    if count == 0 {
        return format!("zeros({:?}, #{{dtype: \"{dtype}\"}})", data.shape);
    }
    let elements: Vec<String> = match dtype.as_str() {
        "bool" => data.bytes.iter().map(|b| (*b != 0).to_string()).collect(),
        "f64" | "f32" | "f16" | "bf16" => super::opinfo::floats(data).into_iter().map(float).collect(),
        _ => (0..count).map(|at| int(super::opinfo::whole(data, at))).collect(),
    };
    format!("tensor([{}], #{{dtype: \"{dtype}\"}}).reshape({:?})", elements.join(", "), data.shape)
}

fn int(x: i64) -> String {
    if x == i64::MIN { "(-9223372036854775807 - 1)".to_string() } else { x.to_string() }
}

/// Digits on both sides of the point; infinities and NaN by division, whose result IEEE fixes.
fn float(x: f64) -> String {
    if x.is_nan() {
        return "(0.0 / 0.0)".to_string();
    }
    if x.is_infinite() {
        return if x > 0.0 { "(1.0 / 0.0)".to_string() } else { "(-1.0 / 0.0)".to_string() };
    }
    let text = format!("{x:?}");
    match text.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
        _ => text,
    }
}

/// `[dtype, shape, elements]` as bytes.
fn data(row: Dynamic) -> Result<Data, String> {
    let mut row = row.into_array().map_err(str::to_string)?.into_iter();
    let mut next = || row.next().ok_or_else(|| "a result without its parts".to_string());
    let dtype = next()?.into_string().map_err(str::to_string)?;
    let sizes: Array = next()?.into_array().map_err(str::to_string)?;
    let shape =
        sizes.iter().map(|n| n.as_int().map(|n| n as usize)).collect::<Result<Vec<_>, _>>().map_err(str::to_string)?;
    let elements: Array = next()?.into_array().map_err(str::to_string)?;
    let mut bytes = Vec::new();
    for element in &elements {
        push(&mut bytes, &dtype, element).map_err(|kind| format!("an element of {dtype} is of type {kind}"))?;
    }
    Ok(Data { dtype, shape, bytes })
}

fn push(bytes: &mut Vec<u8>, dtype: &str, element: &Dynamic) -> Result<(), String> {
    let float = || element.as_float().map_err(str::to_string);
    let int = || element.as_int().map_err(str::to_string);
    match dtype {
        "f64" => bytes.extend(float()?.to_le_bytes()),
        "f32" => bytes.extend((float()? as f32).to_le_bytes()),
        "f16" => bytes.extend(half::f16::from_f64(float()?).to_le_bytes()),
        "bf16" => bytes.extend(half::bf16::from_f64(float()?).to_le_bytes()),
        "i64" => bytes.extend(int()?.to_le_bytes()),
        "i32" => bytes.extend((int()? as i32).to_le_bytes()),
        "i16" => bytes.extend((int()? as i16).to_le_bytes()),
        "i8" | "u8" => bytes.push(int()? as u8),
        _ => bytes.push(element.as_bool().map_err(str::to_string)?.into()),
    }
    Ok(())
}
