//! Copies of core's locations in the cells of their cities; and, if nobody else does, the word that a location is Ready.
//!
//! A copy says which addresses subnets of the location are given out of (`register`).
//!
//! A key is a location's name in the plane of a cell, or of core. A key without a name stands for all of a cell.

use std::collections::BTreeMap;
use std::sync::Arc;

use compute_api::conditions::{self, Status, Update};
use compute_api::kube::api::PropagationPolicy;
use compute_api::kube::{Api, Resource as _};
use compute_api::networking::{CONDITION_READY, Location};
use compute_core::location::cell::{self, Step};
use compute_core::meta;
use compute_core::subnets::blocks::{ADDRESSES, Blocks};
use compute_runtime::controller::{self, Error};
use compute_runtime::write::{Target, Writer};
use compute_runtime::{Cache, Key, Next, Plane, PlaneId, Queue, Reconciler};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::offers::gone_is_fine;
use super::register::Register;
use super::{LIMITS, REQUEST, Rules, matters};

const NAME: &str = "cell-locations";

/// Gives locations to cells.
pub(super) struct Cells {
    core: Plane,
    locations: Cache<Location>,
    cells: BTreeMap<PlaneId, Cell>,
    rules: Arc<Rules>,
    register: Register,
    writer: Writer,
    queue: Queue,
}

struct Cell {
    city: String,
    plane: Plane,
    locations: Cache<Location>,
}

impl Cells {
    pub(super) async fn run(
        core: Plane,
        locations: Cache<Location>,
        cells: Vec<(String, Plane)>,
        rules: Arc<Rules>,
        stop: &CancellationToken,
    ) {
        let queue = Queue::new(core.runtime(), NAME, LIMITS);
        let cells: BTreeMap<_, _> = cells
            .into_iter()
            .map(|(city, plane)| (plane.id().clone(), Cell { city, locations: plane.cache(), plane }))
            .collect();
        let mut subscriptions = Vec::new();
        for (id, cell) in &cells {
            let (waker, id) = (queue.clone(), id.clone());
            subscriptions.push(queue.watch_own(&cell.locations));
            subscriptions.push(cell.locations.on_connect(move |_| waker.add(Key::new(&id, "", ""))));
        }
        let planes: Vec<_> = cells.keys().chain([core.id()]).cloned().collect();
        subscriptions.push(queue.watch(&locations, move |change| {
            let planes = if matters(change) { &*planes } else { &[] };
            planes.iter().map(|plane| Key::new(plane, "", &change.name.name)).collect::<Vec<_>>()
        }));
        let writer = Writer::new(NAME).with_timeout(REQUEST);
        let register = Register::new(&core, writer.clone());
        let cells = Self { core, locations, cells, rules, register, writer, queue: queue.clone() };
        controller::run(Arc::new(cells), queue, stop.cancelled()).await;
    }

    /// Says of a location that nobody has judged that it is Ready.
    async fn judge(&self, name: &str) -> Result<(), Error> {
        let Some(location) = self.locations.get("", name).filter(|_| self.rules.judge_locations) else {
            return Ok(());
        };
        let mut all = location.status.clone().unwrap_or_default().conditions;
        if conditions::find(&all, CONDITION_READY).is_some() {
            return Ok(());
        }
        let update = Update::new(CONDITION_READY, Status::True, "Ready", "The location can be used")
            .of_generation(location.metadata.generation);
        conditions::set(&mut all, update, self.core.runtime().clock().now());
        let mut fields = kind();
        fields["metadata"] = json!({ "uid": location.metadata.uid });
        fields["status"] = json!({ "conditions": all });
        let api: Api<Location> = Api::all(self.core.client().clone());
        gone_is_fine(self.writer.apply_status(&api, name, &fields).await)
    }

    /// The addresses that cells know locations to have.
    fn known(&self) -> BTreeMap<String, Blocks> {
        let held = self.cells.values().flat_map(|cell| cell.locations.list());
        held.filter_map(|held| {
            let blocks = meta::annotation(&held.metadata, ADDRESSES)?.parse().ok()?;
            Some((meta::name(&held.metadata).to_owned(), blocks))
        })
        .collect()
    }

    async fn act(&self, cell: &Cell, name: &str, step: Step) -> Result<(), Error> {
        let api: Api<Location> = Api::all(cell.plane.client().clone());
        let mut fields = kind();
        match step {
            Step::Apply { labels, annotations, spec } => {
                fields["metadata"] = json!({ "labels": labels, "annotations": annotations });
                fields["spec"] = json!(spec);
                self.writer.apply(&api, name, &fields).await?;
                Ok(())
            }
            Step::Say { conditions } => {
                fields["status"] = json!({ "conditions": conditions });
                gone_is_fine(self.writer.apply_status(&api, name, &fields).await)
            }
            Step::Delete { uid } => {
                let target = Target { name: name.to_owned(), uid, resource_version: None };
                gone_is_fine(self.writer.delete(&api, &target, PropagationPolicy::Background).await)
            }
        }
    }
}

fn kind() -> Value {
    json!({ "apiVersion": Location::api_version(&()), "kind": Location::kind(&()) })
}

impl Reconciler for Cells {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let name = &*key.name;
        let Some(cell) = self.cells.get(&key.plane) else {
            self.judge(name).await?;
            return Ok(Next::Done);
        };
        if !cell.locations.is_connected() {
            // When it is, everything is due.
            return Ok(Next::Done);
        }
        if name.is_empty() {
            let all = self.locations.list().into_iter().chain(cell.locations.list());
            self.queue.add_all(all.map(|location| Key::of(&key.plane, &*location)));
            return Ok(Next::Done);
        }
        if self.locations.is_unreadable("", name) || cell.locations.is_unreadable("", name) {
            return Ok(Next::Done);
        }
        let (location, held) = (self.locations.get("", name), cell.locations.get("", name));
        let is_wanted = location.as_ref().is_some_and(|location| cell::is_wanted(&cell.city, location));
        // The location comes to its cell all the same: only its networks have to wait.
        let blocks = match is_wanted {
            true => Some(self.register.of(name, || self.known()).await),
            false => None,
        };
        let (blocks, failure) = match blocks {
            Some(Ok(blocks)) => (Some(blocks), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        for step in cell::decide(&cell.city, location.as_deref(), held.as_deref(), blocks.as_ref()) {
            self.act(cell, name, step).await?;
        }
        failure.map_or(Ok(Next::Done), Err)
    }
}
