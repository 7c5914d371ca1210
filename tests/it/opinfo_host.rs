//! How the judge of `opinfo.rs` reaches the language: tensors as bytes through a session, and a text to run.

use super::opinfo::Data;
use super::scripts::with_gpus;
use tscript::{DType, Dynamic, Error, Session, Tensor};

/// Variables in, a text, variables out.
pub trait Host {
    /// Sets `inputs`, runs `text`, reads the variables `results`.
    fn run(&mut self, inputs: &[(String, Data)], text: &str, results: &[String]) -> Result<Vec<Data>, String>;
}

/// Bound: texts that one session runs; it keeps the lines of each.
const TEXTS: usize = 100;

/// A session, renewed now and then.
pub struct Engine {
    session: Session,
    texts: usize,
}

impl Engine {
    pub fn new() -> Engine {
        let mut builder = Session::builder().output(|_| {});
        if on_gpu() {
            builder = with_gpus(builder, 1).expect("a GPU").device("cuda");
        }
        Engine { session: builder.build().expect("a session starts"), texts: 0 }
    }
}

/// `TSCRIPT_OPINFO_DEVICE=cuda`: everything happens on a GPU.
fn on_gpu() -> bool {
    std::env::var("TSCRIPT_OPINFO_DEVICE").is_ok_and(|device| device == "cuda")
}

fn words(error: Error) -> String {
    format!("{}: {}", error.code(), error.message())
}

impl Host for Engine {
    fn run(&mut self, inputs: &[(String, Data)], text: &str, results: &[String]) -> Result<Vec<Data>, String> {
        self.texts += 1;
        if self.texts > TEXTS {
            *self = Engine::new();
        }
        for (name, data) in inputs {
            let dtype = DType::parse(&data.dtype).ok_or("an unknown dtype in the fixtures")?;
            let tensor = Tensor::from_bytes(dtype, &data.shape, data.bytes.clone()).map_err(words)?;
            self.session.set(name, tensor).map_err(words)?;
        }
        let moved: String = match on_gpu() {
            true => inputs.iter().map(|(name, _)| format!("{name} = {name}.cuda();\n")).collect(),
            false => String::new(),
        };
        self.session.run_str("case", &format!("{moved}{text}")).map_err(words)?;
        results.iter().map(|name| data(self.session.get(name).map_err(words)?, &self.session, name)).collect()
    }
}

/// A tensor's elements; a plain bool or number as a tensor without dimensions.
fn data(value: Dynamic, session: &Session, name: &str) -> Result<Data, String> {
    let plain = |dtype: &str, bytes: Vec<u8>| Data { dtype: dtype.to_string(), shape: Vec::new(), bytes };
    if let Ok(b) = value.as_bool() {
        return Ok(plain("bool", vec![b.into()]));
    }
    if let Ok(i) = value.as_int() {
        return Ok(plain("i64", i.to_le_bytes().to_vec()));
    }
    if let Ok(x) = value.as_float() {
        return Ok(plain("f64", x.to_le_bytes().to_vec()));
    }
    let tensor: Tensor = session.get(name).map_err(words)?;
    Ok(Data { dtype: tensor.dtype().to_string(), shape: tensor.shape(), bytes: tensor.to_bytes().map_err(words)? })
}
