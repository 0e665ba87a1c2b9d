//! Projects: each has a plane from its creation until nothing of it is left.
//!
//! | the project | what happens |
//! | --- | --- |
//! | its name cannot be carried in a label | `Ready` is False and says so; no plane is made |
//! | new | our finalizer; its plane; its starting content; `Ready` is True |
//! | there when the process starts | its plane is made sure of again |
//! | being deleted | `Ready` is False; what is in the plane goes (see [`compute_core::project`]); then the plane, then the finalizer |
//!
//! # Guarantees
//!
//! - Every step is made from what is observed, and may be the last before a crash: the finalizer comes before the plane and goes after it.
//! - A plane goes only after it has answered that nothing is left in it. One that does not answer is kept.
//! - Projects are keys of planes of their own: one whose plane does not answer delays no other.

mod contents;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use compute_api::conditions::{self, Status, Update, platform};
use compute_api::kube::api::{ApiResource, DynamicObject};
use compute_api::kube::{Api, Client, Resource};
use compute_api::milo::{CONDITION_READY, Project};
use compute_api::names;
use compute_core::{meta, project};
use compute_runtime::controller::{self, Error};
use compute_runtime::queue::Limits;
use compute_runtime::tasks::Tasks;
use compute_runtime::write::{self, Writer};
use compute_runtime::{Backoff, Cache, Key, Next, Plane, PlaneId, Queue, Reconciler};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::contents::Contents;

/// On a Project: goes after its plane.
pub const FINALIZER: &str = "resourcemanager.miloapis.com/project-control-plane";

/// `Ready` of a project that is ready.
const REASON_READY: &str = "Ready";
/// `Ready` of a project that no plane can be made for.
const REASON_INVALID_NAME: &str = platform::INVALID_NAME;
/// `Ready` of a project whose plane is not there, or not as it should be.
const REASON_NOT_AVAILABLE: &str = platform::CONTROL_PLANE_NOT_AVAILABLE;
/// `Ready` of a project that is being deleted.
const REASON_DELETING: &str = platform::DELETING;

/// Where projects' planes are.
pub trait Host: Send + Sync + 'static {
    /// Makes sure that a project's plane is there, and gives a way to it. Is called again for the same project.
    fn ensure<'a>(&'a self, project: &'a str) -> BoxFuture<'a, Result<Client, Error>>;

    /// Drops a project's plane with everything in it. One that is gone is no error.
    fn remove<'a>(&'a self, project: &'a str) -> BoxFuture<'a, Result<(), Error>>;
}

/// Something that every new project has from the start.
#[derive(Clone, Debug)]
pub struct Content {
    resource: ApiResource,
    object: DynamicObject,
}

impl Content {
    /// An object. Its namespace, if it needs one and has none, is `default`.
    ///
    /// # Errors
    ///
    /// If it cannot be written as JSON.
    pub fn of<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> serde_json::Result<Self> {
        let object = serde_json::from_value(serde_json::to_value(object)?)?;
        Ok(Self { resource: ApiResource::erase::<K>(&()), object })
    }
}

/// What is needed for projects.
pub struct Setup {
    /// Where Projects are.
    pub core: Plane,
    /// Where their planes are.
    pub host: Arc<dyn Host>,
    /// What a new project of a name has from the start.
    pub starting_content: Arc<StartingContent>,
    /// The names of all cells, whether they answer or not: what another one left in a project that goes is not waited for.
    pub cells: BTreeSet<String>,
}

/// What a new project of a name has from the start.
pub type StartingContent = dyn Fn(&str) -> Vec<Content> + Send + Sync;

/// Starts to serve projects, until the tasks are stopped.
pub fn spawn(tasks: &mut Tasks, setup: Setup) {
    tasks.spawn("projects", |stop| async move {
        run(setup, stop).await;
        Ok::<(), std::convert::Infallible>(())
    });
}

const NAME: &str = "projects";

const LIMITS: Limits = Limits {
    concurrency: 16,
    slow_planes: 128,
    stalled: Duration::from_secs(2),
    timeout: Duration::from_secs(60),
    backoff: Backoff { base: Duration::from_millis(50), max: Duration::from_secs(2) },
    urgent: false,
};

async fn run(Setup { core, host, starting_content, cells }: Setup, stop: CancellationToken) {
    let queue = Queue::new(core.runtime(), NAME, LIMITS);
    let cache: Cache<Project> = core.cache();
    let projects = Projects {
        api: Api::all(core.client().clone()),
        cache: cache.clone(),
        core,
        host,
        starting_content,
        cells,
        writer: Writer::new(NAME),
        queue: queue.clone(),
        known: Mutex::default(),
    };
    let _subscription = queue.watch(&cache, |change| Some(key(&change.name.name)));
    controller::run(Arc::new(projects), queue, stop.cancelled()).await;
}

fn key(project: &str) -> Key {
    Key::new(&PlaneId::new(project), "", project)
}

struct Projects {
    core: Plane,
    api: Api<Project>,
    cache: Cache<Project>,
    host: Arc<dyn Host>,
    starting_content: Arc<StartingContent>,
    cells: BTreeSet<String>,
    writer: Writer,
    queue: Queue,
    /// What this process has done about each project.
    known: Mutex<BTreeMap<String, Known>>,
}

/// What this process has done about a project.
enum Known {
    /// Its plane is there, for the project of this uid.
    Served(Option<String>),
    /// It is being deleted, and this is in its plane.
    Clearing(Arc<Contents>),
}

impl Projects {
    /// Makes a project's plane and what is in it from the start.
    async fn serve(&self, name: &str, project: &Project) -> Result<(), Error> {
        let uid = project.metadata.uid.clone();
        if matches!(self.known.lock().get(name), Some(Known::Served(served)) if *served == uid) {
            return Ok(());
        }
        let client = self.host.ensure(name).await?;
        if !is_ready(project) {
            // Later on, what a person has deleted stays deleted.
            for content in &(self.starting_content)(name) {
                self.create(&client, content).await?;
            }
        }
        self.known.lock().insert(name.to_owned(), Known::Served(uid));
        Ok(())
    }

    async fn create(&self, client: &Client, Content { resource, object }: &Content) -> Result<(), Error> {
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
            None => Api::all_with(client.clone(), resource),
        };
        match self.writer.create(&api, object).await {
            Ok(_) | Err(write::Error::AlreadyExists(_)) => Ok(()),
            Err(error) => Err(Error::new(error).context(format!(
                "cannot create {} {}",
                resource.kind,
                meta::name(&object.metadata)
            ))),
        }
    }

    /// Takes a project away, as far as it can be.
    async fn clear(&self, name: &str, project: &Project) -> Result<Next, Error> {
        let contents = match self.contents(name).await {
            Ok(contents) => contents,
            Err(error) => {
                let message = format!("{error:#}");
                let update = Update::new(CONDITION_READY, Status::False, REASON_DELETING, message);
                self.say(project, update).await?;
                return Err(error);
            }
        };
        let left = contents.left();
        let left = left.borrowed();
        let clearing = project::clear(&left, &self.cells);
        let update = Update::new(CONDITION_READY, Status::False, REASON_DELETING, clearing.message());
        let said = self.say(project, update).await?;
        for (kind, object) in &clearing.delete {
            contents.delete(&self.writer, *kind, object).await?;
        }
        if !clearing.waits_for.is_empty() {
            // Each that goes makes the project due.
            return Ok(Next::Done);
        }
        if !contents.is_empty(&self.writer).await? {
            return Ok(Next::After(Duration::from_secs(1)));
        }
        // Nobody watches a plane that goes.
        self.known.lock().remove(name);
        drop(contents);
        self.host.remove(name).await?;
        match self.writer.remove_finalizer(&self.api, said.as_ref().unwrap_or(project), FINALIZER).await {
            Ok(_) | Err(write::Error::NotFound(_)) => Ok(Next::Done),
            Err(error) => Err(error.into()),
        }
    }

    /// What is in the plane of a project that is being deleted, once all of it is known. The plane is made again if it is not there: an empty one is as good as none.
    async fn contents(&self, name: &str) -> Result<Arc<Contents>, Error> {
        let watched = match self.known.lock().get(name) {
            Some(Known::Clearing(contents)) => Some(contents.clone()),
            Some(Known::Served(_)) | None => None,
        };
        let contents = match watched {
            Some(contents) => contents,
            None => {
                let client = self.host.ensure(name).await?;
                let plane = Plane::new(self.core.runtime(), PlaneId::new(name), client);
                let contents = Arc::new(Contents::watch(plane, &self.queue, &key(name)));
                self.known.lock().insert(name.to_owned(), Known::Clearing(contents.clone()));
                contents
            }
        };
        contents.synced().await?;
        Ok(contents)
    }

    /// Writes `Ready`, if that is news; the project as it is then.
    async fn say(&self, project: &Project, update: Update) -> Result<Option<Project>, Error> {
        let mut conditions =
            project.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
        let update = update.of_generation(project.metadata.generation);
        if !conditions::set(&mut conditions, update, self.core.runtime().clock().now()) {
            return Ok(None);
        }
        let name = meta::name(&project.metadata);
        let fields = json!({
            "apiVersion": Project::api_version(&()), "kind": Project::kind(&()),
            "metadata": { "uid": project.metadata.uid },
            "status": { "conditions": conditions },
        });
        match self.writer.apply_status(&self.api, name, &fields).await {
            Ok(written) => Ok(Some(written)),
            Err(write::Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_ready(project: &Project) -> bool {
    project.status.as_ref().is_some_and(|status| conditions::is_true(&status.conditions, CONDITION_READY))
}

impl Reconciler for Projects {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let name = &*key.name;
        let Some(project) = self.cache.get("", name) else {
            if !self.cache.is_unreadable("", name) {
                self.known.lock().remove(name);
            }
            return Ok(Next::Done);
        };
        let is_held = project.metadata.finalizers.iter().flatten().any(|held| held == FINALIZER);
        if meta::is_being_deleted(&project.metadata) {
            return if is_held { self.clear(name, &project).await } else { Ok(Next::Done) };
        }
        if let Err(error) = names::upstream_cluster_name(name) {
            let update = Update::new(CONDITION_READY, Status::False, REASON_INVALID_NAME, error.to_string());
            self.say(&project, update).await?;
            return Ok(Next::Done);
        }
        if !is_held {
            self.writer.add_finalizer(&self.api, &*project, FINALIZER).await?;
        }
        let served = self.serve(name, &project).await;
        let update = match &served {
            Ok(()) => Update::new(
                CONDITION_READY,
                Status::True,
                REASON_READY,
                "The project's control plane is ready",
            ),
            Err(error) => {
                Update::new(CONDITION_READY, Status::False, REASON_NOT_AVAILABLE, format!("{error:#}"))
            }
        };
        self.say(&project, update).await?;
        served.map(|()| Next::Done)
    }
}
