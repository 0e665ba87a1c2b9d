//! Applies objects to an API server: server-side, strictly, and again without a change.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::build;
use crate::clients::process::Process;
use crate::clients::tools::Kubectl;

/// Whose the fields are.
const MANAGER: &str = "--field-manager=compute-install";
/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// An API server, and the way to it.
pub(crate) struct Cluster<'a> {
    /// What talks to it.
    pub(crate) kubectl: &'a Kubectl,
    /// How it is reached.
    pub(crate) kubeconfig: PathBuf,
    /// Which context of it; none for its current one.
    pub(crate) context: Option<String>,
}

impl Cluster<'_> {
    /// Applies objects. A field that the server does not know is an error, and so is a warning.
    pub(crate) fn apply(&self, objects: &[Value]) -> Result<()> {
        // One after the other: kubectl does not validate what is in a List.
        let documents: Vec<_> = objects.iter().map(Value::to_string).collect();
        let arguments =
            ["apply", "--server-side", "--force-conflicts", "--validate=strict", MANAGER, "-f", "-"];
        self.run(&arguments, &documents.join("\n")).map(drop)
    }

    /// Deletes the webhook configurations among objects.
    pub(crate) fn delete_webhooks(&self, objects: &[Value]) -> Result<()> {
        let webhooks =
            objects.iter().filter(|object| text(object, "/kind").ends_with("WebhookConfiguration"));
        let documents: Vec<_> = webhooks.map(Value::to_string).collect();
        if documents.is_empty() {
            return Ok(());
        }
        self.run(&["delete", "--filename=-"], &documents.join("\n")).map(drop)
    }

    /// Applies the stand-ins for what others bring: the kinds among `objects` that the server lacks, until they are served, and the namespaces
    /// that these are in.
    pub(crate) fn apply_stand_ins(&self, objects: &[Value]) -> Result<()> {
        let used: BTreeSet<_> = objects.iter().map(|object| (group(object), text(object, "/kind"))).collect();
        let mut wanted = stand_ins()?;
        wanted.retain(|crd| used.contains(&(text(crd, "/spec/group"), text(crd, "/spec/names/kind"))));
        let there = self.run(&["get", "crd", "--output=name"], "")?;
        let there: BTreeSet<_> =
            there.lines().filter_map(|name| name.split_once('/')).map(|(_, name)| name).collect();
        wanted.retain(|crd| !there.contains(text(crd, "/metadata/name").as_str()));
        if !wanted.is_empty() {
            self.apply(&wanted)?;
            let names: Vec<_> =
                wanted.iter().map(|crd| format!("crd/{}", text(crd, "/metadata/name"))).collect();
            let mut arguments = vec!["wait", "--for=condition=Established", "--timeout=60s"];
            arguments.extend(names.iter().map(String::as_str));
            self.run(&arguments, "")?;
        }
        let brought: BTreeSet<_> = objects
            .iter()
            .filter(|object| text(object, "/kind") == "Namespace")
            .map(|namespace| text(namespace, "/metadata/name"))
            .collect();
        let lived_in: BTreeSet<_> =
            objects.iter().map(|object| text(object, "/metadata/namespace")).collect();
        let missing: Vec<_> = lived_in
            .difference(&brought)
            .filter(|name| !name.is_empty())
            .map(|name| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }))
            .collect();
        if missing.is_empty() { Ok(()) } else { self.apply(&missing) }
    }

    /// What kubectl prints.
    fn run(&self, arguments: &[&str], stdin: &str) -> Result<String> {
        let mut command = Command::new(&self.kubectl.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        if let Some(context) = &self.context {
            command.args(["--context", context]);
        }
        command.args(arguments).env("LC_ALL", "C").env_remove("KUBECONFIG");
        let shown = format!(
            "kubectl {} ({})",
            arguments.join(" "),
            self.context.as_deref().unwrap_or("current context")
        );
        let output = Process::start(&mut command, shown, stdin)?.wait(PATIENCE)?;
        if output.code != Some(0) || output.stderr.contains("Warning:") {
            bail!("{output}");
        }
        Ok(output.stdout)
    }
}

/// Definitions of the kinds of others that `config/` uses.
fn stand_ins() -> Result<Vec<Value>> {
    let folder = crate::root().join("xtask/stand-ins");
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)?;
        found.extend(build::read(&text).with_context(|| path.display().to_string())?);
    }
    Ok(found)
}

/// The API group of an object.
pub(super) fn group(object: &Value) -> String {
    let version = text(object, "/apiVersion");
    version.split_once('/').map_or_else(String::new, |(group, _)| group.to_owned())
}

/// Text somewhere in an object; empty if it is not there.
pub(super) fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}
