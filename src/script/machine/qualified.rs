//! `m::f(x)` of a module that was imported: the place keeps the function of the module that it met last, and calls it
//! without Rhai. Natives of modules, and modules in modules, are left to Rhai.

use super::quick_store::settle;
use super::run::{Frame, Machine, R};
use super::tree::{First, Native};
use super::unit::{Function, function_of};
use super::value::Value;
use parking_lot::RwLock;
use rhai::{FnAccess, FnCallExpr, ImmutableString, Module};
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

/// Where the function of a place is looked for.
pub struct Qualified {
    module: ImmutableString,
    /// The module that was met last, and its function.
    known: RwLock<(Weak<Module>, Weak<Function>)>,
}

impl Qualified {
    /// Of a call with the name of one module before it.
    pub fn of(call: &FnCallExpr) -> Option<Box<Qualified>> {
        let [module] = &*call.namespace.path else { return None };
        Some(Box::new(Qualified { module: module.name.clone(), known: RwLock::default() }))
    }
}

impl Machine<'_> {
    /// The function that is meant, unless Rhai must look for it.
    pub(super) fn qualified(&self, qualified: &Qualified, native: &Native) -> Option<Arc<Function>> {
        let module = self.global.get_shared_import(self.global.find_import(&qualified.module)?)?;
        {
            let known = qualified.known.read();
            if std::ptr::eq(known.0.as_ptr(), Arc::as_ptr(&module)) {
                return known.1.upgrade();
            }
        }
        let def = module.get_script_fn(&native.name, native.arguments.len());
        let function = def.filter(|def| def.access == FnAccess::Public).and_then(function_of);
        let known = function.as_ref().map_or(Weak::new(), Arc::downgrade);
        *qualified.known.write() = (Arc::downgrade(&module), known);
        function
    }

    /// Calls it with its arguments: a variable that comes first is read after the others are computed.
    pub(super) fn call_qualified(&mut self, frame: &mut Frame, native: &Native, function: &Arc<Function>) -> R {
        let late = (native.first != First::Value) as usize;
        let mut values: SmallVec<[Value; 4]> = SmallVec::new();
        values.resize(native.arguments.len(), Value::Unit);
        for (argument, place) in native.arguments.iter().zip(&mut values).skip(late) {
            let value = self.eval(frame, argument);
            settle(place, value)?;
        }
        if late == 1 {
            values[0] = self.eval(frame, &native.arguments[0])?;
        }
        self.run(frame.rest, function, &mut values, None, native.at)
    }
}
