//! What managers asked of API servers, as these wrote it down: what was refused, and which of their rights they used.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use compute_apiserver::audit::{Event, Sink};
use compute_controllers::{cell, management};
use compute_realstack::Server;
use k8s_openapi::api::rbac::v1::PolicyRule;
use parking_lot::Mutex;
use serde_json::Value;

use super::foundation::Foundation;

/// Whose plane a server's is to a manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plane {
    /// Core.
    Core,
    /// A project's.
    Project,
    /// The hub.
    Hub,
    /// A cell.
    Cell,
}

/// Which role a manager has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It serves projects.
    Management,
    /// It serves a cell.
    Cell,
}

/// What may be done: API group, resource with its part, verb.
pub type Right = (String, String, String);

/// How an API server says that a namespace is going.
const TOO_LATE: &str = "because it is being terminated";

/// What was asked.
#[derive(Debug, Default)]
pub struct Asked {
    /// What was done, by whom and where.
    pub used: BTreeMap<(Role, Plane), BTreeSet<Right>>,
    /// What a manager had no right to.
    pub refused: Vec<String>,
}

impl Asked {
    /// Takes one record.
    fn take(&mut self, plane: Option<Plane>, record: &Value) {
        let user = ["impersonatedUser", "user"].into_iter().find_map(|who| record[who]["username"].as_str());
        let name = user.and_then(|user| user.rsplit(':').next()).unwrap_or_default();
        let Some(which) = name.strip_prefix("compute-manager-") else { return };
        let role = if which == "management" { Role::Management } else { Role::Cell };
        let plane = plane.unwrap_or_else(|| match record["annotations"]["control-plane/name"].as_str() {
            Some("core") => Plane::Core,
            _ => Plane::Project,
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &record["objectRef"];
        let resource = match object["subresource"].as_str() {
            Some(part) if !part.is_empty() => format!("{}/{part}", text(&object["resource"])),
            _ => text(&object["resource"]),
        };
        let answer = &record["responseStatus"];
        // What comes too late for a namespace that is going is forbidden to everybody.
        let too_late = answer["message"].as_str().is_some_and(|said| said.ends_with(TOO_LATE));
        if answer["code"] == 403 && !too_late {
            let what = format!("{} {}: {}", record["verb"], record["requestURI"], answer["message"]);
            self.refused.push(format!("{role:?} in {plane:?}: {what}"));
        }
        let used = self.used.entry((role, plane)).or_default();
        let mut use_right = |verb: String| used.insert((text(&object["apiGroup"]), resource.clone(), verb));
        // An apply that makes an object needs both rights, and is written down as one of them.
        if record["verb"] == "patch" && record["responseStatus"]["code"] == 201 {
            use_right("create".to_owned());
        }
        use_right(text(&record["verb"]));
    }
}

/// Remembers what the embedded server was asked by managers.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Asked>);

impl Sink for Memory {
    fn record(&self, event: Event) {
        if let Ok(record) = serde_json::to_value(&event) {
            self.0.lock().take(None, &record);
        }
    }
}

/// The logs of servers elsewhere.
#[derive(Debug, Default)]
pub struct Logs(Vec<Log>);

/// A server's log, from where it ended when this was made.
#[derive(Debug)]
struct Log {
    plane: Plane,
    path: PathBuf,
    from: usize,
    /// Where nothing counts.
    passed_over: Mutex<Vec<Range<usize>>>,
}

impl Logs {
    /// Those of a foundation, if it writes any.
    pub fn of(foundation: &Foundation) -> Self {
        let Some(running) = foundation.running() else { return Self::default() };
        let cells = running.cells().values().map(|cell| (Plane::Cell, &cell.server));
        let servers =
            [(Plane::Project, running.management()), (Plane::Hub, running.hub())].into_iter().chain(cells);
        let log = |(plane, server): (Plane, &Server)| {
            let path = server.audit_log.clone();
            Log { plane, from: length(&path), path, passed_over: Mutex::default() }
        };
        Self(servers.map(log).collect())
    }

    /// Does not count what a server was asked since its log had a length: one that starts knows no roles before it is ready, and refuses everybody.
    pub fn pass_over(&self, server: &Server, since: usize) {
        let log = self.0.iter().find(|log| log.path == server.audit_log).unwrap();
        log.passed_over.lock().push(since..length(&log.path));
    }

    /// What managers asked of all servers.
    pub fn read(&self, memory: &Memory) -> Asked {
        let here = memory.0.lock();
        let mut asked = Asked { used: here.used.clone(), refused: here.refused.clone() };
        for log in &self.0 {
            let text = std::fs::read(&log.path).unwrap();
            let passed_over = log.passed_over.lock();
            let mut next = log.from;
            for line in text[log.from..].split_inclusive(|byte| *byte == b'\n') {
                let start = next;
                next += line.len();
                // A server that is stopped, or at it, leaves half a line.
                let Ok(record) = serde_json::from_slice(line) else { continue };
                if !passed_over.iter().any(|range| range.contains(&start)) {
                    asked.take(Some(log.plane), &record);
                }
            }
        }
        asked
    }
}

/// How long a log is.
pub fn length(path: &Path) -> usize {
    std::fs::metadata(path).map_or(0, |found| usize::try_from(found.len()).unwrap())
}

/// All rights of managers.
pub fn granted() -> BTreeMap<(Role, Plane), BTreeSet<Right>> {
    let mut all: BTreeMap<(Role, Plane), BTreeSet<Right>> = BTreeMap::new();
    let mut grant = |role, plane, rules: Vec<PolicyRule>| {
        for rule in rules {
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    let rights =
                        rule.verbs.iter().map(|verb| (group.clone(), resource.clone(), verb.clone()));
                    all.entry((role, plane)).or_default().extend(rights);
                }
            }
        }
    };
    grant(Role::Management, Plane::Core, management::rbac::core());
    grant(Role::Management, Plane::Core, management::rbac::core_internal());
    grant(Role::Management, Plane::Project, management::rbac::project());
    // The server of the one real project is the cluster that the management role runs in, too.
    grant(Role::Management, Plane::Project, management::rbac::leader_election());
    grant(Role::Management, Plane::Project, compute_admission::rbac::project());
    grant(Role::Management, Plane::Hub, management::rbac::hub());
    grant(Role::Cell, Plane::Cell, cell::rbac::cell());
    grant(Role::Cell, Plane::Cell, cell::rbac::leader_election());
    grant(Role::Cell, Plane::Cell, compute_providers::rbac::cell());
    grant(Role::Cell, Plane::Hub, cell::rbac::hub());
    grant(Role::Cell, Plane::Project, cell::rbac::project());
    all
}
