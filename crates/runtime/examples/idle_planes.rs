//! What an idle plane with two watches costs the process: `cargo run --release --example idle_planes [planes]`.
//!
//! The planes live in an embedded server in the same process. Their own cost is measured apart, and so is that of the clients.

use std::error::Error;
use std::sync::Arc;

use compute_apiserver::{ApiServer, Identity, Options, PlaneName};
use compute_runtime::{Plane, PlaneId, Planes, Runtime};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(2000), |count| count.parse())?;
    let server = ApiServer::new(Options::default());
    let template = server.template(&[]).await?;
    let runtime = Runtime::system();
    let planes = Planes::new(&runtime);
    let mut resident = Resident::new()?;
    let mut names = Vec::new();
    for n in 0..count {
        let name = PlaneName::new(&format!("project-{n}"))?;
        server.create_plane(name.clone(), &template).await?;
        names.push(name);
    }
    resident.since("server's plane", count)?;
    for name in &names {
        let client = Client::new(server.service(name, Identity::superuser("manager")), "default");
        planes.engage(&Plane::new(&runtime, PlaneId::new(name.to_string()), client));
    }
    resident.since("engaged plane and its client", count)?;
    let engaged = planes.all();
    let caches: Vec<_> =
        engaged.iter().map(|plane| (plane.cache::<ConfigMap>(), plane.cache::<Secret>())).collect();
    for (one, two) in &caches {
        one.synced().await?;
        two.synced().await?;
    }
    while !caches.iter().all(|(one, two)| one.is_connected() && two.is_connected()) {
        tokio::task::yield_now().await;
    }
    resident.since("two idle watches", count)?;
    println!("kept {} caches", Arc::new(caches).len() * 2);
    Ok(())
}

struct Resident(i64);

impl Resident {
    fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self(resident_bytes()?))
    }

    fn since(&mut self, what: &str, count: usize) -> Result<(), Box<dyn Error>> {
        let now = resident_bytes()?;
        println!("{what}: {} bytes each", (now - self.0) / i64::try_from(count.max(1))?);
        self.0 = now;
        Ok(())
    }
}

fn resident_bytes() -> Result<i64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<i64>()? * 1024)
}
