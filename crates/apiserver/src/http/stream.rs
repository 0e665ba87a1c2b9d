//! Watch events as bytes on the wire.
//!
//! A change is encoded once for all who watch it, and goes out as one piece. An object that a watch starts with is three pieces, two constant
//! and one the stored bytes themselves, so that a watch that starts copies nothing.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use serde_json::{Value, json};

use super::negotiate::Shape;
use super::respond::serialise;
use crate::store::{Change, Object};
use crate::table::{IncludeObject, partial_object_metadata};
use crate::verbs::watch::WatchEvent;
use crate::verbs::{Served, Target};

const ADDED: &[u8] = b"{\"type\":\"ADDED\",\"object\":";
const MODIFIED: &[u8] = b"{\"type\":\"MODIFIED\",\"object\":";
const DELETED: &[u8] = b"{\"type\":\"DELETED\",\"object\":";
const BOOKMARK: &[u8] = b"{\"type\":\"BOOKMARK\",\"object\":";
const ERROR: &[u8] = b"{\"type\":\"ERROR\",\"object\":";
const END: &[u8] = b"}\n";
const INITIAL_END: &str = "k8s.io/initial-events-end";

fn head(change: Change) -> &'static [u8] {
    match change {
        Change::Added => ADDED,
        Change::Modified => MODIFIED,
        Change::Deleted => DELETED,
    }
}

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
        events.flat_map(move |event| futures::stream::iter(self.pieces(event).into_iter().flatten()))
    }

    fn pieces(&mut self, event: WatchEvent) -> [Option<Bytes>; 3] {
        let (head, object) = match event {
            WatchEvent::Whole(event) => {
                let head = head(event.change);
                if self.shape == Shape::Plain && self.target.resource.is_storage_version() {
                    let line = || [head, &event.object.bytes, END].concat().into();
                    return [Some(event.line(line)), None, None];
                }
                (head, self.stored(&event.object))
            }
            WatchEvent::Added(object) => (ADDED, self.stored(&object)),
            WatchEvent::Left(object, revision) => {
                let mut value = object.value();
                value["metadata"]["resourceVersion"] = Value::String(revision.to_string());
                self.target.resource.serve(&mut value);
                (DELETED, self.value(&value))
            }
            WatchEvent::Bookmark { revision, initial_end } => {
                (BOOKMARK, self.bookmark(revision, initial_end))
            }
            WatchEvent::Error(error) => (ERROR, serialise(&error.to_status())),
        };
        [Some(Bytes::from_static(head)), Some(object), Some(Bytes::from_static(END))]
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
