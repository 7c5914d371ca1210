//! Which parts of which buffers a fault has reached.

use super::race::Region;
use crate::base::diag::Diag;
use crate::op::tensor::{Poison, View};
use std::sync::Arc;

fn region(view: &View) -> Region {
    Region::of(&view.layout, view.dtype.size_bytes())
}

/// The earliest fault that reached an element of the view, with its order.
pub fn of(view: &View) -> Option<(u64, Arc<Diag>)> {
    let poison = view.buffer.poison.lock();
    if poison.is_empty() {
        return None;
    }
    let own = region(view);
    let reached = poison.iter().filter(|p| Region::of(&p.layout, p.elem_bytes).overlaps(&own));
    reached.min_by_key(|p| p.order).map(|p| (p.order, p.fault.clone()))
}

/// The view was written: by work that a fault has reached, or whole by work that none has.
pub fn write(view: &View, fault: Option<&(u64, Arc<Diag>)>) {
    let mut poison = view.buffer.poison.lock();
    if poison.is_empty() && fault.is_none() {
        return;
    }
    let own = region(view);
    poison.retain(|p| !own.contains(&Region::of(&p.layout, p.elem_bytes)));
    if let Some((order, fault)) = fault {
        let (layout, elem_bytes) = (view.layout.clone(), view.dtype.size_bytes());
        poison.push(Poison { layout, elem_bytes, fault: fault.clone(), order: *order });
    }
}
