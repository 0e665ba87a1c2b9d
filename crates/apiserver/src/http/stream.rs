//! Watch events as bytes on the wire.
//!
//! A plain event is three pieces, two constant and one the stored bytes themselves: however many watchers
//! there are, an object is encoded once.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use serde_json::{Value, json};

use super::negotiate::Shape;
use super::respond::serialise;
use crate::store::Object;
use crate::table::{IncludeObject, partial_object_metadata};
use crate::verbs::watch::{Gone, WatchEvent};
use crate::verbs::{Served, Target};

const INITIAL_END: &str = "k8s.io/initial-events-end";

/// Turns the events of one watch into bytes.
pub(super) struct Encoder {
    target: Target,
    shape: Shape,
    include: IncludeObject,
    /// Column definitions go with the first table only.
    headers_sent: bool,
}

impl Encoder {
    pub(super) fn new(target: Target, shape: Shape, include: IncludeObject) -> Self {
        Self { target, shape, include, headers_sent: false }
    }

    /// The stream of encoded events.
    pub(super) fn encode(
        mut self,
        events: impl Stream<Item = WatchEvent> + Send + 'static,
    ) -> impl Stream<Item = Bytes> + Send + 'static {
        events.flat_map(move |event| futures::stream::iter(self.pieces(event)))
    }

    fn pieces(&mut self, event: WatchEvent) -> [Bytes; 3] {
        const ADDED: &[u8] = b"{\"type\":\"ADDED\",\"object\":";
        const MODIFIED: &[u8] = b"{\"type\":\"MODIFIED\",\"object\":";
        const DELETED: &[u8] = b"{\"type\":\"DELETED\",\"object\":";
        const BOOKMARK: &[u8] = b"{\"type\":\"BOOKMARK\",\"object\":";
        const ERROR: &[u8] = b"{\"type\":\"ERROR\",\"object\":";
        let (head, object) = match event {
            WatchEvent::Added(object) => (ADDED, self.stored(&object)),
            WatchEvent::Modified(object) => (MODIFIED, self.stored(&object)),
            WatchEvent::Deleted(Gone::Deleted(object)) => (DELETED, self.stored(&object)),
            WatchEvent::Deleted(gone) => {
                let mut value = gone.value();
                self.target.resource.serve(&mut value);
                (DELETED, self.value(&value))
            }
            WatchEvent::Bookmark { revision, initial_end } => {
                (BOOKMARK, self.bookmark(revision, initial_end))
            }
            WatchEvent::Error(error) => (ERROR, serialise(&error.to_status())),
        };
        [Bytes::from_static(head), object, Bytes::from_static(b"}\n")]
    }

    fn stored(&mut self, object: &Arc<Object>) -> Bytes {
        match (self.shape, self.target.in_version(object)) {
            (Shape::Plain, served) => served.bytes(),
            (_, Served::Stored(object)) => self.value(&object.value()),
            (_, Served::Value(value)) => self.value(&value),
        }
    }

    fn value(&mut self, object: &Value) -> Bytes {
        match self.shape {
            Shape::Plain => serialise(object),
            Shape::Metadata => serialise(&partial_object_metadata(object)),
            Shape::Table => {
                let printer = &self.target.resource.printer;
                let metadata = json!({ "resourceVersion": object["metadata"]["resourceVersion"] });
                let rows = vec![printer.row(object, self.include, self.target.shared.options.clock.now())];
                let table = printer.table(metadata, rows, !self.headers_sent);
                self.headers_sent = true;
                serialise(&table)
            }
        }
    }

    fn bookmark(&mut self, revision: u64, initial_end: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": revision.to_string(), "creationTimestamp": null });
        if initial_end {
            metadata["annotations"] = json!({ INITIAL_END: "true" });
        }
        let def = &self.target.resource.def;
        serialise(&match self.shape {
            Shape::Plain => {
                json!({ "kind": def.names.kind, "apiVersion": def.gv.to_string(), "metadata": metadata })
            }
            Shape::Metadata => {
                json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata })
            }
            Shape::Table => {
                self.headers_sent = true;
                let row = json!({ "cells": [], "object": {
                    "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                } });
                let printer = &self.target.resource.printer;
                printer.table(json!({ "resourceVersion": revision.to_string() }), vec![row], true)
            }
        })
    }
}
