//! Roles, bindings, who may do what, acting as somebody else, and tokens of service accounts.

use super::super::harness::Topic;

pub(super) fn cases(t: &mut Topic<'_>) {
    t.case("whoami", |k| {
        k.cmd("auth whoami")
            .ok()?
            .row("Username project-demo-admin")?
            .row("Groups [system:masters system:authenticated]")
    });
    t.case("an administrator may do everything", |k| {
        k.cmd("auth can-i '*' '*'").ok()?.is("yes\n")?;
        k.cmd("auth can-i --list").ok()?.row("*.* [] [] [*]")?.row("* [*] [] [*]")
    });
    t.case("somebody without a role may find out what there is, and nothing else", |k| {
        k.cmd("auth can-i list pods --as=nobody").fails()?.is("no\n")?;
        k.cmd("auth can-i get /version --as=nobody").ok()?.is("yes\n")?;
        k.cmd("auth can-i --list --as=nobody")
            .ok()?
            .row("selfsubjectaccessreviews.authorization.k8s.io [] [] [create]")?
            .row("selfsubjectreviews.authentication.k8s.io [] [] [create]")?
            .row("[/version] [] [get]")?
            .lacks("pods")?;
        k.cmd("get pods --as=nobody").fails()?.complains(
            "pods is forbidden: User \"nobody\" cannot list resource \"pods\" in API group \"\" in the namespace",
        )
    });
    t.case("a role and a binding give what they say, in their namespace", |k| {
        k.cmd("create role reader --verb=get,list --resource=configmaps,secrets/status").ok()?;
        k.cmd("get role reader").ok()?.row("NAME CREATED AT")?.row("reader *")?;
        k.cmd("create rolebinding ann-reads --role=reader --user=ann --group=team").ok()?;
        k.cmd("get rolebinding ann-reads -o wide").ok()?.row("ann-reads Role/reader * ann team")?;
        k.cmd("auth can-i list configmaps --as=ann").ok()?.is("yes\n")?;
        k.cmd("auth can-i list configmaps --as=bob --as-group=team").ok()?.is("yes\n")?;
        k.cmd("auth can-i list configmaps --as=bob").fails()?.is("no\n")?;
        k.cmd("auth can-i delete configmaps --as=ann").fails()?.is("no\n")?;
        k.cmd("auth can-i list configmaps --as=ann -n default").fails()?.is("no\n")?;
        k.cmd("auth can-i --list --as=ann").ok()?.row("configmaps [] [] [get list]")?;
        k.cmd("get configmaps --as=ann").ok()?;
        k.cmd("create configmap x --as=ann").fails()?.complains("cannot create resource \"configmaps\"")?;
        k.cmd("describe role reader").ok()?.row("configmaps [] [] [get list]")?;
        k.cmd("describe rolebinding ann-reads").ok()?.row("User ann")?.row("Group team")
    });
    t.case("cluster roles and their bindings", |k| {
        k.cmd("get clusterroles").ok()?.row("cluster-admin *")?.row("view *")?;
        k.cmd("create clusterrole nodes-reader --verb=get --resource=nodes").ok()?;
        k.cmd("create clusterrolebinding ops-read-nodes --clusterrole=nodes-reader --group=ops").ok()?;
        k.cmd("get clusterrolebinding ops-read-nodes -o wide")
            .ok()?
            .row("ops-read-nodes ClusterRole/nodes-reader * ops")?;
        k.cmd("auth can-i get nodes --as=eve --as-group=ops").ok()?.has("yes\n")?;
        k.cmd("delete clusterrolebinding ops-read-nodes").ok()?;
        k.cmd("auth can-i get nodes --as=eve --as-group=ops").fails()?.is("no\n")?;
        k.cmd("delete clusterrole nodes-reader").ok()
    });
    t.case("an aggregated role takes in what is labelled for it", |k| {
        k.cmd("create clusterrole more-view --verb=list --resource=workloads.compute.datumapis.com").ok()?;
        k.cmd("create rolebinding cat-views --clusterrole=view --user=cat").ok()?;
        k.cmd("auth can-i list workloads --as=cat").fails()?.is("no\n")?;
        k.cmd("label clusterrole more-view rbac.authorization.k8s.io/aggregate-to-view=true").ok()?;
        k.cmd("auth can-i list workloads --as=cat").ok()?.is("yes\n")?;
        k.cmd("delete clusterrole more-view").ok()?;
        k.cmd("auth can-i list workloads --as=cat").fails()?.is("no\n")
    });
    t.case("nobody grants what they do not hold", |k| {
        k.cmd("create rolebinding dan-administers --clusterrole=admin --user=dan").ok()?;
        k.cmd("create role small --verb=get --resource=configmaps --as=dan").ok()?;
        k.cmd("create role large --verb=get --resource=nodes --as=dan")
            .fails()?
            .complains("user \"dan\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held")?;
        k.cmd("create rolebinding all --clusterrole=cluster-admin --user=dan --as=dan")
            .fails()?
            .complains("is attempting to grant RBAC permissions not currently held")?;
        k.cmd("create clusterrolebinding all --clusterrole=view --user=dan --as=dan")
            .fails()?
            .complains("cannot create resource \"clusterrolebindings\"")
    });
    t.case("auth reconcile brings roles in line", |k| {
        let role = format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: kept, namespace: {}}}\n\
            rules:\n- {{apiGroups: [''], resources: [pods], verbs: [get]}}\n",
            k.namespace()
        );
        k.cmd("auth reconcile -f -")
            .stdin(&role)
            .ok()?
            .has("role.rbac.authorization.k8s.io/kept reconciled")?;
        k.cmd("auth reconcile -f -").stdin(&role).ok()?;
        k.cmd("get role kept -o jsonpath='{.rules[0].resources[0]}'").ok()?.is("pods")
    });
    t.case("a token of a service account is its identity", |k| {
        k.cmd("create serviceaccount robot").ok()?;
        k.cmd(&format!(
            "create rolebinding robot-views --clusterrole=view --serviceaccount={}:robot",
            k.namespace()
        ))
        .ok()?;
        let token = k.cmd("create token robot --duration=15m").ok()?.stdout().trim().to_owned();
        k.cmd(&format!("--token={token} get configmaps")).ok()?;
        k.cmd(&format!("--token={token} auth whoami")).ok()?.has("system:serviceaccount:")?;
        k.cmd(&format!("--token={token} get secrets"))
            .fails()?
            .complains("cannot list resource \"secrets\"")?;
        k.cmd(&format!("--context=hub --token={token} get configmaps")).fails()?.complains("Forbidden")?;
        k.cmd("create token robot --duration=1s").fails()?.complains("10 minutes")?;
        k.cmd("delete serviceaccount robot").ok()?;
        k.cmd(&format!("--token={token} get configmaps"))
            .fails()?
            .complains("You must be logged in to the server")
    });
}
