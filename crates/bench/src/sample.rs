//! The objects that are written and read: a custom resource with a status, 2 KiB as it is stored.

use kube::{Api, Client, CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How large an object is as JSON when it is stored and read again, after one write.
pub const SIZE: usize = 2048;
/// How much of that the server adds: uid, times, revision, managed fields.
const ADDED: usize = 977;
/// The label by which one object in a hundred is picked.
pub const SHARD: &str = "bench.example.com/shard";

/// What a sample should be: a shape like that of a small workload, filled up to [`SIZE`].
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[kube(
    group = "bench.example.com",
    version = "v1",
    kind = "Sample",
    namespaced,
    status = "SampleStatus",
    derive = "Default"
)]
pub struct SampleSpec {
    /// How many there should be.
    #[schemars(range(min = 0, max = 1000))]
    pub replicas: i32,
    /// What to run.
    #[schemars(length(max = 200))]
    pub image: String,
    /// Settings by name.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub settings: Vec<Setting>,
    /// What is left to the full size.
    pub notes: String,
}

/// One setting.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
pub struct Setting {
    /// What it is told apart by.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// What a sample is.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
pub struct SampleStatus {
    /// How many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// The CRD of samples.
pub fn crd() -> anyhow::Result<Value> {
    Ok(serde_json::to_value(Sample::crd())?)
}

/// The samples of a plane's default namespace.
pub fn api(client: &Client) -> Api<Sample> {
    Api::default_namespaced(client.clone())
}

/// The path of the samples, relative to the plane.
pub const PATH: &str = "/apis/bench.example.com/v1/namespaces/default/samples";

/// A sample that has not been created; `number` says which hundredth it belongs to.
pub fn sample(name: &str, number: usize) -> Sample {
    let setting = |at: usize| Setting {
        name: format!("setting-{at}"),
        value: format!("value {at} of a sample, long enough to be like a line of configuration"),
    };
    let spec = SampleSpec {
        replicas: 3,
        image: "registry.example.com/team/program:1.2.3".to_owned(),
        settings: (0..8).map(setting).collect(),
        notes: String::new(),
    };
    let mut sample = Sample::new(name, spec);
    sample.metadata.labels = Some([(SHARD.to_owned(), (number % 100).to_string())].into());
    let bare = serde_json::to_vec(&sample).map_or(0, |bytes| bytes.len());
    sample.spec.notes = "n".repeat(SIZE.saturating_sub(ADDED + bare));
    sample
}

#[cfg(test)]
mod tests {
    use kube::api::PostParams;

    use super::*;
    use crate::host::{Local, PLANE};

    #[tokio::test]
    async fn a_stored_sample_has_the_size_that_the_figures_name() {
        let local = Local::open(None).await.unwrap();
        let client = local.client(&local.plane(PLANE).await.unwrap());
        for name in ["a", "a-longer-name-12345"] {
            api(&client).create(&PostParams::default(), &sample(name, 7)).await.unwrap();
            let request = http::Request::get(format!("{PATH}/{name}")).body(Vec::new()).unwrap();
            let stored = client.request_text(request).await.unwrap().len();
            // The revision's digits and the client's version vary.
            assert!(stored.abs_diff(SIZE) <= 16, "{name} is stored as {stored} bytes");
        }
    }
}
