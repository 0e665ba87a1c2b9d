//! `deploy -f`: what a manifest says, after it has been shown what that changes.

use compute_api::compute::Workload;
use compute_core::meta;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, TypeMeta};
use serde_json::{Value, json};

use super::{Diff, Options, ask, dry_run, full_diff, plan_of, say_written, show, watch};
use crate::change::{self, Change, Meanwhile, Wanted};
use crate::commands::follow::Ended;
use crate::commands::is_for_people;
use crate::commands::rollout::Following;
use crate::failure::{Failure, Result, from_kube};
use crate::fetch::{self, Found};
use crate::invocation::quoted;
use crate::manifest::{self, Document};
use crate::render;
use crate::session::Session;

/// Whose fields a manifest's other objects are.
const MANAGER: &str = "datumctl-compute";

/// What becomes of an object that is no workload.
const NEW: &str = "new";
const AS_IT_IS: &str = "unchanged";

/// One document, and what there is of it already.
struct Planned {
    document: Document,
    base: Option<Found>,
    wanted: Wanted,
}

impl Planned {
    /// Whether it is like that already.
    fn is_there(&self) -> bool {
        self.base.as_ref().is_some_and(|base| change::is_same(base, &self.wanted))
    }
}

pub(super) async fn run(session: &Session, options: &Options, path: &str) -> Result<()> {
    let documents = manifest::read(path)?;
    check_namespaces(session, &documents)?;
    session.enabled().await?;
    let (workloads, others): (Vec<_>, Vec<_>) = documents.into_iter().partition(Document::is_workload);
    let mut planned = Vec::new();
    for document in workloads {
        let base = fetch::workload(session, &document.name).await?;
        let wanted =
            Wanted { spec: document.object["spec"].clone(), metadata: document.object["metadata"].clone() };
        planned.push(Planned { document, base, wanted });
    }
    if options.dry_run {
        for document in &others {
            let news = apply(session, document, true).await?;
            session.io.say(&format!("{} {}: {news}\n", document.noun(), document.name));
        }
        for one in &planned {
            dry_run(session, &change_of(one), one.base.as_ref(), &one.wanted, options.diff).await?;
        }
        return Ok(());
    }
    let mut changes_something = false;
    for one in planned.iter().filter(|one| !one.is_there()) {
        let plan = plan_of(session, &one.document.name, one.base.as_ref(), &one.wanted).await?;
        changes_something = true;
        session.io.say(&match options.diff {
            Diff::Words => render::plan::changes(&plan, session.io.err),
            Diff::Full => full_diff(one.base.as_ref(), &one.wanted, session),
        });
    }
    let mut has_news = false;
    for document in &others {
        let news = apply(session, document, true).await?;
        changes_something |= news != AS_IT_IS;
        has_news |= news == NEW;
        session.io.say(&format!("{} {}: {news}\n", document.noun(), document.name));
    }
    if changes_something && !options.yes {
        if !session.io.can_ask {
            return Err(Failure::usage(
                format!("cannot deploy {path}"),
                "this needs confirmation, and there is no terminal to ask on",
            )
            .next(format!("deploy -f {} -y", quoted(path)), "deploy it without being asked"));
        }
        if !ask::confirm("Deploy that?", true)? {
            return Err(said_no(path));
        }
    }
    // All or nothing, as far as that can be known: what names something new is not good before that is there.
    if !has_news {
        for one in planned.iter().filter(|one| !one.is_there()) {
            change::rehearse(session, &change_of(one), one.base.as_ref(), &one.wanted).await?;
        }
    }
    // What workloads name comes before them.
    for document in &others {
        apply(session, document, false).await?;
    }
    let mut all = Vec::new();
    for one in planned {
        let wanted = one.wanted.clone();
        let change = change_of(&one);
        let written = change::make(session, &change, one.base.clone(), |_| Ok(wanted.clone())).await?;
        say_written(session, &written);
        all.push(written.workload);
    }
    follow_all(session, &all, &options.following).await
}

/// Follows one after the other, and shows what came of all.
async fn follow_all(session: &Session, all: &[Workload], following: &Following) -> Result<()> {
    for one in all {
        if watch(session, one, following).await? == Ended::Detached {
            return Ok(());
        }
    }
    let is_followed = !following.no_wait || following.wait;
    if is_followed || !is_for_people(session.output) {
        let names: Vec<&str> = all.iter().map(|one| meta::name(&one.metadata)).collect();
        show(session, &names).await?;
    }
    Ok(())
}

/// The failure when it is not meant.
pub(crate) fn said_no(path: &str) -> Failure {
    Failure::new(format!("{path} is not deployed"), "you said no; nothing was written")
        .next(format!("deploy -f {}", quoted(path)), "see it again")
}

fn change_of(one: &Planned) -> Change<'_> {
    let name = &one.document.name;
    Change {
        name,
        action: "deploy".to_owned(),
        what: format!("cannot deploy {name}"),
        // A file says everything, so it would undo what somebody else has just done.
        meanwhile: Meanwhile::Stop,
    }
}

/// A manifest goes into one namespace: the one that is worked in.
fn check_namespaces(session: &Session, documents: &[Document]) -> Result<()> {
    let other = documents.iter().find_map(|document| {
        let namespace = document.object["metadata"]["namespace"].as_str()?;
        (namespace != session.namespace).then_some((&document.name, namespace))
    });
    match other {
        None => Ok(()),
        Some((name, namespace)) => Err(Failure::usage(
            format!("cannot deploy {name}"),
            format!("the file puts it into namespace {namespace}, and you work in {}", session.namespace),
        )
        .advice(format!("give --namespace {namespace}, or take the namespace out of the file"))),
    }
}

/// Applies an object that is no workload; what that changes, in a word.
async fn apply(session: &Session, document: &Document, dry_run: bool) -> Result<&'static str> {
    let what = format!("cannot apply {} {}", document.noun(), document.name);
    let kind = ApiResource {
        group: document.group().to_owned(),
        version: document.version().to_owned(),
        api_version: document.api_version.clone(),
        kind: document.kind.clone(),
        plural: format!("{}s", document.kind.to_lowercase()),
    };
    let api: Api<DynamicObject> = Api::namespaced_with(session.client.clone(), &session.namespace, &kind);
    let before = api.get_opt(&document.name).await.map_err(|error| from_kube(what.clone(), &error))?;
    let mut object: DynamicObject = serde_json::from_value(document.object.clone()).map_err(|_| {
        Failure::usage(what.clone(), "the document is not an object").advice("check the manifest")
    })?;
    object.types = Some(TypeMeta { api_version: document.api_version.clone(), kind: document.kind.clone() });
    let params = PatchParams { dry_run, ..PatchParams::apply(MANAGER).force() };
    let stored = api.patch(&document.name, &params, &Patch::Apply(&object)).await;
    let stored = stored.map_err(|error| from_kube(what, &error))?;
    Ok(match before {
        None => NEW,
        Some(before) if before.data == stored.data => AS_IT_IS,
        Some(_) => "changed",
    })
}

/// A workload as a manifest: what a person would write.
pub(super) fn manifest_of(found: &Found) -> String {
    let mut metadata = json!({ "name": meta::name(&found.workload.metadata) });
    if let Some(labels) = found.object.metadata.labels.as_ref().filter(|labels| !labels.is_empty()) {
        metadata["labels"] = json!(labels);
    }
    let mut spec = found.spec().clone();
    if spec["paused"] == Value::Bool(false) {
        spec.as_object_mut().map(|fields| fields.remove("paused"));
    }
    let object = json!({
        "apiVersion": compute_api::compute::API_VERSION, "kind": "Workload", "metadata": metadata, "spec": spec,
    });
    serde_saphyr::to_string(&object).unwrap_or_default()
}
