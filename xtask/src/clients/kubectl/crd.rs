//! Custom resource definitions: from none to serving objects, and away again.

use serde_json::Value;

use super::super::harness::Topic;

const CRD: &str = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.clients.example.com
spec:
  group: clients.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wg], categories: [toys]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    selectableFields: [{jsonPath: .spec.color}]
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Color, type: string, jsonPath: .spec.color, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            description: What the widget is.
            required: [color]
            x-kubernetes-validations:
            - {rule: 'self.least <= self.size', message: least must not exceed size}
            properties:
              size: {type: integer, minimum: 1, maximum: 10, default: 3, description: How big it is.}
              least: {type: integer, default: 1}
              color:
                type: string
                enum: [red, green]
                x-kubernetes-validations:
                - {rule: self == oldSelf, message: color is immutable}
              anything: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties:
              ready: {type: boolean}
"#;

fn widget(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: clients.example.com/v1\nkind: Widget\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
    )
}

pub(super) fn cases(t: &mut Topic<'_>) {
    definitions(t);
    objects(t);
    t.case("a new field of the schema is accepted", |k| {
        let more =
            CRD.replace("              least:", "              shape: {type: string}\n              least:");
        k.cmd("apply -f -").stdin(more).ok()?.has("configured\n")?;
        k.eventually(
            "patch widget plain --type=merge -p '{\"spec\":{\"shape\":\"round\"}}' -o json",
            |outcome| outcome.exits(0)?.at("/spec/shape", "round"),
        )
    });
    t.case("explain knows the new field", |k| {
        k.eventually("explain widget.spec", |outcome| outcome.exits(0)?.row("shape <string>"))
    });
    t.case("deleting the CRD takes its objects along", |k| {
        k.cmd("delete crd widgets.clients.example.com")
            .ok()?
            .has("\"widgets.clients.example.com\" deleted")?;
        // kubectl remembers what the server serves; this makes it ask again.
        k.cmd("api-resources").ok()?.lacks("Widget")?;
        k.cmd("get widgets").fails()?.complains("the server doesn't have a resource type \"widgets\"")?;
        k.cmd("create -f -").stdin(CRD).ok()?;
        k.cmd("wait crd/widgets.clients.example.com --for=condition=Established --timeout=30s").ok()?;
        k.eventually("get widgets -A", |outcome| outcome.exits(0)?.complains("No resources found"))?;
        k.cmd("delete crd widgets.clients.example.com").ok()
    });
}

fn definitions(t: &mut Topic<'_>) {
    t.case("a CRD is created and established", |k| {
        k.cmd("create -f -")
            .stdin(CRD)
            .ok()?
            .is("customresourcedefinition.apiextensions.k8s.io/widgets.clients.example.com created\n")?;
        k.cmd("wait crd/widgets.clients.example.com --for=condition=Established --timeout=30s").ok()?.is(
            "customresourcedefinition.apiextensions.k8s.io/widgets.clients.example.com condition met\n",
        )?;
        k.cmd("get crd widgets.clients.example.com -o json")
            .ok()?
            .at("/status/acceptedNames/kind", "Widget")?
            .at("/status/storedVersions/0", "v1")
    });
    t.case("get crds", |k| {
        k.cmd("get crd widgets.clients.example.com")
            .ok()?
            .row("NAME CREATED AT")?
            .row("widgets.clients.example.com 20*Z")
    });
    t.case("api-resources lists the new kind", |k| {
        k.eventually("api-resources", |outcome| outcome.row("widgets wg clients.example.com/v1 true Widget"))
    });
    t.case("explain the new kind", |k| {
        k.eventually("explain widget.spec", |outcome| {
            outcome
                .exits(0)?
                .has("What the widget is.")?
                .row("color <string> -required-")?
                .row("size <integer>")?
                .has("enum: red, green")
        })
    });
    t.case("a CRD without a structural schema is refused", |k| {
        let bad = CRD
            .replace("widgets", "gadgets")
            .replace("Widget", "Gadget")
            .replace("          status:\n            type: object\n", "          status:\n");
        k.cmd("create -f -").stdin(bad).fails()?.complains(
            "spec.versions[0].schema.openAPIV3Schema.properties[status].type: Required \
                value: must not be empty for specified object fields",
        )
    });
    t.case("a CRD whose name does not fit is refused", |k| {
        k.cmd("create -f -")
            .stdin(CRD.replace("name: widgets.clients.example.com", "name: other.clients.example.com"))
            .fails()?
            .complains(
                "metadata.name: Invalid value: \"other.clients.example.com\": must be \
                spec.names.plural+\".\"+spec.group",
            )
    });
    t.case("a CRD with a rule that does not compile is refused", |k| {
        let bad = CRD
            .replace("widgets", "gadgets")
            .replace("Widget", "Gadget")
            .replace("self.least <= self.size", "self.least <=");
        k.cmd("create -f -").stdin(bad).fails()?.complains("x-kubernetes-validations[0].rule: Invalid value")
    });
}

fn objects(t: &mut Topic<'_>) {
    t.case("defaults are filled in", |k| {
        k.cmd("create -f -")
            .stdin(widget("plain", "color: red"))
            .ok()?
            .is("widget.clients.example.com/plain created\n")?;
        k.cmd("get widget plain -o json")
            .ok()?
            .at("/spec/size", 3)?
            .at("/spec/least", 1)?
            .at("/metadata/generation", 1)
    });
    t.case("unknown fields are pruned with a warning", |k| {
        k.cmd("create --validate=warn -f -")
            .stdin(widget("pruned", "color: red, bogus: 1, anything: {kept: yes}"))
            .ok()?
            .is("widget.clients.example.com/pruned created\n")?
            .complains("Warning: unknown field \"spec.bogus\"")?;
        k.cmd("get widget pruned -o json")
            .ok()?
            .at("/spec/bogus", Value::Null)?
            .at("/spec/anything/kept", true)
    });
    for (name, spec, error) in [
        (
            "a bound",
            "color: red, size: 11",
            "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10",
        ),
        (
            "an enum",
            "color: pink",
            "spec.color: Unsupported value: \"pink\": supported values: \"red\", \"green\"",
        ),
        ("a required field", "size: 4", "spec.color: Required value"),
        (
            "a type",
            "color: red, size: big",
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
        ),
        ("a rule", "color: red, size: 2, least: 5", "least must not exceed size"),
    ] {
        t.case(&format!("{name} of the schema is enforced"), |k| {
            let outcome = k.cmd("create -f -").stdin(widget("bad", spec)).fails()?;
            outcome.complains("The Widget \"bad\" is invalid: ")?.complains(error)
        });
    }
    t.case("a rule on the change is enforced", |k| {
        k.cmd("patch widget plain --type=merge -p '{\"spec\":{\"color\":\"green\"}}'")
            .fails()?
            .complains("color is immutable")
    });
    t.case("printer columns", |k| {
        k.cmd("get widgets").ok()?.row("NAME SIZE AGE")?.row("plain 3 *s")?;
        k.cmd("get wg plain -o wide").ok()?.row("NAME SIZE COLOR AGE")?.row("plain 3 red *s")
    });
    t.case("a category finds them", |k| {
        k.cmd("get toys -o name")
            .ok()?
            .is("widget.clients.example.com/plain\nwidget.clients.example.com/pruned\n")
    });
    t.case("a selectable field selects", |k| {
        k.cmd("get widgets --field-selector=spec.color=green").ok()?.complains("No resources found")?;
        k.cmd("get widgets --field-selector=spec.color=red -o name").ok()?.has("plain\n")
    });
    t.case("its status subresource", |k| {
        k.cmd("patch widget plain --subresource=status --type=merge -p '{\"status\":{\"ready\":true}}'")
            .ok()?;
        k.cmd("get widget plain -o json").ok()?.at("/status/ready", true)?.at("/metadata/generation", 1)
    });
}
