//! What `/proc` tells about processes.
//!
//! A process is known by its id, when it started, and in which boot of the machine: the system gives ids out again, but not at the same tick.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A process, told apart from every other that had or will have its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) pid: u32,
    /// Clock ticks from the machine's boot to its start.
    pub(crate) started: u64,
    /// The machine's boot.
    pub(crate) boot: String,
}

/// What a process takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Memory that is resident now, in bytes.
    pub resident_bytes: u64,
    /// Processor time since its start, in seconds.
    pub cpu_seconds: f64,
}

/// The parts of `/proc/<pid>/stat` that are used here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    ended: bool,
    cpu_ticks: u64,
    started: u64,
    resident_pages: u64,
}

/// The second field is the program's name in parentheses and may hold anything, so fields are counted from the last parenthesis.
fn parse(stat: &str) -> Option<Stat> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        // A process that has ended stays in the table until its parent asks how; it holds nothing any more.
        ended: matches!(*fields.first()?, "Z" | "X" | "x"),
        cpu_ticks: number(11)? + number(12)?,
        started: number(19)?,
        resident_pages: number(21)?,
    })
}

fn stat(pid: u32) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?).filter(|stat| !stat.ended)
}

fn boot() -> Result<String, Error> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    Ok(fs::read_to_string(path).map_err(Error::file("read", path))?.trim().to_owned())
}

impl Identity {
    /// The process that has this id now, if one runs.
    pub(crate) fn of(pid: u32) -> Result<Option<Self>, Error> {
        let boot = boot()?;
        Ok(stat(pid).map(|stat| Self { pid, started: stat.started, boot }))
    }

    /// Whether this very process runs.
    pub(crate) fn runs(&self) -> bool {
        self.stat().is_some()
    }

    /// What it takes now; `None` if it does not run.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let stat = self.stat()?;
        let seconds = |ticks: u64| ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
        Some(Usage {
            resident_bytes: stat.resident_pages * rustix::param::page_size() as u64,
            cpu_seconds: seconds(stat.cpu_ticks),
        })
    }

    fn stat(&self) -> Option<Stat> {
        if boot().ok()? != self.boot {
            return None;
        }
        stat(self.pid).filter(|stat| stat.started == self.started)
    }
}

/// The variable that every process of a stack has in its environment: the state folder and its name, as [`mark`] joins them.
pub(crate) const MARK: &str = "COMPUTE_REALSTACK_PROCESS";

/// The mark of a process of the stack in `folder`.
pub(crate) fn mark(folder: &Path, name: &str) -> OsString {
    let mut mark = folder.as_os_str().to_owned();
    mark.push("#");
    mark.push(name);
    mark
}

/// The environment of a process. The kernel shows it a moment after a program has been started, and nothing until then.
fn environment(process: &Path) -> std::io::Result<Vec<u8>> {
    const LOOKS: usize = 20;
    const PAUSE: Duration = Duration::from_millis(1);
    let path = process.join("environ");
    for _ in 1..LOOKS {
        let environment = fs::read(&path)?;
        // Threads of the kernel run no program and have none.
        if !environment.is_empty() || fs::read_link(process.join("exe")).is_err() {
            return Ok(environment);
        }
        std::thread::park_timeout(PAUSE);
    }
    fs::read(&path)
}

/// Every process of this user that carries a mark of the stack in `folder`, with its name.
pub(crate) fn marked(folder: &Path) -> Result<Vec<(String, Identity)>, Error> {
    let mut wanted = OsString::from(MARK);
    wanted.push("=");
    wanted.push(mark(folder, ""));
    let proc = Path::new("/proc");
    let mut found = Vec::new();
    for entry in fs::read_dir(proc).map_err(Error::file("read", proc))? {
        let entry = entry.map_err(Error::file("read", proc))?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // Of other users' processes, and of those that end just now, nothing is told.
        let Ok(environment) = environment(&entry.path()) else { continue };
        let Some(name) =
            environment.split(|&byte| byte == 0).find_map(|one| one.strip_prefix(wanted.as_bytes()))
        else {
            continue;
        };
        if let Some(identity) = Identity::of(pid)? {
            found.push((String::from_utf8_lossy(name).into_owned(), identity));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.pid.cmp(&b.1.pid)));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_shifts_no_field() {
        let line =
            "42 (a) b) (c) S 1 42 42 0 -1 4194304 100 0 0 0 7 5 0 0 20 0 9 0 123456 1000000 250 1844 0";
        assert_eq!(
            parse(line),
            Some(Stat { ended: false, cpu_ticks: 12, started: 123_456, resident_pages: 250 })
        );
        assert_eq!(parse(&line.replace(" S ", " Z ")).map(|stat| stat.ended), Some(true));
        assert_eq!(parse("nonsense"), None);
        assert_eq!(parse("1 (x) S 2"), None);
    }

    #[test]
    fn this_process_is_itself_and_nobody_else() {
        let this = Identity::of(std::process::id()).unwrap().unwrap();
        assert!(this.runs());
        assert!(this.usage().unwrap().resident_bytes > 0);
        let earlier = Identity { started: this.started - 1, ..this.clone() };
        assert!(!earlier.runs(), "an id that was given out again is another process");
        let before = Identity { boot: "another boot".into(), ..this };
        assert!(!before.runs() && before.usage().is_none());
    }

    #[test]
    fn a_process_is_found_by_its_mark() {
        let folder = Path::new("/nowhere/a stack");
        assert_eq!(marked(folder).unwrap(), []);
        let mut sleep = std::process::Command::new("sleep");
        let mut child = sleep.arg("60").env(MARK, mark(folder, "etcd")).spawn().unwrap();
        // Between fork and exec a child still has its parent's environment; spawn returns when exec cannot fail any more.
        let found = marked(folder).unwrap();
        let beside = marked(Path::new("/nowhere/a")).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(
            found.iter().map(|(name, one)| (name.as_str(), one.pid)).collect::<Vec<_>>(),
            [("etcd", child.id())]
        );
        assert!(!found[0].1.runs());
        assert_eq!(beside, [], "a folder whose path begins the same is another stack");
    }
}
