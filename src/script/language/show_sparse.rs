//! Sparse tensors as text, by PyTorch's rules: `tensor(indices=.., values=.., size=(2, 3), nnz=3, layout=sparse_coo)`.

use super::show::bare;
use crate::base::diag::Result;
use crate::base::dtype::DType;
use crate::script::bind::properties::grad_fn;
use crate::script::host::Host;
use crate::script::values::sparse::Sparse;
use crate::script::values::types::Tensor;

/// The width of `tensor(`.
const INDENT: usize = 7;

pub fn sparse(host: &Host, s: &Sparse) -> Result<String> {
    let mut parts = Vec::new();
    if let Some(crow) = &s.crow {
        let [starts, places] = match s.by_columns {
            true => ["ccol_indices", "row_indices"],
            false => ["crow_indices", "col_indices"],
        };
        parts.push(part(host, starts, crow)?);
        let columns = s.indices.view().layout.select(0, !s.by_columns as usize);
        let view = s.indices.view();
        let columns = Tensor::new(
            std::sync::Arc::new(crate::op::tensor::View::new(view.buffer.clone(), columns, view.dtype)),
            s.indices.0.made,
        );
        parts.push(part(host, places, &columns)?);
    } else {
        parts.push(part(host, "indices", &s.indices)?);
    }
    parts.push(part(host, "values", &s.values)?);
    let text = format!("tensor({}", parts.join(&format!(",\n{}", " ".repeat(INDENT))));
    Ok(with_suffixes(text, &suffixes(host, s), s.crow.is_none(), host.print.options.lock().linewidth))
}

/// `values=tensor([1., 2.])`, further lines below the first.
fn part(host: &Host, name: &str, x: &Tensor) -> Result<String> {
    let indent = format!("\n{}", " ".repeat(INDENT + name.len() + 1));
    Ok(format!("{name}={}", bare(host, x)?.replace('\n', &indent)))
}

fn suffixes(host: &Host, s: &Sparse) -> Vec<String> {
    let (dtype, device, grad_fn) = (s.values.dtype(), s.values.device(), grad_fn(&s.values));
    let mut all = Vec::new();
    if device.is_cuda() {
        all.push(format!("device={device}"));
    }
    let sizes: Vec<String> = s.size.iter().map(usize::to_string).collect();
    let comma = if sizes.len() == 1 { "," } else { "" };
    all.push(format!("size=({}{comma})", sizes.join(", ")));
    all.push(format!("nnz={}", s.nnz()));
    if ![host.rt.default_float(), DType::I64, DType::Bool].contains(&dtype) {
        all.push(format!("dtype={dtype}"));
    }
    all.push(format!("layout={}", s.layout()));
    match grad_fn {
        Some(name) => all.push(format!("grad_fn=<{name}>")),
        None if s.values.requires_grad() => all.push("requires_grad=true".into()),
        None => {}
    }
    all
}

fn with_suffixes(mut text: String, suffixes: &[String], new_line: bool, width: usize) -> String {
    let mut new_line = new_line;
    let mut line = text.len() - text.rfind('\n').unwrap_or(0);
    for suffix in suffixes {
        if new_line || line + suffix.len() + 2 > width {
            text.push_str(&format!(",\n{}{suffix}", " ".repeat(INDENT)));
            line = INDENT + suffix.len();
            new_line = false;
        } else {
            text.push_str(&format!(", {suffix}"));
            line += suffix.len() + 2;
        }
    }
    text.push(')');
    text
}
