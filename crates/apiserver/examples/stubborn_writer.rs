//! A writer that does not give up: it creates one object after the other on a server whose planes are kept in a folder, whatever
//! becomes of the disk, and prints for each whether it was acknowledged and how many objects can be read then:
//!
//! ```text
//! cargo run -p compute-apiserver --example stubborn_writer -- /tmp/planes 10000
//! ```

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use compute_apiserver::{ApiServer, Identity, Options, PlaneName};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().context("usage: stubborn_writer FOLDER BYTES")?;
    let bytes: usize = args.next().unwrap_or_default().parse().context("BYTES is a number")?;
    let server = ApiServer::open(Options::default(), Path::new(&folder))?;
    let template = server.template(&[]).await?;
    let plane = PlaneName::new("demo")?;
    server.create_plane(plane.clone(), &template).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::new(
        server.service(&plane, Identity::superuser("writer")),
        "default",
    ));
    let first = maps.list_metadata(&ListParams::default()).await?.items.len();
    let filler = "x".repeat(bytes);
    for number in first.. {
        let name = format!("n{number:06}");
        let map = json!({ "metadata": { "name": name }, "data": { "filler": filler } });
        let made = maps.create(&PostParams::default(), &serde_json::from_value(map)?).await;
        let count = maps.list_metadata(&ListParams::default()).await?.items.len();
        let line = match made {
            Ok(_) => format!("ok {name} {count}\n"),
            Err(kube::Error::Api(status)) => format!("refused {name} {count} {}\n", status.code),
            Err(error) => return Err(error.into()),
        };
        let mut out = std::io::stdout().lock();
        out.write_all(line.as_bytes())?;
        out.flush()?;
    }
    Ok(())
}
