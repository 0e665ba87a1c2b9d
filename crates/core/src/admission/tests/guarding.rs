//! Who may write Instances in a project.

use super::super::guard::{Attempt, DEFAULT_ALLOW, Guard, Operation, Subject};

const PROJECTOR: &str = "system:serviceaccount:compute-system:compute-manager-management";

fn guard() -> Guard {
    Guard::with_defaults(PROJECTOR.parse().unwrap())
}

fn attempt<'a>(user: &'a str, groups: &'a [String]) -> Attempt<'a> {
    Attempt {
        user,
        groups,
        group: "compute.datumapis.com",
        resource: "instances",
        subresource: "",
        operation: Operation::Update,
        name: "web-main-dfw-0",
        workload: Some("web"),
    }
}

fn all() -> impl Iterator<Item = (Operation, &'static str)> {
    [Operation::Create, Operation::Update, Operation::Delete]
        .into_iter()
        .flat_map(|operation| ["", "status"].map(|part| (operation, part)))
}

#[test]
fn those_who_are_let_through() {
    let masters = ["system:authenticated".to_owned(), "system:masters".to_owned()];
    let people = ["system:authenticated".to_owned()];
    for (user, groups) in [
        (PROJECTOR, &people[..]),
        ("system:serviceaccount:kube-system:generic-garbage-collector", &people),
        ("system:serviceaccount:kube-system:namespace-controller", &people),
        ("system:kube-controller-manager", &people),
        ("kubernetes-admin", &masters),
    ] {
        for (operation, subresource) in all() {
            let attempt = Attempt { operation, subresource, ..attempt(user, groups) };
            assert_eq!(guard().decide(&attempt), Ok(()), "{attempt:?}");
        }
    }
}

#[test]
fn everybody_else_is_not() {
    let groups = ["system:authenticated".to_owned(), "project-admins".to_owned()];
    for user in [
        "ann@example.com",
        "system:serviceaccount:default:builder",
        // A projector by its old identity, and one that only looks like it.
        "system:serviceaccount:compute-system:compute-manager",
        "system:serviceaccount:elsewhere:compute-manager-management",
        // The name of a group is nobody's name.
        "system:masters",
        "group:system:masters",
        "system:anonymous",
        "",
    ] {
        for (operation, subresource) in all() {
            let attempt = Attempt { operation, subresource, ..attempt(user, &groups) };
            let refusal = guard().decide(&attempt).unwrap_err();
            assert_eq!((refusal.code, refusal.reason), (403, "Forbidden"));
            assert_eq!(
                refusal.message,
                "instances.compute.datumapis.com \"web-main-dfw-0\" is forbidden: Instances in a project are read-only: they show \
                 what runs in the cities. Change Workload \"web\" instead: its template for what runs, its placements for where \
                 and how many"
            );
        }
    }
    let stray = guard().decide(&Attempt { workload: None, ..attempt("ann", &groups) }).unwrap_err();
    assert!(stray.message.contains("Change the Workload that they belong to instead"), "{}", stray.message);
}

#[test]
fn what_is_not_covered() {
    for attempt in [
        Attempt { subresource: "log", ..attempt("ann", &[]) },
        Attempt { subresource: "exec", operation: Operation::Connect, ..attempt("ann", &[]) },
        Attempt { resource: "workloads", ..attempt("ann", &[]) },
        Attempt { group: "example.com", ..attempt("ann", &[]) },
    ] {
        assert_eq!(guard().decide(&attempt), Ok(()), "{attempt:?}");
    }
}

#[test]
fn entries() {
    assert_eq!("ann".parse(), Ok(Subject::User("ann".to_owned())));
    assert_eq!(
        "system:serviceaccount:a:b".parse(),
        Ok(Subject::User("system:serviceaccount:a:b".to_owned()))
    );
    assert_eq!("group:system:masters".parse(), Ok(Subject::Group("system:masters".to_owned())));
    for bad in ["", " ", "group:", " ann", "group: x"] {
        let error = bad.parse::<Subject>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "must be the name of a user, or group: and the name of a group",
            "{bad:?}"
        );
    }
    for entry in DEFAULT_ALLOW {
        assert_eq!(entry.parse::<Subject>().unwrap().to_string(), entry);
    }
    let own = Guard::new("p".parse().unwrap(), ["group:ops".parse().unwrap()]);
    let (ops, masters) = (["ops".to_owned()], ["system:masters".to_owned()]);
    assert_eq!(own.decide(&attempt("p", &[])), Ok(()));
    assert_eq!(own.decide(&attempt("x", &ops)), Ok(()));
    assert!(own.decide(&attempt("x", &masters)).is_err());
}
