//! Where in an object something is, kept as a chain on the stack.
//!
//! Walking a valid object builds no text at all: a [`Path`] is two words and a reference to its
//! parent, and becomes a `String` only when there is something to report.

use std::fmt;

/// One step from a value to a value inside it.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// The object itself.
    Root,
    /// A field: `.name`.
    Field(&'a str),
    /// An entry of a map: `[name]`.
    Key(&'a str),
    /// An entry of a list: `[3]`.
    Index(usize),
}

/// A path from the root of an object, linked from the leaf upwards.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

impl<'a> Path<'a> {
    /// The object itself.
    pub const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    /// A path that starts at a place of its own, such as `spec.versions[0].schema`.
    pub fn base(text: &'a str) -> Self {
        if text.is_empty() { Self::ROOT } else { Path { parent: None, step: Step::Field(text) } }
    }

    /// The field `name` below this path.
    pub fn field(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Field(name) }
    }

    /// The map entry `name` below this path.
    pub fn key(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Key(name) }
    }

    /// The list entry `index` below this path.
    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// Whether this is the object itself.
    pub fn is_root(&self) -> bool {
        self.parent.is_none() && matches!(self.step, Step::Root)
    }

    /// The path as it stands in a field error; `<nil>` for the object itself.
    pub fn text(&self) -> String {
        if self.is_root() { "<nil>".to_owned() } else { self.to_string() }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The chain runs leaf to root and is printed root to leaf. Its length is bounded by the
        // nesting of parsed JSON (128), so the list of steps is small.
        let mut steps = Vec::with_capacity(16);
        let mut at = Some(self);
        while let Some(path) = at {
            steps.push(path.step);
            at = path.parent;
        }
        let mut first = true;
        for step in steps.into_iter().rev() {
            match step {
                Step::Root => continue,
                Step::Field(name) if first => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Key(name) => write!(f, "[{name}]")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
            first = false;
        }
        Ok(())
    }
}
