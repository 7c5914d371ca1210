//! What modules of `nn` and optimizers need that `std/` cannot express in the language itself.

pub mod assemble;
pub mod checks;
pub mod containers;
pub mod fields;
pub mod hook_list;
pub mod kinds;
mod module_backward_hooks;
pub mod module_hooks;
pub mod module_methods;
pub mod module_parts;
pub mod module_states;
pub mod optimizer_state;
pub mod outline;
pub mod parallel;
pub mod param_groups;
pub mod parameter_states;
pub mod row_modules;
pub mod sparse_grads;
pub mod sparse_parts;
pub mod swap;
