//! What datumctl asks of a plugin: who it is.

use serde_json::json;

/// The answer to `--plugin-manifest`.
pub(crate) fn manifest() -> String {
    let manifest = json!({
        "name": "compute",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Run containers and virtual machines in many cities",
        "api_version": 1,
        "min_api_version": 1,
    });
    format!("{manifest:#}\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_what_datumctl_reads() {
        let manifest: serde_json::Value = serde_json::from_str(&super::manifest()).unwrap();
        assert_eq!(manifest["name"], "compute");
        assert_eq!(
            (manifest["api_version"].as_i64(), manifest["min_api_version"].as_i64()),
            (Some(1), Some(1))
        );
        assert!(manifest["version"].is_string() && manifest["description"].is_string());
    }
}
