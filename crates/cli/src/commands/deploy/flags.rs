//! What the options of `deploy` say, put on top of what a workload is.

use clap_complete::engine::ArgValueCompleter;
use compute_core::quota::size::CATALOG;
use serde_json::{Value, json};

use crate::change::Wanted;
use crate::complete;
use crate::failure::{Failure, Result};
use crate::fetch::{self, Found};
use crate::session::Session;

/// The container that options make.
const CONTAINER: &str = "app";
/// The placement that options make.
const PLACEMENT: &str = "main";

/// What options say.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Flags {
    /// The image to run
    #[arg(long, value_name = "IMAGE", value_parser = image)]
    pub(crate) image: Option<String>,
    /// The cities to run in, by code
    #[arg(long, value_name = "CODE,…", value_delimiter = ',', add = ArgValueCompleter::new(complete::cities))]
    pub(crate) city: Vec<String>,
    /// Minimum instances in each city [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..=1000))]
    pub(crate) min: Option<i64>,
    /// Maximum instances in each city
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..=1000))]
    pub(crate) max: Option<i64>,
    /// The type of instances
    #[arg(long, value_name = "TYPE")]
    pub(crate) instance_type: Option<String>,
    /// A port that the container listens on: 8080, or NAME:8080
    #[arg(long, value_name = "PORT", value_delimiter = ',', value_parser = port)]
    pub(crate) port: Vec<Port>,
    /// A variable to set
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// An environment variable to remove
    #[arg(long, value_name = "NAME")]
    pub(crate) unset_env: Vec<String>,
    /// The network to be on [default: default]
    #[arg(long, value_name = "NAME")]
    pub(crate) network: Option<String>,
}

/// A port with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    name: Option<String>,
    number: u16,
}

fn image(text: &str) -> Result<String, String> {
    match compute_core::image::Reference::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("that is not a valid image name, such as docker.io/library/nginx:1.29".to_owned()),
    }
}

pub(super) fn port(text: &str) -> Result<Port, String> {
    let (name, number) = match text.rsplit_once(':') {
        Some((name, number)) => (Some(name.to_owned()), number),
        None => (None, text),
    };
    let number: u16 =
        number.parse().ok().filter(|number| *number > 0).ok_or("a port is a number from 1 to 65535")?;
    Ok(Port { name, number })
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a variable is NAME=VALUE")?;
    if name.is_empty() {
        return Err("a variable needs a name, as in NAME=VALUE".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

impl Flags {
    /// A new workload needs an image and a city; says what there is to choose from.
    pub(crate) async fn check_new(&self, session: &Session, name: &str) -> Result<()> {
        if !is_name(name) {
            return Err(no_name(name));
        }
        let what = format!("cannot deploy {name}");
        let missing = match (&self.image, self.city.is_empty()) {
            (None, true) => "--image and --city",
            (None, false) => "--image",
            (Some(_), true) => "--city",
            (Some(_), false) => return Ok(()),
        };
        let failure =
            Failure::usage(what, format!("there is no workload {name:?} yet, and a new one needs {missing}"));
        if !self.city.is_empty() {
            return Err(failure.next("workloads", "list the workloads that there are"));
        }
        let bindings = fetch::bindings(session).await.unwrap_or_default();
        let offered = compute_core::location::Offered::of(&bindings);
        let cities: Vec<&str> = offered.cities().collect();
        let failure =
            failure.advice(format!("choose among the cities of this project: {}", cities.join(", ")));
        match (&self.image, cities.first()) {
            (Some(image), Some(city)) => {
                let image = crate::invocation::quoted(image);
                Err(failure.next(format!("deploy {name} --image {image} --city {city}"), "deploy it there"))
            }
            _ => Err(failure.next("workloads", "list the workloads that there are")),
        }
    }

    /// What a workload is to be.
    pub(crate) fn edit(&self, name: &str, base: Option<&Found>) -> Result<Wanted> {
        let mut spec = match base {
            Some(base) => base.spec().clone(),
            None => fresh(self.network.as_deref().unwrap_or("default")),
        };
        self.edit_template(name, &mut spec["template"]["spec"])?;
        self.edit_placement(name, &mut spec["placements"])?;
        Ok(Wanted::spec(spec))
    }

    fn edit_template(&self, name: &str, template: &mut Value) -> Result<()> {
        if let Some(instance_type) = &self.instance_type {
            template["runtime"]["resources"]["instanceType"] = Value::from(instance_type.as_str());
        }
        if let Some(network) = &self.network {
            template["networkInterfaces"] = json!([{ "network": { "name": network } }]);
        }
        let touches = self.image.is_some()
            || !self.port.is_empty()
            || !self.env.is_empty()
            || !self.unset_env.is_empty();
        if !touches {
            return Ok(());
        }
        let containers = template["runtime"]["sandbox"]["containers"].as_array_mut();
        let container = match containers.map(Vec::as_mut_slice) {
            Some([container]) => container,
            Some([_, _, ..]) => {
                return Err(several_containers(name));
            }
            _ => return Err(virtual_machine(name)),
        };
        if let Some(image) = &self.image {
            container["image"] = Value::from(image.as_str());
        }
        if !self.port.is_empty() {
            let alone = self.port.len() == 1;
            let ports = self.port.iter().map(|port| {
                let name = port.name.clone().unwrap_or_else(|| match alone {
                    true => "http".to_owned(),
                    false => format!("port-{}", port.number),
                });
                json!({ "name": name, "port": port.number })
            });
            container["ports"] = ports.collect();
        }
        let mut env = container["env"].as_array().cloned().unwrap_or_default();
        env.retain(|one| !self.unset_env.iter().any(|name| one["name"] == name.as_str()));
        for (name, value) in &self.env {
            let entry = json!({ "name": name, "value": value });
            match env.iter_mut().find(|one| one["name"] == name.as_str()) {
                Some(one) => *one = entry,
                None => env.push(entry),
            }
        }
        if !env.is_empty() || !container["env"].is_null() {
            container["env"] = Value::Array(env);
        }
        Ok(())
    }

    fn edit_placement(&self, name: &str, placements: &mut Value) -> Result<()> {
        if self.city.is_empty() && self.min.is_none() && self.max.is_none() {
            return Ok(());
        }
        let placement = match placements.as_array_mut().map(Vec::as_mut_slice) {
            Some([placement]) => placement,
            _ => return Err(several_placements(name)),
        };
        if !self.city.is_empty() {
            let held: Vec<String> = placement["cityCodes"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|city| city.as_str().map(str::to_owned))
                .collect();
            // A city that it is in already keeps its spelling.
            let spelled = |city: &String| {
                let same = held.iter().find(|one| one.eq_ignore_ascii_case(city));
                same.cloned().unwrap_or_else(|| city.to_uppercase())
            };
            placement["cityCodes"] = self.city.iter().map(|city| Value::from(spelled(city))).collect();
        }
        if let Some(least) = self.min {
            placement["scaleSettings"]["minReplicas"] = Value::from(least);
        }
        if let Some(most) = self.max {
            placement["scaleSettings"]["maxReplicas"] = Value::from(most);
        }
        Ok(())
    }
}

/// A workload before options are put on it.
fn fresh(network: &str) -> Value {
    json!({
        "template": { "spec": {
            "runtime": {
                "resources": { "instanceType": CATALOG[0].name },
                "sandbox": { "containers": [{ "name": CONTAINER, "image": "" }] },
            },
            "networkInterfaces": [{ "network": { "name": network } }],
        } },
        "placements": [{ "name": PLACEMENT, "cityCodes": [], "scaleSettings": { "minReplicas": 1 } }],
    })
}

/// Whether a text can be a workload's name.
pub(super) fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let all = text.bytes().all(|byte| is_letter(byte) || byte == b'-');
    all && text.len() <= 63 && !text.is_empty() && !text.starts_with('-') && !text.ends_with('-')
}

/// The failure when a text cannot be a workload's name.
pub(super) fn no_name(name: &str) -> Failure {
    Failure::usage(
        format!("cannot deploy {name}"),
        format!(
            "{name:?} is not a valid name: use up to 63 lowercase letters, digits and hyphens, not starting or ending with a hyphen"
        ),
    )
    .advice("choose another name, such as web")
}

/// The failure when options would not say which container.
pub(super) fn several_containers(name: &str) -> Failure {
    needs_manifest(name, "it has several containers, and options are about one")
}

/// The failure when there is no container.
pub(super) fn virtual_machine(name: &str) -> Failure {
    needs_manifest(name, "it is a virtual machine, and options are about containers")
}

/// The failure when options would not say which placement.
pub(super) fn several_placements(name: &str) -> Failure {
    needs_manifest(name, "it has several placements, and options are about one")
        .next(format!("scale {name} --help"), "see how to scale one placement")
}

fn needs_manifest(name: &str, why: &str) -> Failure {
    Failure::usage(format!("cannot change {name} by options"), why)
        .advice("print it as a manifest, change that, and deploy it with -f")
        .next(format!("workloads describe {name} -o yaml"), "print it")
}

/// A refusal that names options where the service names fields.
pub(crate) fn in_options(mut failure: Failure) -> Failure {
    const OPTIONS: [(&str, &str); 9] = [
        ("cityCodes", "--city"),
        (".image", "--image"),
        ("instanceType", "--instance-type"),
        ("minReplicas", "--min"),
        ("maxReplicas", "--max"),
        (".ports", "--port"),
        (".env", "--env"),
        ("networkInterfaces", "--network"),
        ("metadata.name", "the name"),
    ];
    for why in &mut failure.why {
        let Some((path, message)) = why.split_once(": ") else { continue };
        let is_path = path.starts_with("spec.") || path.starts_with("metadata.");
        let option = OPTIONS.iter().find(|(field, _)| is_path && path.contains(field));
        if let Some((_, option)) = option {
            *why = format!("{option}: {}", plainer(message));
        }
    }
    failure
}

/// A refusal without its kind, where what follows says it all.
fn plainer(message: &str) -> String {
    for kind in ["Unsupported value: ", "Invalid value: ", "Not found: ", "Required value: ", "Forbidden: "] {
        let Some(rest) = message.strip_prefix(kind) else { continue };
        let said =
            rest.split_once(": ").filter(|(value, _)| value.starts_with('"') || value.parse::<f64>().is_ok());
        return said.map_or(rest, |(_, said)| said).to_owned();
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(change: impl FnOnce(&mut Flags)) -> Flags {
        let mut flags = Flags { image: Some("a:1".into()), city: vec!["dfw".into()], ..Flags::default() };
        change(&mut flags);
        flags
    }

    fn found(spec: &Value) -> Found {
        let object = json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload", "metadata": {}, "spec": spec });
        Found::of(serde_json::from_value(object).unwrap()).unwrap()
    }

    #[test]
    fn a_new_workload_has_what_the_options_say() {
        let wanted = flags(|flags| {
            flags.port = vec![port("80").unwrap()];
            flags.env = vec![("A".into(), "b=c".into())];
            flags.min = Some(2);
        })
        .edit("web", None)
        .unwrap();
        assert_eq!(
            wanted.spec,
            json!({
                "template": { "spec": {
                    "runtime": {
                        "resources": { "instanceType": "datumcloud/d1-standard-2" },
                        "sandbox": { "containers": [{ "name": "app", "image": "a:1",
                            "ports": [{ "name": "http", "port": 80 }], "env": [{ "name": "A", "value": "b=c" }] }] },
                    },
                    "networkInterfaces": [{ "network": { "name": "default" } }],
                } },
                "placements": [{ "name": "main", "cityCodes": ["DFW"], "scaleSettings": { "minReplicas": 2 } }],
            })
        );
    }

    #[test]
    fn what_is_not_named_stays() {
        let mut spec = flags(|flags| flags.env = vec![("A".into(), "1".into()), ("B".into(), "2".into())])
            .edit("web", None)
            .unwrap()
            .spec;
        spec["template"]["spec"]["future"] = json!({ "kept": true });
        let change = Flags { image: Some("a:2".into()), unset_env: vec!["A".into()], ..Flags::default() };
        let changed = change.edit("web", Some(&found(&spec))).unwrap().spec;
        spec["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["image"] = json!("a:2");
        spec["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["env"] =
            json!([{ "name": "B", "value": "2" }]);
        assert_eq!(changed, spec);
    }

    #[test]
    fn several_of_a_thing_need_a_manifest() {
        let mut spec = fresh("default");
        spec["placements"].as_array_mut().unwrap().push(json!({ "name": "b", "cityCodes": ["IAD"] }));
        let failure = flags(|_| {}).edit("web", Some(&found(&spec))).unwrap_err();
        assert!(failure.why[0].contains("several placements"), "{failure:?}");
    }

    #[test]
    fn ports_and_variables_are_read() {
        assert_eq!(port("web:8080"), Ok(Port { name: Some("web".into()), number: 8080 }));
        assert!(port("0").is_err() && port("x").is_err() && port("70000").is_err());
        assert!(variable("A").is_err() && variable("=x").is_err());
    }

    #[test]
    fn refusals_name_options() {
        let failure = in_options(
            Failure::new(
                "x",
                "spec.placements[0].cityCodes[1]: Unsupported value: \"ATL\": city ATL is not offered",
            )
            .advice("a"),
        );
        assert_eq!(failure.why, ["--city: city ATL is not offered"]);
        let failure = in_options(Failure::new(
            "x",
            "spec.placements[0].scaleSettings.maxReplicas: Invalid value: 2: must be at least minReplicas",
        ).advice("a"));
        assert_eq!(failure.why, ["--max: must be at least minReplicas"]);
    }
}
