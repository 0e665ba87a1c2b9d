//! What a kustomization builds to, by the kustomize that is in kubectl.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// As YAML.
pub(super) fn text(kubectl: &Path, folder: &Path) -> Result<String> {
    let output = Command::new(kubectl)
        .arg("kustomize")
        .arg(folder)
        .output()
        .context("cannot run kubectl kustomize")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{} does not build: {}", folder.display(), said.trim());
    }
    // It warns of what it will not understand much longer.
    if !said.trim().is_empty() {
        bail!("{} builds with warnings: {}", folder.display(), said.trim());
    }
    String::from_utf8(output.stdout).context("kustomize writes UTF-8")
}

/// As objects, in the order in which they are to be applied.
pub(super) fn objects(kubectl: &Path, folder: &Path) -> Result<Vec<Value>> {
    read(&text(kubectl, folder)?).with_context(|| format!("what {} builds to", folder.display()))
}

/// The objects of a YAML file.
pub(super) fn read(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).context("cannot be read")?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}
