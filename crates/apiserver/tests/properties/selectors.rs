//! Selectors pick what a plain reading of their rules picks, whole and in pages.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use proptest::prelude::*;
use serde_json::json;

use crate::check;
use crate::common::{Widget, widget};

const KEYS: [&str; 3] = ["app", "example.com/tier", "n"];
const VALUES: [&str; 5] = ["", "web", "api", "3", "7"];
const COLORS: [&str; 3] = ["red", "blue", "a,b=c\\d"];

/// A widget in a namespace, with labels and perhaps a colour.
#[derive(Clone, Debug)]
struct Item {
    namespace: &'static str,
    labels: BTreeMap<&'static str, &'static str>,
    color: Option<&'static str>,
}

#[derive(Clone, Debug)]
enum Label {
    Equal(&'static str, &'static str, &'static str),
    Unequal(&'static str, &'static str),
    In(&'static str, Vec<&'static str>),
    NotIn(&'static str, Vec<&'static str>),
    Exists(&'static str),
    Absent(&'static str),
    Above(&'static str, i64),
    Below(&'static str, i64),
}

impl Label {
    fn text(&self) -> String {
        match self {
            Self::Equal(key, operator, value) => format!("{key}{operator}{value}"),
            Self::Unequal(key, value) => format!("{key} != {value}"),
            Self::In(key, values) => format!("{key} in ({})", values.join(", ")),
            Self::NotIn(key, values) => format!("{key} notin ({})", values.join(",")),
            Self::Exists(key) => (*key).to_owned(),
            Self::Absent(key) => format!("!{key}"),
            Self::Above(key, bound) => format!("{key}>{bound}"),
            Self::Below(key, bound) => format!("{key} < {bound}"),
        }
    }

    fn picks(&self, labels: &BTreeMap<&str, &str>) -> bool {
        let number = |key: &str| labels.get(key).and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Equal(key, _, value) => labels.get(key) == Some(value),
            Self::Unequal(key, value) => labels.get(key) != Some(value),
            Self::In(key, values) => labels.get(key).is_some_and(|found| values.contains(found)),
            Self::NotIn(key, values) => labels.get(key).is_none_or(|found| !values.contains(found)),
            Self::Exists(key) => labels.contains_key(key),
            Self::Absent(key) => !labels.contains_key(key),
            Self::Above(key, bound) => number(key).is_some_and(|found| found > *bound),
            Self::Below(key, bound) => number(key).is_some_and(|found| found < *bound),
        }
    }
}

#[derive(Clone, Debug)]
struct Field {
    path: &'static str,
    equal: bool,
    value: String,
}

impl Field {
    fn text(&self) -> String {
        let escaped = self.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
        format!("{}{}{escaped}", self.path, if self.equal { "=" } else { "!=" })
    }

    fn picks(&self, name: &str, item: &Item) -> bool {
        let found = match self.path {
            "metadata.name" => name,
            "metadata.namespace" => item.namespace,
            _ => item.color.unwrap_or_default(),
        };
        (found == self.value) == self.equal
    }
}

fn item() -> impl Strategy<Value = Item> {
    let namespace = prop_oneof![Just("default"), Just("kube-system")];
    let labels = proptest::collection::btree_map(select(&KEYS), select(&VALUES), 0..=KEYS.len());
    (namespace, labels, proptest::option::of(select(&COLORS))).prop_map(|(namespace, labels, color)| Item {
        namespace,
        labels,
        color,
    })
}

fn select(from: &'static [&'static str]) -> impl Strategy<Value = &'static str> + Clone {
    proptest::sample::select(from)
}

fn label() -> impl Strategy<Value = Label> {
    let values = || proptest::collection::vec(select(&VALUES), 1..4);
    prop_oneof![
        (select(&KEYS), select(&["=", "==", " = "]), select(&VALUES))
            .prop_map(|(k, o, v)| Label::Equal(k, o, v)),
        (select(&KEYS), select(&VALUES)).prop_map(|(k, v)| Label::Unequal(k, v)),
        (select(&KEYS), values()).prop_map(|(k, v)| Label::In(k, v)),
        (select(&KEYS), values()).prop_map(|(k, v)| Label::NotIn(k, v)),
        select(&KEYS).prop_map(Label::Exists),
        select(&KEYS).prop_map(Label::Absent),
        (select(&KEYS), 0..9i64).prop_map(|(k, bound)| Label::Above(k, bound)),
        (select(&KEYS), 0..9i64).prop_map(|(k, bound)| Label::Below(k, bound)),
    ]
}

fn field() -> impl Strategy<Value = Field> {
    let owned = |value: &str| value.to_owned();
    let value = prop_oneof![
        (0..12usize).prop_map(|at| ("metadata.name", name(at))),
        select(&["default", "kube-system", "absent"]).prop_map(move |v| ("metadata.namespace", owned(v))),
        select(&["red", "blue", "a,b=c\\d", "", "green"]).prop_map(move |v| ("spec.color", owned(v))),
    ];
    (value, any::<bool>()).prop_map(|((path, value), equal)| Field { path, equal, value })
}

fn name(at: usize) -> String {
    format!("w{at:02}")
}

async fn names(client: &Client, namespace: Option<&str>, params: &ListParams) -> Vec<(String, String)> {
    let api: Api<Widget> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let mut found = Vec::new();
    let mut params = params.clone();
    loop {
        let page = api.list(&params).await.unwrap();
        assert!(params.limit.is_none_or(|limit| page.items.len() <= limit as usize));
        found.extend(page.items.iter().map(|widget| (widget.namespace().unwrap(), widget.name_any())));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return found,
        }
    }
}

#[test]
fn lists_pick_what_a_plain_reading_picks() {
    let items = proptest::collection::vec(item(), 1..12);
    let queries = proptest::collection::vec(
        (
            proptest::collection::vec(label(), 0..4),
            proptest::collection::vec(field(), 0..3),
            proptest::option::of(1..5u32),
            proptest::option::of(select(&["default", "kube-system"])),
        ),
        1..30,
    );
    check(60, (items, queries), |client, (items, queries)| async move {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        assert!(namespaces.get_opt("kube-system").await.unwrap().is_some());
        for (at, item) in items.iter().enumerate() {
            let api: Api<Widget> = Api::namespaced(client.clone(), item.namespace);
            let mut object = widget(&name(at), 1);
            object.metadata.labels = serde_json::from_value(json!(item.labels)).unwrap();
            object.spec.color = item.color.map(str::to_owned);
            api.create(&PostParams::default(), &object).await.unwrap();
        }
        for (labels, fields, limit, namespace) in queries {
            let mut expected: Vec<(String, String)> = items
                .iter()
                .enumerate()
                .filter(|(_, item)| namespace.is_none_or(|namespace| item.namespace == namespace))
                .filter(|(_, item)| labels.iter().all(|label| label.picks(&item.labels)))
                .filter(|(at, item)| fields.iter().all(|field| field.picks(&name(*at), item)))
                .map(|(at, item)| (item.namespace.to_owned(), name(at)))
                .collect();
            expected.sort();
            let text = |parts: Vec<String>| parts.join(",");
            let params = ListParams {
                label_selector: Some(text(labels.iter().map(Label::text).collect())),
                field_selector: Some(text(fields.iter().map(Field::text).collect())),
                limit,
                ..ListParams::default()
            };
            assert_eq!(names(&client, namespace, &params).await, expected, "{params:?} in {namespace:?}");
        }
    });
}
