//! The columns of pods: what is going on in them, told in one word.
//!
//! The status is the phase, unless something says more: the reason of the pod itself, the first init
//! container that has not done its part, the containers (the first one weighs most), or that the pod is
//! being deleted.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    AGE_COLUMN, Column, NAME_COLUMN, age, age_cell, at, column, list, name_cell, number, text, text_or, wide,
};

pub(super) const COLUMNS: &[Column] = &[
    NAME_COLUMN,
    column("Ready", "The aggregate readiness state of this pod for accepting traffic."),
    column("Status", "The aggregate status of the containers in this pod."),
    column(
        "Restarts",
        "The number of times the containers in this pod have been restarted and when the last container in \
            this pod has restarted.",
    ),
    AGE_COLUMN,
    wide("IP", "podIP address allocated to the pod. Routable at least within the cluster."),
    wide("Node", "NodeName indicates in which node this pod is scheduled."),
    wide(
        "Nominated Node",
        "nominatedNodeName is set only when this pod preempts other pods on the node, but it cannot be \
            scheduled right away.",
    ),
    wide("Readiness Gates", "If specified, all readiness gates will be evaluated for pod readiness."),
];

const NONE: &str = "<none>";

/// Restarts and the moment of the last one.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += number(container, "restartCount");
        let finished = text(container, "lastState.terminated.finishedAt").parse().ok();
        self.last = self.last.max(finished);
    }
}

struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: Restarts,
}

pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = summarize(pod);
    let restarts = match summary.restarts {
        Restarts { count, last: Some(last) } if count != 0 => {
            format!("{count} ({} ago)", age::since_time(last, now))
        }
        Restarts { count, .. } => count.to_string(),
    };
    let address = list(pod, "status.podIPs").first().map_or("", |entry| text(entry, "ip"));
    vec![
        name_cell(pod),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        age_cell(pod, now),
        if address.is_empty() { text_or(pod, "status.podIP", NONE) } else { address }.into(),
        text_or(pod, "spec.nodeName", NONE).into(),
        text_or(pod, "status.nominatedNodeName", NONE).into(),
        readiness_gates(pod).into(),
    ]
}

/// Pods that are over are marked, so that clients can leave them out.
pub(super) fn row_conditions(pod: &Value) -> Option<Value> {
    let message = match text(pod, "status.phase") {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    let reason = text(pod, "status.phase");
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

fn summarize(pod: &Value) -> Summary {
    let conditions = list(pod, "status.conditions");
    let phase = text(pod, "status.phase");
    let gated = conditions.iter().any(|condition| {
        text(condition, "type") == "PodScheduled" && text(condition, "reason") == "SchedulingGated"
    });
    let reason = if gated { "SchedulingGated" } else { text_or(pod, "status.reason", phase) };

    let sidecars = list(pod, "spec.initContainers").iter().filter(|container| is_sidecar(container)).count();
    let mut summary = Summary {
        reason: reason.to_owned(),
        ready: 0,
        total: list(pod, "spec.containers").len() + sidecars,
        restarts: Restarts::default(),
    };
    let (initializing, sidecar_restarts) = init_containers(pod, &mut summary);
    if !initializing || is_true(conditions, "Initialized") {
        summary.restarts = sidecar_restarts;
        containers(pod, &mut summary);
    }

    if !at(pod, "metadata.deletionTimestamp").is_null() {
        if text(pod, "status.reason") == "NodeLost" {
            summary.reason = "Unknown".to_owned();
        } else if !matches!(phase, "Succeeded" | "Failed") {
            summary.reason = "Terminating".to_owned();
        }
    }
    summary
}

/// Tells of the first init container that has not done its part. Returns whether there is one, and the
/// restarts of the sidecars up to there.
fn init_containers(pod: &Value, summary: &mut Summary) -> (bool, Restarts) {
    let specs = list(pod, "spec.initContainers");
    let mut sidecar_restarts = Restarts::default();
    for (at_index, container) in list(pod, "status.initContainerStatuses").iter().enumerate() {
        let name = text(container, "name");
        let sidecar = specs.iter().any(|spec| text(spec, "name") == name && is_sidecar(spec));
        summary.restarts.add(container);
        if sidecar {
            sidecar_restarts.add(container);
        }
        let terminated = at(container, "state.terminated");
        if terminated.is_object() && number(terminated, "exitCode") == 0 {
            continue;
        }
        if sidecar && at(container, "started") == &Value::Bool(true) {
            summary.ready += usize::from(at(container, "ready") == &Value::Bool(true));
            continue;
        }
        summary.reason = if terminated.is_object() {
            format!("Init:{}", ended(terminated))
        } else {
            match text(container, "state.waiting.reason") {
                "" | "PodInitializing" => format!("Init:{at_index}/{}", specs.len()),
                reason => format!("Init:{reason}"),
            }
        };
        return (true, sidecar_restarts);
    }
    (false, sidecar_restarts)
}

/// Tells of the containers, from the last to the first, so that the first has the last word.
fn containers(pod: &Value, summary: &mut Summary) {
    let mut running = false;
    for container in list(pod, "status.containerStatuses").iter().rev() {
        summary.restarts.add(container);
        let terminated = at(container, "state.terminated");
        let waiting = text(container, "state.waiting.reason");
        if !waiting.is_empty() {
            summary.reason = waiting.to_owned();
        } else if terminated.is_object() {
            summary.reason = ended(terminated);
        } else if at(container, "ready") == &Value::Bool(true) && at(container, "state.running").is_object() {
            running = true;
            summary.ready += 1;
        }
    }
    // One container is done while another runs on: the pod as a whole is not over.
    if running && summary.reason == "Completed" {
        let ready = is_true(list(pod, "status.conditions"), "Ready");
        summary.reason = if ready { "Running" } else { "NotReady" }.to_owned();
    }
}

/// How a container ended: its reason, or else its signal or exit code.
fn ended(terminated: &Value) -> String {
    match (text(terminated, "reason"), number(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// An init container that is kept running beside the others.
fn is_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == "Always"
}

fn is_true(conditions: &[Value], type_: &str) -> bool {
    conditions.iter().any(|condition| text(condition, "type") == type_ && text(condition, "status") == "True")
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, "spec.readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let conditions = list(pod, "status.conditions");
    let open = gates.iter().filter(|gate| is_true(conditions, text(gate, "conditionType"))).count();
    format!("{open}/{}", gates.len())
}
