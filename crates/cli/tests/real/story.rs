//! What people do, with the real program against a real platform.

use crate::support::Local;
use compute_api::compute::{Instance, Workload};
use compute_api::k8s::ConfigMap;
use compute_api::quota::ResourceClaim;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

pub const DEPLOY: &str = "deploy web --image ghcr.io/example/web:1.0 --city dfw,IAD --min 2 --port 80";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deploy_break_explain_heal_undo_destroy() {
    let local = Local::start().await;
    local.run("workloads").await.ends(0).says("No workloads in project demo");
    local.run("cities").await.ends(0).shows("DFW").shows("Available");
    local.run("instance-types -o name").await.ends(0).shows("datumcloud/d1-standard-2");

    let made = local.run(DEPLOY).await.ends(0).shows("web is created (revision 1)").says("DFW");
    assert!(made.out.contains("4 instances: 4 Available, 0 Pending, 0 Failed"), "{}", made.out);
    local
        .run("status web")
        .await
        .ends(0)
        .shows("web: Available — all 4 instances ready")
        .shows("Revision  1, ")
        .shows("by ann");
    local.run("workloads").await.ends(0).shows("DFW 2/2  IAD 2/2");
    local.run("rollout web").await.ends(0).shows("web: Available").shows("DFW  done");
    local.run("explain web").await.ends(0).shows("Nothing is in the way");

    // Nothing is replaced that serves: it is degraded, and says why.
    let broken = local.run("deploy web --image registry.invalid/web:2.0").await.ends(1);
    let broken = broken.says("is stuck").says("image unavailable").says("the platform keeps retrying");
    broken.says("rollout undo web");
    let status = local.run("status web").await.ends(0).shows("Degraded —").shows("image unavailable");
    status.shows("For you to fix").shows("datumctl-compute rollout undo web");
    local.run("instances --workload web").await.ends(0).shows("Failed (image unavailable)");
    local.run("explain web").await.ends(0).shows("The cause").shows("cannot be fetched");
    local.run("instances describe web-main-dfw-1").await.ends(0).shows("Not available — image unavailable");

    local
        .run("rollout undo web")
        .await
        .ends(0)
        .shows("web is rolled back to revision 1 (as revision 3)")
        .shows("4 Available");
    let history = local.run("rollout history web").await.ends(0);
    history
        .shows("undo to revision 1")
        .shows("image registry.invalid/web:2.0 → ghcr.io/example/web:1.0")
        .shows("ann");
    local.run("rollout history web --diff 2").await.ends(0).shows("+").shows("registry.invalid/web:2.0");
    local.run("rollout undo web --to-revision 99").await.ends(1).says("there is no revision 99");

    local.run("destroy web").await.ends(2).says("no terminal to ask on").says("destroy web -y");
    local.run("destroy web -y").await.ends(0).shows("web is destroyed");
    let left: Vec<ResourceClaim> = Api::all(local.client()).list(&ListParams::default()).await.unwrap().items;
    assert_eq!(left, []);
    let instances: Api<Instance> = Api::all(local.client());
    assert!(instances.list(&ListParams::default()).await.unwrap().items.is_empty());
    local
        .run("status web")
        .await
        .ends(1)
        .says("there is no workload \"web\"")
        .says("datumctl-compute workloads");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_tool_does_is_in_the_history() {
    let local = Local::start().await;
    local.run(DEPLOY).await.ends(0);
    let workloads: Api<Workload> = Api::default_namespaced(local.client());
    let edit = json!({ "spec": { "placements": [{ "name": "main", "cityCodes": ["DFW"], "scaleSettings": { "minReplicas": 1 } }] } });
    workloads.patch("web", &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
    local.run("rollout history web").await.ends(0).shows("not recorded").shows("IAD removed");
    local.run("scale web --min 2").await.ends(0).shows("2 Available");
    let history = local.run("rollout history web -o json").await.ends(0);
    let history: Vec<Value> = serde_json::from_str(&history.out).unwrap();
    let found: Vec<_> =
        history.iter().map(|one| (one["revision"].as_i64().unwrap(), one["by"].as_str())).collect();
    assert_eq!(found, [(1, Some("ann")), (2, None), (3, Some("ann"))]);
    // The history belongs to the workload, and goes with it.
    let maps: Api<ConfigMap> = Api::default_namespaced(local.client());
    let map = maps.get("compute.datumapis.com-revision-history.web").await.unwrap();
    assert_eq!(map.metadata.owner_references.unwrap()[0].name, "web");
    local.run("destroy web -y").await.ends(0);
    local.run(DEPLOY).await.ends(0).shows("(revision 1)");
    let again = local.run("rollout history web -o name").await.ends(0);
    assert_eq!(again.out, "1\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_plans_and_refusals() {
    let local = Local::start().await;
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples");
    let shop = format!("{samples}/configuration.yaml");
    local.run(&format!("deploy -f {shop}")).await.ends(2).says("shop is new: 1 instance in DFW").says("-y");
    local
        .run(&format!("deploy -f {shop} --dry-run"))
        .await
        .ends(0)
        .shows("Nothing was written")
        .shows("fits");
    local.run("workloads -o name").await.ends(0);
    assert!(Api::<Workload>::default_namespaced(local.client()).get_opt("shop").await.unwrap().is_none());
    local.run(&format!("deploy -f {shop} -y --no-wait")).await.ends(0).shows("shop is created");
    local.run(&format!("deploy -f {shop} -y --no-wait")).await.ends(0).shows("nothing to change");

    local
        .run("deploy web --image a:1 --city ATL")
        .await
        .ends(1)
        .says("--city")
        .says("not offered")
        .says("DFW");
    local.run("deploy web --image a:1").await.ends(2).says("needs --city").says("DFW, IAD, LHR");
    local.run("deploy web").await.ends(2).says("--image and --city");
    local.run("deploy").await.ends(2).says("nobody to ask");
    local.run("deploy web --image a:1 --city DFW --env X").await.ends(2);
    local
        .run("deploy web --image a:1 --city DFW --dry-run")
        .await
        .ends(0)
        .shows("web is new: 1 instance in DFW");
    assert!(Api::<Workload>::default_namespaced(local.client()).get_opt("web").await.unwrap().is_none());
    local.run(DEPLOY).await.ends(0);
    local
        .run("deploy web --image ghcr.io/example/web:1.1 --min 3 --dry-run")
        .await
        .ends(0)
        .shows("image 1.0 → 1.1")
        .shows("DFW, IAD min 2 → 3");

    let bad = local.dir.path().join("bad.yaml");
    std::fs::write(&bad, std::fs::read_to_string(&shop).unwrap().replace("minReplicas", "minReplica"))
        .unwrap();
    local.run("deploy -f bad.yaml -y").await.ends(2).says("did you mean minReplicas?");
    local.run("deploy -f none.yaml").await.ends(2).says("does not exist");
    local.run("scale web --min 3 --city DFW").await.ends(2).says("shares placement main with IAD");
    local.run("scale web --min 3 --placement edge").await.ends(2).says("name one of its placements: main");
    local.run("status wbe").await.ends(1).says("did you mean web?");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quota_that_does_not_cover_it() {
    let local = Local::start().await;
    local.run(DEPLOY).await.ends(0);
    local.limit(4).await;
    local.run("deploy web --min 3 --dry-run").await.ends(1).shows("does not fit");
    let denied = local.run("scale web --min 3").await.ends(1);
    denied.says("quota exceeded").says("datumctl-compute quota").says("the platform keeps retrying");
    local.run("quota").await.ends(0).shows("4 of 4").shows("waiting");
    local.run("status web").await.ends(0).shows("Degraded").shows("quota exceeded");
    local.run("instances").await.ends(0).shows("Pending (quota exceeded)");
    local.run("scale web --min 2").await.ends(0).shows("4 Available, 0 Pending");
    local.run("rollout status web --watch").await.ends(0).shows("web is rolled out");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pause_resume_restart_and_forms() {
    let local = Local::start().await;
    local.run(DEPLOY).await.ends(0);
    local.run("rollout pause web").await.ends(0).shows("web is paused").shows("rollout resume web");
    local.run("rollout pause web").await.ends(0).shows("already paused");
    local.run("deploy web --image ghcr.io/example/web:1.1").await.ends(0).says("The rollout is paused");
    local.run("status web").await.ends(0).shows("rollout paused").shows("rollout resume web");
    local.run("restart web").await.ends(1).says("paused");
    local.run("rollout resume web").await.ends(0).shows("web is resumed");
    local.run("status web").await.ends(0).shows("all 4 instances ready");

    let instances: Api<Instance> = Api::default_namespaced(local.client());
    // A new template tells; the picture of an instance may stay while the instance is replaced.
    let made_from = async |name: &str| {
        let instance = instances.get(name).await.unwrap();
        instance.spec.template_hash().unwrap().to_owned()
    };
    let (before, other) = (made_from("web-main-iad-0").await, made_from("web-main-dfw-0").await);
    local.run("rollout restart web --city iad").await.ends(0).shows("web is restarting in IAD");
    assert_ne!(made_from("web-main-iad-0").await, before);
    assert_eq!(made_from("web-main-dfw-0").await, other);
    local.run("restart web").await.ends(0).shows("web is restarting");
    assert_ne!(made_from("web-main-dfw-0").await, other);
    local.run("rollout history web").await.ends(0).shows("restart in IAD");
    // Restarts are nothing to go back from.
    local.run("rollout undo web").await.ends(0).shows("image 1.1 → 1.0");

    let yaml = local.run("workloads describe web -o yaml").await.ends(0).shows("kind: Workload");
    std::fs::write(local.dir.path().join("web.yaml"), yaml.out).unwrap();
    local.run("deploy -f web.yaml -y").await.ends(0).shows("nothing to change");
    assert_eq!(
        local.run("instances -o name --city dfw").await.ends(0).out,
        "web-main-dfw-0\nweb-main-dfw-1\n"
    );
    let json: Value = serde_json::from_str(&local.run("status web -o json").await.ends(0).out).unwrap();
    assert_eq!((json["health"].as_str(), json["ready"].as_i64()), (Some("available"), Some(4)));
    local.run("workloads describe web").await.ends(0).shows("Conditions").shows("StableInstanceFound");
    local.run("workloads -o wide").await.ends(0).shows("ghcr.io/example/web:1.0");
    local.run("quota --city dfw -o json").await.ends(0).shows("byCity");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cities_are_not_left_without_a_word() {
    let local = Local::start().await;
    local.run(DEPLOY).await.ends(0);
    let refused = local.run("deploy web --city DFW").await.ends(2);
    refused.says("it would leave IAD").says("-y");
    let workloads: Api<Workload> = Api::default_namespaced(local.client());
    assert_eq!(workloads.get("web").await.unwrap().spec.placements[0].city_codes, ["DFW", "IAD"]);
    // What the service refuses is not asked about.
    local.run("deploy web --city ATL").await.ends(1).says("--city").says("not offered");
    local.run("deploy web --city DFW -y").await.ends(0).shows("2 Available");
    assert_eq!(workloads.get("web").await.unwrap().spec.placements[0].city_codes, ["DFW"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sees_workloads_alone_is_told_how_they_are() {
    let local = Local::start().await;
    local.run(DEPLOY).await.ends(0);
    local.look_only("eve").await;
    for line in ["status web", "explain web", "workloads describe web", "instances", "rollout status web"] {
        local.run_as("eve", line).await.ends(0);
    }
    local.run_as("eve", "rollout history web").await.ends(3).says("you do not have permission");
    local.run_as("eve", "quota").await.ends(3).says("you do not have permission");
    local.run_as("eve", "scale web --min 3").await.ends(3).says("you do not have permission");
}
