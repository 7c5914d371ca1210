//! What every native function of a session shares.

use super::raise::{raise, site};
use crate::base::diag::{Diag, Result};
use crate::base::span::{Origin, Site};
use crate::sched::runtime::Runtime;
use crate::tensor::engine::Engine;
use rhai::{Dynamic, EvalAltResult, NativeCallContext};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The session as native functions see it.
pub struct Host {
    pub rt: Arc<Runtime>,
    /// The user's place that is running while `std/` works (packed `Site`).
    pub mark: AtomicU32,
    /// Global lines from here on belong to `std/`.
    pub std_line: AtomicU32,
    /// Somebody wants the script to stop.
    pub interrupt: AtomicBool,
    pub print: super::show::Printing,
}

impl Host {
    pub fn origin(&self, context: &NativeCallContext) -> Origin {
        let site = site(context);
        if u32::from(site.line()) >= self.std_line.load(Ordering::Relaxed) {
            return Origin { user: Site(self.mark.load(Ordering::Relaxed)), inner: site };
        }
        Origin::at(site)
    }

    pub fn engine(&self, context: &NativeCallContext) -> Engine {
        Engine::new(self.rt.clone(), self.origin(context))
    }

    /// Runs `work` for a native call; an error that has no place yet gets the call's.
    pub fn call<R>(
        &self,
        context: &NativeCallContext,
        work: impl FnOnce(&mut Engine) -> Result<R>,
    ) -> std::result::Result<R, Box<EvalAltResult>> {
        let mut engine = self.engine(context);
        work(&mut engine).map_err(|diag| self.raise(context, diag, ""))
    }

    #[cold]
    pub fn raise(&self, context: &NativeCallContext, diag: Box<Diag>, text: &str) -> Box<EvalAltResult> {
        let mut diag = diag.or_at(self.origin(context), text);
        // A row leaves the first place open when it has labels of its own.
        if diag.labels[0].origin == Origin::NONE {
            diag.labels[0].origin = self.origin(context);
        }
        raise(diag, context.call_position())
    }
}

/// A native result.
pub type Native = std::result::Result<Dynamic, Box<EvalAltResult>>;
