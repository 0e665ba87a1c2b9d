//! Lists in a strategic merge patch.
//!
//! Entries are told apart by the merge key, or by their value in a set of scalars. The order of the
//! result is that of the document, with two twists: entries that the patch (or its `$setElementOrder`)
//! names come in the order it names them, and an entry that is new to the list comes before those that
//! the patch does not name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Directive, Error, Shape, merge_map, take_directive};
use crate::managed_fields::PathElement;
use crate::schema::PatchStrategy;

/// Merges a list of the patch into that of the document, or replaces it if it has no patch strategy.
pub(super) fn merge(
    doc: Vec<Value>,
    patch: Vec<Value>,
    order: Option<Vec<Value>>,
    shape: Shape<'_>,
    levels: usize,
) -> Result<Vec<Value>, Error> {
    let Some(identity) = Identity::of(shape) else { return fresh(patch, shape, levels) };
    let order = order.map(|order| identity.all(&order)).transpose()?;
    let mut deleted = BTreeSet::new();
    let mut rest = Vec::with_capacity(patch.len());
    let mut is_replaced = false;
    for mut item in patch {
        let directive = item.as_object_mut().map(take_directive).transpose()?.flatten();
        match directive {
            Some(Directive::Delete) => {
                deleted.insert(identity.require(&item)?);
            }
            Some(Directive::Replace) => is_replaced = true,
            None | Some(Directive::Merge) => rest.push(item),
        }
    }
    if is_replaced {
        let items = fresh(rest, shape, levels)?;
        return match order {
            Some(order) => Ok(List::new(items, identity).arrange(&order)),
            None => Ok(items),
        };
    }
    let mut list = List::new(doc, identity);
    list.delete(&deleted);
    let mut named = Vec::with_capacity(rest.len());
    for item in rest {
        let id = identity.require(&item)?;
        list.put(id.clone(), item, shape.items(), levels)?;
        named.push(id);
    }
    match order {
        Some(order) => {
            check_order(&named, &order)?;
            Ok(list.arrange(&order))
        }
        None => Ok(list.arrange(&named)),
    }
}

/// Puts the entries of a list into the order that `$setElementOrder` gives.
pub(super) fn reorder(items: Vec<Value>, order: &[Value], shape: Shape<'_>) -> Result<Vec<Value>, Error> {
    let Some(identity) = Identity::of(shape) else { return Ok(items) };
    Ok(List::new(items, identity).arrange(&identity.all(order)?))
}

/// Takes these values out of a list of scalars.
pub(super) fn delete_scalars(items: &mut Vec<Value>, values: &[Value]) {
    let values: BTreeSet<_> = values.iter().map(PathElement::value).collect();
    items.retain(|item| !values.contains(&PathElement::value(item)));
}

/// A list that replaces what was there: without nulls, directives and entries that only carry one.
pub(super) fn fresh(items: Vec<Value>, shape: Shape<'_>, levels: usize) -> Result<Vec<Value>, Error> {
    if levels == 0 {
        return Err(Error::Malformed("the patch is nested too deeply".to_owned()));
    }
    let mut out = Vec::with_capacity(items.len());
    for mut item in items {
        let directive = item.as_object_mut().map(take_directive).transpose()?.flatten();
        if matches!(directive, None | Some(Directive::Merge))
            && let Some(item) = super::fresh(item, shape.items(), levels - 1)?
        {
            out.push(item);
        }
    }
    Ok(out)
}

/// What the entries of a list are told apart by.
#[derive(Clone, Copy)]
enum Identity<'a> {
    Key(&'a str),
    Value,
}

impl<'a> Identity<'a> {
    fn of(shape: Shape<'a>) -> Option<Self> {
        Some(match shape.schema()?.patch_strategy.as_ref()? {
            PatchStrategy::MergeByKey(key) => Self::Key(key),
            PatchStrategy::MergeSet => Self::Value,
        })
    }

    fn get(self, item: &Value) -> Option<PathElement> {
        match self {
            Self::Key(key) => item.get(key).map(PathElement::value),
            Self::Value => (!item.is_object() && !item.is_array()).then(|| PathElement::value(item)),
        }
    }

    fn require(self, item: &Value) -> Result<PathElement, Error> {
        self.get(item).ok_or_else(|| {
            Error::Malformed(match self {
                Self::Key(key) => {
                    format!("an entry of a list in the patch does not contain the merge key {key:?}")
                }
                Self::Value => "cannot merge lists of objects without a merge key".to_owned(),
            })
        })
    }

    fn all(self, items: &[Value]) -> Result<Vec<PathElement>, Error> {
        items.iter().map(|item| self.require(item)).collect()
    }
}

/// A list in the making.
struct List<'a> {
    identity: Identity<'a>,
    entries: Vec<Entry>,
    /// Where the first entry of an identity is.
    index: BTreeMap<PathElement, usize>,
}

struct Entry {
    id: Option<PathElement>,
    value: Value,
    /// The position it had in the document.
    place: Option<usize>,
}

impl<'a> List<'a> {
    fn new(items: Vec<Value>, identity: Identity<'a>) -> Self {
        let mut list = Self { identity, entries: Vec::with_capacity(items.len()), index: BTreeMap::new() };
        for (place, value) in items.into_iter().enumerate() {
            let id = identity.get(&value);
            // A set says everything once.
            if matches!(identity, Identity::Value)
                && id.as_ref().is_some_and(|id| list.index.contains_key(id))
            {
                continue;
            }
            list.push(id, value, Some(place));
        }
        list
    }

    fn push(&mut self, id: Option<PathElement>, value: Value, place: Option<usize>) {
        if let Some(id) = &id {
            self.index.entry(id.clone()).or_insert(self.entries.len());
        }
        self.entries.push(Entry { id, value, place });
    }

    /// Deletes every entry of these identities.
    fn delete(&mut self, ids: &BTreeSet<PathElement>) {
        if ids.is_empty() {
            return;
        }
        self.index.clear();
        self.entries.retain(|entry| entry.id.as_ref().is_none_or(|id| !ids.contains(id)));
        for (at, entry) in self.entries.iter().enumerate() {
            if let Some(id) = &entry.id {
                self.index.entry(id.clone()).or_insert(at);
            }
        }
    }

    /// Merges an entry of the patch into its partner, or adds it.
    fn put(&mut self, id: PathElement, item: Value, shape: Shape<'_>, levels: usize) -> Result<(), Error> {
        let Some(&at) = self.index.get(&id) else {
            if let Some(item) = super::fresh(item, shape, levels)? {
                self.push(Some(id), item, None);
            }
            return Ok(());
        };
        if let (Identity::Key(_), Value::Object(old), Value::Object(patch)) =
            (self.identity, &mut self.entries[at].value, item)
        {
            *old = merge_map(std::mem::take(old), patch, shape, levels)?;
        }
        Ok(())
    }

    /// The entries in their final order.
    fn arrange(self, order: &[PathElement]) -> Vec<Value> {
        let ranks: BTreeMap<_, _> = order.iter().enumerate().rev().map(|(rank, id)| (id, rank)).collect();
        let rank = |entry: &Entry| entry.id.as_ref().and_then(|id| ranks.get(id).copied());
        let (mut named, others): (Vec<_>, Vec<_>) =
            self.entries.into_iter().partition(|entry| rank(entry).is_some());
        named.sort_by_key(rank);

        let mut out = Vec::with_capacity(named.len() + others.len());
        let mut others = others.into_iter().peekable();
        for entry in named {
            let is_before = |other: &Entry| matches!((other.place, entry.place), (Some(a), Some(b)) if a < b);
            while let Some(other) = others.next_if(is_before) {
                out.push(other.value);
            }
            out.push(entry.value);
        }
        out.extend(others.map(|other| other.value));
        out
    }
}

/// The entries of the patch must stand in the order that `$setElementOrder` gives, and all be in it.
fn check_order(named: &[PathElement], order: &[PathElement]) -> Result<(), Error> {
    let mut order = order.iter();
    if named.iter().all(|id| order.any(|next| next == id)) {
        return Ok(());
    }
    Err(Error::Malformed(
        "the order of a list in the patch does not match its $setElementOrder list".to_owned(),
    ))
}
