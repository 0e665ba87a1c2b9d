//! kubectl: what it prints and how it ends, command by command, against what it does on a Kubernetes cluster.

mod apply;
mod auth;
mod crd;
mod create;
mod delete;
mod describe;
mod discovery;
mod dry_run;
mod events;
mod get;
mod patch;
mod planes;
mod server_side_apply;
mod wait;
mod watch;

use super::harness::{Report, Topic};
use super::server::Server;
use super::tools::Kubectl;

/// Runs the cases of a topic.
type Cases = fn(&mut Topic<'_>);

/// Runs all cases.
pub(super) fn run(kubectl: &Kubectl, server: &Server, report: &mut Report) {
    let topics: &[(&'static str, Cases)] = &[
        ("discovery", discovery::cases),
        ("create", create::cases),
        ("get", get::cases),
        ("watch", watch::cases),
        ("describe", describe::cases),
        ("apply", apply::cases),
        ("server-side-apply", server_side_apply::cases),
        ("dry-run", dry_run::cases),
        ("patch", patch::cases),
        ("wait", wait::cases),
        ("delete", delete::cases),
        ("crd", crd::cases),
        ("events", events::cases),
        ("planes", planes::cases),
        ("auth", auth::cases),
    ];
    for (name, cases) in topics {
        cases(&mut Topic::new(name, kubectl, server, report));
    }
}

/// A ConfigMap with these lines as its data (`key: value`).
fn config_map(name: &str, data: &[&str]) -> String {
    let data: String = data.iter().map(|line| format!("  {line}\n")).collect();
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n{data}")
}

/// `object` with one more line of metadata.
fn with_metadata(object: &str, line: &str) -> String {
    object.replacen("metadata:\n", &format!("metadata:\n  {line}\n"), 1)
}

/// A reference to a ConfigMap as an owner.
fn owner_reference(name: &str, uid: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, name: {name}, uid: {uid}, blockOwnerDeletion: true}}")
}

/// `pod`, placed on `node`.
fn on_node(pod: &str, node: &str) -> String {
    pod.replacen("spec:\n", &format!("spec:\n  nodeName: {node}\n"), 1)
}

/// A pod with two containers, `app` and `side`.
fn pod(name: &str, image: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  containers:
  - {{name: app, image: '{image}'}}
  - {{name: side, image: 'busybox:1'}}
"
    )
}

/// A workload with one container in one city.
fn workload(name: &str, image: &str) -> String {
    format!(
        "apiVersion: compute.datumapis.com/v1alpha
kind: Workload
metadata:
  name: {name}
spec:
  template:
    spec:
      networkInterfaces:
      - network: {{name: default}}
      runtime:
        resources: {{instanceType: datumcloud/d1-standard-2}}
        sandbox:
          containers:
          - {{name: app, image: '{image}'}}
  placements:
  - name: us
    cityCodes: [DFW]
    scaleSettings: {{minReplicas: 1}}
"
    )
}

/// A deployment of a workload with this many replicas.
fn workload_deployment(name: &str, replicas: u32) -> String {
    format!(
        "apiVersion: compute.datumapis.com/v1alpha
kind: WorkloadDeployment
metadata:
  name: {name}
spec:
  workloadRef: {{name: web, uid: 11111111-2222-3333-4444-555555555555}}
  placementName: us
  cityCode: DFW
  replicas: {replicas}
  scaleSettings: {{minReplicas: 1}}
  template:
    spec:
      networkInterfaces:
      - network: {{name: default}}
      runtime:
        resources: {{instanceType: datumcloud/d1-standard-2}}
        sandbox:
          containers:
          - {{name: app, image: 'nginx:1'}}
"
    )
}
