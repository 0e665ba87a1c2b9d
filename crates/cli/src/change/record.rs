//! Writing revisions down, whoever else does at the same time.

use compute_api::compute::Workload;
use compute_api::k8s::{ConfigMap, ObjectMeta};
use compute_api::names;
use compute_core::meta;
use compute_core::revisions::Revision;
use kube::api::PostParams;

use crate::failure::{Failure, Result, from_kube};
use crate::fetch;
use crate::session::Session;

/// How often it is tried when others write, too.
const TRIES: usize = 20;

/// Puts revisions into the history. It goes with the workload, since that owns it.
pub(super) async fn write_down(session: &Session, workload: &Workload, revisions: &[Revision]) -> Result<()> {
    let api = session.api::<ConfigMap>();
    let name = names::revision_history_name(meta::name(&workload.metadata));
    for _ in 0..TRIES {
        // What belongs to a predecessor is not read, and so replaced.
        let (stored, mut history) = fetch::history(session, workload).await?;
        history.add(revisions.iter().cloned());
        let is_new = stored.is_none();
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                owner_references: Some(vec![meta::owned_by(workload)]),
                resource_version: stored.and_then(|stored| stored.metadata.resource_version),
                ..ObjectMeta::default()
            },
            data: Some(history.write()),
            ..ConfigMap::default()
        };
        let written = match is_new {
            true => api.create(&PostParams::default(), &map).await,
            false => api.replace(&name, &PostParams::default(), &map).await,
        };
        match written {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 || (status.code == 404 && !is_new) => {}
            Err(error) => return Err(from_kube("cannot write the history", &error)),
        }
    }
    Err(others_write())
}

/// The failure when others always get ahead.
pub(super) fn others_write() -> Failure {
    Failure::new("cannot write the history", "it keeps being changed by others")
        .advice("the next command writes it down")
}
