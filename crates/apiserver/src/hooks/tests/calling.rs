//! One webhook: what is sent, and what becomes of every kind of answer.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::FutureExt as _;

use super::server::{Certificate, Reply, allow, deny, patch, respond};
use super::*;

/// How a call to `server` fails: under `Fail` as an error, and under `Ignore` not at all.
async fn failure(server: &Server) -> String {
    failure_of(&webhook("a.example.com", server)).await
}

async fn failure_of(webhook: &Value) -> String {
    let world = World::new();
    let open = with(webhook.clone(), json!({"failurePolicy": "Ignore"}));
    for chain in [mutating(from_ref(&open)), validating(&[open])] {
        let admitted = world.admit(&chain, create(widget())).await.unwrap();
        assert_eq!(admitted.object, Some(widget()));
    }
    let closed = with(webhook.clone(), json!({"failurePolicy": "Fail"}));
    let denial = world.refusal(&validating(from_ref(&closed)), create(widget())).await;
    assert_eq!((denial.code, denial.reason.as_str()), (500, "InternalError"));
    // Without a word about it, a failure counts.
    let denial = world.refusal(&mutating(&[closed]), create(widget())).await;
    let text =
        denial.message.strip_prefix("Internal error occurred: failed calling webhook \"a.example.com\": ");
    text.unwrap_or_else(|| panic!("{}", denial.message)).to_owned()
}

#[tokio::test]
async fn the_review_is_what_webhooks_expect() {
    let server = Server::allowing().await;
    let world = World::new();
    let mut request = create(widget());
    request.operation = Operation::Update;
    request.old_object = Some(json!({"old": true}));
    request.subresource = "status".to_owned();
    Arc::make_mut(&mut request.user).extra.insert("scope".to_owned(), vec!["x".to_owned()]);
    request.dry_run = true;
    let rules =
        json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]);
    let chain = validating(&[with(webhook("a.example.com", &server), json!({"rules": rules}))]);
    world.admit(&chain, request).await.unwrap();
    let [call] = server.calls().try_into().unwrap();
    assert_eq!(call.target, "/hook?timeout=10s");
    assert_eq!(call.host, server.url("").trim_start_matches("https://"));
    let kind = json!({"group": "example.com", "version": "v1", "kind": "Widget"});
    let resource = json!({"group": "example.com", "version": "v1", "resource": "widgets"});
    assert_eq!(
        call.review,
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "uid-0", "kind": kind, "resource": resource, "subResource": "status",
            "requestKind": kind, "requestResource": resource, "requestSubResource": "status",
            "name": "w", "namespace": "ns", "operation": "UPDATE", "dryRun": true,
            "userInfo": {"username": "ann", "groups": ["devs"], "extra": {"scope": ["x"]}},
            "object": widget(), "oldObject": {"old": true},
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        }})
    );
}

#[tokio::test]
async fn a_delete_has_no_object() {
    let server = Server::allowing().await;
    let rules =
        json!([{"operations": ["DELETE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]);
    let hook = with(webhook("a.example.com", &server), json!({"rules": rules}));
    let mut request = create(widget());
    request.operation = Operation::Delete;
    request.old_object = request.object.take();
    let admitted = World::new().admit(&validating(from_ref(&hook)), request.clone()).await.unwrap();
    assert_eq!(admitted.object, None);
    let sent = &server.calls()[0].review["request"];
    assert_eq!((&sent["object"], &sent["oldObject"]), (&Value::Null, &widget()));
    assert!(sent.as_object().unwrap().contains_key("object"), "absent objects are null");

    let server = Server::start(|review| patch(review, &json!([{"op": "remove", "path": "/spec"}]))).await;
    let hook = with(webhook("a.example.com", &server), json!({"rules": rules}));
    let denial = World::new().refusal(&mutating(&[hook]), request).await;
    assert_eq!(
        denial.message,
        "Internal error occurred: admission webhook \"a.example.com\" attempted to modify the object, \
         which is not supported for this operation"
    );
}

#[tokio::test]
async fn denials_are_passed_on() {
    for (status, code, reason, message) in [
        (json!({"code": 403, "reason": "Forbidden", "message": "no"}), 403, "Forbidden", ": no"),
        (json!({"code": 422, "message": "bad"}), 422, "", ": bad"),
        (json!({"reason": "Conflict"}), 400, "Conflict", ": Conflict"),
        (json!({"code": 200, "status": "Success", "message": "hm"}), 400, "", ": hm"),
        (json!({"code": -1}), 400, "", " without explanation"),
        (json!({"code": 12345}), 400, "", " without explanation"),
        (Value::Null, 400, "", " without explanation"),
    ] {
        let server = {
            let status = status.clone();
            Server::start(move |review| deny(review, &status)).await
        };
        let world = World::new();
        // The failure policy has no say in it: the webhook did answer.
        let hook = with(webhook("a.example.com", &server), json!({"failurePolicy": "Ignore"}));
        for chain in [mutating(from_ref(&hook)), validating(&[hook])] {
            let denial = world.refusal(&chain, create(widget())).await;
            assert_eq!((denial.code, denial.reason.as_str()), (code, reason), "{status}");
            let expected = format!("admission webhook \"a.example.com\" denied the request{message}");
            assert_eq!(denial.message, expected);
        }
    }
    let details = json!({"causes": [{"field": "spec.size", "message": "too big"}]});
    let status = json!({"code": 422, "reason": "Invalid", "message": "bad", "details": details});
    let server = Server::start(move |review| deny(review, &status)).await;
    let denial =
        World::new().refusal(&validating(&[webhook("a.example.com", &server)]), create(widget())).await;
    assert_eq!(denial.to_status()["details"], details);
    assert_eq!(denial.to_status()["code"], 422);
}

#[tokio::test]
async fn warnings_and_annotations_come_with_either_answer() {
    let more = json!({"warnings": ["old field", "old field", ""], "auditAnnotations": {"seen": "yes"}});
    let for_deny = more.clone();
    let allowing = Server::start(move |review| allow(review, more.clone())).await;
    let denying = Server::start(move |review| {
        Reply::Json(respond(review, with(for_deny.clone(), json!({"allowed": false, "warnings": ["last"]}))))
    })
    .await;
    let (yes, no) = (webhook("yes.example.com", &allowing), webhook("no.example.com", &denying));
    let world = World::new();
    let admitted = world.admit(&mutating(from_ref(&yes)), create(widget())).await.unwrap();
    assert_eq!(admitted.warnings, ["old field"]);
    assert_eq!(admitted.annotations, [("yes.example.com/seen".to_owned(), "yes".to_owned())].into());
    let chain = Chain::compile(&[configuration("m", &[yes])], &[configuration("v", &[no])], &[]).unwrap();
    let rejection = world.admit(&chain, create(widget())).await.unwrap_err();
    assert_eq!(rejection.notes.warnings, ["old field", "last"]);
    assert_eq!(rejection.notes.annotations.len(), 2);
}

#[tokio::test]
async fn answers_that_are_none() {
    const SECRET: &str = "hunter2";
    let review = |fields: Value| with(respond(&json!({"request": {"uid": "?"}}), json!({})), fields);
    let same_uid = |fields: Value| {
        move |asked: &Value| {
            let mut answer = respond(asked, json!({"allowed": true}));
            for (name, field) in fields.as_object().unwrap() {
                answer["response"][name] = field.clone();
            }
            Reply::Json(answer)
        }
    };
    let raw =
        |code, text: &'static str| move |_: &Value| Reply::Raw(code, Bytes::from_static(text.as_bytes()));
    let json = |value: Value| move |_: &Value| Reply::Json(value.clone());
    let cases: Vec<(&str, Server)> = vec![
        ("the webhook answered with status 503", Server::start(raw(503, SECRET)).await),
        ("the webhook answered with status 302", Server::start(raw(302, SECRET)).await),
        ("the webhook answered with status 201", Server::start(raw(201, "{}")).await),
        ("couldn't decode an AdmissionReview: line 1", Server::start(raw(200, "hunter2")).await),
        ("couldn't decode", Server::start(json(json!({"response": {"allowed": SECRET}}))).await),
        ("couldn't decode", Server::start(same_uid(json!({"warnings": {"a": SECRET}}))).await),
        ("webhook response was absent", Server::start(json(json!({"kind": "AdmissionReview"}))).await),
        ("expected response.uid=\"uid-", Server::start(json(review(json!({})))).await),
        (
            "expected webhook response of admission.k8s.io/v1",
            Server::start(|asked| {
                let answer = respond(asked, json!({"allowed": true}));
                Reply::Json(with(answer, json!({"apiVersion": "admission.k8s.io/v1beta1"})))
            })
            .await,
        ),
        (
            "the answer is larger than 3145728 bytes",
            Server::start(|_| Reply::Raw(200, vec![b' '; (3 << 20) + 1].into())).await,
        ),
    ];
    for (expected, server) in cases {
        let text = failure(&server).await;
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[tokio::test]
async fn patches_that_are_none() {
    let world = World::new();
    let refusal = async |response: Value| {
        let server = Server::start(move |review| allow(review, response.clone())).await;
        let hook = with(webhook("a.example.com", &server), json!({"failurePolicy": "Fail"}));
        world.refusal(&mutating(&[hook]), create(widget())).await.message
    };
    for (response, expected) in [
        (json!({"patch": "W10="}), "webhook returned response.patch but not response.patchType"),
        (json!({"patchType": "JSONPatch"}), "webhook returned response.patchType but not response.patch"),
        (json!({"patchType": "Merge", "patch": "e30="}), "an unsupported response.patchType"),
        (json!({"patchType": "JSONPatch", "patch": "?"}), "response.patch is not base64"),
        (
            json!({"patchType": "JSONPatch", "patch": "eyJ4IjoieSJ9"}),
            "returned a patch that is no JSON patch",
        ),
    ] {
        let text = refusal(response).await;
        assert!(text.contains(expected), "{text}");
    }
    for (operations, expected) in [
        (json!([{"op": "remove", "path": "/nowhere"}]), "does not apply: operation 0 of the JSON patch"),
        (json!([{"op": "replace", "path": "/kind", "value": "Gadget"}]), "change the kind"),
        (json!([{"op": "replace", "path": "", "value": 1}]), "change the kind"),
    ] {
        let server = Server::start(move |review| patch(review, &operations)).await;
        // A patch that does not fit is no failure to answer, so it is not ignored.
        let hook = with(webhook("a.example.com", &server), json!({"failurePolicy": "Ignore"}));
        let denial = world.refusal(&mutating(&[hook]), create(widget())).await;
        assert_eq!(denial.code, 500);
        assert!(denial.message.contains(expected), "{}", denial.message);
    }
    let server = Server::start(|review| patch(review, &json!([]))).await;
    let text =
        world.refusal(&validating(&[webhook("a.example.com", &server)]), create(widget())).await.message;
    assert!(text.contains("validating webhook may not return response.patch"), "{text}");
    let admitted =
        world.admit(&mutating(&[webhook("a.example.com", &server)]), create(widget())).await.unwrap();
    assert_eq!(admitted.object, Some(widget()), "an empty patch changes nothing, not even by defaults");
}

#[tokio::test]
async fn certificates_are_checked() {
    let good = Server::allowing().await;
    let stranger = Server::allowing().await;
    let certified = async |names, expires| {
        let handler = |review: Value| futures::future::ready(allow(&review, json!({}))).boxed();
        Server::start_with(Certificate { names, expires }, Arc::new(handler)).await
    };
    let client = |server: &Server, bundle: Value| {
        with(
            webhook("a.example.com", server),
            json!({"clientConfig": {"url": server.url("/hook"), "caBundle": bundle}}),
        )
    };
    let other = certified(&["other.example.com"], 2040).await;
    let expired = certified(&["127.0.0.1"], 2029).await;
    for (hook, expected) in [
        (client(&good, json!(stranger.ca_bundle())), "tls: invalid peer certificate"),
        (client(&good, Value::Null), "tls: no certificate authority is trusted"),
        (client(&good, json!("Cg==")), "tls: no certificate authority is trusted"),
        (
            client(&other, json!(other.ca_bundle())),
            "tls: invalid peer certificate: certificate not valid for name",
        ),
        (client(&expired, json!(expired.ca_bundle())), "tls: invalid peer certificate: certificate expired"),
    ] {
        let text = failure_of(&hook).await;
        assert!(text.contains(expected), "{text}");
    }
    assert!(good.calls().is_empty() && other.calls().is_empty() && expired.calls().is_empty());
}

#[tokio::test]
async fn nobody_listens() {
    let server = Server::allowing().await;
    let hook = webhook("a.example.com", &server);
    let url = server.url("/hook?timeout=10s");
    drop(server);
    let text = failure_of(&hook).await;
    assert!(text.starts_with(&format!("failed to call webhook: Post {url:?}: dial tcp: ")), "{text}");
}

#[tokio::test]
async fn a_server_that_hangs_costs_its_timeout() {
    let server = Server::start(|_| Reply::Hang).await;
    let world = World::new();
    let hook = with(webhook("a.example.com", &server), json!({"timeoutSeconds": 1}));
    let denial = world.refusal(&validating(from_ref(&hook)), create(widget())).await;
    let url = server.url("/hook?timeout=1s");
    assert_eq!(
        denial.message,
        format!(
            "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: \
             Post {url:?}: context deadline exceeded"
        )
    );
    let open = with(hook, json!({"failurePolicy": "Ignore"}));
    world.admit(&mutating(&[open]), create(widget())).await.unwrap();
    assert_eq!(server.calls().len(), 2);
    assert_eq!(server.connections(), 2, "a connection with an open call is not used again");
}

#[tokio::test]
async fn a_listener_that_never_shakes_hands_costs_its_timeout() {
    let server = Server::allowing().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let client = json!({"url": url, "caBundle": server.ca_bundle()});
    let hook = with(webhook("a.example.com", &server), json!({"clientConfig": client, "timeoutSeconds": 1}));
    let denial = World::new().refusal(&validating(&[hook]), create(widget())).await;
    assert!(denial.message.ends_with("context deadline exceeded"), "{}", denial.message);
}

#[tokio::test]
async fn the_deadline_of_the_request_bounds_all_calls() {
    let server = Server::start(|_| Reply::Hang).await;
    let mut world = World::new();
    world.limit = Duration::from_secs(1);
    let hook = webhook("a.example.com", &server);
    let denial = world.refusal(&validating(from_ref(&hook)), create(widget())).await;
    assert_eq!(denial.code, 500);
    assert_eq!(server.calls()[0].target, "/hook?timeout=1s", "the webhook is told what is left");
    let open = with(hook, json!({"failurePolicy": "Ignore"}));
    let denial = world.refusal(&mutating(&[open]), create(widget())).await;
    assert_eq!((denial.code, denial.reason.as_str()), (504, "Timeout"));
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = Server::allowing().await;
    let world = World::new();
    let (a, b) = (webhook("a.example.com", &server), webhook("b.example.com", &server));
    // Two webhooks, and two planes, at one place.
    for chain in [mutating(&[a.clone(), b.clone()]), mutating(&[b])] {
        for _ in 0..3 {
            world.admit(&chain, create(widget())).await.unwrap();
        }
    }
    assert_eq!((server.calls().len(), server.connections()), (9, 1));
    // Other authorities must not profit from what was proved to these.
    let stranger = Server::allowing().await;
    let client = json!({"url": server.url("/hook"), "caBundle": stranger.ca_bundle()});
    let denial =
        world.refusal(&mutating(&[with(a, json!({"clientConfig": client}))]), create(widget())).await;
    assert!(denial.message.contains("tls: "), "{}", denial.message);
}

#[tokio::test]
async fn a_connection_that_the_server_closes_is_replaced() {
    let server = Server::start(|review| Reply::Last(respond(review, json!({"allowed": true})))).await;
    let world = World::new();
    let chain = mutating(&[webhook("a.example.com", &server)]);
    for _ in 0..5 {
        world.admit(&chain, create(widget())).await.unwrap();
    }
    assert_eq!((server.calls().len(), server.connections()), (5, 5));
}

/// The other side may hang up on a waiting connection just when a call is sent on it.
#[tokio::test]
async fn a_call_that_is_lost_on_a_waiting_connection_is_made_again() {
    let calls = AtomicU64::new(0);
    let server = Server::start(move |review| match calls.fetch_add(1, Ordering::Relaxed) {
        0 | 2 => allow(review, json!({})),
        _ => Reply::Drop,
    })
    .await;
    let world = World::new();
    let chain = mutating(&[webhook("a.example.com", &server)]);
    for _ in 0..2 {
        world.admit(&chain, create(widget())).await.unwrap();
    }
    assert_eq!((server.calls().len(), server.connections()), (3, 2));
    // On a fresh connection it is a failure, and there is no third try.
    let denial = world.refusal(&chain, create(widget())).await;
    assert!(denial.message.contains("?timeout=10s\": connection "), "{}", denial.message);
    assert_eq!((server.calls().len(), server.connections()), (5, 3));
}

#[tokio::test]
async fn services_are_found_by_the_resolver() {
    let server = Server::allowing().await;
    let client = |service: Value| {
        let client = json!({"service": service, "caBundle": server.ca_bundle()});
        with(webhook("a.example.com", &server), json!({"clientConfig": client}))
    };
    let hook = client(json!({"namespace": "ns", "name": "hook", "path": "/check", "port": 8443}));
    let text = failure_of(&hook).await;
    let expected = "failed to call webhook: Post \"https://hook.ns.svc:8443/check?timeout=10s\": service \"hook\" not found";
    assert_eq!(text, expected);

    let mut world = World::new();
    world.services.insert("ns/hook:8443".to_owned(), server.url("").parse().unwrap());
    world.services.insert("ns/other:443".to_owned(), server.url("").parse().unwrap());
    world.services.insert("ns/plain:443".to_owned(), "http://127.0.0.1:1".parse().unwrap());
    world.admit(&mutating(&[hook]), create(widget())).await.unwrap();
    let [call] = server.calls().try_into().unwrap();
    assert_eq!((call.target.as_str(), call.host.as_str()), ("/check?timeout=10s", "hook.ns.svc:8443"));
    for (name, expected) in [
        // The certificate is for another service.
        ("other", "certificate not valid for name"),
        ("plain", "the service resolves to no https URL"),
    ] {
        let hook = client(json!({"namespace": "ns", "name": name}));
        let denial = world.refusal(&mutating(&[hook]), create(widget())).await;
        assert!(denial.message.contains(expected), "{}", denial.message);
    }
}

/// A webhook commonly reads or writes through the API server before it answers.
#[tokio::test]
async fn a_webhook_may_call_back() {
    let world = Arc::new(World::new());
    let chain: Arc<OnceLock<Chain>> = Arc::default();
    let server = {
        let (world, chain) = (world.clone(), chain.clone());
        Server::start_async(move |review| {
            let (world, chain) = (world.clone(), chain.clone());
            async move {
                if review["request"]["object"]["spec"]["size"] == json!(1) {
                    let mut inner = widget();
                    inner["spec"]["size"] = json!(2);
                    world.admit(chain.get().unwrap(), create(inner)).await.unwrap();
                }
                allow(&review, json!({}))
            }
            .boxed()
        })
        .await
    };
    let hook = webhook("a.example.com", &server);
    let both = [configuration("test", &[hook])];
    let chain = chain.get_or_init(|| Chain::compile(&both, &both, &[]).unwrap());
    world.admit(chain, create(widget())).await.unwrap();
    assert_eq!(server.calls().len(), 6);
    assert_eq!(server.connections(), 2);
}
