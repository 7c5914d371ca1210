//! The value of an entry, and a line for each tensor in it: shape, dtype, device, whether it requires gradients, and
//! whether work on it was still pending when the entry ended.

use crate::script::Dynamic;
use crate::script::error::Error;
use crate::script::inspect::look::Placed;
use crate::script::session::handle::Session;

/// Bound: tensors of one value that get a line.
const LINES: usize = 8;
/// Bound: elements of a map or array of tensors that are printed; for a model there is only one line for each tensor.
const ELEMENTS: usize = 1000;

/// A value as a conversation shows it.
pub struct Answer {
    pub text: String,
    /// Of its tensors, one each.
    pub lines: Vec<String>,
}

/// None for a value that says nothing. Waits for the value.
pub fn of(session: &Session, value: &Dynamic) -> Result<Option<Answer>, Error> {
    if value.is_unit() {
        return Ok(None);
    }
    // Before the value is printed, which waits for it.
    let tensors = session.tensors_in(value, LINES + 1);
    let alone = tensors.len() == 1 && tensors[0].path.is_empty();
    let elements: usize = tensors.iter().map(|tensor| tensor.shape.iter().product::<usize>()).sum();
    let brief = !alone && (elements > ELEMENTS || tensors.len() > LINES);
    let text = if value.is_string() {
        session.literal(value)?
    } else if brief {
        session.brief(value)
    } else {
        session.show(value)?
    };
    let mut lines: Vec<String> = tensors.iter().take(LINES).map(line).collect();
    if tensors.len() > LINES {
        lines.push("...".to_string());
    }
    Ok(Some(Answer { text, lines }))
}

/// `weight  [4, 3] f32 cuda:1, needs gradients, pending`.
pub fn line(tensor: &Placed) -> String {
    let name = if tensor.path.is_empty() { String::new() } else { format!("{}  ", tensor.path) };
    let gradients = if tensor.requires_grad { ", needs gradients" } else { "" };
    let pending = if tensor.pending { ", pending" } else { "" };
    format!("{name}{:?} {} {}{gradients}{pending}", tensor.shape, tensor.dtype, tensor.device)
}
