//! Which project and namespace a namespace of the cell stands for.
//!
//! That is learned by one bounded read of the namespace, and remembered, with its uid, for as long as it has instances: a namespace that is
//! deleted and made again has none in between. There is no list and no watch.

use std::collections::BTreeMap;
use std::time::Duration;

use compute_api::k8s::Namespace;
use compute_core::federation::Upstream;
use compute_core::meta;
use compute_runtime::Plane;
use compute_runtime::write::{Error, Result, Writer};
use kube::Api;
use parking_lot::Mutex;

/// How long the cell's own API server may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What a namespace stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    /// For this one of this project.
    For(Upstream),
    /// It does not say.
    ForNothing(String),
}

/// The namespaces of a cell.
pub(super) struct Namespaces {
    api: Api<Namespace>,
    reads: Writer,
    /// The one project that the cell is part of, in direct mode: its namespaces are the project's own.
    project: Option<String>,
    /// By name.
    known: Mutex<BTreeMap<String, Known>>,
}

struct Known {
    uid: Option<String>,
    upstream: Upstream,
}

impl Namespaces {
    pub(super) fn new(cell: &Plane, project: Option<String>) -> Self {
        let api = Api::all(cell.client().clone());
        Self { api, reads: Writer::new("instance").with_timeout(TIMEOUT), project, known: Mutex::default() }
    }

    /// What a namespace stands for, if that is known without a request.
    fn known(&self, namespace: &str) -> Option<Upstream> {
        if let Some(project) = &self.project {
            return Some(Upstream { project: project.clone(), namespace: namespace.to_owned() });
        }
        self.known.lock().get(namespace).map(|known| known.upstream.clone())
    }

    /// What a namespace stands for.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(super) async fn upstream(&self, namespace: &str) -> Result<Stands> {
        if let Some(upstream) = self.known(namespace) {
            return Ok(Stands::For(upstream));
        }
        let found = match self.reads.request(self.api.get(namespace)).await {
            Ok(found) => found,
            Err(Error::NotFound(_)) => {
                return Ok(Stands::ForNothing(format!("Namespace {namespace} does not exist in the cell")));
            }
            Err(error) => return Err(error),
        };
        let Some(upstream) = Upstream::of(&found.metadata) else {
            let message =
                format!("Namespace {namespace} does not say which project and namespace it stands for");
            return Ok(Stands::ForNothing(message));
        };
        let known = Known { uid: found.metadata.uid, upstream: upstream.clone() };
        tracing::debug!(
            namespace,
            uid = known.uid,
            project = upstream.project,
            "learned what a namespace stands for"
        );
        self.known.lock().insert(namespace.to_owned(), known);
        Ok(Stands::For(upstream))
    }

    /// Any read of the cell's own server, within the same time.
    ///
    /// # Errors
    ///
    /// If it does not answer.
    pub(super) async fn read<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T> {
        self.reads.request(request).await
    }

    /// Whether a namespace is on its way out, as the server says now.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(super) async fn is_being_deleted(&self, namespace: &str) -> Result<bool> {
        match self.reads.request(self.api.get(namespace)).await {
            Ok(found) => Ok(meta::is_being_deleted(&found.metadata)),
            Err(Error::NotFound(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The namespace has no instances any more.
    pub(super) fn forget(&self, namespace: &str) {
        self.known.lock().remove(namespace);
    }
}
