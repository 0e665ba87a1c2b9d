//! Taking a stack down.

use std::path::Path;

use futures::future::try_join_all;

use crate::state::Folder;
use crate::{Error, process};

/// Ends every process of the stack in `dir`, whole or not, and removes its data; logs stay. Returns how many processes there were: none is no
/// error.
///
/// # Errors
///
/// If a process cannot be ended, or something cannot be removed.
pub async fn down(dir: &Path) -> Result<usize, Error> {
    let folder = Folder::create(dir)?;
    let lock = folder.lock()?;
    let ended = end_all(&folder).await?;
    folder.clear()?;
    folder.discard(lock)?;
    Ok(ended)
}

/// Ends every process of the stack. Their data goes with them, so none is given time to finish.
pub(crate) async fn end_all(folder: &Folder) -> Result<usize, Error> {
    let processes = folder.processes()?;
    try_join_all(processes.iter().map(|(name, identity)| process::kill(name, identity))).await?;
    Ok(processes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Probe, Process};

    fn sleeper(name: &str) -> Process {
        Process {
            name: name.into(),
            program: "/bin/sleep".into(),
            arguments: vec!["60".into()],
            probe: Probe { base: "http://127.0.0.1:1".into(), path: "/".into(), ca_pem: None },
        }
    }

    #[tokio::test]
    async fn all_processes_go_whether_they_are_written_down_or_not() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("stack");
        let folder = Folder::create(&dir).unwrap();
        let processes = ["one", "two"].map(|name| sleeper(name).spawn(&folder).unwrap());
        std::fs::remove_file(folder.record("two")).unwrap();
        assert_eq!(down(&dir).await.unwrap(), 2);
        assert!(processes.iter().all(|one| !one.runs()));
        let left: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|one| one.unwrap().file_name()).collect();
        assert_eq!(left, ["logs"]);
    }

    #[tokio::test]
    async fn nothing_up_is_nothing_wrong() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(down(&dir.path().join("never")).await.unwrap(), 0);
        assert!(!dir.path().join("never/run").exists());
    }

    #[tokio::test]
    async fn another_command_at_work_is_not_disturbed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::create(dir.path()).unwrap();
        let _lock = folder.lock().unwrap();
        let identity = sleeper("one").spawn(&folder).unwrap();
        assert!(matches!(down(dir.path()).await, Err(Error::Busy { .. })));
        assert!(identity.runs());
        assert_eq!(end_all(&folder).await.unwrap(), 1);
    }
}
