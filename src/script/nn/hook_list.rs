//! Lists of closures that are called around something, until their handles take them away: hooks of modules and of
//! optimizers.

use crate::base::diag::Result;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::tensor_api::hooks::{Handle, Removable, closure_of};
use crate::script::values::raise::Native;
use parking_lot::Mutex;
use rhai::{Array, Dynamic, FnPtr, ImmutableString};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the next hook. No other hook ever has it, so that a handle that is used twice takes no other away.
static NEXT: AtomicU64 = AtomicU64::new(0);

#[derive(Clone)]
pub struct Hook {
    pub number: u64,
    /// What it is called around.
    kind: ImmutableString,
    pub closure: FnPtr,
    pub manner: Manner,
}

/// How a hook of a module is called.
#[derive(Clone, Copy, Default)]
pub struct Manner {
    /// With the keywords of the call apart from the other arguments.
    pub with_kwargs: bool,
    /// Also after an error.
    pub always: bool,
}

/// Hooks in the order in which they are called.
#[derive(Clone, Default)]
pub struct HookList(Arc<Mutex<Vec<Hook>>>);

struct Registered {
    hooks: HookList,
    number: u64,
}

impl Removable for Registered {
    fn remove(&self) {
        let mut all = self.hooks.0.lock();
        if let Some(at) = all.iter().position(|hook| hook.number == self.number) {
            let hook = all.remove(at);
            drop(all);
            // Dropped outside the lock: it may hold this very handle.
            drop(hook);
        }
    }
}

impl HookList {
    /// The handle of a new hook, the first or the last one to be called.
    pub fn add(&self, kind: &str, closure: FnPtr, first: bool) -> Dynamic {
        self.add_as(kind, closure, Manner::default(), first)
    }

    /// The same of one that is called in a manner of its own.
    pub fn add_as(&self, kind: &str, closure: FnPtr, manner: Manner, first: bool) -> Dynamic {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let hook = Hook { number, kind: kind.into(), closure, manner };
        let mut all = self.0.lock();
        let at = if first { 0 } else { all.len() };
        all.insert(at, hook);
        drop(all);
        Dynamic::from(Handle(Arc::new(Registered { hooks: self.clone(), number })))
    }

    pub fn of(&self, kind: &str) -> Vec<FnPtr> {
        self.all(kind).into_iter().map(|hook| hook.closure).collect()
    }

    pub fn all(&self, kind: &str) -> Vec<Hook> {
        let all = self.0.lock();
        all.iter().filter(|hook| hook.kind == kind).cloned().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

/// What `std/optim` needs: `_hooks()`, a list; `_hook(list, kind, closure, form, first)`, a handle; `_hooks_of(list, kind)`, an
/// array of closures; `_hooked(list)`.
pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    let list = |value: &Dynamic| value.read_lock::<HookList>().map(|list| list.clone()).unwrap_or_default();
    let text = |value: &Dynamic| value.read_lock::<ImmutableString>().map(|text| text.clone()).unwrap_or_default();
    raw(natives, "_hooks", 0, |_, _| Ok(Dynamic::from(HookList::default())));
    raw(natives, "_hooked", 1, move |_, values| Ok((!list(values[0]).is_empty()).into()));
    raw(natives, "_hooks_of", 2, move |_, values| {
        Ok(list(values[0]).of(&text(values[1])).into_iter().map(Dynamic::from).collect::<Array>().into())
    });
    let shared = host.clone();
    raw(natives, "_hook", 5, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let add = || -> Result<Dynamic> {
            let closure = closure_of(values[2], &text(values[3]))?;
            Ok(list(values[0]).add(&text(values[1]), closure, values[4].as_bool().unwrap_or(false)))
        };
        add().map_err(|diag| shared.raise(&context, diag, ""))
    });
}
