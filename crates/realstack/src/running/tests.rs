//! A stack written down by hand, with programs that any Unix has.

use std::time::Duration;

use super::*;
use crate::certs::Authority;
use crate::files;
use crate::process::Probe;

fn server(name: &str) -> Server {
    let authority = Authority::generate(name).unwrap();
    Server {
        url: "https://127.0.0.1:1".into(),
        ca_pem: authority.certificate_pem.clone(),
        admin_token: "t".into(),
        audit_log: "audit.log".into(),
        kubeconfig: "kubeconfig".into(),
        authority,
    }
}

fn write(folder: &Folder) -> Process {
    let process = Process {
        name: "one".into(),
        program: "/bin/sleep".into(),
        arguments: vec!["60".into()],
        probe: Probe { base: "http://127.0.0.1:1".into(), path: "/".into(), ca_pem: None },
    };
    let stack = Stack {
        versions: Versions {
            kubernetes: "v1.35.8".into(),
            karmada: "v1.18.2".into(),
            etcd: "v3.6.16".into(),
        },
        management: server("management"),
        hub: server("hub"),
        cells: BTreeMap::from([(
            "DFW".into(),
            Cell { server: server("cell-dfw"), cluster: "cell-dfw".into() },
        )]),
        processes: vec![process.clone()],
        kubectl: "/bin/kubectl".into(),
    };
    files::write_json(&folder.stack(), &stack).unwrap();
    process
}

#[tokio::test]
async fn a_stack_is_opened_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::create(dir.path()).unwrap();
    let process = write(&folder);
    assert!(matches!(Running::open(dir.path()), Err(Error::NotUp { .. })), "none of its processes runs");
    let identity = process.spawn(&folder).unwrap();
    let running = Running::open(dir.path()).unwrap();
    assert_eq!(running.cells()["DFW"].cluster, "cell-dfw");
    assert_eq!(running.process_names(), ["one"]);
    assert_eq!(running.versions().kubernetes, "v1.35.8");
    // A process that has just begun may have no page of its own yet.
    let has_memory = async {
        while running.usage("one").unwrap().resident_bytes == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), has_memory).await.unwrap();
    running.hub().client().unwrap();
    let certificate = running.hub().certificate("someone", None).unwrap();
    running.hub().client_as(crate::Credential::Certificate(&certificate)).unwrap();

    let error = running.stop_process("two").await.unwrap_err();
    assert_eq!(error.to_string(), "the stack has no process `two`; it has one");
    running.stop_process("one").await.unwrap();
    assert!(!identity.runs());
    running.stop_process("one").await.unwrap();
    assert_eq!(running.usage("one").unwrap_err().to_string(), "one does not run");
}

#[test]
fn what_is_not_up_says_how_to_bring_it_up() {
    let dir = tempfile::tempdir().unwrap();
    let error = Running::open(&dir.path().join("absent")).unwrap_err().to_string();
    assert!(error.ends_with("run `cargo xtask realstack up` first"), "{error}");
}
