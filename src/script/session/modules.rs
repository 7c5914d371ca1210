//! `import`: the standard library from the binary, modules of the host program, then the script's folder and the
//! module roots. Each module runs once, in its own scope.

use crate::base::code;
use crate::base::diag::{Diag, Focus};
use crate::base::signature::{self, Signature};
use crate::base::span::Origin;
use crate::base::suggest::nearest;
use crate::script::bind::callable;
use crate::script::error;
use crate::script::host::Host;
use crate::script::library::home::plain;
use crate::script::library::reach;
use crate::script::library::reach::{File, Reached};
use crate::script::library::texts::{self, STD};
use crate::script::machine::module_text::with_compiled_statements;
use crate::script::manual;
use crate::script::session::compiled::compiled;
use crate::script::source::SourceKind;
use crate::script::source::scope::{EXPORTED, written};
use crate::script::tensor_api::storage::permitted;
use crate::script::values::raise::{raise, site_of};
use parking_lot::Mutex;
use rhai::{
    AST, Engine, EvalAltResult, FnAccess, FnNamespace, Module, ModuleResolver, Position, Scope, ScriptFuncDef, Shared,
};
use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where modules come from, and those that are loaded.
#[derive(Default)]
pub struct Modules {
    pub roots: Vec<PathBuf>,
    /// Modules of the host program, by name.
    pub memory: BTreeMap<String, String>,
    loaded: BTreeMap<String, Loaded>,
    /// Only one script runs: of the library, only functions that its text can reach are compiled.
    pub one_script: bool,
    /// How many may be loaded.
    max_loaded: usize,
    /// Names that are being loaded, outermost first.
    loading: Vec<String>,
}

/// A loaded module.
struct Loaded {
    module: Shared<Module>,
    /// The functions that were compiled; `None`: all.
    reached: Option<Reached>,
    /// Number of sources when `reached` was computed.
    sources: usize,
}

impl Loaded {
    fn contains_all(&self, needed: &Option<Reached>) -> bool {
        match (&self.reached, needed) {
            (None, _) => true,
            (Some(have), Some(needed)) => needed.is_subset(have),
            (Some(_), None) => false,
        }
    }
}

impl Modules {
    /// Names that `import` finds: library modules, the host program's modules, and files directly inside the roots.
    pub fn names(&self) -> Vec<String> {
        let library = STD.iter().map(|library| library.name.to_string());
        let mut names: Vec<String> = library.chain(self.memory.keys().cloned()).collect();
        for entry in self.roots.iter().filter_map(|root| std::fs::read_dir(root).ok()).flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "rhai") {
                names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
            }
        }
        names
    }

    pub fn new(roots: Vec<PathBuf>, memory: BTreeMap<String, String>, max_loaded: usize) -> Modules {
        Modules { roots, memory, max_loaded, ..Modules::default() }
    }
}

/// The resolver of one session.
pub struct Resolver {
    pub host: Arc<Host>,
    pub modules: Arc<Mutex<Modules>>,
}

/// The texts of a module, with their names for messages.
struct Found {
    key: String,
    files: Vec<(String, String)>,
    kind: SourceKind,
    /// For a library module: the functions that are compiled, if not all.
    reached: Option<Reached>,
}

impl Found {
    fn user(key: String, name: String, text: String) -> Found {
        Found { key, files: vec![(name, text)], kind: SourceKind::File, reached: None }
    }
}

impl Resolver {
    /// Finds the texts of a module without compiling them, and what it is known by. `by`: the module that imports it,
    /// if it is not the script.
    pub(in crate::script) fn found(
        &self,
        path: &str,
        origin: Origin,
        by: Option<&str>,
    ) -> Result<(String, Vec<String>), Box<Diag>> {
        self.find(path, origin, by).map(|found| (found.key, found.files.into_iter().map(|(_, text)| text).collect()))
    }

    fn find(&self, path: &str, origin: Origin, by: Option<&str>) -> Result<Found, Box<Diag>> {
        if let Some(library) = texts::library(path) {
            let (name, files) = (library.name, library.files());
            let reached = self.reached(files);
            let text = |text: &'static str| reached.as_ref().map_or(text.to_string(), |names| reach::cut(text, names));
            let files = files.iter().map(|(file, all)| (format!("std/{file}"), text(all))).collect();
            return Ok(Found { key: format!("std:{name}"), files, kind: SourceKind::Std, reached });
        }
        let modules = self.modules.lock();
        if let Some(text) = modules.memory.get(path) {
            return Ok(Found::user(format!("memory:{path}"), path.to_string(), text.clone()));
        }
        for root in &modules.roots {
            if let Some(file) = inside(root, path).or_else(|| self.outside(root, path)) {
                let text = crate::script::source::read::text(&file)?;
                let name = file.display().to_string();
                return Ok(Found::user(name.clone(), name, text));
            }
        }
        let known = STD.iter().map(|library| library.name).chain(modules.memory.keys().map(String::as_str));
        let diag = Diag::error(code::MODULE_NOT_FOUND, format!("there is no module \"{path}\"")).label(
            origin,
            Focus::Call,
            "",
        );
        if let Some(full) = by.and_then(|by| beside(by, path, &modules.roots)) {
            let help = format!("write `import \"{full}\"`: in a module, too, names begin at the folder of the script");
            return Err(diag.help(help));
        }
        Err(match nearest(path, known) {
            Some(found) => diag.help(format!("did you mean \"{found}\"?")),
            None if path.ends_with(".rhai") => {
                diag.help(format!("the ending is left out: `import \"{}\" as ..;`", path.trim_end_matches(".rhai")))
            }
            None if manual::MODULES.contains(&path) => {
                diag.help(format!("`{path}` needs no import: its functions are `{path}::..`"))
            }
            None if error::is_python(path) => diag.help(error::import_help(path)),
            None if modules.roots.is_empty() => {
                diag.help("modules are those of the standard library and of the program, which gives scripts no folder")
            }
            None => diag.help("modules are those of the standard library, and files `NAME.rhai` beside the script"),
        })
    }

    /// The file that a name with `..` denotes, where scripts may read it.
    fn outside(&self, root: &Path, path: &str) -> Option<PathBuf> {
        let climbs = Path::new(path).components().any(|part| part == std::path::Component::ParentDir);
        let is_relative = Path::new(path).is_relative();
        let real = if climbs && is_relative { file_of(root, path)? } else { return None };
        permitted(&self.host, &real, false).is_ok().then_some(real)
    }

    /// The functions of a library module that the users' sources can reach; `None` for all.
    fn reached(&self, files: &[File]) -> Option<Reached> {
        if !self.modules.lock().one_script {
            return None;
        }
        let sources = self.host.sources.read();
        reach::reached(files, sources.iter().filter(|source| !source.is_std()).map(|source| &*source.text))
    }

    /// A library module that is loaded with all functions that the present sources need; does not search.
    fn loaded_and_complete(&self, path: &str) -> Option<Shared<Module>> {
        let sources = self.host.sources.read().count();
        let modules = self.modules.lock();
        let loaded = modules.loaded.get(&format!("std:{path}"))?;
        (loaded.reached.is_none() || loaded.sources == sources).then(|| loaded.module.clone())
    }

    fn load(&self, engine: &Engine, found: &Found, at: Position) -> Result<Shared<Module>, Box<EvalAltResult>> {
        let origin = Origin::at(site_of(at));
        {
            let mut modules = self.modules.lock();
            if let Some(start) = modules.loading.iter().position(|key| *key == found.key) {
                return Err(raise(circle(&modules.loading[start..], &found.key, origin), at));
            }
            if modules.loaded.len() + modules.loading.len() >= modules.max_loaded {
                let text = format!("a session of this program imports at most {} modules", modules.max_loaded);
                let diag = Diag::error(code::LIMIT_SIZE, text).label(origin, Focus::Call, "one too many");
                return Err(raise(diag, at));
            }
            modules.loading.push(found.key.clone());
        }
        let module = self.evaluate(engine, found, at);
        self.modules.lock().loading.pop();
        module
    }

    fn evaluate(&self, engine: &Engine, found: &Found, at: Position) -> Result<Shared<Module>, Box<EvalAltResult>> {
        let known = LazyCell::new(|| self.host.known());
        let mut ast = AST::empty();
        let texts = self.host.add_module(found.kind, &found.key, &found.files).map_err(|diag| raise(diag, at))?;
        for source in texts {
            let sources = self.host.sources.read().clone();
            let context = error::Context { sources: &sources, known: &known };
            let part = error::compile(engine, &Scope::new(), &source, &context);
            ast.combine(part.map_err(|mut errors| raise(errors.remove(0), at))?);
        }
        let signatures: BTreeMap<String, Signature> = match found.kind {
            SourceKind::Std => {
                found.files.iter().flat_map(|(_, text)| signature::read(text)).map(|s| (s.name.clone(), s)).collect()
            }
            _ => BTreeMap::new(),
        };
        let ast = with_exports(&ast, &signatures);
        let (ast, unit) = compiled(engine, &self.host, &ast)?;
        let text = with_compiled_statements(engine, &ast, &unit)?;
        let mut global = engine.new_global_runtime_state();
        // Deprecated means "may change" here; the version is pinned.
        #[allow(deprecated)]
        let mut module = Module::eval_ast_as_new_raw(engine, &mut Scope::new(), &mut global, &text)?;
        // Rhai does not find a closure that a module returned, unless it is in the global namespace.
        let anonymous: Vec<u64> = module
            .iter_script_fn_info()
            .filter(|(_, _, name, ..)| name.starts_with("anon$"))
            .map(|(.., def)| Module::new().set_script_fn(def.clone()))
            .collect();
        for hash in anonymous {
            #[allow(deprecated)]
            module.update_fn_namespace(hash, FnNamespace::Global);
        }
        callable::export_signed(&mut module, &self.host, &ast, signatures);
        module.build_index();
        let module: Shared<Module> = module.into();
        self.host.loaded.write().push(module.clone());
        Ok(module)
    }
}

/// E0107: these modules import each other, the last one the first.
pub(in crate::script) fn circle(chain: &[String], again: &str, origin: Origin) -> Box<Diag> {
    let chain = chain.iter().map(String::as_str).chain([again]).collect::<Vec<_>>().join(" → ");
    let diag = Diag::error(code::CIRCULAR_IMPORT, "modules import each other in a circle");
    diag.label(origin, Focus::Call, "imported here").note(chain)
}

/// Adds a module's functions under the names by which other code calls them; those with signatures are exported
/// separately.
fn with_exports(ast: &AST, signatures: &BTreeMap<String, Signature>) -> AST {
    let mut functions = Module::clone(ast.shared_lib());
    let exported = ast.iter_fn_def().filter(|def| {
        let name = written(&def.name);
        def.access == FnAccess::Public && name != def.name && !signatures.contains_key(name)
    });
    for def in exported.cloned().collect::<Vec<_>>() {
        let name = format!("{}{EXPORTED}", written(&def.name)).into();
        functions.set_script_fn(ScriptFuncDef { name, ..ScriptFuncDef::clone(&def) });
    }
    AST::new(ast.statements().to_vec(), functions)
}

/// The name that denotes a file beside a module that imports it.
fn beside(module: &str, path: &str, roots: &[PathBuf]) -> Option<String> {
    let module = Path::new(module).canonicalize().ok()?;
    let meant = plain(&module.parent()?.join(path));
    let from = |root: &PathBuf| {
        let name = meant.strip_prefix(root.canonicalize().ok()?).ok()?.to_string_lossy().replace('\\', "/");
        let differs = Path::new(&name) != Path::new(path);
        inside(root, &name).filter(|_| differs).map(|_| name)
    };
    roots.iter().find_map(from)
}

/// The file that a module name denotes inside a root; never outside of it.
fn inside(root: &Path, path: &str) -> Option<PathBuf> {
    let needed = Path::new(path);
    let plain =
        needed.components().all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
    if !plain || path.is_empty() {
        return None;
    }
    let real = file_of(root, path)?;
    let root = root.canonicalize().ok()?;
    real.starts_with(&root).then_some(real)
}

/// The file that a name denotes from a folder on.
fn file_of(root: &Path, path: &str) -> Option<PathBuf> {
    let mut file = root.join(path);
    if file.extension().is_none_or(|ext| ext != "rhai") {
        let mut name = file.into_os_string();
        name.push(".rhai");
        file = name.into();
    }
    file.canonicalize().ok().filter(|real| real.is_file())
}

impl ModuleResolver for Resolver {
    fn resolve(
        &self,
        engine: &Engine,
        _: Option<&str>,
        path: &str,
        at: Position,
    ) -> Result<Shared<Module>, Box<EvalAltResult>> {
        if let Some(module) = self.loaded_and_complete(path) {
            return Ok(module);
        }
        let by = self.modules.lock().loading.last().cloned();
        let found = self.find(path, Origin::at(site_of(at)), by.as_deref()).map_err(|diag| raise(diag, at))?;
        if let Some(loaded) = self.modules.lock().loaded.get(&found.key)
            && loaded.contains_all(&found.reached)
        {
            return Ok(loaded.module.clone());
        }
        let module = self.load(engine, &found, at)?;
        let sources = self.host.sources.read().count();
        let loaded = Loaded { module: module.clone(), reached: found.reached, sources };
        self.modules.lock().loaded.insert(found.key, loaded);
        Ok(module)
    }
}
