//! Events, through both groups that serve them.

use super::super::harness::Topic;

fn event(namespace: &str, name: &str, kind: &str, reason: &str, message: &str, second: u32) -> String {
    format!(
        "apiVersion: v1
kind: Event
metadata: {{name: {name}}}
involvedObject: {{apiVersion: v1, kind: Pod, name: web, namespace: {namespace}}}
type: {kind}
reason: {reason}
message: {message}
source: {{component: tester, host: n1}}
firstTimestamp: '2020-01-01T00:00:0{second}Z'
lastTimestamp: '2020-01-01T00:01:0{second}Z'
count: 3
"
    )
}

pub(super) fn cases(t: &mut Topic<'_>) {
    t.case("an event is created by file", |k| {
        let events = [
            event(k.namespace(), "z", "Normal", "Pulled", "came first", 1),
            event(k.namespace(), "a", "Warning", "Failed", "it broke", 5),
        ];
        k.cmd("create -f -").stdin(events.join("---\n")).ok()?.is("event/z created\nevent/a created\n")
    });
    t.case("get events", |k| {
        k.cmd("get events")
            .ok()?
            .row("LAST SEEN TYPE REASON OBJECT MESSAGE")?
            .row("* Warning Failed pod/web it broke")?
            .row("* Normal Pulled pod/web came first")
    });
    t.case("get events -o wide", |k| {
        k.cmd("get events -o wide")
            .ok()?
            .row("LAST SEEN TYPE REASON OBJECT SUBOBJECT SOURCE MESSAGE FIRST SEEN COUNT NAME")?
            .row("* Warning Failed pod/web tester, n1 it broke * 3 a")
    });
    t.case("get events --sort-by", |k| {
        k.cmd("get events --sort-by=.lastTimestamp -o name").ok()?.is("event/z\nevent/a\n")?;
        k.cmd("get events --sort-by=.metadata.name -o name").ok()?.is("event/a\nevent/z\n")
    });
    t.case("get events --field-selector", |k| {
        k.cmd("get events -o name --field-selector=involvedObject.name=web,type=Warning")
            .ok()?
            .is("event/a\n")?;
        k.cmd("get events -o name --field-selector=reason=Pulled").ok()?.is("event/z\n")
    });
    t.case("events", |k| {
        k.cmd("events --for=pod/web")
            .ok()?
            .row("LAST SEEN TYPE REASON OBJECT MESSAGE")?
            .row("* (x3 over *) Warning Failed Pod/web it broke")?
            .has("came first")?;
        k.cmd("events --for=pod/web --types=Warning").ok()?.has("it broke")?.lacks("came first")
    });
    t.case("the same events in group events.k8s.io", |k| {
        k.cmd("get events.events.k8s.io -o name")
            .ok()?
            .is("event.events.k8s.io/a\nevent.events.k8s.io/z\n")?;
        k.cmd("get events.events.k8s.io a -o json")
            .ok()?
            .at("/note", "it broke")?
            .at("/regarding/name", "web")?
            .at("/deprecatedCount", 3)
    });
    t.case("an event made in events.k8s.io is seen by get events", |k| {
        let made = format!(
            "apiVersion: events.k8s.io/v1
kind: Event
metadata: {{name: new}}
regarding: {{apiVersion: v1, kind: Pod, name: fresh, namespace: {}}}
eventTime: '2020-01-01T00:00:00.000001Z'
type: Normal
reason: Made
action: Making
note: by the new way
reportingController: example.com/tester
reportingInstance: t-1
",
            k.namespace()
        );
        k.cmd("create -f -").stdin(made).ok()?.is("event.events.k8s.io/new created\n")?;
        k.cmd("get events").ok()?.row("* Normal Made pod/fresh by the new way")?;
        k.cmd("get events -o name --field-selector=involvedObject.name=fresh").ok()?.is("event/new\n")?;
        k.cmd("get events.events.k8s.io -o name --field-selector=regarding.name=fresh")
            .ok()?
            .is("event.events.k8s.io/new\n")?;
        k.cmd("delete events.events.k8s.io new").ok()?;
        k.cmd("get event new").fails()?.complains("events \"new\" not found")
    });
    t.case("an event of another namespace's object is refused", |k| {
        k.cmd("create -f -").stdin(event("elsewhere", "b", "Normal", "Pulled", "lost", 1)).fails()?.complains(
            "involvedObject.namespace: Invalid value: \"elsewhere\": does not match event.namespace",
        )
    });
}
