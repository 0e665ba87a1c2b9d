//! Several writers on a server whose planes are kept in a folder. Each write is printed when it is acknowledged, so that
//! whoever reads the output knows what must be there after a crash:
//!
//! ```text
//! cargo run -p compute-apiserver --example durable_writers -- /tmp/planes 8
//! ```

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use compute_apiserver::{ApiServer, Identity, Options, PlaneName};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().context("usage: durable_writers FOLDER WRITERS")?;
    let writers: usize = args.next().unwrap_or_default().parse().context("WRITERS is a number")?;
    let server = ApiServer::open(Options::default(), Path::new(&folder))?;
    let template = server.template(&[]).await?;
    let plane = PlaneName::new("demo")?;
    server.create_plane(plane.clone(), &template).await?;
    let client = Client::new(server.service(&plane, Identity::superuser("writer")), "default");

    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..writers {
        tasks.spawn(write(client.clone(), writer));
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

/// Creates, patches and deletes for ever, and prints `kind name resourceVersion value` for each acknowledged write; value
/// `-` is a deletion.
async fn write(client: Client, writer: usize) -> Result<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let secrets: Api<Secret> = Api::default_namespaced(client);
    for round in 0.. {
        let name = format!("w{writer}-{}", round % 5);
        let filler = "x".repeat(round % 2048);
        match maps.get_opt(&name).await? {
            Some(_) if round % 7 == 3 => {
                maps.delete(&name, &DeleteParams::default()).await?;
                acknowledge(&format!("map {name} 0 -"))?;
            }
            Some(_) => {
                let patch = Patch::Merge(json!({ "data": { "round": round.to_string(), "filler": filler } }));
                let map = maps.patch(&name, &PatchParams::default(), &patch).await?;
                acknowledge(&format!("map {name} {} {round}", map.resource_version().unwrap_or_default()))?;
            }
            None => {
                let data = [("round".to_owned(), round.to_string()), ("filler".to_owned(), filler)].into();
                let mut map = ConfigMap { data: Some(data), ..ConfigMap::default() };
                map.metadata.name = Some(name.clone());
                let map = maps.create(&PostParams::default(), &map).await?;
                acknowledge(&format!("map {name} {} {round}", map.resource_version().unwrap_or_default()))?;
            }
        }
        let patch = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("s{writer}") },
            "stringData": { "round": format!("plaintext-{round}") },
        });
        let params = PatchParams::apply("writer").force();
        let secret = secrets.patch(&format!("s{writer}"), &params, &Patch::Apply(patch)).await?;
        acknowledge(&format!("secret s{writer} {} {round}", secret.resource_version().unwrap_or_default()))?;
    }
    Ok(())
}

/// One line at once, so that lines of several writers do not mix.
fn acknowledge(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush()
}
