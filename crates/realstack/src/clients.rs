//! Clients and kubeconfigs for servers whose authority is known.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::AuthInfo;
use kube::{Client, Config};
use secrecy::SecretString;
use serde_json::json;

use crate::certs::Certificate;
use crate::{Error, files};

/// How a caller proves who it is.
#[derive(Clone, Copy, Debug)]
pub enum Credential<'a> {
    /// With a bearer token.
    Token(&'a str),
    /// With a client certificate.
    Certificate(&'a Certificate),
}

/// A client without credentials. It asks once and never retries: whoever probes does that.
pub(crate) fn anonymous(url: &str, ca_pem: Option<&str>) -> Result<Client, Error> {
    let mut config = config(url, ca_pem)?;
    config.default_retry = false;
    build(url, config)
}

/// A client of a server that is trusted by its authority's certificate.
pub(crate) fn authenticated(url: &str, ca_pem: &str, credential: Credential<'_>) -> Result<Client, Error> {
    let mut config = config(url, Some(ca_pem))?;
    config.auth_info = match credential {
        Credential::Token(token) => {
            AuthInfo { token: Some(SecretString::from(token.to_owned())), ..AuthInfo::default() }
        }
        Credential::Certificate(certificate) => AuthInfo {
            client_certificate_data: Some(STANDARD.encode(&certificate.certificate_pem)),
            client_key_data: Some(SecretString::from(STANDARD.encode(&certificate.key_pem))),
            ..AuthInfo::default()
        },
    };
    build(url, config)
}

fn config(url: &str, ca_pem: Option<&str>) -> Result<Config, Error> {
    let bad = |why: String| Error::Client { url: url.to_owned(), why };
    let mut config = Config::new(url.parse().map_err(|error: http::uri::InvalidUri| bad(error.to_string()))?);
    if let Some(pem) = ca_pem {
        let der = der(pem).ok_or_else(|| bad("the authority's certificate is no PEM".into()))?;
        config.root_cert = Some(vec![der]);
    }
    Ok(config)
}

fn build(url: &str, config: Config) -> Result<Client, Error> {
    Client::try_from(config).map_err(|error| Error::Client { url: url.to_owned(), why: error.to_string() })
}

/// What is between the first pair of armour lines.
fn der(pem: &str) -> Option<Vec<u8>> {
    let body: String = pem
        .lines()
        .skip_while(|line| !line.starts_with("-----BEGIN"))
        .skip(1)
        .take_while(|line| !line.starts_with("-----END"))
        .collect();
    STANDARD.decode(body).ok().filter(|der| !der.is_empty())
}

/// A kubeconfig with one context, `name`. JSON is YAML, so every client reads it.
pub fn kubeconfig(name: &str, url: &str, ca_pem: &str, credential: Credential<'_>) -> String {
    let user = match credential {
        Credential::Token(token) => json!({ "token": token }),
        Credential::Certificate(certificate) => json!({
            "client-certificate-data": STANDARD.encode(&certificate.certificate_pem),
            "client-key-data": STANDARD.encode(&certificate.key_pem),
        }),
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": name,
            "cluster": { "server": url, "certificate-authority-data": STANDARD.encode(ca_pem) },
        }],
        "users": [{ "name": name, "user": user }],
        "contexts": [{ "name": name, "context": { "cluster": name, "user": name, "namespace": "default" } }],
        "current-context": name,
    });
    format!("{config:#}\n")
}

/// Writes a kubeconfig with a token, for its owner alone.
pub(crate) fn write_kubeconfig(
    path: &Path,
    name: &str,
    url: &str,
    ca_pem: &str,
    token: &str,
) -> Result<(), Error> {
    files::write(path, &kubeconfig(name, url, ca_pem, Credential::Token(token)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certs::Authority;

    #[test]
    fn an_authority_reads_as_a_certificate() {
        let authority = Authority::generate("x").unwrap();
        assert!(der(&authority.certificate_pem).is_some());
        assert_eq!(der("not a certificate"), None);
    }

    #[test]
    fn a_kubeconfig_is_read_back() {
        let authority = Authority::generate("x").unwrap();
        let client = authority.client("someone", Some("a-group")).unwrap();
        for credential in [Credential::Token("t"), Credential::Certificate(&client)] {
            let text = kubeconfig("hub", "https://127.0.0.1:1", &authority.certificate_pem, credential);
            let read = kube::config::Kubeconfig::from_yaml(&text).unwrap();
            assert_eq!(read.current_context.as_deref(), Some("hub"));
            assert_eq!((read.clusters.len(), read.auth_infos.len(), read.contexts.len()), (1, 1, 1));
        }
    }
}
