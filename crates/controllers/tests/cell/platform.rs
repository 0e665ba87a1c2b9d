//! The test's own provider, network service and quota ledger, as plain as can be: each looks at everything now and then and does
//! what its settings say.

use std::sync::Arc;
use std::time::Duration;

use compute_api::compute::Instance;
use compute_api::conditions as c;
use compute_api::networking::{NetworkBinding, NetworkContext, Subnet, SubnetClaim};
use compute_api::quota::{ResourceClaim, ResourceRequest};
use compute_runtime::clock::{Clock as _, TimerClock};
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How often each looks, unless a test has little for it to see.
const EVERY: Duration = Duration::from_millis(100);
/// The provider's finalizer.
pub const PROVIDER: &str = "test.example.com/provider";

/// What each does.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How often each looks.
    pub every: Duration,
    /// Whether the provider works.
    pub provides: bool,
    /// Whether the provider stops what is deleted.
    pub stops: bool,
    /// What the network service does.
    pub networks: Networks,
    /// What the ledger does.
    pub ledger: Ledger,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Networks {
    Ready,
    Failed(&'static str),
    Off,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ledger {
    /// Grants so many instances in all.
    Limit(usize),
    /// Says nothing.
    Off,
    /// Looks, and decides nothing.
    Undecided,
    /// Calls claims invalid.
    Invalid,
}

/// The platform around a cell.
#[derive(Clone)]
pub struct Platform {
    settings: Arc<Mutex<Settings>>,
    cell: Client,
    project: Client,
    clock: TimerClock,
}

impl Platform {
    pub fn start(cell: Client, project: Client, clock: TimerClock) -> Self {
        let settings = Settings {
            every: EVERY,
            provides: true,
            stops: true,
            networks: Networks::Ready,
            ledger: Ledger::Limit(1000),
        };
        let platform = Self { settings: Arc::new(Mutex::new(settings)), cell, project, clock };
        let works = platform.clone();
        tokio::spawn(async move {
            loop {
                works.work().await;
                let every = works.settings.lock().every;
                tokio::time::sleep(every).await;
            }
        });
        platform
    }

    pub fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings.lock());
    }

    /// Looks seldom: a long time goes by, and little happens.
    pub fn slow_down(&self) {
        self.set(|settings| settings.every = Duration::from_secs(5));
    }

    /// Looks often again.
    pub fn speed_up(&self) {
        self.set(|settings| settings.every = EVERY);
    }

    /// Does nothing any more.
    pub fn rest(&self) {
        self.set(|settings| {
            settings.provides = false;
            settings.networks = Networks::Off;
            settings.ledger = Ledger::Off;
        });
    }

    async fn work(&self) {
        let settings = self.settings.lock().clone();
        if settings.provides {
            self.provide(settings.stops).await;
        }
        if settings.networks != Networks::Off {
            self.network(&settings.networks).await;
        }
        if settings.ledger != Ledger::Off {
            self.judge(&settings.ledger).await;
        }
    }

    fn condition(&self, type_: &str, status: &str, reason: &str, message: &str) -> Value {
        json!({
            "type": type_, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        })
    }

    async fn all<K>(&self, client: &Client) -> Vec<K>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(client.clone());
        // Not every world serves every kind, and not every object can be read.
        api.list(&ListParams::default()).await.map(|found| found.items).unwrap_or_default()
    }

    async fn set_status<K>(&self, client: &Client, object: &K, status: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let api: Api<K> = Api::namespaced(client.clone(), &object.namespace().unwrap());
        let patch = json!({
            "apiVersion": K::api_version(&()), "kind": K::kind(&()), "status": status,
        });
        let params = PatchParams::apply("test-platform").force();
        match api.patch_status(&object.name_any(), &params, &Patch::Apply(patch)).await {
            Ok(_) => {}
            // It has gone meanwhile.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => panic!("the platform's status of {}: {error}", K::kind(&())),
        }
    }

    /// Runs what has no gates.
    async fn provide(&self, stops: bool) {
        let api: Api<Instance> = Api::all(self.cell.clone());
        let Ok(found) = api.list(&ListParams::default()).await else { return };
        for instance in found.items {
            let api: Api<Instance> = Api::namespaced(self.cell.clone(), &instance.namespace().unwrap());
            let held = instance.finalizers().iter().any(|held| held == PROVIDER);
            let finalizers = |list: Vec<&String>| {
                Patch::Merge(json!({ "metadata": {
                    "resourceVersion": instance.resource_version(), "finalizers": list,
                }}))
            };
            if instance.metadata.deletion_timestamp.is_some() {
                if held && stops {
                    let left = instance.finalizers().iter().filter(|held| *held != PROVIDER).collect();
                    let _ = api.patch(&instance.name_any(), &PatchParams::default(), &finalizers(left)).await;
                }
                continue;
            }
            if !instance.spec.gates().is_empty() {
                continue;
            }
            if !held {
                let name = PROVIDER.to_owned();
                let all = instance.finalizers().iter().chain([&name]).collect();
                let _ = api.patch(&instance.name_any(), &PatchParams::default(), &finalizers(all)).await;
                continue;
            }
            let image = super::objects::image(&instance);
            let status = instance.status.as_ref();
            let done =
                status.and_then(|status| status.observed_template_hash()) == instance.spec.template_hash();
            if done {
                continue;
            }
            let bad = image.contains("bad");
            let available = match bad {
                true => self.condition(c::AVAILABLE, "False", c::IMAGE_UNAVAILABLE, "no such image"),
                false => self.condition(c::AVAILABLE, "True", c::INSTANCE_AVAILABLE, ""),
            };
            let status = json!({
                "conditions": [self.condition(c::PROGRAMMED, "True", c::INSTANCE_PROGRAMMED, ""), available],
                "controller": { "observedTemplateHash": instance.spec.template_hash() },
            });
            self.set_status(&self.cell, &instance, status).await;
        }
    }

    /// Sets up networks.
    async fn network(&self, mode: &Networks) {
        let (status, reason, message) = match mode {
            Networks::Failed(message) => ("False", "ProvisioningFailed", *message),
            _ => ("True", "Ready", ""),
        };
        let ready = || self.condition("Ready", status, reason, message);
        let is_ready = |conditions: &[compute_api::k8s::Condition]| {
            c::find(conditions, "Ready").is_some_and(|said| said.status == status)
        };
        for binding in self.all::<NetworkBinding>(&self.cell).await {
            if is_ready(binding.status.as_ref().map_or(&[], |status| &status.conditions)) {
                continue;
            }
            let (namespace, name) =
                (binding.namespace().unwrap(), format!("{}-context", binding.spec.network.name));
            let context = json!({
                "apiVersion": "networking.datumapis.com/v1alpha", "kind": "NetworkContext",
                "metadata": { "name": name, "namespace": namespace },
                "spec": { "network": { "name": "default" }, "location": { "name": "us-south" }, "ipFamilies": ["IPv4"] },
            });
            let context: NetworkContext = serde_json::from_value(context).unwrap();
            let api: Api<NetworkContext> = Api::namespaced(self.cell.clone(), &namespace);
            let _ = api.create(&PostParams::default(), &context).await;
            self.set_status(
                &self.cell,
                &context,
                json!({ "conditions": [self.condition("Ready", "True", "Ready", "")] }),
            )
            .await;
            let status = json!({
                "conditions": [ready()], "networkContextRef": { "name": name, "namespace": namespace },
            });
            self.set_status(&self.cell, &binding, status).await;
        }
        for claim in self.all::<SubnetClaim>(&self.cell).await {
            if is_ready(claim.status.as_ref().map_or(&[], |status| &status.conditions)) {
                continue;
            }
            let (namespace, name) = (claim.namespace().unwrap(), claim.name_any());
            let subnet: Subnet = serde_json::from_value(json!({
                "apiVersion": "networking.datumapis.com/v1alpha", "kind": "Subnet",
                "metadata": { "name": name, "namespace": namespace },
                "spec": {
                    "subnetClass": "private", "networkContext": { "name": claim.spec.network_context.name },
                    "location": { "name": "us-south" }, "ipFamily": "IPv4",
                    "startAddress": "10.0.0.0", "prefixLength": 24,
                },
            }))
            .unwrap();
            let api: Api<Subnet> = Api::namespaced(self.cell.clone(), &namespace);
            let _ = api.create(&PostParams::default(), &subnet).await;
            self.set_status(&self.cell, &subnet, json!({ "conditions": [ready()] })).await;
            let status = json!({ "conditions": [ready()], "subnetRef": { "name": name } });
            self.set_status(&self.cell, &claim, status).await;
        }
    }

    /// Grants and denies.
    async fn judge(&self, mode: &Ledger) {
        let mut claims = self.all::<ResourceClaim>(&self.project).await;
        claims.sort_by_key(|claim| (claim.creation_timestamp(), claim.name_any()));
        let granted = |claim: &ResourceClaim| {
            let conditions = claim.status.as_ref().map_or(&[][..], |status| &status.conditions);
            c::is_true(conditions, "Granted")
        };
        let mut used = claims.iter().filter(|claim| granted(claim)).count();
        for claim in claims {
            let conditions = claim.status.as_ref().map_or(&[][..], |status| &status.conditions);
            let decided = c::find(conditions, "Granted")
                .is_some_and(|said| ["QuotaExceeded", "ValidationFailed"].contains(&said.reason.as_str()));
            if claim.metadata.deletion_timestamp.is_some() || granted(&claim) {
                continue;
            }
            let (status, reason) = match mode {
                // A last word is the last.
                _ if decided => continue,
                Ledger::Undecided => ("False", "PendingEvaluation"),
                Ledger::Invalid => ("False", "ValidationFailed"),
                Ledger::Limit(limit) if used < *limit => {
                    used += 1;
                    ("True", "QuotaAvailable")
                }
                Ledger::Limit(_) => ("False", "QuotaExceeded"),
                Ledger::Off => continue,
            };
            let status = json!({
                "observedGeneration": 1, "conditions": [self.condition("Granted", status, reason, "said")],
            });
            self.set_status(&self.project, &claim, status).await;
        }
    }

    /// Makes or changes a bucket that says what is left of a resource.
    pub async fn bucket(&self, resource: &str, limit: i64, available: i64) {
        let bucket: compute_api::quota::AllowanceBucket = serde_json::from_value(json!({
            "apiVersion": "quota.miloapis.com/v1alpha1", "kind": "AllowanceBucket",
            "metadata": { "name": resource.rsplit('/').next().unwrap(), "namespace": "default" },
            "spec": {
                "consumerRef": { "apiGroup": "resourcemanager.miloapis.com", "kind": "Project", "name": "shop" },
                "resourceType": resource,
            },
        }))
        .unwrap();
        let api: Api<compute_api::quota::AllowanceBucket> = Api::namespaced(self.project.clone(), "default");
        match api.create(&PostParams::default(), &bucket).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => panic!("a bucket of {resource}: {error}"),
        }
        let status = json!({
            "limit": limit, "allocated": limit - available, "available": available, "claimCount": 0, "grantCount": 1,
        });
        self.set_status(&self.project, &bucket, status).await;
    }

    /// A claim as somebody else would have made it.
    pub async fn foreign_claim(&self, name: &str, labels: Value) -> ResourceClaim {
        let claim = ResourceClaim {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some(serde_json::from_value(labels).unwrap()),
                ..ObjectMeta::default()
            },
            spec: compute_api::quota::ResourceClaimSpec {
                consumer_ref: Some(compute_api::quota::ObjectReference::project("shop")),
                resource_ref: Some(compute_api::quota::ObjectReference::project("shop")),
                requests: vec![ResourceRequest {
                    resource_type: "compute.datumapis.com/instances".to_owned(),
                    amount: 1,
                }],
            },
            status: None,
        };
        let api: Api<ResourceClaim> = Api::namespaced(self.project.clone(), "default");
        api.create(&PostParams::default(), &claim).await.unwrap()
    }
}
