//! Leader election on the embedded server, with time that passes only when everybody waits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use compute_apiserver::{ApiServer, PlaneName};
use compute_runtime::leader::{Candidate, Leadership, Lost, Timings};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use support::{Fault, Faults, client, plane_client};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const NAME: &str = "compute-manager-cell";
const LEASE: Duration = Duration::from_secs(15);
const DEADLINE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);

/// A wall clock that is wrong by `skew` seconds and does not move: nothing may depend on it.
fn wrong_clock(skew: i64) -> impl Fn() -> Timestamp + Send + Sync + 'static {
    move || Timestamp::from_second(1_800_000_000 + skew).unwrap()
}

fn candidate(client: Client, identity: &str, skew: i64) -> Candidate {
    Candidate::new(client, "default", NAME, identity, Timings::default(), wrong_clock(skew))
}

async fn acquire(candidate: Candidate) -> Leadership {
    candidate.acquire(&CancellationToken::new()).await.unwrap()
}

fn hold(leadership: Leadership) -> (JoinHandle<Result<(), Lost>>, CancellationToken) {
    let stop = CancellationToken::new();
    (tokio::spawn(leadership.hold(stop.clone())), stop)
}

/// A second candidate in the background; its leadership and when it got it.
fn rival(server: &ApiServer, plane: &PlaneName, skew: i64) -> JoinHandle<(Leadership, Instant)> {
    let rival = candidate(client(server, plane), "b", skew);
    tokio::spawn(async move {
        let leadership = acquire(rival).await;
        (leadership, Instant::now())
    })
}

async fn lease(client: &Client) -> LeaseSpec {
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    leases.get(NAME).await.unwrap().spec.unwrap()
}

#[test]
fn the_timings_are_those_of_kubernetes() {
    assert_eq!(Timings::default(), Timings { lease: LEASE, renew_deadline: DEADLINE, retry: RETRY });
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_hands_over_when_it_stops() {
    let (server, plane, client) = plane_client().await;
    let leadership = acquire(candidate(client.clone(), "a", 0)).await;
    let spec = lease(&client).await;
    assert_eq!(spec.holder_identity.as_deref(), Some("a"));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(15), Some(0)));
    assert!(spec.acquire_time.is_some() && spec.renew_time.is_some());

    let (held, stop) = hold(leadership);
    let rival = rival(&server, &plane, 0);
    tokio::time::sleep(LEASE * 20).await;
    assert!(!held.is_finished() && !rival.is_finished(), "it leads for as long as it renews");

    let stopped = Instant::now();
    stop.cancel();
    held.await.unwrap().unwrap();
    let (_leadership, since) = rival.await.unwrap();
    assert!(since - stopped <= RETRY, "{:?}", since - stopped);
    let spec = lease(&client).await;
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("b"), Some(1)));
}

#[tokio::test(start_paused = true)]
async fn a_lease_given_up_has_no_holder() {
    let (_server, _, client) = plane_client().await;
    let (held, stop) = hold(acquire(candidate(client.clone(), "a", 0)).await);
    stop.cancel();
    held.await.unwrap().unwrap();
    assert_eq!(lease(&client).await.holder_identity.unwrap_or_default(), "");
}

#[tokio::test(start_paused = true)]
async fn a_dead_leader_is_followed_after_its_lease_whatever_the_clocks_say() {
    for skew in [-86_400, 0, 86_400] {
        let (server, plane, client) = plane_client().await;
        let dead = acquire(candidate(client.clone(), "a", 0)).await;
        drop(dead);
        let died = Instant::now();
        let (_leadership, since) = rival(&server, &plane, skew).await.unwrap();
        let waited = since - died;
        assert!(waited >= LEASE && waited <= LEASE + RETRY * 2, "skew {skew}: {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_leaders_own_duration_counts() {
    let (server, plane, client) = plane_client().await;
    let timings = Timings { lease: Duration::from_secs(60), ..Timings::default() };
    let slow = Candidate::new(client, "default", NAME, "a", timings, wrong_clock(0));
    drop(acquire(slow).await);
    let died = Instant::now();
    let (_leadership, since) = rival(&server, &plane, 0).await.unwrap();
    assert!(since - died >= Duration::from_secs(60), "{:?}", since - died);
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_renew_gives_up_before_another_takes_over() {
    for fault in [Fault::Hang, Fault::Break] {
        let (server, plane, _) = plane_client().await;
        let faults = Faults::default();
        let (held, _stop) = hold(acquire(candidate(faults.client(&server, &plane), "a", 0)).await);
        let rival = rival(&server, &plane, 0);
        tokio::time::sleep(LEASE * 3).await;
        let cut_off = Instant::now();
        faults.set(Some(fault.clone()));
        let lost = held.await.unwrap().unwrap_err();
        let gave_up = Instant::now();
        assert!(matches!(lost, Lost::NotRenewed { .. }), "{lost:?}");
        assert!(gave_up - cut_off <= DEADLINE, "{fault:?}: {:?}", gave_up - cut_off);
        let (_leadership, since) = rival.await.unwrap();
        assert!(since > gave_up, "{fault:?}");
        assert!(since - gave_up >= LEASE - DEADLINE - RETRY, "{fault:?}: {:?}", since - gave_up);
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_is_lived_through() {
    let (server, plane, client) = plane_client().await;
    let faults = Faults::default();
    let (held, stop) = hold(acquire(candidate(faults.client(&server, &plane), "a", 0)).await);
    let rival = rival(&server, &plane, 0);
    for _ in 0..5 {
        faults.set(Some(Fault::Break));
        tokio::time::sleep(Duration::from_secs(6)).await;
        faults.set(None);
        tokio::time::sleep(LEASE).await;
    }
    // A write whose answer is lost makes the next one conflict with the process's own.
    faults.next_write(Fault::LoseAnswer);
    tokio::time::sleep(LEASE).await;
    assert!(!held.is_finished() && !rival.is_finished());
    assert_eq!(lease(&client).await.holder_identity.as_deref(), Some("a"));
    stop.cancel();
    held.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_candidate_waits_for_a_server_that_comes_back() {
    let (server, plane, _) = plane_client().await;
    let faults = Faults::default();
    faults.set(Some(Fault::Break));
    let pending = tokio::spawn(acquire(candidate(faults.client(&server, &plane), "a", 0)));
    tokio::time::sleep(LEASE).await;
    faults.set(Some(Fault::Hang));
    tokio::time::sleep(LEASE).await;
    assert!(!pending.is_finished());
    faults.set(None);
    let _leadership = pending.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_taken_by_hand_is_lost_and_one_deleted_is_made_again() {
    let (_server, _, client) = plane_client().await;
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    let (held, _stop) = hold(acquire(candidate(client.clone(), "a", 0)).await);
    leases.delete(NAME, &Default::default()).await.unwrap();
    tokio::time::sleep(RETRY * 2).await;
    assert_eq!(lease(&client).await.holder_identity.as_deref(), Some("a"));

    let label = json!({ "metadata": { "labels": { "team": "compute" } } });
    leases.patch(NAME, &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    tokio::time::sleep(RETRY * 2).await;
    assert!(!held.is_finished(), "a change of something else costs nothing");
    let labels = leases.get(NAME).await.unwrap().metadata.labels.unwrap_or_default();
    assert_eq!(labels.get("team").map(String::as_str), Some("compute"), "and is kept");

    let theirs = json!({ "spec": { "holderIdentity": "somebody" } });
    leases.patch(NAME, &PatchParams::default(), &Patch::Merge(theirs)).await.unwrap();
    let lost = held.await.unwrap().unwrap_err();
    assert_eq!(lost.to_string(), "the lease \"compute-manager-cell\" was taken over by \"somebody\"");
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_wait_and_a_restart_takes_its_own_lease_back() {
    let (_server, _, client) = plane_client().await;
    drop(acquire(candidate(client.clone(), "a", 0)).await);
    let begun = Instant::now();
    let again = acquire(candidate(client.clone(), "a", 0)).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(lease(&client).await.lease_transitions, Some(0));
    drop(again);

    let stop = CancellationToken::new();
    let waiting = candidate(client, "b", 0);
    let waiting = tokio::spawn({
        let stop = stop.clone();
        async move { waiting.acquire(&stop).await.is_none() }
    });
    tokio::time::sleep(RETRY * 2).await;
    stop.cancel();
    assert!(waiting.await.unwrap());
}
