//! The files of the folders that the client works in.

use super::definition::is_same;
use super::view::{OpenTexts, View};
use crate::base::order;
use crate::tools::test::scripts_in;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

/// Bound: files that are looked through.
const FILES: usize = 5000;

#[derive(Default)]
pub struct Workspace {
    pub folders: Vec<PathBuf>,
    /// Texts that are open.
    pub open: Rc<OpenTexts>,
    /// Files with the time of their last change.
    read: RefCell<HashMap<PathBuf, (SystemTime, Rc<View>)>>,
}

impl Workspace {
    /// The scripts of all folders, and those that are open.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for folder in &self.folders {
            // A folder that cannot be read has no files.
            let _ = scripts_in(folder, ".rhai", &mut files);
        }
        files.extend(self.open.keys().cloned());
        order::by(&mut files, Ord::cmp);
        files.dedup();
        files.truncate(FILES);
        files
    }

    /// All scripts but one, which is known already.
    pub fn views(&self, but: &View) -> Vec<Rc<View>> {
        let files = self.files().into_iter().filter(|file| !is_same(file, &but.path));
        files.filter_map(|file| self.view(&file, but)).collect()
    }

    /// A script, read again if it has changed. `like` says how.
    pub fn view(&self, file: &Path, like: &View) -> Option<Rc<View>> {
        if self.open.contains_key(file) {
            return like.other(file).map(Rc::new);
        }
        let changed = file.metadata().and_then(|about| about.modified()).ok()?;
        if let Some((when, view)) = self.read.borrow().get(file)
            && *when == changed
        {
            return Some(view.clone());
        }
        let view = Rc::new(like.other(file)?);
        self.read.borrow_mut().insert(file.to_path_buf(), (changed, view.clone()));
        Some(view)
    }
}
