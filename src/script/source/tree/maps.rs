//! Map literals. Rhai's parser compares each key with all before it, so that one of very many entries is read in parts, which
//! the compiler puts together: `__entries([#{a: 1, ..},#{b: 2, ..}])`.

use super::{Reader, Run};
use crate::script::source::lex::Kind;
use crate::script::source::quoted;
use std::collections::HashSet;

/// Entries of a part; literals of fewer than twice as many stay whole.
const PART: usize = 256;

/// A map literal that is read in parts: its braces, and the commas between the parts.
#[derive(Debug)]
pub struct LongMap {
    pub run: Run,
    pub commas: Vec<u32>,
}

impl Reader<'_> {
    pub(super) fn map(&mut self) {
        let first = self.at;
        let end = self.tokens[first].partner as usize;
        let (head, pattern) = (std::mem::take(&mut self.head), std::mem::take(&mut self.pattern));
        let (mut keys, mut commas, mut is_plain) = (Vec::new(), Vec::new(), true);
        self.at += 1;
        while self.at < end {
            let key = self.at;
            if self.text_at(key + 1) == ":" {
                self.at += 2;
                keys.push(key);
            }
            self.field = matches!(self.peek(), "|" | "||");
            self.entry = Some(self.text_at(self.at.saturating_sub(2)));
            let value = self.expression();
            if self.at < end {
                is_plain &= self.peek() == ",";
                commas.push(self.at as u32);
                self.at += 1;
            }
            is_plain &= value.is_some() && (keys.len() == commas.len() || self.at == end);
        }
        self.at = end + 1;
        (self.head, self.pattern) = (head, pattern);
        if is_plain && keys.len() >= 2 * PART && self.are_different(&keys) {
            let commas = commas.into_iter().skip(PART - 1).step_by(PART).filter(|&comma| (comma as usize) + 1 < end);
            self.tree.long_maps.push(LongMap { run: self.run_from(first), commas: commas.collect() });
        }
    }

    /// Whether the keys of a map are all different. Where they are not, Rhai says so.
    fn are_different(&self, keys: &[usize]) -> bool {
        let mut known = HashSet::new();
        keys.iter().all(|&key| match self.tokens[key].kind {
            Kind::Word => known.insert(self.text_at(key).to_string()),
            Kind::Str => quoted::decode(self.text_at(key)).is_some_and(|(text, _)| known.insert(text)),
            _ => false,
        })
    }
}
