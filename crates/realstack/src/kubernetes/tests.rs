//! Command lines, as far as others rely on them.

use std::fs;

use super::*;

fn plane(dir: &Path, name: &str) -> Plane {
    let folder = Folder::create(dir).unwrap();
    let etcd = Etcd::prepare(&folder, Path::new("/bin/etcd"), [1, 2, 3]).unwrap();
    let programs = Programs { apiserver: Path::new("/bin/apiserver"), controllers: Path::new("/bin/kcm") };
    let names =
        Names { plane: name, apiserver: &format!("{name}-apiserver"), controllers: &format!("{name}-kcm") };
    let extra = [Account::new("karmada", "system:masters").unwrap()];
    Plane::prepare(&folder, &names, &programs, &etcd, [4, 5], &extra).unwrap()
}

#[test]
fn an_api_server_listens_on_loopback_with_rbac_and_tells_all_it_was_asked() {
    let dir = tempfile::tempdir().unwrap();
    let plane = plane(dir.path(), "cell-dfw");
    let arguments = &plane.apiserver.arguments;
    for wanted in [
        "--bind-address=127.0.0.1",
        "--secure-port=4",
        "--etcd-prefix=/cell-dfw",
        "--etcd-servers=https://127.0.0.1:1",
        "--authorization-mode=RBAC",
        "--endpoint-reconciler-type=none",
        &format!("--audit-log-path={}", plane.server.audit_log.display()),
    ] {
        assert!(arguments.iter().any(|one| one == wanted), "{wanted} is not in {arguments:#?}");
    }
    assert_eq!(plane.apiserver.probe.base, "https://127.0.0.1:4");
    assert_eq!(plane.server.url, "https://127.0.0.1:4");
    assert_eq!(plane.controllers.probe.base, "https://127.0.0.1:5");
}

#[test]
fn every_file_that_a_command_line_names_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let plane = plane(dir.path(), "management");
    let made_by_the_program = ["audit-log-path", "data-dir"];
    for argument in plane.apiserver.arguments.iter().chain(&plane.controllers.arguments) {
        let (name, value) = argument.trim_start_matches('-').split_once('=').unwrap();
        if value.starts_with('/') && name != "etcd-prefix" && !made_by_the_program.contains(&name) {
            assert!(Path::new(value).is_file(), "{argument}");
        }
    }
}

#[test]
fn no_secret_is_on_a_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let plane = plane(dir.path(), "management");
    let tokens = fs::read_to_string(plane.pki().join("tokens.csv")).unwrap();
    let all = plane.apiserver.arguments.join(" ") + &plane.controllers.arguments.join(" ");
    let lines: Vec<_> = tokens.lines().map(|line| line.split_once(',').unwrap()).collect();
    assert_eq!(
        lines.iter().map(|(_, rest)| *rest).collect::<Vec<_>>(),
        [
            "system:admin,system:admin,\"system:masters\"",
            "system:kube-controller-manager,system:kube-controller-manager,\"system:authenticated\"",
            "karmada,karmada,\"system:masters\"",
        ]
    );
    for (token, _) in lines {
        assert!(token.len() > 40 && !all.contains(token));
    }
}

#[test]
fn planes_trust_each_other_in_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (plane(dir.path(), "cell-dfw"), plane(dir.path(), "cell-ord"));
    assert_ne!(one.server.ca_pem, other.server.ca_pem);
    assert_ne!(one.server.admin_token, other.server.admin_token);
}
