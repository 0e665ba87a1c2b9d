//! Content negotiation: in which form the client wants its answer.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::error::{ApiError, Result};

/// The shape of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Objects as they are.
    Plain,
    /// `meta.k8s.io/v1` Table.
    Table,
    /// Metadata alone.
    Metadata,
}

/// The encoding of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// What the client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) shape: Shape,
    pub(super) encoding: Encoding,
}

const SUPPORTED: &str = "application/json, application/yaml";

/// One entry of `Accept`, without its weight: clients of Kubernetes list what they want in order.
struct Media<'a> {
    type_: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

fn accepted(headers: &HeaderMap) -> impl Iterator<Item = Media<'_>> {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let type_ = parts.next().unwrap_or_default();
        Media { type_, parameters: parts.filter_map(|part| part.split_once('=')).collect() }
    })
}

impl Media<'_> {
    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }
}

/// The first form in the client's list that we can give.
pub(super) fn form(headers: &HeaderMap) -> Result<Form> {
    let mut any = false;
    for media in accepted(headers).filter(|media| !media.type_.is_empty()) {
        any = true;
        let encoding = match media.type_ {
            "application/json" | "application/*" | "*/*" => Encoding::Json,
            "application/yaml" => Encoding::Yaml,
            _ => continue,
        };
        let shape = match (media.parameter("as"), media.parameter("g"), media.parameter("v")) {
            (None, ..) => Shape::Plain,
            (Some("Table"), Some("meta.k8s.io"), Some("v1")) => Shape::Table,
            (
                Some("PartialObjectMetadata" | "PartialObjectMetadataList"),
                Some("meta.k8s.io"),
                Some("v1"),
            ) => Shape::Metadata,
            _ => continue,
        };
        return Ok(Form { shape, encoding });
    }
    if any {
        Err(ApiError::NotAcceptable(SUPPORTED))
    } else {
        Ok(Form { shape: Shape::Plain, encoding: Encoding::Json })
    }
}

/// Whether discovery is wanted in its aggregated form.
pub(super) fn aggregated_discovery(headers: &HeaderMap) -> bool {
    let first = accepted(headers).find(|media| media.type_ == "application/json");
    first.is_some_and(|media| {
        media.parameter("as") == Some("APIGroupDiscoveryList")
            && media.parameter("g") == Some("apidiscovery.k8s.io")
            && media.parameter("v") == Some("v2")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(accept: &str) -> Result<Form> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        form(&headers)
    }

    #[test]
    fn forms() {
        let json = |shape| Form { shape, encoding: Encoding::Json };
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(of(kubectl).unwrap(), json(Shape::Table));
        assert_eq!(of("application/vnd.kubernetes.protobuf,application/json").unwrap(), json(Shape::Plain));
        assert_eq!(
            of("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").unwrap(),
            json(Shape::Metadata)
        );
        assert_eq!(of("application/yaml").unwrap().encoding, Encoding::Yaml);
        assert_eq!(of("*/*").unwrap(), json(Shape::Plain));
        assert_eq!(form(&HeaderMap::new()).unwrap(), json(Shape::Plain));
        assert!(of("application/vnd.kubernetes.protobuf").is_err() && of("text/html").is_err());
    }
}
