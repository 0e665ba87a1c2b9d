//! What Go's encoder writes must become what Go's JSON encoder writes, but for parts that are empty.

use serde_json::{Value, json};

use super::*;

fn decoded(text: &str) -> Value {
    decode(&STANDARD.decode(text).unwrap()).unwrap().unwrap()
}

#[test]
fn a_pod() {
    let sent = concat!(
        "azhzAAoJCgJ2MRIDUG9kEoMCCioKA3dlYhIAGgAiACoAMgA4AEIICKWq9YYHEABaBQoBYRIAWgYKAWISAWMSvwEKCQoBdhIEEgIK",
        "ABKHAQoDYXBwEgVuZ2lueCoAOhEKAUUSABoKIggKAwoBcxIBa0IPCg0KA2NwdRIGCgQ1MDBtUiAKFBISCgASCggBEAAaBGh0dHAa",
        "ACIAEAAYACAAKAAwAFohCgwaCgoGCAAQUBoAEgAQABgAIAAoADD///////////8BagByAIABAIgBAJABAKIBABoAIAAyAEIASgBS",
        "AFgAYABoAHIHEAAgASCsAoIBAIoBAJoBAMIBAPABABoTCgAaACIAKgAyAEoAWgByAIgBABoAIgA=",
    );
    let expected = json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": "web",
            "creationTimestamp": "2030-01-02T03:04:05Z",
            "labels": {
                "a": "",
                "b": "c"
            }
        },
        "spec": {
            "volumes": [
                {
                    "name": "v",
                    "emptyDir": {}
                }
            ],
            "containers": [
                {
                    "name": "app",
                    "image": "nginx",
                    "env": [
                        {
                            "name": "E",
                            "valueFrom": {
                                "secretKeyRef": {
                                    "name": "s",
                                    "key": "k"
                                }
                            }
                        }
                    ],
                    "resources": {
                        "limits": {
                            "cpu": "500m"
                        }
                    },
                    "livenessProbe": {
                        "httpGet": {
                            "port": "http"
                        }
                    },
                    "readinessProbe": {
                        "tcpSocket": {
                            "port": 80
                        },
                        "failureThreshold": -1
                    }
                }
            ],
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsUser": 0,
                "supplementalGroups": [
                    1,
                    300
                ]
            },
            "enableServiceLinks": false
        }
    });
    assert_eq!(decoded(sent), expected);
}

#[test]
fn a_secret() {
    let sent = concat!(
        "azhzAAoMCgJ2MRIGU2VjcmV0EkgKMQoAEgJzLRoAIgAqADIAOABCAIoBHAoBbRIAGgAyADoPCg17ImY6ZGF0YSI6e319QgASBwoB",
        "axICAP8SCAoEbm9uZRIAGgAaACIA",
    );
    let expected = json!({
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {
            "generateName": "s-",
            "managedFields": [
                {
                    "manager": "m",
                    "fieldsV1": {
                        "f:data": {}
                    }
                }
            ]
        },
        "data": {
            "k": "AP8=",
            "none": ""
        }
    });
    assert_eq!(decoded(sent), expected);
}

#[test]
fn a_lease() {
    let sent = concat!(
        "azhzAAofChZjb29yZGluYXRpb24uazhzLmlvL3YxEgVMZWFzZRInChEKAWwSABoAIgAqADIAOABCABISCgAiDAilqvWGBxCI6tzD",
        "AigAGgAiAA==",
    );
    let expected = json!({
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {
            "name": "l"
        },
        "spec": {
            "holderIdentity": "",
            "renewTime": "2030-01-02T03:04:05.678901Z",
            "leaseTransitions": 0
        }
    });
    assert_eq!(decoded(sent), expected);
}

#[test]
fn a_crd() {
    let sent = concat!(
        "azhzAAozChdhcGlleHRlbnNpb25zLms4cy5pby92MRIYQ3VzdG9tUmVzb3VyY2VEZWZpbml0aW9uEqwDChcKB3cuZS5jb20SABoA",
        "IgAqADIAOABCABKCAwoFZS5jb20aCgoBdxIAIgFXKgAiCk5hbWVzcGFjZWQ63gIKAnYxEAEYACLRAgrOAgoAEgAiACoGb2JqZWN0",
        "MgA6AFAAYAB6AJABAOoBMAoDYW55EikKABIAIgAqBm9iamVjdDIAOgBQAGAAegCQAQDyAQIIAagCALgCAMACAOoBVAoEbGlzdBJM",
        "CgASACIAKgVhcnJheTIAOgBQAGAAegCQAQDCASYKJAoAEgAiACoGc3RyaW5nMgA6AFAAYAB6AJABAKgCALgCAMACAKgCALgCAMAC",
        "AOoBVgoDbWFwEk8KABIAIgAqBm9iamVjdDIAOgBQAGAAegCQAQDyASgIABIkCgASACIAKgZzdHJpbmcyADoAUABgAHoAkAEAqAIA",
        "uAIAwAIAqAIAuAIAwAIA6gFECgRzaXplEjwKABIAIgAqB2ludGVnZXIyADoAQgMKATNJAAAAAAAAJEBQAFkAAAAAAADgP2AAegCQ",
        "AQCoAgC4AgDAAgCoAgC4AgDAAgA4AFAAGgwSCAoAEgAiACoAIAAaACIA",
    );
    let expected = json!({
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {
            "name": "w.e.com"
        },
        "spec": {
            "group": "e.com",
            "names": {
                "plural": "w",
                "kind": "W"
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": true,
                    "storage": false,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "any": {
                                    "type": "object",
                                    "additionalProperties": true
                                },
                                "list": {
                                    "type": "array",
                                    "items": {
                                        "type": "string"
                                    }
                                },
                                "map": {
                                    "type": "object",
                                    "additionalProperties": {
                                        "type": "string"
                                    }
                                },
                                "size": {
                                    "type": "integer",
                                    "default": 3,
                                    "maximum": 10,
                                    "minimum": 0.5
                                }
                            }
                        }
                    }
                }
            ]
        },
        "status": {
            "acceptedNames": {
                "plural": "",
                "kind": ""
            }
        }
    });
    assert_eq!(decoded(sent), expected);
}

#[test]
fn delete_options_of_any_version() {
    let sent = "azhzAAoYCgdhcHBzL3YxEg1EZWxldGVPcHRpb25zEg4IABICCgAiBk9ycGhhbhoAIgA=";
    let expected = json!({
        "kind": "DeleteOptions",
        "apiVersion": "apps/v1",
        "gracePeriodSeconds": 0,
        "preconditions": {
            "uid": ""
        },
        "propagationPolicy": "Orphan"
    });
    assert_eq!(decoded(sent), expected);
}

#[test]
fn what_is_not_known_or_not_whole() {
    let lease = "azhzAAofChZjb29yZGluYXRpb24uazhzLmlvL3YxEgVMZWFzZRInChEKAWwSABoAIgAqADIAOABCABISCgAiDAilqvWGBxCI6tzDAigAGgAiAA==";
    let whole = STANDARD.decode(lease).unwrap();
    assert_eq!(decode(b"{}"), Err(Malformed("the body does not start as it should")));
    let other = whole.iter().map(|byte| if *byte == b'L' { b'M' } else { *byte }).collect::<Vec<u8>>();
    assert_eq!(decode(&other), Ok(None));
    for end in MAGIC.len()..whole.len() {
        // A body that is cut off is an error, or a smaller object; never a panic.
        let _ = decode(&whole[..end]);
    }
}

#[test]
fn nesting_is_bounded() {
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2];
        let mut length = content.len();
        while length > 0x7f {
            bytes.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        bytes.push(length as u8);
        bytes.extend_from_slice(content);
        bytes
    }
    // A schema within `not` (field 28) of a schema, and so on: two bytes of tag, as the number is over 15.
    let mut schema = Vec::new();
    for _ in 0..1000 {
        let inner = field(0, &schema);
        schema = [&[0xe2, 0x01][..], &inner[1..]].concat();
    }
    let version = field(4, &field(1, &schema));
    let spec = field(2, &field(7, &version));
    let types =
        field(1, &[field(1, b"apiextensions.k8s.io/v1"), field(2, b"CustomResourceDefinition")].concat());
    let body = [MAGIC, &types, &field(2, &spec)].concat();
    assert_eq!(decode(&body), Err(Malformed("messages are nested too deep")));
}
