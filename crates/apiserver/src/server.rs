//! The server: planes, tokens and the background work that keeps them in order.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use serde_json::Value;

use crate::audit;
use crate::auth::service_accounts::Signer;
use crate::auth::{Identity, Tokens};
use crate::authz::RBAC;
use crate::clock::{Clock, Random, SystemClock};
use crate::hooks::Hook;
use crate::http::{NetworkService, PlaneRoute, PlaneService};
use crate::lifecycle;
use crate::limits::{Gate, Limits};
use crate::planes::hooks::ServerHooks;
use crate::planes::{Plane, PlaneError, PlaneName, PlaneTemplate, Planes, TemplateError};
use crate::registry::Definitions;
use crate::store::backup::{BackupError, BackupSummary};
use crate::store::{CommitError, Event, Revisions, Storage, StorageError, Write, life};

/// How a server is set up.
#[derive(Clone)]
pub struct Options {
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where uids, name suffixes and jitter come from.
    pub random: Random,
    /// The plane that bare paths (`/api/…`, `/apis/…`) belong to.
    pub root_plane: PlaneName,
    /// Further path prefixes that lead to planes, beside `/planes/<name>/…`.
    pub routes: Vec<PlaneRoute>,
    /// What clients may take of the server.
    pub limits: Limits,
    /// Where it is written down who did what; nowhere by default.
    pub audit: Option<Arc<dyn audit::Sink>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            random: Random::from_os(),
            root_plane: PlaneName::new("core").expect("a plain word is a plane name"),
            routes: Vec::new(),
            limits: Limits::default(),
            audit: None,
        }
    }
}

/// State that every request shares.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) revisions: Arc<Revisions>,
    pub(crate) definitions: Definitions,
    pub(crate) tokens: Tokens,
    /// Signs the tokens of service accounts.
    pub(crate) signer: Signer,
    pub(crate) planes: Planes,
    pub(crate) hooks: ServerHooks,
    pub(crate) lifecycle: lifecycle::Queue,
    pub(crate) gate: Gate,
    /// Where planes are kept; none in memory.
    pub(crate) storage: Option<Storage>,
    /// Planes are made and dropped one at a time, so that a new one never meets what is left of its predecessor.
    plane_changes: tokio::sync::Mutex<()>,
}

impl Shared {
    /// The one way by which objects change: commits, keeps definitions current, and tells the background work. What
    /// follows from a commit is done even if the client does not wait for it.
    pub(crate) async fn commit(
        self: &Arc<Self>,
        plane: &Arc<Plane>,
        write: Write,
    ) -> Result<Arc<Event>, CommitError> {
        let (shared, plane) = (self.clone(), plane.clone());
        if !plane.store.is_durable() {
            return shared.commit_now(&plane, write).await;
        }
        Outlives(Some(Box::pin(async move { shared.commit_now(&plane, write).await }))).await
    }

    async fn commit_now(&self, plane: &Arc<Plane>, write: Write) -> Result<Arc<Event>, CommitError> {
        let is_crd = write.resource.resource == "customresourcedefinitions";
        let is_rbac = write.resource.group == RBAC;
        let resource = write.resource.clone();
        let event = plane.store.commit(write).await?;
        if is_crd {
            plane.reload(&self.definitions);
        }
        if is_rbac {
            plane.forget_policy();
        }
        plane.follow_hooks(&resource, &self.hooks);
        self.lifecycle.notice(plane, &resource, &event, self.options.clock.now());
        Ok(event)
    }
}

/// Work that goes on in a task of its own if whoever waits for it goes.
struct Outlives<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> Future for Outlives<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let work = self.0.as_mut().expect("nobody waits for work that is done");
        let done = std::task::ready!(work.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(done)
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for Outlives<F> {
    fn drop(&mut self) {
        // Where there is no runtime any more, nothing is left to follow either.
        if let (Some(work), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.lifecycle.close();
    }
}

/// An API server that hosts control planes. Cheap to clone; the planes live as long as any clone does.
#[derive(Clone)]
pub struct ApiServer(pub(crate) Arc<Shared>);

impl ApiServer {
    /// A server without planes, whose planes are kept in memory. Must be called inside a Tokio runtime: garbage
    /// collection runs as a task of it, and ends with the last clone of the server.
    pub fn new(options: Options) -> Self {
        let first = life::first(options.clock.now());
        Self::with(options, Arc::new(Revisions::starting_at(first)), None, Signer::generate())
    }

    /// A server whose planes are kept in a folder. Those that are there already are found again when they are
    /// created anew; [`ApiServer::found_planes`] names them.
    pub fn open(options: Options, folder: &Path) -> Result<Self, StorageError> {
        let (storage, revisions) = Storage::open(folder, options.clock.now())?;
        let signer = Signer::open(&folder.join("service-accounts.key"))?;
        Ok(Self::with(options, revisions, Some(storage), signer))
    }

    fn with(options: Options, revisions: Arc<Revisions>, storage: Option<Storage>, signer: Signer) -> Self {
        Self(Arc::new_cyclic(|weak| Shared {
            gate: Gate::new(&options.limits),
            hooks: ServerHooks::new(options.clock.clone()),
            options,
            revisions,
            definitions: Definitions::default(),
            tokens: Tokens::default(),
            signer,
            planes: Planes::default(),
            lifecycle: lifecycle::start(weak.clone()),
            storage,
            plane_changes: tokio::sync::Mutex::default(),
        }))
    }

    /// Planes that are on disk and have not been created in this process yet.
    pub fn found_planes(&self) -> Vec<PlaneName> {
        let names = self.0.storage.as_ref().map(Storage::found_planes).unwrap_or_default();
        names.iter().filter_map(|name| PlaneName::new(name).ok()).collect()
    }

    /// Prepares what planes start with beside their namespaces and the default roles: these CRDs and other objects of the
    /// whole plane.
    pub async fn template(&self, objects: &[Value]) -> Result<PlaneTemplate, TemplateError> {
        PlaneTemplate::new(&self.0, objects).await
    }

    /// Makes a plane with namespaces of its own and what the template has.
    pub async fn create_plane(
        &self,
        name: PlaneName,
        template: &PlaneTemplate,
    ) -> Result<Arc<Plane>, PlaneError> {
        let _one_at_a_time = self.0.plane_changes.lock().await;
        if self.plane(&name).is_some() {
            return Err(PlaneError::Exists(name));
        }
        let plane = template.make(&self.0, name).await?;
        self.0.planes.add(plane)
    }

    /// Finds a plane.
    pub fn plane(&self, name: &PlaneName) -> Option<Arc<Plane>> {
        self.0.planes.find(name)
    }

    /// The names of all planes, in order.
    pub fn plane_names(&self) -> Vec<PlaneName> {
        self.0.planes.names()
    }

    /// Drops a plane with everything in it and ends its watches. Says whether there was one.
    pub async fn drop_plane(&self, name: &PlaneName) -> Result<bool, PlaneError> {
        let _one_at_a_time = self.0.plane_changes.lock().await;
        let existed = self.0.planes.remove(name);
        if let Some(storage) = self.0.storage.as_ref().filter(|_| existed) {
            let dropped = storage.drop_plane(name.as_str()).await;
            dropped.map_err(|source| PlaneError::NotDurable(name.clone(), source))?;
        }
        Ok(existed)
    }

    /// Asks `hook` about writes to all planes, present and future, from now on; [`Hook::in_plane`] limits it to some.
    ///
    /// Hooks in this process are asked in the order in which they were added, before the webhooks of the plane. They are not
    /// asked about what a new plane starts with, nor about what the server does to keep its own books: see
    /// [`hooks`](crate::hooks).
    pub fn add_hook(&self, hook: Arc<dyn Hook>) {
        self.0.hooks.add(hook);
    }

    /// Backs up all planes to a writer, as they are at one revision when this is called, and returns the writer, to be
    /// synced or closed. Reading and writing of objects goes on meanwhile; the server takes its part from disk, not from memory.
    /// Secrets in a backup are encrypted with the key in the file `secrets.key` of the server's folder, which is not part
    /// of it. [`backup::restore`](crate::backup::restore) is the way back.
    pub async fn backup<W: std::io::Write + Send + 'static>(
        &self,
        writer: W,
    ) -> Result<(BackupSummary, W), BackupError> {
        let storage = self.0.storage.as_ref().ok_or(BackupError::InMemory)?;
        storage.backup(self.0.options.clock.now(), writer).await
    }

    /// The bearer tokens that are accepted over the network.
    pub fn tokens(&self) -> &Tokens {
        &self.0.tokens
    }

    /// The whole server as a tower service, for an embedder with a listener of its own.
    pub fn network_service(&self) -> NetworkService {
        NetworkService::new(self.clone())
    }

    /// An in-process way to a plane, to be put under any HTTP client that takes a tower service
    /// (`kube::Client::new(server.service(…), "default")`). The identity may do what the plane's roles grant it.
    pub fn service(&self, plane: &PlaneName, identity: Identity) -> PlaneService {
        PlaneService::new(self.clone(), plane.clone(), identity)
    }
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").field("planes", &self.plane_names()).finish_non_exhaustive()
    }
}
