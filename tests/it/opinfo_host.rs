//! How the judge of `opinfo.rs` reaches the language: variables in, a text, variables out, through a session.

use super::opinfo::Data;
use std::fmt::Write as _;
use tscript::base::dtype::DType;
use tscript::script::exchange::Tensor;
use tscript::script::session::Session;

/// Variables in, a text, variables out.
pub trait Host {
    /// Sets `inputs`, runs `text`, reads the variables `results`.
    fn run(&mut self, inputs: &[(String, Data)], text: &str, results: &[String]) -> Result<Vec<Data>, String>;
}

/// A session for some cases: a new one before the lines of its texts run out.
pub struct Engine {
    session: Session,
    cases: usize,
}

/// Bound: cases of one session.
const CASES: usize = 200;

impl Engine {
    pub fn new() -> Engine {
        Engine { session: Session::builder().output(|_| {}).build().expect("a session"), cases: 0 }
    }
}

impl Host for Engine {
    fn run(&mut self, inputs: &[(String, Data)], text: &str, results: &[String]) -> Result<Vec<Data>, String> {
        if self.cases == CASES {
            *self = Engine::new();
        }
        self.cases += 1;
        let told = |error: tscript::script::error::Error| format!("{}: {}", error.code(), error.message());
        for (name, data) in inputs {
            let dtype = DType::parse(&data.dtype).ok_or_else(|| format!("no dtype {}", data.dtype))?;
            let tensor = Tensor::from_bytes(dtype, &data.shape, data.bytes.clone()).map_err(told)?;
            self.session.set(name, tensor).map_err(told)?;
        }
        let mut script = text.to_string();
        for (at, result) in results.iter().enumerate() {
            let _ = write!(script, "\nlet result_{at} = {result};");
        }
        self.session.run_str("case", &script).map_err(told)?;
        (0..results.len())
            .map(|at| {
                let tensor: Tensor = self.session.get(&format!("result_{at}")).map_err(told)?;
                let bytes = tensor.to_bytes().map_err(told)?;
                Ok(Data { dtype: tensor.dtype().to_string(), shape: tensor.shape(), bytes })
            })
            .collect()
    }
}
