//! The interpreter of a session: its functions, types and limits.

use crate::base::limits::EXPR_DEPTH;
use crate::script::bind::rows;
use crate::script::bind::rows::Natives;
use crate::script::bind::{index, properties};
use crate::script::data::progress;
use crate::script::embed::register::Registration;
use crate::script::error;
use crate::script::host::Host;
use crate::script::host::limits::Watch;
use crate::script::language::arguments;
use crate::script::session::eval;
use crate::script::session::modules::{Modules, Resolver};
use crate::script::tensor_api::{modes, storage};
use crate::script::values::raise::Native;
use parking_lot::Mutex;
use rhai::{Dynamic, Engine, NativeCallContext};
use std::borrow::Cow;
use std::sync::Arc;

/// Size limits of scripts; see `Builder`.
#[derive(Clone, Debug)]
pub struct Sizes {
    pub call_levels: usize,
    /// 0: no limit; the next two as well.
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
            // Bound: without these, `pad(10^12, 0)` and the like abort the process at the allocation.
            string_bytes: 256 << 20,
            array_elements: 16 << 20,
            map_entries: 1 << 20,
            variables: usize::MAX,
            functions: usize::MAX,
            modules: usize::MAX,
        }
    }
}

/// An interpreter with everything that scripts can use.
pub fn engine(
    host: &Arc<Host>,
    modules: &Arc<Mutex<Modules>>,
    sizes: &Sizes,
    registrations: Vec<Registration>,
) -> Engine {
    let mut engine = Engine::new();
    engine.set_max_expr_depths(EXPR_DEPTH, EXPR_DEPTH);
    // Names and short strings that sources share; the library has about 1500. No bound but that of the sources: with one, Rhai
    // goes over all of them to choose each that has to go, so that large texts are read in quadratic time.
    engine.set_max_strings_interned(usize::MAX);
    engine.set_max_call_levels(sizes.call_levels);
    // Not: Rhai's optimizer. It folds constants into places that are assigned to, and panics.
    engine.set_optimization_level(rhai::OptimizationLevel::None);
    engine.set_max_variables(sizes.variables);
    engine.set_max_functions(sizes.functions);
    engine.set_max_modules(sizes.modules);
    // A missing key of a map is an error, as for any other value: `m.wieght` is a typing error, and `()` for it would
    // be noticed far away. `m.get("x")` asks.
    engine.set_fail_on_invalid_map_property(true);
    named::<crate::script::values::types::Tensor>(&mut engine, "tensor");
    named::<crate::script::values::types::DTypeValue>(&mut engine, "dtype");
    named::<crate::script::values::types::DeviceValue>(&mut engine, "device");
    named::<crate::script::values::types::SliceValue>(&mut engine, "slice");
    named::<crate::script::values::types::Cell>(&mut engine, "cell");
    named::<crate::script::tensor_api::hooks::Handle>(&mut engine, "hook");
    named::<crate::script::data::loader::Loader>(&mut engine, "loader");
    named::<crate::script::values::generator::GeneratorValue>(&mut engine, "generator");
    named::<crate::script::values::types::StreamValue>(&mut engine, "stream");
    named::<crate::script::values::types::EventValue>(&mut engine, "event");
    named::<crate::script::data::dataset::Dataset>(&mut engine, "dataset");
    named::<crate::script::values::set::Set>(&mut engine, "set");
    named::<crate::script::values::steps::Steps>(&mut engine, "range");
    named::<crate::script::values::sparse::Sparse>(&mut engine, "sparse");
    named::<crate::script::values::module::ModuleValue>(&mut engine, "module");
    named::<crate::script::language::text::re::PatternValue>(&mut engine, "pattern");
    named::<crate::script::language::text::re::Match>(&mut engine, "match");
    named::<crate::script::data::progress::Progress>(&mut engine, "progress");
    named::<crate::script::nn::param_groups::Groups>(&mut engine, "param_groups");
    named::<crate::script::nn::param_groups::Group>(&mut engine, "group");
    named::<crate::script::nn::parameter_states::States>(&mut engine, "optimizer_state");
    // The matrix product has the precedence of `*`.
    let _ = engine.register_custom_operator("@", 180);
    crate::script::bind::apply::install(&mut engine);
    crate::script::bind::compare::install(&mut engine);
    crate::script::source::install(&mut engine);
    error::register(&mut engine, host.sources.clone());
    eval::register(&mut engine, host);
    crate::script::cuda_api::devices::install(&mut engine);
    crate::script::session::counted::install(&mut engine, host);
    crate::script::tensor_api::literal::install(&mut engine);
    let mut module = Natives::default();
    rows::register(&mut module, host, of_other_values);
    properties::register(&mut module, host);
    crate::script::sparse::register(&mut module, host);
    crate::script::tensor_api::literal::register(&mut module, host);
    index::register(&mut module, host);
    modes::register(&mut module, host);
    crate::script::language::arrays::register(&mut module, host);
    crate::script::language::growth::register(&mut module, host);
    crate::script::language::sequences::register(&mut module, host);
    crate::script::language::ranged::register(&mut module);
    crate::script::language::ranges::register(&mut module, host);
    crate::script::language::walk::register(&mut module, host);
    crate::script::language::sets::register(&mut module, host);
    crate::script::language::text::register(&mut module, host);
    crate::script::language::json::register(&mut module, host);
    arguments::register(&mut module, host);
    storage::register(&mut module, host);
    crate::script::tensor_api::pictures::register(&mut module, host);
    crate::script::nn::module_methods::register(&mut module, host);
    crate::script::nn::assemble::register(&mut module, host);
    crate::script::nn::row_modules::register(&mut module, host);
    crate::script::nn::parallel::register(&mut module, host);
    crate::script::nn::checks::register(&mut module, host);
    crate::script::bind::apply::register(&mut module, host);
    crate::script::bind::callable::register(&mut module, host);
    crate::script::language::unpack::register(&mut module, host);
    crate::script::language::scalars::register(&mut module);
    crate::script::nn::containers::register(&mut module, host);
    crate::script::nn::fields::register(&mut module, host);
    crate::script::tensor_api::questions::register(&mut module, host);
    crate::script::tensor_api::bits::register(&mut module, host);
    crate::script::tensor_api::settings::register(&mut module, host);
    crate::script::tensor_api::generators::register(&mut module, host);
    crate::script::tensor_api::autograd::register(&mut module, host);
    crate::script::func::gradients::register(&mut module, host, "grad");
    crate::script::func::gradients::questions(&mut module);
    crate::script::tensor_api::elementwise::register(&mut module, host);
    crate::script::tensor_api::hooks::register(&mut module, host);
    crate::script::tensor_api::recompute::register(&mut module, host);
    crate::script::nn::module_hooks::register(&mut module, host);
    crate::script::nn::optimizer_state::register(&mut module, host);
    crate::script::nn::param_groups::register(&mut module, host);
    crate::script::nn::hook_list::register(&mut module, host);
    crate::script::nn::parameter_states::register(&mut module, host);
    crate::script::nn::module_states::register(&mut module, host);
    crate::script::nn::module_parts::register(&mut module, host);
    crate::script::nn::kinds::register(&mut module, host);
    crate::script::nn::sparse_grads::register(&mut module, host);
    crate::script::data::loader::register(&mut module, host);
    crate::script::data::dataset::register(&mut module, host);
    crate::script::data::collate::register(&mut module, host);
    crate::script::data::events::register(&mut module, host);
    crate::script::bind::iterate::register(&mut module, host);
    progress::register(&mut module, host);
    crate::script::cuda_api::devices::register(&mut module, host);
    crate::script::cuda_api::autocast::register(&mut module, host);
    crate::script::session::leave::register(&mut module, host);
    crate::script::cuda_api::streams::register(&mut module, host);
    let of_rows = crate::script::bind::rows::modules(host);
    let mut autograd = crate::script::tensor_api::autograd::module(host);
    crate::script::func::gradients::register(&mut autograd, host, "autograd::grad");
    crate::script::func::gradients::register_backward(&mut autograd, host);
    for (name, of) in [
        ("cuda", crate::script::cuda_api::cuda::module(host)),
        ("autograd", autograd),
        ("func", crate::script::func::module(host)),
        ("sparse", crate::script::sparse::module(host)),
        ("re", crate::script::language::text::re::module(host)),
        ("unicodedata", crate::script::language::text::unicode::module(host)),
    ]
    .into_iter()
    .chain(of_rows)
    {
        module.names.extend(of.names.iter().map(|own| Cow::Owned(format!("{name}::{own}"))));
        engine.register_static_module(name, of.module.into());
    }
    crate::script::language::printing::register(&mut module, host);
    // Functions of the host program come last: they override ours of the same name.
    for register in registrations {
        register(&mut module, host);
    }
    note_names(&mut module, host);
    let mut natives = module.module;
    natives.build_index();
    let natives: rhai::Shared<rhai::Module> = natives.into();
    let _ = host.native_module.set(Arc::downgrade(&natives));
    engine.register_global_module(natives);
    crate::script::machine::install(&mut engine);
    let shared = host.clone();
    engine.on_print(move |text| (shared.output.read())(text));
    let shared = host.clone();
    engine.on_debug(move |text, _, _| (shared.output.read())(text));
    let watch = host.watch.clone();
    engine.on_progress(move |_| watch.step());
    if host.watch.checks_variables() {
        check_variables(&mut engine, host.watch.clone());
    }
    engine.set_module_resolver(Resolver { host: host.clone(), modules: modules.clone() });
    engine
}

/// What rows do with values that are neither tensors nor numbers.
fn of_other_values(
    host: &Arc<Host>,
    context: &NativeCallContext,
    name: &str,
    values: &[&mut Dynamic],
) -> Option<Native> {
    crate::script::sparse::rows::call(host, context, name, values)
        .or_else(|| crate::script::language::walk::reduce_other(host, context, name, values))
}

/// A type of the language, under the name that scripts and messages use.
fn named<T: rhai::Variant + Clone>(engine: &mut Engine, name: &'static str) {
    name_type(engine, std::any::type_name::<T>(), name);
}

/// Apart, so that it is compiled once and not for each type.
#[inline(never)]
fn name_type(engine: &mut Engine, path: &'static str, name: &'static str) {
    crate::script::values::type_names::note_path(path, name);
    engine.register_type_with_name_raw(path, name);
}

/// The size of values is checked when scripts use variables, at some of the uses: see `host/limits.rs`.
fn check_variables(engine: &mut Engine, watch: Arc<Watch>) {
    // Deprecated means "may change" here; the version is pinned.
    #[allow(deprecated)]
    engine.on_var(move |name, index, context| match watch.used(name, index, context.scope()) {
        Ok(()) => Ok(None),
        Err(diag) => Err(crate::script::values::raise::raise(diag, rhai::Position::NONE)),
    });
}

/// Names of native functions: for suggestions, and for the source pass, which marks only calls of script code.
fn note_names(module: &mut Natives, host: &Host) {
    let mut natives = std::mem::take(&mut module.names);
    natives.extend(["print", "debug", "eval", "get", "set"].map(Cow::Borrowed));
    // Looked up for each call of every source, hence hashed.
    *host.natives.write() = natives;
    let computed = crate::op::table::all().flat_map(|op| op.aliases.iter().filter_map(|alias| alias.strip_prefix('.')));
    let plain = properties::NAMES.iter().chain(crate::script::tensor_api::questions::NAMES).copied();
    *host.properties.write() = plain.chain(computed).collect();
}
