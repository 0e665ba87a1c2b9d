//! Everything that is deployed, on the planes of an embedded server. Real API servers get the same by `cargo xtask config apply`.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::apply::{Cluster, group};
use super::{Plane, TARGETS, check};
use crate::clients::server::Server;
use crate::clients::tools::Kubectl;

/// Groups of Kubernetes that a control plane without nodes does not serve. Their objects are checked against its types instead.
const NOT_SERVED: [&str; 3] = ["apps", "policy", "networking.k8s.io"];

/// Builds everything, looks at it, and applies it twice.
pub(super) fn test(kubectl: &Kubectl) -> Result<()> {
    let mut built = Vec::new();
    for target in TARGETS {
        let objects = target.build(kubectl)?;
        check::all(&objects).with_context(|| target.folder.to_owned())?;
        built.push((target, objects));
    }
    let server = Server::start(kubectl)?;
    for (target, objects) in built {
        let context = match target.plane {
            // A cluster to run in serves what core serves, as far as this test goes.
            Plane::Management | Plane::Core => "core",
            Plane::Project => "project-demo",
            Plane::Hub => "hub",
            Plane::Cell => "cell-dfw",
            Plane::Single => "cell-iad",
        };
        let cluster = Cluster { kubectl, kubeconfig: server.kubeconfig(), context: Some(context.to_owned()) };
        let served: Vec<Value> =
            objects.iter().filter(|object| !NOT_SERVED.contains(&group(object).as_str())).cloned().collect();
        cluster.apply_stand_ins(&served).with_context(|| target.folder.to_owned())?;
        for _ in 0..2 {
            cluster.apply(&served).with_context(|| target.folder.to_owned())?;
        }
        println!("{}: {} objects, {} applied to {context}", target.folder, objects.len(), served.len());
    }
    Ok(())
}
