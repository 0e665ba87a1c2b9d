//! Lists.

use compute_core::revisions::{History, Revision};

use super::*;
use crate::model::fixtures::{binding, bucket, claim, now, template, web};
use crate::model::{cities, instance, plan, quota, workload};
use crate::render;

#[test]
fn workloads() {
    let views = |cities: &[City]| {
        let (workload, deployments, instances) = web(cities, GOOD);
        vec![workload::view(&workload, &deployments, &instances)]
    };
    shots("workloads.healthy", |look| render::workloads::list(&views(&healthy()), false, now(), look));
    shots("workloads.degraded", |look| render::workloads::list(&views(&degraded()), false, now(), look));
    shots("workloads.down", |look| render::workloads::list(&views(&down()), false, now(), look));
    shots("workloads.wide", |look| render::workloads::list(&views(&degraded()), true, now(), look));
    shots("workloads.none", |_| render::workloads::none("project demo", &invocation()));
}

#[test]
fn instances() {
    let views = |cities: &[City], image| instance::views(&web(cities, image).2);
    shots("instances.healthy", |look| render::instances::list(&views(&healthy(), GOOD), false, now(), look));
    shots("instances.degraded", |look| render::instances::list(&views(&degraded(), BAD), false, now(), look));
    shots("instances.quota", |look| render::instances::list(&views(&starved(), GOOD), false, now(), look));
    shots("instances.wide", |look| render::instances::list(&views(&healthy(), GOOD), true, now(), look));
    shots("instances.none", |_| render::instances::none("", "project demo", &invocation()));
    shots("instances.none-there", |_| {
        render::instances::none(" of web in DFW", "project demo", &invocation())
    });
}

#[test]
fn cities_and_types() {
    let views = |available: bool| {
        cities::views(&[binding("DFW", true), binding("LHR", available)], &web(&healthy(), GOOD).2)
    };
    shots("cities.healthy", |look| render::cities::list(&views(true), false, look));
    shots("cities.degraded", |look| render::cities::list(&views(false), false, look));
    shots("cities.wide", |look| render::cities::list(&views(false), true, look));
    shots("cities.none", |_| render::cities::none("project demo", &invocation()));
    shots("instance-types", render::cities::types);
}

#[test]
fn quota_bars() {
    let view = |cities: &[City], used: i64, limit: i64, city: Option<&str>| {
        let (_, _, instances) = web(cities, GOOD);
        let buckets = [
            bucket("instances", limit, used),
            bucket("vcpus", limit * 1000, used * 1000),
            bucket("memory", limit * 2048, used * 2048),
        ];
        let claims = [
            claim("web-main-dfw-0", "cell-dfw"),
            claim("web-main-dfw-1", "cell-dfw"),
            claim("web-main-iad-0", "cell-iad"),
        ];
        quota::view(&buckets, &claims, &instances, city)
    };
    let text =
        |view: &quota::QuotaView, look| render::quota::render(view, "project demo", &invocation(), look);
    shots("quota.healthy", |look| text(&view(&healthy(), 3, 20, None), look));
    shots("quota.exceeded", |look| text(&view(&starved(), 3, 3, None), look));
    shots("quota.city", |look| text(&view(&starved(), 3, 3, Some("dfw")), look));
    shots("quota.none", |look| text(&quota::view(&[], &[], &[], None), look));
}

fn history() -> History {
    let revision = |number: i64, by: Option<&str>, action: Option<&str>, changes: &[&str]| Revision {
        number,
        at: format!("2026-05-01T1{number}:00:00Z").parse().unwrap(),
        by: by.map(str::to_owned),
        action: action.map(str::to_owned),
        changes: changes.iter().map(|&change| change.to_owned()).collect(),
        template_hash: "v1-0123456789abcdef0123".to_owned(),
        spec: serde_json::json!({ "template": template(GOOD), "placements": [] }),
    };
    let mut history = History::default();
    history.add([
        revision(0, Some("ann@example.com"), Some("deploy"), &[]),
        revision(1, Some("ann@example.com"), Some("deploy"), &["image 1.4.1 → 1.4.2", "DFW, IAD min 2 → 3"]),
        revision(2, None, None, &["image 1.4.2 → 1.4.3"]),
    ]);
    history
}

#[test]
fn revisions() {
    shots("history", |look| render::history::list(&history(), Some(2), false, now(), look));
    shots("history.wide", |look| render::history::list(&history(), Some(2), true, now(), look));
    let (before, after) = ("a: 1\nb: 2\nc: 3\n", "a: 1\nb: 4\nc: 3\n");
    shots("history.diff", |look| render::history::diff(before, after, look));
}

#[test]
fn plans() {
    let (stored, deployments, _) = web(&healthy(), GOOD);
    let mut wanted = stored.spec.clone();
    wanted.placements[0].scale_settings.min_replicas = 3;
    wanted.placements[0].city_codes.push("ATL".to_owned());
    let buckets = |left: i64| {
        [
            bucket("instances", 4 + left, 4),
            bucket("vcpus", 4000 + left * 1000, 4000),
            bucket("memory", 8192 + left * 2048, 8192),
        ]
    };
    let bindings = [binding("DFW", true), binding("IAD", true)];
    let known = |buckets| plan::Known { deployments: &deployments, bindings: Some(&bindings[..]), buckets };
    let (roomy, tight) = (buckets(20), buckets(2));
    shots("plan.fits", |look| {
        render::plan::render(&plan::plan("web", Some(&stored), &wanted, known(&roomy)), look)
    });
    shots("plan.does-not-fit", |look| {
        render::plan::render(&plan::plan("web", Some(&stored), &wanted, known(&tight)), look)
    });
    shots("plan.new", |look| render::plan::render(&plan::plan("web", None, &stored.spec, known(&[])), look));
    shots("plan.nothing", |look| {
        render::plan::changes(&plan::plan("web", Some(&stored), &stored.spec, known(&[])), look)
    });
}
