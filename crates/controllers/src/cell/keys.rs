//! The keys of a cell's work.
//!
//! A namespace of a cell stands for one of a project, and a pass may wait for that project's ledger. So each namespace takes the place
//! of a plane in the queue: namespaces take turns, and one whose ledger hangs holds up no other.

use compute_runtime::cache::ObjectName;
use compute_runtime::{Key, PlaneId};
use kube::Resource;

/// The key of a name in a namespace of the cell.
pub(super) fn key(namespace: &str, name: &str) -> Key {
    Key::new(&PlaneId::new(namespace), namespace, name)
}

/// The key of an object of the cell.
pub(super) fn of<K: Resource>(object: &K) -> Key {
    let name = ObjectName::of(object);
    key(&name.namespace, &name.name)
}
