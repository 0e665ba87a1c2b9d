//! `compute-local status`.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::data_dir::DataDir;

/// A plane that has not answered by then is shown as such.
const PATIENCE: Duration = Duration::from_secs(3);

/// Shows the running platform and asks every plane how it is.
pub(crate) async fn run(dir: &DataDir) -> Result<()> {
    if !dir.is_taken()? {
        bail!(
            "the platform is not running (data directory {})\n  start it:  compute-local up",
            dir.path().display()
        );
    }
    let running = dir.running().context("the platform is just starting or stopping; try again")?;
    let kubeconfig = Kubeconfig::read_from(dir.kubeconfig()).context("cannot read the kubeconfig")?;
    println!("The platform is up at {} (process {})", running.url, running.pid);
    println!("kubeconfig: {}\n", dir.kubeconfig().display());
    let width = running.contexts.iter().map(String::len).max().unwrap_or(0).max("PLANE".len());
    println!("{:width$}  STATE", "PLANE");
    let mut silent = 0;
    for context in &running.contexts {
        let state = match tokio::time::timeout(PATIENCE, ask(&kubeconfig, context)).await {
            Ok(Ok(())) => "ready".to_owned(),
            Ok(Err(error)) => {
                silent += 1;
                format!("not ready: {error:#}")
            }
            Err(_) => {
                silent += 1;
                format!("no answer within {} s", PATIENCE.as_secs())
            }
        };
        println!("{context:width$}  {state}");
    }
    if silent > 0 {
        bail!("{silent} of {} planes are not ready", running.contexts.len());
    }
    Ok(())
}

async fn ask(kubeconfig: &Kubeconfig, context: &str) -> Result<()> {
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    let config = kube::Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await?;
    let client = kube::Client::try_from(config)?;
    let answer = client.request_text(http::Request::get("/readyz").body(Vec::new())?).await?;
    if answer == "ok" { Ok(()) } else { bail!("{answer}") }
}
