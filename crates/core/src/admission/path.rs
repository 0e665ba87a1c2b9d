//! Where a field is, in the form that Kubernetes has it: `spec.containers[1].name`, `metadata.labels[app]`.

use std::fmt;

/// Where a field is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path(String);

impl Path {
    /// A field of the object itself.
    pub(super) fn new(field: &str) -> Self {
        Self(field.to_owned())
    }

    /// A field of this one.
    pub(super) fn child(&self, field: &str) -> Self {
        Self(format!("{}.{field}", self.0))
    }

    /// An entry of this list.
    pub(super) fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// An entry of this map.
    pub(super) fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
