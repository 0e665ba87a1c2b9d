//! The script of the demo.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use compute_api::compute::Workload;
use compute_api::quota::{AllowanceAmount, RESOURCE_INSTANCES, ResourceGrant};
use compute_local::census::{self, Census};
use compute_local::{Platform, planes};
use compute_platform::quota;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::show::{Show, seconds, table};
use super::watch::Watch;

const PROJECT: &str = "demo";
const WORKLOAD: &str = "hello";
/// Another, which is in its way for a while.
const OTHER: &str = "batch";
const IMAGE: &str = "ghcr.io/example/hello:1.0";
const NEXT_IMAGE: &str = "ghcr.io/example/hello:1.1";
/// Its registry's name resolves nowhere, so no engine can get it.
const BAD_IMAGE: &str = "registry.invalid/hello:2.0";
/// How long the planes may take to be as they were.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tells the story to its end.
pub(super) async fn tell(show: &mut Show, platform: &Platform, began: Instant) -> Result<()> {
    let cities = platform.cities().to_vec();
    platform.until_cells_are_there().await?;
    let before = count(platform).await?;
    show.step("Start the platform");
    show.print(&format!("   planes: {}\n", names(&before)));
    show.done("up", began.elapsed());

    show.step(&format!("Create project {PROJECT}"));
    let step = Instant::now();
    platform.make_project(PROJECT).await?;
    let client = platform.client(&planes::project(PROJECT)?);
    let watch = Watch { client, workload: WORKLOAD };
    let workloads = watch.api::<Workload>();
    show.done("ready, with a network and quota", step.elapsed());

    show.step("Ask for what cannot be");
    let step = Instant::now();
    let answer = workloads.create(&PostParams::default(), &impossible()?).await;
    let Err(kube::Error::Api(refusal)) = answer else { bail!("it was not refused: {answer:?}") };
    for cause in refusal.details.iter().flat_map(|details| &details.causes) {
        show.print(&format!("   {}: {}\n", cause.field, cause.message));
    }
    show.done("refused, with everything that is wrong, and nothing is changed", step.elapsed());

    show.step(&format!("Deploy {WORKLOAD}, image {IMAGE}: 2 instances in each of {}", cities.join(", ")));
    workloads
        .create(&PostParams::default(), &workload(WORKLOAD, &cities, 2)?)
        .await
        .context("cannot create the workload")?;
    let wanted = cities.len();
    let took = watch.until(show, |seen| seen.is_done() && seen.cities.len() == wanted).await?;
    show.done("live in every city", took);
    let peak = count(platform).await?;

    show.step("Scale to 3 instances in each city");
    change(&watch, &json!({ "spec": { "placements": placements(&cities, 3) } })).await?;
    let took = watch.until(show, |seen| seen.is_done() && seen.instances == 3 * wanted).await?;
    show.done("scaled", took);

    show.step(&format!("Let {OTHER} take what is left of the project's quota, and scale {WORKLOAD} to 4"));
    limit_instances(&watch, 4 * wanted).await?;
    workloads.create(&PostParams::default(), &workload(OTHER, &cities, 1)?).await?;
    let other = Watch { workload: OTHER, ..watch.clone() };
    other.until(&mut Show::silent(), |seen| seen.is_done() && seen.cities.len() == wanted).await?;
    change(&watch, &json!({ "spec": { "placements": placements(&cities, 4) } })).await?;
    let took = watch.until(show, |seen| seen.is_stuck(wanted)).await?;
    show.done("denied, and it says what is missing; the other instances serve on", took);

    show.step(&format!("Delete {OTHER}: what it had is free for {WORKLOAD}"));
    workloads.delete(OTHER, &DeleteParams::default()).await.context("cannot delete the workload")?;
    let took = watch.until(show, |seen| seen.is_done() && seen.instances == 4 * wanted).await?;
    show.done("granted", took);

    show.step(&format!("Roll to image {NEXT_IMAGE}, one instance of a city at a time"));
    change(&watch, &image(NEXT_IMAGE)).await?;
    let took = watch.until(show, super::watch::Seen::is_done).await?;
    show.done("every instance runs the new image", took);

    show.step(&format!("Break it with image {BAD_IMAGE}"));
    change(&watch, &image(BAD_IMAGE)).await?;
    let took = watch.until(show, |seen| seen.is_stuck(wanted)).await?;
    show.done("broken, and it says why; the other instances serve on", took);

    show.step(&format!("Heal it with image {NEXT_IMAGE}; nothing else is done"));
    change(&watch, &image(NEXT_IMAGE)).await?;
    let took = watch.until(show, super::watch::Seen::is_done).await?;
    show.done("healed", took);

    show.step(&format!("Delete {WORKLOAD}, then project {PROJECT}"));
    workloads.delete(WORKLOAD, &DeleteParams::default()).await.context("cannot delete the workload")?;
    let took = watch
        .until(show, |seen| seen.workload.is_none() && seen.cities.is_empty() && seen.instances == 0)
        .await?;
    platform.delete_project(PROJECT).await?;
    let step = Instant::now();
    let after = loop {
        let after = count(platform).await?;
        let left = left(&before, &after);
        if left.is_empty() {
            break after;
        }
        if step.elapsed() > PATIENCE {
            bail!("left behind after {} s: {left}", PATIENCE.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    show.done("gone", took + step.elapsed());
    summary(show, began, &before, &peak, &after);
    Ok(())
}

/// Every plane with every object in it.
type Count = BTreeMap<String, Census>;

async fn count(platform: &Platform) -> Result<Count> {
    let mut found = BTreeMap::new();
    for plane in platform.plane_names() {
        match census::take(&platform.client(&plane)).await {
            Ok(census) => {
                found.insert(plane.as_str().to_owned(), census);
            }
            // That of a project may go meanwhile.
            Err(_) if !platform.plane_names().contains(&plane) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// What there is that was not there before.
fn left(before: &Count, after: &Count) -> String {
    let none = Census::default();
    let more = after.iter().filter_map(|(plane, now)| {
        let more = now.beyond(before.get(plane).unwrap_or(&none));
        (!more.is_empty()).then(|| format!("{plane}: {more}"))
    });
    more.collect::<Vec<_>>().join("; ")
}

fn names(count: &Count) -> String {
    count.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn summary(show: &Show, began: Instant, before: &Count, peak: &Count, after: &Count) {
    let total = |count: &Count, plane: &str| match count.get(plane) {
        Some(census) => census.total().to_string(),
        None => "-".to_owned(),
    };
    let rows: Vec<Vec<String>> = peak
        .keys()
        .map(|plane| vec![plane.clone(), total(before, plane), total(peak, plane), total(after, plane)])
        .collect();
    show.print(&format!(
        "\nAll is deleted, nothing left. Objects of each plane, without events:\n\n{}",
        table(&["PLANE", "BEFORE", "DEPLOYED", "AFTER"], &rows)
    ));
    let steps: Vec<Vec<String>> =
        show.steps().iter().map(|(step, took)| vec![step.clone(), seconds(*took)]).collect();
    show.print(&format!(
        "\nWhat it took, {} in all:\n\n{}",
        seconds(began.elapsed()),
        table(&["STEP", "TIME"], &steps)
    ));
    show.print(
        "\nInstances were simulated. Go on by hand:\n\n  \
         compute-local up                        the same platform, to stay\n  \
         export KUBECONFIG=...                   as it says when it is up\n  \
         kubectl apply -f config/samples/        deploy something\n  \
         kubectl get workloads,workloaddeployments,instances\n  \
         kubectl --context cell-dfw get instances -A\n",
    );
}

async fn change(watch: &Watch, patch: &Value) -> Result<()> {
    let workloads = watch.api::<Workload>();
    workloads
        .patch(WORKLOAD, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .context("cannot change the workload")?;
    Ok(())
}

/// Gives the project room for so many instances.
async fn limit_instances(watch: &Watch, count: usize) -> Result<()> {
    let grants: Api<ResourceGrant> = Api::namespaced(watch.client.clone(), quota::NAMESPACE);
    for mut grant in grants.list(&ListParams::default()).await?.items {
        for allowance in &mut grant.spec.allowances {
            if allowance.resource_type == RESOURCE_INSTANCES {
                allowance.buckets = vec![AllowanceAmount { amount: i64::try_from(count)? }];
            }
        }
        let name = grant.metadata.name.clone().unwrap_or_default();
        grants.replace(&name, &PostParams::default(), &grant).await.context("cannot change the quota")?;
    }
    Ok(())
}

fn workload(name: &str, cities: &[String], replicas: u32) -> Result<Workload> {
    let mut object = json!({
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Workload",
        "metadata": { "name": name },
        "spec": { "placements": placements(cities, replicas) },
    });
    object["spec"]["template"] = image(IMAGE)["spec"]["template"].take();
    Ok(serde_json::from_value(object)?)
}

/// A workload with several things wrong.
fn impossible() -> Result<Workload> {
    let mut wanted = workload("wrong", &["ATLANTIS".to_owned()], 2)?;
    wanted.spec.placements[0].scale_settings.max_replicas = Some(1);
    let runtime = &mut wanted.spec.template.spec.runtime;
    runtime.resources.instance_type = "datumcloud/enormous".to_owned();
    if let Some(container) = runtime.sandbox.iter_mut().flat_map(|sandbox| &mut sandbox.containers).next() {
        container.name = "Hello_World".to_owned();
    }
    Ok(wanted)
}

fn placements(cities: &[String], replicas: u32) -> Value {
    json!([{ "name": "everywhere", "cityCodes": cities, "scaleSettings": { "minReplicas": replicas } }])
}

fn image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": {
        "runtime": {
            "resources": { "instanceType": "datumcloud/d1-standard-2" },
            "sandbox": { "containers": [{ "name": "hello", "image": image }] },
        },
        "networkInterfaces": [{ "network": { "name": "default" } }],
    } } } })
}
