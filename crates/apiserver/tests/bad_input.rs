//! Bad input of every sort gets the right code and a `Status` that says what is wrong, changes nothing, and the
//! server goes on.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use compute_apiserver::{ApiServer, Identity, Options, PlaneName};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

struct Plane(ApiServer, PlaneName);

fn crd(plural: &str, kind: &str, schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "plural": plural, "kind": kind },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    })
}

async fn plane() -> Plane {
    let server = ApiServer::new(Options::default());
    let schema = json!({ "type": "object", "properties": { "spec": {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": { "type": "integer", "minimum": 1 },
            "list": { "type": "array", "items": { "type": "string" } },
        },
        "x-kubernetes-validations": [{ "rule": "self.size < 100", "message": "size must stay below 100" }],
    } } });
    let template = server.template(&[crd("things", "Thing", &schema)]).await.unwrap();
    let name = PlaneName::new("p").unwrap();
    server.create_plane(name.clone(), &template).await.unwrap();
    let plane = Plane(server, name);
    let (code, _) = plane
        .send(
            &Method::POST,
            CONFIG_MAPS,
            "application/json",
            br#"{"metadata":{"name":"good"},"data":{"a":"b"}}"#,
        )
        .await;
    assert_eq!(code, 201);
    let (code, _) = plane
        .send(&Method::POST, THINGS, "application/json", br#"{"metadata":{"name":"good"},"spec":{"size":1}}"#)
        .await;
    assert_eq!(code, 201);
    plane
}

impl Plane {
    async fn send(&self, method: &Method, path: &str, content_type: &str, body: &[u8]) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(Full::new(Bytes::copy_from_slice(body)))
            .unwrap();
        let service = self.0.service(&self.1, Identity::superuser("tester"));
        let response = service.oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// Sends, and checks the code, the `Status` and that the message holds `words`.
    #[expect(clippy::too_many_arguments, reason = "a request and what is expected, as one row")]
    async fn refuses(
        &self,
        method: &Method,
        path: &str,
        content_type: &str,
        body: &[u8],
        code: u16,
        reason: &str,
        words: &str,
    ) {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let (found, status) = self.send(method, path, content_type, body).await;
        assert_eq!(found, code, "{method} {path} {content_type} {shown}: {status}");
        assert_eq!(status["kind"], "Status", "{method} {path} {shown}: {status}");
        assert_eq!(status["status"], "Failure");
        assert_eq!(status["code"], code);
        assert_eq!(status["reason"], reason, "{method} {path} {shown}: {status}");
        let message = status["message"].as_str().unwrap();
        assert!(message.contains(words), "{method} {path} {shown}: {message:?} has no {words:?}");
        assert!(message.len() < 8 * 1024, "a message of {} bytes", message.len());
    }

    /// Nothing has changed, and the server answers.
    async fn is_well(&self) {
        for (path, field, value) in
            [(CONFIG_MAPS, "data", json!({"a": "b"})), (THINGS, "spec", json!({"size": 1}))]
        {
            let (code, list) = self.send(&Method::GET, path, "", b"").await;
            assert_eq!(code, 200);
            let items = list["items"].as_array().unwrap();
            assert_eq!(items.len(), 1, "{path}: {items:?}");
            assert_eq!(items[0][field], value);
        }
    }
}

#[tokio::test]
async fn malformed_bodies() {
    let plane = plane().await;
    let deep_list = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_object = format!(
        r#"{{"metadata":{{"name":"x"}},"data":{}1{}}}"#,
        r#"{"a":"#.repeat(10_000),
        "}".repeat(10_000)
    );
    let deep_yaml = format!("metadata:\n  name: x\ndata: {}{}", "{a: ".repeat(10_000), "}".repeat(10_000));
    let bad_utf8 = b"{\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":\"\xff\xfe\"}}";
    let json = "application/json";
    for body in [
        &b""[..],
        b"{",
        b"[]",
        b"null",
        b"\"x\"",
        b"7",
        b"{}{}",
        b"not json",
        b"\x00",
        bad_utf8,
        deep_list.as_bytes(),
        deep_object.as_bytes(),
    ] {
        plane.refuses(&Method::POST, CONFIG_MAPS, json, body, 400, "BadRequest", "").await;
        plane.refuses(&Method::PUT, &format!("{CONFIG_MAPS}/good"), json, body, 400, "BadRequest", "").await;
        plane
            .refuses(
                &Method::PATCH,
                &format!("{CONFIG_MAPS}/good"),
                "application/merge-patch+json",
                body,
                400,
                "BadRequest",
                "",
            )
            .await;
        let apply = format!("{CONFIG_MAPS}/good?fieldManager=m");
        plane
            .refuses(&Method::PATCH, &apply, "application/apply-patch+yaml", body, 400, "BadRequest", "")
            .await;
    }
    plane
        .refuses(&Method::POST, CONFIG_MAPS, "application/yaml", deep_yaml.as_bytes(), 400, "BadRequest", "")
        .await;
    plane.refuses(&Method::POST, CONFIG_MAPS, "application/yaml", b"a: [", 400, "BadRequest", "").await;
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n";
    plane
        .refuses(&Method::POST, CONFIG_MAPS, "application/yaml", bomb.as_bytes(), 400, "BadRequest", "")
        .await;
    for (body, words) in [
        (json!({"kind": "Secret", "metadata": {"name": "x"}}), "kind"),
        (json!({"apiVersion": "v2", "metadata": {"name": "x"}}), "API version"),
        (json!({"apiVersion": 3, "metadata": {"name": "x"}}), "apiVersion"),
        (json!({"metadata": {"name": "x", "namespace": "other"}}), "namespace"),
        (json!({"metadata": []}), "metadata"),
        (json!({"metadata": {"name": "x", "resourceVersion": "7"}}), "resourceVersion"),
    ] {
        plane
            .refuses(&Method::POST, CONFIG_MAPS, json, body.to_string().as_bytes(), 400, "BadRequest", words)
            .await;
    }
    plane.is_well().await;
}

#[tokio::test]
async fn wrong_types_of_fields() {
    let plane = plane().await;
    for (path, body, field) in [
        (CONFIG_MAPS, json!({"metadata": {"name": 7}}), "metadata.name"),
        (CONFIG_MAPS, json!({"metadata": {"name": "x", "labels": []}}), "metadata.labels"),
        (CONFIG_MAPS, json!({"metadata": {"name": "x", "labels": {"a": 1}}}), "metadata.labels"),
        (CONFIG_MAPS, json!({"metadata": {"name": "x", "finalizers": "f"}}), "metadata.finalizers"),
        (CONFIG_MAPS, json!({"metadata": {"name": "x"}, "data": {"a": 1}}), "data"),
        (CONFIG_MAPS, json!({"metadata": {"name": "x"}, "data": "a"}), "data"),
        (CONFIG_MAPS, json!({"metadata": {"name": "Bad_Name"}}), "metadata.name"),
        (CONFIG_MAPS, json!({"metadata": {}}), "metadata.name"),
        (CONFIG_MAPS, json!({"metadata": {"name": "x"}, "data": {"a/b": ""}}), "data[a/b]"),
        (THINGS, json!({"metadata": {"name": "x"}}), ""),
        (THINGS, json!({"metadata": {"name": "x"}, "spec": {}}), "spec.size"),
        (THINGS, json!({"metadata": {"name": "x"}, "spec": {"size": "1"}}), "spec.size"),
        (THINGS, json!({"metadata": {"name": "x"}, "spec": {"size": 0}}), "spec.size"),
        (THINGS, json!({"metadata": {"name": "x"}, "spec": {"size": 1, "list": [1]}}), "spec.list[0]"),
        (THINGS, json!({"metadata": {"name": "x"}, "spec": {"size": 100}}), "size must stay below 100"),
    ] {
        let (code, status) =
            plane.send(&Method::POST, path, "application/json", body.to_string().as_bytes()).await;
        if field.is_empty() {
            // No spec at all is fine: only a spec that is there must have a size.
            assert_eq!(code, 201, "{body}: {status}");
            plane.send(&Method::DELETE, &format!("{path}/x"), "", b"").await;
            continue;
        }
        assert!(code == 422 || code == 400, "{body}: {code} {status}");
        assert!(status["message"].as_str().unwrap().contains(field), "{body}: {status}");
        if code == 422 {
            assert!(
                status["details"]["causes"].as_array().is_some_and(|causes| !causes.is_empty()),
                "{status}"
            );
        }
    }
    plane.is_well().await;
}

#[tokio::test]
async fn wrong_shapes_of_built_in_kinds() {
    let plane = plane().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let (code, _) = plane.send(&Method::POST, pods, "application/json", pod.to_string().as_bytes()).await;
    assert_eq!(code, 201);
    let services = "/api/v1/namespaces/default/services";
    let secrets = "/api/v1/namespaces/default/secrets";
    for (path, body) in [
        ("/api/v1/namespaces", json!({"metadata": {"name": "a"}, "spec": "x"})),
        ("/api/v1/namespaces", json!({"metadata": {"name": "a", "labels": "x"}})),
        (secrets, json!({"metadata": {"name": "a"}, "data": "x", "stringData": {"a": "b"}})),
        (secrets, json!({"metadata": {"name": "a"}, "data": {"password": "hunter2!"}})),
        (services, json!({"metadata": {"name": "a"}, "spec": []})),
        (services, json!({"metadata": {"name": "a"}, "spec": {"ports": [7]}})),
        (pods, json!({"metadata": {"name": "a"}, "spec": "x"})),
        (pods, json!({"metadata": {"name": "a"}, "spec": {"containers": "x"}})),
    ] {
        let (code, status) =
            plane.send(&Method::POST, path, "application/json", body.to_string().as_bytes()).await;
        // A namespace's spec is the server's: whatever is sent there is replaced.
        let accepted = path == "/api/v1/namespaces" && body["spec"] == "x";
        assert_eq!(code, if accepted { 201 } else { 422 }, "{path} {body}: {status}");
        assert!(!status.to_string().contains("hunter2"), "a secret is echoed: {status}");
    }
    let merge = "application/merge-patch+json";
    plane
        .refuses(&Method::PATCH, &format!("{pods}/p"), merge, br#"{"spec":"x"}"#, 422, "Invalid", "spec")
        .await;
    plane.is_well().await;
}

#[tokio::test]
async fn wrong_content_types_and_accepts() {
    let plane = plane().await;
    let protobuf = "application/vnd.kubernetes.protobuf";
    for body in [&b""[..], b"{}", b"k8s\0\xff\xff\xff\xff\xff", b"k8s\0\x0a\x7f"] {
        plane.refuses(&Method::POST, CONFIG_MAPS, protobuf, body, 400, "BadRequest", "protobuf").await;
    }
    for content_type in ["text/plain", "application/xml", "application/json-patch+json"] {
        plane
            .refuses(
                &Method::POST,
                CONFIG_MAPS,
                content_type,
                b"{}",
                415,
                "UnsupportedMediaType",
                "media types",
            )
            .await;
    }
    let good = format!("{CONFIG_MAPS}/good");
    for content_type in ["application/json", "text/plain", ""] {
        plane
            .refuses(&Method::PATCH, &good, content_type, b"{}", 415, "UnsupportedMediaType", "media types")
            .await;
    }
    let thing = format!("{THINGS}/good");
    plane
        .refuses(
            &Method::PATCH,
            &thing,
            "application/strategic-merge-patch+json",
            b"{}",
            415,
            "UnsupportedMediaType",
            "media types",
        )
        .await;
    let request =
        Request::get(CONFIG_MAPS).header("accept", "text/html").body(Full::<Bytes>::default()).unwrap();
    let response = plane.0.service(&plane.1, Identity::superuser("tester")).oneshot(request).await.unwrap();
    assert_eq!(response.status(), 406);
    plane.is_well().await;
}

#[tokio::test]
async fn large_bodies_are_cut_off() {
    let plane = plane().await;
    let body = format!(r#"{{"metadata":{{"name":"x"}},"data":{{"a":"{}"}}}}"#, "a".repeat(10 << 20));
    let good = format!("{CONFIG_MAPS}/good");
    plane
        .refuses(
            &Method::POST,
            CONFIG_MAPS,
            "application/json",
            body.as_bytes(),
            413,
            "RequestEntityTooLarge",
            "3145728",
        )
        .await;
    plane
        .refuses(&Method::PUT, &good, "application/json", body.as_bytes(), 413, "RequestEntityTooLarge", "")
        .await;
    plane
        .refuses(
            &Method::PATCH,
            &good,
            "application/merge-patch+json",
            body.as_bytes(),
            413,
            "RequestEntityTooLarge",
            "",
        )
        .await;
    plane
        .refuses(
            &Method::DELETE,
            &good,
            "application/json",
            body.as_bytes(),
            413,
            "RequestEntityTooLarge",
            "",
        )
        .await;
    // Within the limit of bodies, over that of ConfigMaps.
    let body = format!(r#"{{"metadata":{{"name":"x"}},"data":{{"a":"{}"}}}}"#, "a".repeat(2 << 20));
    plane
        .refuses(&Method::POST, CONFIG_MAPS, "application/json", body.as_bytes(), 422, "Invalid", "1048576")
        .await;
    // A patch that grows the object by copying it into itself.
    let mut operations = vec![json!({"op": "add", "path": "/data/a", "value": "x".repeat(1 << 20)})];
    operations.extend((0..60).map(|i| json!({"op": "copy", "from": "/data", "path": format!("/data/c{i}")})));
    let patch = Value::Array(operations).to_string();
    let (code, status) =
        plane.send(&Method::PATCH, &good, "application/json-patch+json", patch.as_bytes()).await;
    assert!(code == 413 || code == 422, "{code} {status}");
    plane.is_well().await;
}

#[tokio::test]
async fn bad_patches() {
    let plane = plane().await;
    let good = format!("{CONFIG_MAPS}/good");
    let json_patch = "application/json-patch+json";
    for (patch, code) in [
        (json!({}), 400),
        (json!([{"op": "no-such", "path": "/data"}]), 400),
        (json!([{"op": "add"}]), 400),
        (json!([{"op": "add", "path": "data", "value": 1}]), 400),
        (json!([{"op": "remove", "path": "/data/absent"}]), 422),
        (json!([{"op": "test", "path": "/data/a", "value": "other"}]), 422),
        (json!([{"op": "replace", "path": "/data/a", "value": {"x": 1}}]), 422),
        (json!([{"op": "replace", "path": "/metadata/name", "value": "other"}]), 400),
        (json!([{"op": "replace", "path": "/metadata", "value": 7}]), 400),
        (json!([{"op": "replace", "path": "", "value": 7}]), 400),
    ] {
        let (found, status) =
            plane.send(&Method::PATCH, &good, json_patch, patch.to_string().as_bytes()).await;
        assert!(found == code || (code == 400 && found == 422), "{patch}: {found} {status}");
        assert_eq!(status["kind"], "Status", "{patch}");
    }
    for patch in
        [json!({"data": {"$patch": "explode"}}), json!({"data": {"$deleteFromPrimitiveList/x": "y"}})]
    {
        let content_type = "application/strategic-merge-patch+json";
        let (found, status) =
            plane.send(&Method::PATCH, &good, content_type, patch.to_string().as_bytes()).await;
        assert!(found == 400 || found == 422, "{patch}: {found} {status}");
    }
    let apply = "application/apply-patch+yaml";
    let config = |extra: Value| {
        let mut config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good"}});
        config["metadata"].as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        config.to_string()
    };
    let plain = config(json!({}));
    plane.refuses(&Method::PATCH, &good, apply, plain.as_bytes(), 422, "Invalid", "fieldManager").await;
    let named = format!("{good}?fieldManager=m");
    let managed = config(json!({"managedFields": [{"manager": "x"}]}));
    plane
        .refuses(&Method::PATCH, &named, apply, managed.as_bytes(), 400, "BadRequest", "managedFields")
        .await;
    plane
        .refuses(&Method::PATCH, &named, apply, b"metadata: {name: good}", 400, "BadRequest", "apiVersion")
        .await;
    let long = format!("{good}?fieldManager={}", "m".repeat(200));
    plane.refuses(&Method::PATCH, &long, apply, plain.as_bytes(), 422, "Invalid", "fieldManager").await;
    let absent = format!("{CONFIG_MAPS}/absent");
    plane
        .refuses(
            &Method::PATCH,
            &absent,
            "application/merge-patch+json",
            b"{}",
            404,
            "NotFound",
            "\"absent\" not found",
        )
        .await;
    plane.is_well().await;
}

#[tokio::test]
async fn bad_parameters() {
    let plane = plane().await;
    for (query, code) in [
        ("labelSelector=%3D", 400),
        ("labelSelector=a%20in%20(", 400),
        ("labelSelector=a,", 400),
        ("fieldSelector=spec.nope%3Da", 400),
        ("fieldSelector=metadata.name", 400),
        ("limit=x", 400),
        ("limit=-1", 400),
        ("continue=rubbish", 400),
        ("resourceVersion=x", 400),
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersionMatch=Nope&resourceVersion=1", 422),
        ("resourceVersion=1&resourceVersionMatch=Exact", 410),
        ("resourceVersion=99999999999999999", 504),
        ("watch=maybe", 400),
        ("watch=true&sendInitialEvents=true", 422),
        ("watch=true&timeoutSeconds=soon", 400),
        ("sendInitialEvents=true", 422),
    ] {
        let (found, status) = plane.send(&Method::GET, &format!("{CONFIG_MAPS}?{query}"), "", b"").await;
        assert_eq!(found, code, "{query}: {status}");
        assert_eq!(status["kind"], "Status", "{query}");
    }
    // A watch that comes too late is told so in its stream, where clients look for it.
    let (found, event) =
        plane.send(&Method::GET, &format!("{CONFIG_MAPS}?watch=true&resourceVersion=1"), "", b"").await;
    assert_eq!((found, &event["type"]), (200, &json!("ERROR")));
    assert_eq!((&event["object"]["code"], &event["object"]["reason"]), (&json!(410), &json!("Expired")));
    let long = format!("{CONFIG_MAPS}?labelSelector={}", "a,".repeat(20_000));
    plane.refuses(&Method::GET, &long, "", b"", 400, "BadRequest", "selector").await;
    let body = br#"{"metadata":{"name":"x"}}"#;
    for (query, code) in [("dryRun=Some", 422), ("fieldValidation=Harsh", 422)] {
        let (found, status) =
            plane.send(&Method::POST, &format!("{CONFIG_MAPS}?{query}"), "application/json", body).await;
        assert_eq!(found, code, "{query}: {status}");
    }
    for (body, code) in [
        (json!({"propagationPolicy": "Sideways"}), 422),
        (json!({"propagationPolicy": "Orphan", "orphanDependents": true}), 422),
        (json!({"kind": "ConfigMap"}), 400),
        (json!({"preconditions": {"uid": "other"}}), 409),
        (json!({"preconditions": {"resourceVersion": "1"}}), 409),
    ] {
        let path = format!("{CONFIG_MAPS}/good");
        let (found, status) =
            plane.send(&Method::DELETE, &path, "application/json", body.to_string().as_bytes()).await;
        assert_eq!(found, code, "{body}: {status}");
    }
    for (method, path, code) in [
        (Method::POST, "/api/v1/configmaps", 405),
        (Method::POST, "/api/v1/namespaces/default/configmaps/good", 405),
        (Method::PUT, CONFIG_MAPS, 405),
        (Method::GET, "/api/v1/namespaces/default/nodes", 404),
        (Method::GET, "/api/v1/namespaces/default/configmaps/good/status", 404),
        (Method::GET, "/api/v1/namespaces/default/configmaps/good/scale", 404),
        (Method::GET, "/api/v9/namespaces", 404),
        (Method::GET, "/apis/nope.example.com/v1/things", 404),
        (Method::GET, "/api/v1/namespaces/default/configmaps/a%2Fb", 404),
        (Method::GET, "/api/v1//namespaces", 404),
    ] {
        let (found, status) = plane.send(&method, path, "application/json", body).await;
        assert_eq!(found, code, "{method} {path}: {status}");
        assert_eq!(status["kind"], "Status", "{method} {path}");
    }
    let nowhere = "/api/v1/namespaces/nowhere/configmaps";
    plane
        .refuses(
            &Method::POST,
            nowhere,
            "application/json",
            body,
            404,
            "NotFound",
            "namespaces \"nowhere\" not found",
        )
        .await;
    plane.is_well().await;
}

#[tokio::test]
async fn bad_crds() {
    let plane = plane().await;
    let object = |properties: Value| json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
    let rule = |rule: &str| {
        json!({"type": "object", "properties": {"spec": {
            "type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": rule}],
        }}})
    };
    for (schema, words) in [
        (json!({}), "openAPIV3Schema.type"),
        (json!({"type": "string"}), "openAPIV3Schema.type"),
        (object(json!({"a": {}})), "properties[a].type"),
        (object(json!({"a": {"$ref": "#/definitions/x"}})), "$ref"),
        (object(json!({"a": {"type": "nonsense"}})), "type"),
        (object(json!({"a": {"type": "string", "pattern": "("}})), "pattern"),
        (object(json!({"a": {"type": "string", "default": 7}})), "default"),
        (object(json!({"a": {"type": "object", "additionalProperties": false}})), "additionalProperties"),
        (
            object(json!({"a": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}})),
            "uniqueItems",
        ),
        (
            object(
                json!({"a": {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}}),
            ),
            "x-kubernetes-list-map-keys",
        ),
        (rule("self.a <"), "rule"),
        (rule("self.nope > 1"), "rule"),
        (rule("nonsense(self.a)"), "rule"),
        (rule("self.a + 1"), "rule"),
        (rule(""), "rule"),
    ] {
        let body = crd("bads", "Bad", &schema);
        let (code, status) =
            plane.send(&Method::POST, CRDS, "application/json", body.to_string().as_bytes()).await;
        assert_eq!(code, 422, "{schema}: {status}");
        assert!(status["message"].as_str().unwrap().contains(words), "{schema}: {status}");
        assert!(status["details"]["causes"].as_array().is_some_and(|causes| !causes.is_empty()), "{status}");
    }
    let good = object(json!({"a": {"type": "string"}}));
    let tweak = |change: &dyn Fn(&mut Value)| {
        let mut body = crd("bads", "Bad", &good);
        change(&mut body);
        body
    };
    for (body, words) in [
        (tweak(&|c| c["metadata"]["name"] = json!("other.example.com")), "metadata.name"),
        (tweak(&|c| c["spec"]["scope"] = json!("Galaxy")), "spec.scope"),
        (tweak(&|c| c["spec"]["versions"][0]["storage"] = json!(false)), "spec.versions"),
        (tweak(&|c| c["spec"]["versions"] = json!([])), "spec.versions"),
        (tweak(&|c| c["spec"]["names"]["kind"] = json!("Thing")), "spec.names.kind"),
        (tweak(&|c| c["spec"]["conversion"] = json!({"strategy": "Webhook"})), "spec.conversion"),
        (
            tweak(&|c| {
                c["spec"]["versions"][0]["subresources"] = json!({"scale": {"specReplicasPath": "x"}})
            }),
            "scale",
        ),
        (tweak(&|c| c["spec"]["versions"][0]["schema"] = Value::Null), "schema"),
    ] {
        let (code, status) =
            plane.send(&Method::POST, CRDS, "application/json", body.to_string().as_bytes()).await;
        assert_eq!(code, 422, "{body}: {status}");
        assert!(status["message"].as_str().unwrap().contains(words), "{words}: {status}");
    }
    let (_, list) = plane.send(&Method::GET, CRDS, "", b"").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    plane.is_well().await;
}

#[tokio::test]
async fn unknown_and_doubled_fields() {
    let plane = plane().await;
    let strict = |path: &str| format!("{path}?fieldValidation=Strict");
    let json = "application/json";
    for (path, body, words) in [
        (CONFIG_MAPS, &br#"{"metadata":{"name":"x"},"dta":{}}"#[..], "unknown field \"dta\""),
        (CONFIG_MAPS, br#"{"metadata":{"name":"x","lables":{}}}"#, "unknown field \"metadata.lables\""),
        (CONFIG_MAPS, br#"{"metadata":{"name":"x"},"data":{"a":"1","a":"2"}}"#, "duplicate field \"data.a\""),
        (
            THINGS,
            br#"{"metadata":{"name":"x"},"spec":{"size":1,"colour":"red"}}"#,
            "unknown field \"spec.colour\"",
        ),
    ] {
        plane.refuses(&Method::POST, &strict(path), json, body, 400, "BadRequest", words).await;
    }
    let merge = "application/merge-patch+json";
    let patch = br#"{"spec":{"colour":"red"}}"#;
    plane
        .refuses(
            &Method::PATCH,
            &strict(&format!("{THINGS}/good")),
            merge,
            patch,
            400,
            "BadRequest",
            "spec.colour",
        )
        .await;

    // By default they are dropped with a warning.
    let request = Request::post(format!("{THINGS}?dryRun=All"))
        .header("content-type", json)
        .body(Full::<Bytes>::from(r#"{"metadata":{"name":"x"},"spec":{"size":1,"colour":"red"}}"#))
        .unwrap();
    let response = plane.0.service(&plane.1, Identity::superuser("tester")).oneshot(request).await.unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["warning"], r#"299 - "unknown field \"spec.colour\"""#);
    let body: Value =
        serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!(body["spec"], json!({"size": 1}));
    plane.is_well().await;
}
