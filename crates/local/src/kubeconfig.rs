//! The kubeconfig of a running platform: a context per plane, each with a token for that plane alone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A way into one plane.
#[derive(Clone)]
pub(crate) struct Context {
    /// Name of the context, and of its cluster and user.
    pub(crate) name: String,
    /// URL of the plane.
    pub(crate) url: String,
    /// Token for the plane.
    pub(crate) token: String,
}

/// The kubeconfig as YAML.
pub(crate) fn render(contexts: &[Context], current: &str, ca: &str) -> anyhow::Result<String> {
    let named = |part: &str, make: &dyn Fn(&Context) -> Value| -> Vec<Value> {
        contexts.iter().map(|context| json!({ "name": context.name, part: make(context) })).collect()
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": named("cluster", &|context| json!({
            "server": context.url,
            "certificate-authority-data": STANDARD.encode(ca),
        })),
        "users": named("user", &|context| json!({ "token": context.token })),
        "contexts": named("context", &|context| json!({
            "cluster": context.name, "user": context.name, "namespace": "default",
        })),
        "current-context": current,
    });
    Ok(serde_saphyr::to_string(&config)?)
}
