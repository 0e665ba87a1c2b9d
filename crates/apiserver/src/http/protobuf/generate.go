// Command generate writes messages.txt from the published Go types of Kubernetes: which number a field has on the
// wire, how JSON calls it, and what it holds. Run it in an empty folder with
//
//	go mod init generate && cp …/generate.go . && go get k8s.io/api@v0.35.10 k8s.io/apiextensions-apiserver@v0.35.10
//	go run . > …/messages.txt
package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	registration "k8s.io/api/admissionregistration/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	rbac "k8s.io/api/rbac/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// What may be the body of a request. DeleteOptions comes in any version.
var roots = []struct {
	version string
	object  any
}{
	{"v1", core.ConfigMap{}},
	{"v1", core.Event{}},
	{"v1", core.Namespace{}},
	{"v1", core.Node{}},
	{"v1", core.Pod{}},
	{"v1", core.Secret{}},
	{"v1", core.Service{}},
	{"v1", core.ServiceAccount{}},
	{"events.k8s.io/v1", events.Event{}},
	{"coordination.k8s.io/v1", coordination.Lease{}},
	{"apiextensions.k8s.io/v1", extensions.CustomResourceDefinition{}},
	{"autoscaling/v1", autoscaling.Scale{}},
	{"rbac.authorization.k8s.io/v1", rbac.Role{}},
	{"rbac.authorization.k8s.io/v1", rbac.ClusterRole{}},
	{"rbac.authorization.k8s.io/v1", rbac.RoleBinding{}},
	{"rbac.authorization.k8s.io/v1", rbac.ClusterRoleBinding{}},
	{"authorization.k8s.io/v1", authorization.SubjectAccessReview{}},
	{"authorization.k8s.io/v1", authorization.LocalSubjectAccessReview{}},
	{"authorization.k8s.io/v1", authorization.SelfSubjectAccessReview{}},
	{"authorization.k8s.io/v1", authorization.SelfSubjectRulesReview{}},
	{"authentication.k8s.io/v1", authentication.SelfSubjectReview{}},
	{"authentication.k8s.io/v1", authentication.TokenReview{}},
	{"authentication.k8s.io/v1", authentication.TokenRequest{}},
	{"admissionregistration.k8s.io/v1", registration.MutatingWebhookConfiguration{}},
	{"admissionregistration.k8s.io/v1", registration.ValidatingWebhookConfiguration{}},
	{"*", meta.DeleteOptions{}},
}

// Types that JSON writes in a way of its own.
var special = map[reflect.Type]string{
	reflect.TypeOf(meta.Time{}):                               "time",
	reflect.TypeOf(meta.MicroTime{}):                          "micro-time",
	reflect.TypeOf(resource.Quantity{}):                       "quantity",
	reflect.TypeOf(intstr.IntOrString{}):                      "int-or-string",
	reflect.TypeOf(meta.FieldsV1{}):                           "json",
	reflect.TypeOf(runtime.RawExtension{}):                    "json",
	reflect.TypeOf(extensions.JSON{}):                         "json",
	reflect.TypeOf(authentication.ExtraValue{}):               "strings",
	reflect.TypeOf(authorization.ExtraValue{}):                "strings",
	reflect.TypeOf(extensions.JSONSchemaPropsOrArray{}):       "schema-or-array",
	reflect.TypeOf(extensions.JSONSchemaPropsOrBool{}):        "schema-or-bool",
	reflect.TypeOf(extensions.JSONSchemaPropsOrStringArray{}): "schema-or-strings",
}

var messages = map[string]string{}

func name(t reflect.Type) string {
	path := strings.Split(t.PkgPath(), "/")
	return path[len(path)-2] + "." + t.Name()
}

func kind(t reflect.Type) string {
	if found, ok := special[t]; ok {
		return found
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32, reflect.Int64:
		return "int"
	case reflect.Float64:
		return "double"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + kind(t.Elem())
	case reflect.Map:
		return "{}" + kind(t.Elem())
	case reflect.Struct:
		describe(t)
		return name(t)
	}
	panic("no form for " + t.String())
}

func describe(t reflect.Type) {
	if _, ok := messages[name(t)]; ok {
		return
	}
	messages[name(t)] = ""
	var fields []string
	for i := range t.NumField() {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		json, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if json == "" && !strings.Contains(options, "inline") {
			panic("no JSON name: " + t.String() + "." + field.Name)
		}
		form, inner := "", field.Type
		if inner.Kind() == reflect.Pointer {
			form, inner = "*", inner.Elem()
		} else if !strings.Contains(options, "omitempty") && json != "" {
			form = "!"
		}
		fields = append(fields, fmt.Sprintf("%s:%s:%s%s", tag[1], json, form, kind(inner)))
	}
	messages[name(t)] = strings.Join(fields, " ")
}

func main() {
	fmt.Println("# Made by generate.go from the Kubernetes 1.35 types. Do not edit.")
	fmt.Println("#")
	fmt.Println("# A line with @ says which message is the body of a kind. The others are messages with their fields:")
	fmt.Println("# number:name:form. A field without a name is part of the message around it. In a form, * is a field that is")
	fmt.Println("# there if it is sent, ! one that JSON has even if it is empty; any other is left out if it is empty.")
	for _, root := range roots {
		t := reflect.TypeOf(root.object)
		describe(t)
		fmt.Println("@", root.version, t.Name(), name(t))
	}
	names := make([]string, 0, len(messages))
	for name := range messages {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Println(strings.TrimSpace(name + " " + messages[name]))
	}
}
