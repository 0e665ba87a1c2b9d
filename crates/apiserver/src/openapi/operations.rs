//! The paths of a resource and what may be asked at each.

use serde_json::{Map, Value, json};

use super::parameters::{self, Verb};
use super::schemas::META;
use super::{component, reference};
use crate::registry::definition::Definition;

const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// A part of an object that has a path of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Status,
    Scale,
}

struct Resource<'d> {
    definition: &'d Definition,
    component: String,
    /// `core_v1`, which also groups operations for people.
    tag: String,
    /// `CoreV1`, within the names of operations.
    group_version: String,
}

/// Adds the paths of a resource under `base`.
pub(super) fn insert_paths(paths: &mut Map<String, Value>, definition: &Definition, base: &str) {
    let resource = Resource::new(definition);
    let plural = &definition.names.plural;
    let collection = if definition.namespaced && !definition.kept {
        format!("{base}/namespaces/{{namespace}}/{plural}")
    } else if definition.namespaced {
        let everywhere = format!("{base}/{plural}");
        let all = json!({
            "get": resource.operation(Verb::List, Part::Whole, true),
            "parameters": parameters::of_path(&definition.names.kind, &everywhere),
        });
        paths.insert(everywhere, all);
        format!("{base}/namespaces/{{namespace}}/{plural}")
    } else {
        format!("{base}/{plural}")
    };
    let item = format!("{collection}/{{name}}");
    let mut add = |path: String, part: Part, operations: &[(&str, Verb)]| {
        let mut entry: Map<String, Value> = operations
            .iter()
            .map(|(method, verb)| ((*method).to_owned(), resource.operation(*verb, part, false)))
            .collect();
        entry.insert("parameters".to_owned(), parameters::of_path(&definition.names.kind, &path));
        paths.insert(path, Value::Object(entry));
    };
    if !definition.kept {
        return add(collection, Part::Whole, &[("post", Verb::Create)]);
    }
    let update = [("get", Verb::Get), ("put", Verb::Replace), ("patch", Verb::Patch)];
    if definition.status {
        add(format!("{item}/status"), Part::Status, &update);
    }
    if definition.scale.is_some() {
        add(format!("{item}/scale"), Part::Scale, &update);
    }
    add(
        collection,
        Part::Whole,
        &[("get", Verb::List), ("post", Verb::Create), ("delete", Verb::DeleteCollection)],
    );
    let [get, put, patch] = update;
    add(item, Part::Whole, &[get, put, patch, ("delete", Verb::Delete)]);
}

impl<'d> Resource<'d> {
    fn new(definition: &'d Definition) -> Self {
        let gv = &definition.gv;
        let group = match (gv.group.as_str(), definition.built_in) {
            ("", _) => "core".to_owned(),
            (group, true) => group.strip_suffix(".k8s.io").unwrap_or(group).to_owned(),
            (group, false) => group.to_owned(),
        };
        let mut words = group.split(['.', '-']);
        let first = words.next().unwrap_or_default();
        let group = first.to_owned() + &words.map(capitalized).collect::<String>();
        Self {
            definition,
            component: component(definition),
            tag: format!("{group}_{}", gv.version),
            group_version: format!("{}{}", capitalized(&group), capitalized(&gv.version)),
        }
    }

    fn operation(&self, verb: Verb, part: Part, everywhere: bool) -> Value {
        let mut operation = json!({
            "description": self.description(verb, part),
            "operationId": self.operation_id(verb, part, everywhere),
            "tags": [self.tag],
            "x-kubernetes-action": action(verb),
            "x-kubernetes-group-version-kind": self.kind(part),
            "parameters": parameters::of_verb(verb),
            "responses": self.responses(verb, part),
        });
        if let Some(body) = self.body(verb, part) {
            operation["requestBody"] = body;
        }
        operation
    }

    fn description(&self, verb: Verb, part: Part) -> String {
        let kind = &self.definition.names.kind;
        let part = match part {
            Part::Whole => "",
            Part::Status => "status of ",
            Part::Scale => "scale of ",
        };
        match verb {
            Verb::List => format!("list or watch objects of kind {kind}"),
            Verb::Create => format!("create {} {kind}", article(kind)),
            Verb::DeleteCollection => format!("delete collection of {kind}"),
            Verb::Get => format!("read {part}the specified {kind}"),
            Verb::Replace => format!("replace {part}the specified {kind}"),
            Verb::Patch => format!("partially update {part}the specified {kind}"),
            Verb::Delete => format!("delete {} {kind}", article(kind)),
        }
    }

    fn operation_id(&self, verb: Verb, part: Part, everywhere: bool) -> String {
        let kind = &self.definition.names.kind;
        let scope = if self.definition.namespaced && !everywhere { "Namespaced" } else { "" };
        let collection = if verb == Verb::DeleteCollection { "Collection" } else { "" };
        let verb = match verb {
            Verb::List => "list",
            Verb::Create => "create",
            Verb::DeleteCollection | Verb::Delete => "delete",
            Verb::Get => "read",
            Verb::Replace => "replace",
            Verb::Patch => "patch",
        };
        let part = match part {
            Part::Whole if everywhere => "ForAllNamespaces",
            Part::Whole => "",
            Part::Status => "Status",
            Part::Scale => "Scale",
        };
        format!("{verb}{}{collection}{scope}{kind}{part}", self.group_version)
    }

    /// The kind that an operation is about; `scale` speaks of a kind of its own.
    fn kind(&self, part: Part) -> Value {
        let gv = &self.definition.gv;
        match part {
            Part::Scale => json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
            Part::Whole | Part::Status => {
                json!({"group": gv.group, "version": gv.version, "kind": self.definition.names.kind})
            }
        }
    }

    fn object(&self, part: Part) -> Value {
        reference(if part == Part::Scale { SCALE } else { &self.component })
    }

    fn body(&self, verb: Verb, part: Part) -> Option<Value> {
        let any = |schema: Value, required: bool| {
            let mut body = json!({"content": {"*/*": {"schema": schema}}});
            if required {
                body["required"] = json!(true);
            }
            body
        };
        match verb {
            Verb::List | Verb::Get => None,
            Verb::Create | Verb::Replace => Some(any(self.object(part), true)),
            Verb::Delete | Verb::DeleteCollection => {
                Some(any(reference(&format!("{META}.DeleteOptions")), false))
            }
            Verb::Patch => {
                let mut types = vec![
                    "application/apply-patch+yaml",
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ];
                // Clients take a strategic merge patch where it is offered; custom resources have none.
                if self.definition.built_in {
                    types.push("application/strategic-merge-patch+json");
                }
                let schema = json!({"schema": reference(&format!("{META}.Patch"))});
                let content: Map<String, Value> =
                    types.into_iter().map(|type_| (type_.to_owned(), schema.clone())).collect();
                Some(json!({"content": content, "required": true}))
            }
        }
    }

    fn responses(&self, verb: Verb, part: Part) -> Value {
        let status = || reference(&format!("{META}.Status"));
        let answers: &[(&str, &str)] = match verb {
            Verb::List | Verb::Get | Verb::DeleteCollection => &[("200", "OK")],
            Verb::Create => &[("200", "OK"), ("201", "Created"), ("202", "Accepted")],
            Verb::Replace | Verb::Patch => &[("200", "OK"), ("201", "Created")],
            Verb::Delete => &[("200", "OK"), ("202", "Accepted")],
        };
        let schema = match verb {
            Verb::List => reference(&format!("{}List", self.component)),
            Verb::Delete | Verb::DeleteCollection => status(),
            Verb::Create | Verb::Get | Verb::Replace | Verb::Patch => self.object(part),
        };
        let mut types = vec!["application/json"];
        if verb == Verb::List {
            types.push("application/json;stream=watch");
        }
        let content: Map<String, Value> =
            types.into_iter().map(|type_| (type_.to_owned(), json!({ "schema": schema }))).collect();
        let mut responses: Map<String, Value> = answers
            .iter()
            .map(|(code, text)| ((*code).to_owned(), json!({"description": text, "content": content})))
            .collect();
        responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
        Value::Object(responses)
    }
}

/// What an operation is called where clients look for it.
fn action(verb: Verb) -> &'static str {
    match verb {
        Verb::List => "list",
        Verb::Create => "post",
        Verb::DeleteCollection => "deletecollection",
        Verb::Get => "get",
        Verb::Replace => "put",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
