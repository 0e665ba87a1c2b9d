//! A set of paths, kept as a tree.
//!
//! A node says whether the path that ends in it is in the set (`owned`) and what lies below it. No
//! node below the root is empty: taking the last path out of a branch takes the branch out.

use std::collections::BTreeMap;

use super::path::PathElement;

/// A set of paths into an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    pub(super) owned: bool,
    pub(super) children: BTreeMap<PathElement, FieldSet>,
}

impl FieldSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { owned: false, children: BTreeMap::new() }
    }

    /// The set of the path that ends here.
    pub(super) const fn leaf() -> Self {
        Self { owned: true, children: BTreeMap::new() }
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        !self.owned && self.children.is_empty()
    }

    /// Puts a path in.
    pub fn insert(&mut self, path: impl IntoIterator<Item = PathElement>) {
        let mut node = self;
        for element in path {
            node = node.children.entry(element).or_default();
        }
        node.owned = true;
    }

    /// Whether this path itself is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        self.below(path).is_some_and(|node| node.owned)
    }

    /// Whether every path of `other` is in the set.
    pub fn is_superset(&self, other: &Self) -> bool {
        (self.owned || !other.owned)
            && other.children.iter().all(|(element, below)| {
                self.children.get(element).is_some_and(|mine| mine.is_superset(below))
            })
    }

    /// The paths below `path`, taken from there; `None` when there are none and it is not in the set.
    pub fn below(&self, path: &[PathElement]) -> Option<&Self> {
        path.iter().try_fold(self, |node, element| node.children.get(element))
    }

    /// Puts every path of `other` in.
    pub fn union(&mut self, other: Self) {
        self.owned |= other.owned;
        if self.children.is_empty() {
            self.children = other.children;
            return;
        }
        for (element, below) in other.children {
            self.children.entry(element).or_default().union(below);
        }
    }

    /// Takes every path of `other` out, and nothing else: what lies below such a path stays.
    pub fn difference(&mut self, other: &Self) {
        self.owned &= !other.owned;
        self.each_shared(other, Self::difference);
    }

    /// Takes every path of `other` out, with all that lies below it.
    pub fn subtract(&mut self, other: &Self) {
        if other.owned {
            *self = Self::new();
        } else {
            self.each_shared(other, Self::subtract);
        }
    }

    /// The paths that are in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut both = Self { owned: self.owned && other.owned, children: BTreeMap::new() };
        for (element, below) in &self.children {
            if let Some(theirs) = other.children.get(element) {
                both.attach(|| element.clone(), below.intersection(theirs));
            }
        }
        both
    }

    /// Calls `visit` with every path in order, a path before those below it.
    pub fn for_each(&self, visit: &mut impl FnMut(&[PathElement])) {
        self.visit(&mut Vec::new(), visit);
    }

    /// Every path, a path before those below it.
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::new();
        self.for_each(&mut |path| paths.push(path.to_vec()));
        paths
    }

    /// Takes the top-level field `name` out with all that lies below it: what a write to the resource
    /// does with `status` when that is a subresource.
    pub fn remove_top(&mut self, name: &str) {
        self.children.remove(&PathElement::field(name));
    }

    /// Keeps the top-level field `name` alone: what a write to a subresource does.
    pub fn retain_top(&mut self, name: &str) {
        self.children.retain(|element, _| matches!(element, PathElement::Field(field) if field == name));
    }

    /// Hangs a subtree in, unless it is empty; the element is made only when needed.
    pub(super) fn attach(&mut self, element: impl FnOnce() -> PathElement, below: Self) {
        if !below.is_empty() {
            self.children.insert(element(), below);
        }
    }

    fn each_shared(&mut self, other: &Self, act: impl Fn(&mut Self, &Self)) {
        if self.children.is_empty() {
            return;
        }
        for (element, theirs) in &other.children {
            if let Some(mine) = self.children.get_mut(element) {
                act(mine, theirs);
                if mine.is_empty() {
                    self.children.remove(element);
                }
            }
        }
    }

    fn visit(&self, path: &mut Vec<PathElement>, visit: &mut impl FnMut(&[PathElement])) {
        if self.owned {
            visit(path);
        }
        for (element, below) in &self.children {
            path.push(element.clone());
            below.visit(path, visit);
            path.pop();
        }
    }
}
