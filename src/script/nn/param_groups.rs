//! `opt.param_groups`: an optimizer's groups as in PyTorch, where `opt.param_groups[0].lr = 0.1` changes what the
//! next step uses. Reads and writes go through two closures of `std/optim`; does not treat any setting specially.

use crate::base::code;
use crate::base::diag::Diag;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::values::calling;
use crate::script::values::panics::{Guarded, GuardedCall, Place};
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Cell;
use rhai::{Array, Dynamic, EvalAltResult, FnPtr, FuncRegistration, ImmutableString, NativeCallContext};
use std::any::TypeId;
use std::sync::Arc;

/// All groups of an optimizer.
#[derive(Clone)]
pub struct Groups(Arc<Inner>);

struct Inner {
    /// An array with an element for each group.
    groups: Cell,
    /// The first argument of the closures: the optimizer.
    of: Dynamic,
    get: FnPtr,
    set: FnPtr,
}

/// One group: `lr`, `params` and others as properties or keys.
#[derive(Clone)]
pub struct Group {
    all: Groups,
    at: i64,
}

impl Groups {
    fn len(&self) -> usize {
        self.0.groups.with(|groups| groups.read_lock::<Array>().map_or(0, |groups| groups.len()))
    }

    fn group(&self, context: &NativeCallContext, at: i64) -> Result<Group, Box<EvalAltResult>> {
        let count = self.len();
        let index = if at < 0 { at + count as i64 } else { at };
        if (0..count as i64).contains(&index) {
            return Ok(Group { all: self.clone(), at: index });
        }
        Err(Box::new(EvalAltResult::ErrorArrayBounds(count, at, context.call_position())))
    }
}

impl Group {
    fn get(&self, context: &NativeCallContext, key: &str) -> Native {
        let inner = &self.all.0;
        calling::call(context, &inner.get, None, vec![inner.of.clone(), Dynamic::from_int(self.at), key.into()])
    }

    fn set(&self, context: &NativeCallContext, key: &str, value: Dynamic) -> Native {
        let inner = &self.all.0;
        calling::call(context, &inner.set, None, vec![inner.of.clone(), Dynamic::from_int(self.at), key.into(), value])
    }
}

/// What reads a group as a map: `group.keys()`, `group.items()`, `group.get("lr")`, `"lr" in group`; and
/// `opt.param_groups.map(|group| group.lr)`.
fn as_maps(natives: &mut Natives, host: &Arc<Host>) {
    let group = |value: &Dynamic| value.read_lock::<Group>().map(|group| group.clone()).expect("registered for groups");
    for (name, key) in [("keys", "_keys"), ("items", "_items")] {
        let list = GuardedCall::new(move |context, values| -> Native {
            group(values[0]).get(&context.expect("registered with a context"), key)
        });
        natives.place_on(TypeId::of::<Group>(), name, 1..=1, &list);
    }
    for name in ["contains", "get"] {
        let asked = GuardedCall::new(move |context, values| -> Native {
            let (context, group) = (context.expect("registered with a context"), group(values[0]));
            let key = values[1].clone().into_immutable_string().unwrap_or_default();
            let keys = group.get(&context, "_keys")?.into_typed_array::<ImmutableString>().unwrap_or_default();
            match (name, keys.contains(&key)) {
                ("contains", found) => Ok(found.into()),
                (_, true) => group.get(&context, &key),
                _ => Ok(values.get(2).map_or(Dynamic::UNIT, |value| value.flatten_clone())),
            }
        });
        natives.place_on(TypeId::of::<Group>(), name, if name == "get" { 2..=3 } else { 2..=2 }, &asked);
    }
    let shared = host.clone();
    let map = GuardedCall::new(move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let all = values[0].read_lock::<Groups>().map(|all| all.clone()).expect("registered for groups");
        let Some(closure) = values[1].clone().try_cast::<FnPtr>() else {
            let text = format!("a closure is expected, not {}", type_names::of_value(values[1]));
            return Err(shared.raise(&context, Diag::error(code::ARGUMENT_TYPE, text), ""));
        };
        let one =
            |at: i64| calling::call(&context, &closure, None, vec![Dynamic::from(Group { all: all.clone(), at })]);
        (0..all.len() as i64).map(one).collect::<Result<Array, _>>().map(Dynamic::from)
    });
    natives.place_on(TypeId::of::<Groups>(), "map", 2..=2, &map);
}

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    as_maps(module, host);
    let shared = host.clone();
    // `_param_groups(groups, optimizer, |optimizer, at, key| .., |optimizer, at, key, value| ..)`
    raw(module, "_param_groups", 4, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let groups = values[0].read_lock::<Cell>().map(|cell| cell.clone());
        let [get, set] = [2, 3].map(|at: usize| values[at].clone().try_cast::<FnPtr>());
        match (groups, get, set) {
            (Some(groups), Some(get), Some(set)) => {
                let of = values[1].flatten_clone();
                Ok(Dynamic::from(Groups(Arc::new(Inner { groups, of, get, set }))))
            }
            _ => {
                let text = format!("a cell and two closures are expected, not {}", type_names::of_value(values[0]));
                Err(shared.raise(&context, Diag::error(code::ARGUMENT_TYPE, text), ""))
            }
        }
    });
    module.note("len");
    let len = |groups: Groups| groups.len() as i64;
    FuncRegistration::new("len").in_global_namespace().place_in(&mut module.module, len);
    module.module.set_indexer_get_fn(Guarded(|context: NativeCallContext, groups: &mut Groups, at: i64| {
        groups.group(&context, at)
    }));
    // A group is a handle: its changes have already been made.
    module.module.set_indexer_set_fn(|_: &mut Groups, _: i64, _: Group| Ok(()));
    crate::script::values::panics::place_iterator(&mut module.module, std::any::TypeId::of::<Groups>(), |value| {
        let all = value.try_cast::<Groups>();
        let count = all.as_ref().map_or(0, Groups::len) as i64;
        Box::new((0..count).filter_map(move |at| Some(Ok(Dynamic::from(Group { all: all.clone()?, at })))))
    });
    module.module.set_indexer_get_fn(Guarded(|context: NativeCallContext, group: &mut Group, key: &str| {
        group.get(&context, key)
    }));
    module.module.set_indexer_set_fn(Guarded(
        |context: NativeCallContext, group: &mut Group, key: &str, value: Dynamic| {
            group.set(&context, key, value).map(drop)
        },
    ));
    // Rhai has a property of this name for every value.
    module
        .module
        .set_getter_fn("tag", Guarded(|context: NativeCallContext, group: &mut Group| group.get(&context, "tag")));
    module.module.set_setter_fn(
        "tag",
        Guarded(|context: NativeCallContext, group: &mut Group, value: Dynamic| {
            group.set(&context, "tag", value).map(drop)
        }),
    );
}
