//! Names, labels, annotations and SSH keys.

use super::*;

const QUALIFIED: &str = "must be a name of at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, and before it at most a DNS name and '/'";

#[test]
fn of_the_workload_and_its_template() {
    let allowed =
        "a template may set compute.datumapis.com/restartedAt and compute.datumapis.com/ssh-keys only";
    let rows: Vec<Row> = vec![
        (
            "/spec/template/metadata/name",
            json!("n"),
            "spec.template.metadata.name",
            "Forbidden: instances are named by the service; leave it out",
        ),
        (
            "/spec/template/metadata/namespace",
            json!("n"),
            "spec.template.metadata.namespace",
            "Forbidden: the service puts instances where they belong; leave it out",
        ),
        (
            "/spec/template/metadata/finalizers",
            json!(["a.b/c"]),
            "spec.template.metadata.finalizers",
            "Forbidden: the service sets those that instances need; leave them out",
        ),
        (
            "/spec/template/metadata/ownerReferences",
            json!([{ "name": "o" }]),
            "spec.template.metadata.ownerReferences",
            "Forbidden: the service says who owns instances; leave them out",
        ),
        (
            "/spec/template/metadata/labels/compute.datumapis.com~1workload-uid",
            json!("x"),
            "spec.template.metadata.labels[compute.datumapis.com/workload-uid]",
            "Forbidden: keys under compute.datumapis.com/ belong to the service",
        ),
        (
            "/spec/template/metadata/labels/compute.datumapis.com~1restartedAt",
            json!("x"),
            "spec.template.metadata.labels[compute.datumapis.com/restartedAt]",
            "Forbidden: keys under compute.datumapis.com/ belong to the service",
        ),
        (
            "/spec/template/metadata/labels/meta.datumapis.com~1upstream-namespace",
            json!("x"),
            "spec.template.metadata.labels[meta.datumapis.com/upstream-namespace]",
            "Forbidden: keys under meta.datumapis.com/ belong to the service",
        ),
        (
            "/spec/template/metadata/labels/topology.datum.net~1city-code",
            json!("x"),
            "spec.template.metadata.labels[topology.datum.net/city-code]",
            "Forbidden: keys under topology.datum.net/ belong to the service",
        ),
        (
            "/spec/template/metadata/labels/app",
            json!("no spaces"),
            "spec.template.metadata.labels[app]",
            "Invalid value: \"no spaces\": must be at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, or empty",
        ),
    ];
    each(&good(), &rows);
    let long = with(good(), "/metadata/name", &json!("w".repeat(64)));
    let too_long = ("metadata.name".to_owned(), "Too long: may not be more than 63 characters".to_owned());
    let touched = with(long.clone(), "/spec/paused", &json!(true));
    for found in [faults(&long, None), faults(&touched, Some(&long))] {
        assert_eq!(found, std::slice::from_ref(&too_long));
    }
    let bad = with(good(), "/spec/template/metadata/labels/a b", &json!("x"));
    let found = faults(&bad, None);
    assert_eq!(
        found,
        [("spec.template.metadata.labels".to_owned(), format!("Invalid value: \"a b\": {QUALIFIED}"))]
    );
    let bad = with(good(), "/spec/template/metadata/annotations/-a", &json!("x"));
    let found = faults(&bad, None);
    assert_eq!(
        found,
        [("spec.template.metadata.annotations".to_owned(), format!("Invalid value: \"-a\": {QUALIFIED}"))]
    );
    for key in
        ["compute.datumapis.com~1expected-referenced-data", "compute.datumapis.com~1upstream-generation"]
    {
        let bad = with(good(), &format!("/spec/template/metadata/annotations/{key}"), &json!("x"));
        let path = format!("spec.template.metadata.annotations[{}]", key.replace("~1", "/"));
        let message =
            format!("Forbidden: keys under compute.datumapis.com/ belong to the service; {allowed}");
        assert_eq!(faults(&bad, None), [(path, message)]);
    }
}

#[test]
fn of_what_the_service_keeps() {
    each(
        &good(),
        &[
            (
                "$/controller",
                json!({ "templateHash": "v1-x" }),
                "$.controller",
                "Forbidden: the service keeps this field; leave it out",
            ),
            (
                "$/location",
                json!({ "name": "dfw-1" }),
                "$.location",
                "Forbidden: where instances run is set by spec.placements[].cityCodes; leave it out",
            ),
        ],
    );
}

#[test]
fn of_restarts() {
    let pointer = "/spec/template/metadata/annotations/compute.datumapis.com~1restartedAt";
    for bad in ["", "now", "2026-05-01", "2026-05-01 12:00:00Z", "2026-05-01T25:00:00Z", "1777636800"] {
        let found = faults(&with(good(), pointer, &json!(bad)), None);
        let message = format!(
            "Invalid value: {bad:?}: must be a time as RFC 3339 has it, such as 2026-05-01T12:00:00Z"
        );
        let path = "spec.template.metadata.annotations[compute.datumapis.com/restartedAt]".to_owned();
        assert_eq!(found, [(path, message)]);
    }
}

const SSH_KEYS: &str = "/spec/template/metadata/annotations/compute.datumapis.com~1ssh-keys";

fn of_keys(keys: &str) -> Vec<String> {
    let found = faults(&with(good(), SSH_KEYS, &json!(keys)), None);
    let path = "spec.template.metadata.annotations[compute.datumapis.com/ssh-keys]";
    assert!(found.iter().all(|(at, _)| at == path), "{found:?}");
    found.into_iter().map(|(_, message)| message).collect()
}

#[test]
fn of_ssh_keys_that_are_real() {
    let point = |length: usize| [vec![4], vec![1; length - 1]].concat();
    for key in [
        ed25519(),
        ssh_key("ssh-rsa", &[&[1, 0, 1], &[1; 257]]),
        ssh_key("ecdsa-sha2-nistp256", &[b"nistp256", &point(65)]),
        ssh_key("ecdsa-sha2-nistp384", &[b"nistp384", &point(97)]),
        ssh_key("ecdsa-sha2-nistp521", &[b"nistp521", &point(133)]),
        ssh_key("sk-ssh-ed25519@openssh.com", &[&[7; 32], b"ssh:"]),
        ssh_key("sk-ecdsa-sha2-nistp256@openssh.com", &[b"nistp256", &point(65), b"ssh:"]),
    ] {
        assert_eq!(of_keys(&format!("root:{key}\n\nann_b-1:{key} a comment with words")), [""; 0], "{key}");
    }
}

#[test]
fn of_ssh_keys_that_are_not() {
    const FORM: &str = "must be user:key, such as root:ssh-ed25519 AAAA…";
    const USER: &str = "the user before ':' must be at most 32 lower-case letters, digits, '_' and '-', starting with a letter or '_'";
    const KIND: &str = "the key must be a public key as OpenSSH has it: ssh-ed25519, ssh-rsa, ecdsa-sha2-nistp256, \
        ecdsa-sha2-nistp384, ecdsa-sha2-nistp521, sk-ssh-ed25519@openssh.com or sk-ecdsa-sha2-nistp256@openssh.com, then the key itself";
    const CUT: &str = "the key is damaged or cut off; copy the whole line of the .pub file";
    let good = ed25519();
    let short = ssh_key("ssh-ed25519", &[&[7; 31]]);
    let weak = ssh_key("ssh-rsa", &[&[1, 0, 1], &[1; 64]]);
    let other = ssh_key("ssh-rsa", &[&[1, 0, 1], &[1; 257]]).replace("ssh-rsa ", "ssh-ed25519 ");
    let curve = ssh_key("ecdsa-sha2-nistp256", &[b"nistp384", &[4; 97]]);
    let more = ssh_key("ssh-ed25519", &[&[7; 32], b"x"]);
    let cut = &good[..good.len() - 3];
    for (line, why) in [
        (good.clone(), FORM),
        ("-----BEGIN OPENSSH PRIVATE KEY-----".to_owned(), FORM),
        (format!(":{good}"), USER),
        (format!("Root:{good}"), USER),
        (format!("1a:{good}"), USER),
        (format!("{}:{good}", "a".repeat(33)), USER),
        ("root:".to_owned(), KIND),
        ("root:AAAAC3Nza".to_owned(), KIND),
        ("root:ssh-dss AAAA".to_owned(), KIND),
        ("root:ssh-ed25519".to_owned(), CUT),
        ("root:ssh-ed25519 not base64!".to_owned(), CUT),
        ("root:ssh-ed25519 AAAAAAAA".to_owned(), CUT),
        ("root:ssh-ed25519 /////w==".to_owned(), CUT),
        (format!("root:{cut}"), CUT),
        (format!("root:{short}"), CUT),
        (format!("root:{weak}"), CUT),
        (format!("root:{other}"), CUT),
        (format!("root:{curve}"), CUT),
        (format!("root:{more}"), CUT),
    ] {
        assert_eq!(
            of_keys(&format!("\nok:{good}\n{line}")),
            [format!("Invalid value: line 3: {why}")],
            "{line}"
        );
    }
    let two = of_keys(&format!("a\nok:{good}\nb"));
    assert_eq!(two, [format!("Invalid value: line 1: {FORM}"), format!("Invalid value: line 3: {FORM}")]);
}
