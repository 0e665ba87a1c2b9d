//! `cargo xtask cli-docs`: the reference and the man pages of `datumctl-compute` are made from its own help.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

/// Writes the files, or only compares them.
pub(crate) fn run(check: bool) -> Result<()> {
    let docs = crate::root().join("docs");
    let mut wanted: Vec<(PathBuf, String)> = vec![("cli.md".into(), compute_cli::reference::markdown())];
    let pages = compute_cli::reference::man_pages().context("cannot make the man pages")?;
    wanted.extend(pages.into_iter().map(|(name, page)| (PathBuf::from("man").join(name), page)));
    let mut stale = Vec::new();
    for (name, content) in &wanted {
        let path = docs.join(name);
        if fs::read_to_string(&path).unwrap_or_default() == *content {
            continue;
        }
        if check {
            stale.push(name.display().to_string());
            continue;
        }
        let folder = path.parent().context("a file is in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote docs/{}", name.display());
    }
    for entry in fs::read_dir(docs.join("man")).context("cannot read docs/man")? {
        let name = PathBuf::from("man").join(entry?.file_name());
        if wanted.iter().all(|(wanted, _)| *wanted != name) {
            stale.push(format!("{} (not generated)", name.display()));
        }
    }
    if !stale.is_empty() {
        bail!("docs/ is stale: {}\nrun `cargo xtask cli-docs` and commit the result", stale.join(", "));
    }
    Ok(())
}
