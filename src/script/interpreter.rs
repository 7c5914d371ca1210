//! The interpreter of a session: what is registered in it, and its limits.

use super::bind::{self, Natives};
use super::hooks::SessionHooks;
use super::host::Host;
use super::modules::{Modules, Resolver};
use super::register::Registration;
use super::watch::Watch;
use super::{arguments, error, index, natives, progress, properties, storage};
use crate::base::limits::EXPR_DEPTH;
use parking_lot::Mutex;
use rhai::Engine;
use std::sync::Arc;

/// Sizes that scripts keep to; see `Builder`.
#[derive(Clone, Debug)]
pub struct Sizes {
    pub call_levels: usize,
    /// Whether the interpreter itself keeps to the next three: it goes over the whole of a value at each call that
    /// takes it by reference, so that `push` in a loop takes quadratic time.
    pub strict: bool,
    /// 0: no limit; so for the next two.
    pub string_bytes: usize,
    pub array_elements: usize,
    pub map_entries: usize,
    pub variables: usize,
    pub functions: usize,
    pub modules: usize,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            call_levels: crate::base::limits::CALL_LEVELS,
            strict: false,
            // Bound: `pad(10^12, 0)` and the like abort on allocation without these (FACTS, "Limits").
            string_bytes: 256 << 20,
            array_elements: 16 << 20,
            map_entries: 1 << 20,
            variables: usize::MAX,
            functions: usize::MAX,
            modules: usize::MAX,
        }
    }
}

/// An interpreter with everything that scripts know.
pub fn engine(
    host: &Arc<Host>,
    modules: &Arc<Mutex<Modules>>,
    sizes: &Sizes,
    registrations: Vec<Registration>,
) -> Engine {
    let mut engine = Engine::new();
    engine.set_max_expr_depths(EXPR_DEPTH, EXPR_DEPTH);
    // Bound: names and short strings that sources share; the library has about 1500. Cost: with Rhai's 256, a tenth of the
    // time of reading the library is spent on looking for one to forget.
    engine.set_max_strings_interned(8192);
    engine.set_max_call_levels(sizes.call_levels);
    // Not: Rhai's optimiser. It folds constants into places where they are written to, and panics.
    engine.set_optimization_level(rhai::OptimizationLevel::None);
    if sizes.strict {
        engine.set_max_string_size(sizes.string_bytes);
        engine.set_max_array_size(sizes.array_elements);
        engine.set_max_map_size(sizes.map_entries);
    }
    engine.set_max_variables(sizes.variables);
    engine.set_max_functions(sizes.functions);
    engine.set_max_modules(sizes.modules);
    // A name that a map has not is an error, as of any other value: `m.wieght` is a slip of the pen, and `()` for it
    // would be found far away. `m.get("x")` asks.
    engine.set_fail_on_invalid_map_property(true);
    named::<super::value::Tensor>(&mut engine, "tensor");
    named::<super::value::DTypeValue>(&mut engine, "dtype");
    named::<super::value::DeviceValue>(&mut engine, "device");
    named::<super::value::SliceValue>(&mut engine, "slice");
    named::<super::value::Cell>(&mut engine, "cell");
    named::<super::loader::Loader>(&mut engine, "loader");
    named::<super::value::StreamValue>(&mut engine, "stream");
    named::<super::value::EventValue>(&mut engine, "event");
    named::<super::dataset::Dataset>(&mut engine, "dataset");
    named::<super::param_groups::Groups>(&mut engine, "param_groups");
    named::<super::param_groups::Group>(&mut engine, "group");
    // The matrix product binds as `*` does.
    let _ = engine.register_custom_operator("@", 180);
    super::compare::install(&mut engine);
    super::source::install(&mut engine, Arc::new(SessionHooks(host.clone())));
    error::register(&mut engine, host.sources.clone());
    natives::register_eval(&mut engine, host);
    super::devices::install(&mut engine, host);
    super::counted::install(&mut engine, host);
    super::literal::install(&mut engine);
    let mut module = Natives::default();
    bind::register(&mut module, host);
    properties::register(&mut module, host);
    super::literal::register(&mut module, host);
    index::register(&mut module, host);
    natives::register(&mut module, host);
    super::arrays::register(&mut module, host);
    super::growth::register(&mut module, host);
    super::sequences::register(&mut module, host);
    super::texts::register(&mut module, host);
    super::json::register(&mut module, host);
    arguments::register(&mut module, host);
    storage::register(&mut module, host);
    super::draw::register(&mut module, host);
    super::layers::register(&mut module, host);
    super::assemble::register(&mut module, host);
    super::straight::register(&mut module, host);
    super::parallel::register(&mut module, host);
    super::checks::register(&mut module, host);
    super::callable::register(&mut module, host);
    super::scalars::register(&mut module);
    super::containers::register(&mut module, host);
    super::questions::register(&mut module, host);
    super::settings::register(&mut module, host);
    super::optimise::register(&mut module, host);
    super::param_groups::register(&mut module, host);
    super::loader::register(&mut module, host);
    super::dataset::register(&mut module, host);
    super::iterate::register(&mut module, host);
    progress::register(&mut module, host);
    super::devices::register(&mut module, host);
    super::leave::register(&mut module, host);
    super::streams::register(&mut module, host);
    let cuda = super::cuda::module(host);
    module.names.extend(cuda.names.iter().map(|name| format!("cuda::{name}")));
    engine.register_static_module("cuda", cuda.module.into());
    super::printing::register(&mut module, host);
    // The program's own come last: they go before ours of the same name.
    for register in registrations {
        register(&mut module, host);
    }
    note_names(&mut module, host);
    engine.register_global_module(module.module.into());
    let shared = host.clone();
    engine.on_print(move |text| (shared.output.read())(text));
    let shared = host.clone();
    engine.on_debug(move |text, _, _| (shared.output.read())(text));
    let watch = host.watch.clone();
    engine.on_progress(move |_| watch.step());
    if host.watch.looks() {
        look_at_variables(&mut engine, host.watch.clone());
    }
    engine.set_module_resolver(Resolver { host: host.clone(), modules: modules.clone() });
    engine
}

/// A type of the language, under the name that scripts and messages use.
fn named<T: rhai::Variant + Clone>(engine: &mut Engine, name: &'static str) {
    super::type_names::note::<T>(name);
    engine.register_type_with_name::<T>(name);
}

/// Values that scripts use are looked at now and then: see `watch.rs`.
fn look_at_variables(engine: &mut Engine, watch: Arc<Watch>) {
    // Deprecated means "may change" here; the version is pinned.
    #[allow(deprecated)]
    engine.on_var(move |name, index, context| match watch.used(name, index, context.scope()) {
        Ok(()) => Ok(None),
        Err(diag) => Err(super::raise::raise(diag, rhai::Position::NONE)),
    });
}

/// Names of native functions: for suggestions, and for the pass, which marks only calls of script code.
fn note_names(module: &mut Natives, host: &Host) {
    let mut natives = std::mem::take(&mut module.names);
    natives.extend(["print", "debug", "eval", "get", "set"].map(str::to_string));
    let mut known = host.known.write();
    known.functions = natives.iter().filter(|name| is_public(name)).cloned().collect();
    let computed = crate::op::table::all().flat_map(|op| op.aliases.iter().filter_map(|alias| alias.strip_prefix('.')));
    known.properties =
        properties::NAMES.iter().chain(super::questions::NAMES).copied().chain(computed).map(str::to_string).collect();
    // Asked for each call of every source: hashed.
    *host.natives.write() = natives.into_iter().collect();
}

/// A name that users may write: those with `_` in front are the library's own.
fn is_public(name: &str) -> bool {
    !name.starts_with('_') && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}
