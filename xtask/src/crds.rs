//! `cargo xtask crds`: the CRDs under `config/base/crd/` are generated from the Rust types.

use std::fs;

use anyhow::{Context as _, Result, bail};

/// Writes the files, or only compares them.
pub(crate) fn run(check: bool) -> Result<()> {
    let folder = crate::root().join("config/base/crd");
    let wanted = compute_api::crds::files();
    let mut stale = Vec::new();
    for (name, content) in &wanted {
        let path = folder.join(name);
        let found = fs::read_to_string(&path).unwrap_or_default();
        if found == *content {
            continue;
        }
        if check {
            stale.push(name.clone());
        } else {
            fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
            println!("wrote config/base/crd/{name}");
        }
    }
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if wanted.iter().all(|(wanted, _)| *wanted != name) {
            stale.push(format!("{name} (not generated)"));
        }
    }
    if !stale.is_empty() {
        bail!(
            "config/base/crd/ is stale: {}\nrun `cargo xtask crds` and commit the result",
            stale.join(", ")
        );
    }
    Ok(())
}
