//! A map that remembers what was used last, and forgets the rest.

use std::collections::BTreeMap;

/// At most `capacity` values by key. Which are forgotten depends only on the order of use.
pub(super) struct Recent<K, V> {
    values: BTreeMap<K, (u64, V)>,
    order: BTreeMap<u64, K>,
    uses: u64,
    capacity: usize,
}

impl<K: Ord + Clone, V> Recent<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { values: BTreeMap::new(), order: BTreeMap::new(), uses: 0, capacity: capacity.max(1) }
    }

    /// The value, made if it is not there; counts as use.
    pub(super) fn entry(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        let uses = self.uses;
        let value = match self.values.remove(key) {
            Some((used, value)) => {
                self.order.remove(&used);
                value
            }
            None => make(),
        };
        self.order.insert(uses, key.clone());
        if self.order.len() > self.capacity
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.values.remove(&oldest);
        }
        &mut self.values.entry(key.clone()).or_insert((uses, value)).1
    }

    /// The value, if it is remembered; does not count as use.
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.values.get_mut(key).map(|(_, value)| value)
    }
}
