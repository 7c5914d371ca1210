//! The top level of a module's text. Rhai makes modules by evaluating a text; what it is given is one word, which runs the
//! compiled statements and keeps what the functions of the module see from then on.

use super::top_level;
use super::unit::Unit;
use rhai::{AST, Dynamic, Engine, EvalAltResult, Stmt};
use std::cell::RefCell;
use std::sync::Arc;

/// The word that the text consists of.
const WORD: &str = "__module_text";

/// What the word stands for.
#[derive(Clone)]
struct Text {
    unit: Arc<Unit>,
    statements: Arc<[Stmt]>,
}

thread_local! {
    /// The text whose word is being read on this thread.
    static NEXT: RefCell<Option<Text>> = const { RefCell::new(None) };
}

/// Registers the word.
pub fn install(engine: &mut Engine) {
    // Deprecated means "may change" here; the version is pinned.
    #[allow(deprecated)]
    engine.register_custom_syntax_with_state_raw(
        WORD,
        |_, _, state| {
            *state = NEXT.take().map_or(Dynamic::UNIT, Dynamic::from);
            Ok(None)
        },
        true,
        |context, _, state| {
            // The word is not one that a script can write.
            let Some(Text { unit, statements }) = state.read_lock::<Text>().map(|text| text.clone()) else {
                return Ok(Dynamic::UNIT);
            };
            let engine = context.engine();
            // State and scope are behind one borrow: the state is out of its place while the text runs.
            let mut global = engine.new_global_runtime_state();
            std::mem::swap(&mut global, context.global_runtime_state_mut());
            let result = top_level::evaluate(engine, &mut global, context.scope_mut(), &statements, &unit);
            std::mem::swap(&mut global, context.global_runtime_state_mut());
            result
        },
    );
}

/// The text of a module, with its statements behind the word.
pub fn with_compiled_statements(engine: &Engine, ast: &AST, unit: &Arc<Unit>) -> Result<AST, Box<EvalAltResult>> {
    NEXT.set(Some(Text { unit: unit.clone(), statements: ast.statements().to_vec().into() }));
    let word = engine.compile(WORD);
    NEXT.take();
    let mut text = AST::new(word?.statements().to_vec(), ast.shared_lib().clone());
    if let Some(source) = ast.source() {
        text.set_source(source);
    }
    Ok(text)
}
