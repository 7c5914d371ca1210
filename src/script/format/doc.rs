//! Documents: what a text may look like, before it is known where its lines break (Wadler, "A prettier printer", 2003).
//! Nodes lie in one vector and name each other by index, so that two layouts share their parts.

/// A node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Doc(u32);

#[derive(Clone, Copy, Debug)]
pub enum Node {
    /// Bytes of the source.
    Source {
        start: u32,
        end: u32,
    },
    /// A blank, or a comma that the source may lack.
    Words(&'static str),
    /// Some of `children`, one after another.
    Concat {
        first: u32,
        count: u32,
    },
    Indent(Doc),
    /// A place at which a line may end; `flat` stands there if it does not.
    Line {
        flat: &'static str,
        blank: bool,
    },
    /// The end of a line in any case.
    End {
        blank: bool,
    },
    /// On one line if that fits; otherwise all its own places are ends of lines.
    Group(Doc),
    /// Only where the group around is broken.
    IfBroken(&'static str),
    Choice(Choice),
    /// By its index.
    Comment(u32),
}

/// One line; or the head on one line, and the last part broken; or another layout.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    pub head: Doc,
    pub last: Doc,
    pub tail: Doc,
    /// Whether the last part may be broken alone.
    pub hugs: bool,
    /// The last part is itself a choice, of which only the last part may be broken.
    pub is_chain: bool,
    pub broken: Doc,
}

/// All nodes of a text.
pub struct Docs {
    pub nodes: Vec<Node>,
    pub children: Vec<Doc>,
    /// Nodes that do not fit on one line whatever its width.
    forced: Vec<bool>,
}

impl Docs {
    pub const NOTHING: Doc = Doc(0);

    pub fn new(tokens: usize) -> Docs {
        let mut docs = Docs {
            nodes: Vec::with_capacity(4 * tokens),
            children: Vec::with_capacity(4 * tokens),
            forced: Vec::with_capacity(4 * tokens),
        };
        docs.push(Node::Words(""), false);
        docs
    }

    pub fn node(&self, doc: Doc) -> Node {
        self.nodes[doc.0 as usize]
    }

    pub fn is_forced(&self, doc: Doc) -> bool {
        self.forced[doc.0 as usize]
    }

    fn push(&mut self, node: Node, forced: bool) -> Doc {
        self.nodes.push(node);
        self.forced.push(forced);
        Doc(self.nodes.len() as u32 - 1)
    }

    pub fn source(&mut self, start: usize, end: usize) -> Doc {
        self.push(Node::Source { start: start as u32, end: end as u32 }, false)
    }

    pub fn words(&mut self, words: &'static str) -> Doc {
        self.push(Node::Words(words), false)
    }

    pub fn space(&mut self) -> Doc {
        self.words(" ")
    }

    pub fn concat(&mut self, parts: &[Doc]) -> Doc {
        match parts {
            [] => Docs::NOTHING,
            [one] => *one,
            _ => {
                let first = self.children.len() as u32;
                self.children.extend_from_slice(parts);
                let forced = parts.iter().any(|&part| self.is_forced(part));
                self.push(Node::Concat { first, count: parts.len() as u32 }, forced)
            }
        }
    }

    pub fn indent(&mut self, doc: Doc) -> Doc {
        let forced = self.is_forced(doc);
        self.push(Node::Indent(doc), forced)
    }

    /// Nothing, or the end of a line.
    pub fn soft(&mut self, blank: bool) -> Doc {
        self.push(Node::Line { flat: "", blank }, false)
    }

    /// A blank, or the end of a line.
    pub fn line(&mut self, blank: bool) -> Doc {
        self.push(Node::Line { flat: " ", blank }, false)
    }

    pub fn end(&mut self, blank: bool) -> Doc {
        self.push(Node::End { blank }, true)
    }

    pub fn group(&mut self, doc: Doc) -> Doc {
        let forced = self.is_forced(doc);
        self.push(Node::Group(doc), forced)
    }

    /// A group that is broken whether it would fit or not.
    pub fn broken_if(&mut self, doc: Doc, broken: bool) -> Doc {
        let forced = broken || self.is_forced(doc);
        self.push(Node::Group(doc), forced)
    }

    pub fn if_broken(&mut self, words: &'static str) -> Doc {
        self.push(Node::IfBroken(words), false)
    }

    pub fn choice(&mut self, choice: Choice) -> Doc {
        let forced = [choice.head, choice.last, choice.tail].iter().any(|&part| self.is_forced(part));
        self.push(Node::Choice(choice), forced)
    }

    /// A comment; `ends_line` says that nothing may follow it on its line.
    pub fn comment(&mut self, index: usize, ends_line: bool) -> Doc {
        self.push(Node::Comment(index as u32), ends_line)
    }

    pub fn parts(&self, first: u32, count: u32) -> &[Doc] {
        &self.children[first as usize..(first + count) as usize]
    }
}
