//! What is asked when nothing was given.

use compute_core::location::Offered;
use compute_core::quota::size::CATALOG;
use inquire::validator::Validation;
use inquire::{CustomType, MultiSelect, Select, Text};

use super::flags::Flags;
use crate::commands::ask::{confirm, unanswered};
use crate::failure::{Failure, Result};
use crate::fetch;
use crate::session::Session;

/// Asks for what the options do not say: a name, an image, cities, how many, and a port.
pub(super) async fn ask(session: &Session, given: &Flags) -> Result<(String, Flags)> {
    let bindings = fetch::bindings(session).await?;
    let cities: Vec<String> = Offered::of(&bindings).cities().map(str::to_owned).collect();
    if cities.is_empty() {
        return Err(no_city());
    }
    let mut flags = given.clone();
    let name = Text::new("Name of the workload:")
        .with_help_message("lowercase letters, digits and hyphens, such as web")
        .with_validator(|text: &str| {
            Ok(match super::flags::is_name(text) {
                true => Validation::Valid,
                false => Validation::Invalid("lowercase letters, digits, and hyphens between them".into()),
            })
        })
        .prompt()
        .map_err(|error| unanswered(&error))?;
    if fetch::workload(session, &name).await?.is_some() {
        session.say(&format!("There is a workload {name} already; what you answer changes it.\n"));
        if !confirm("Change it?", false)? {
            return Err(exists(&name));
        }
    }
    if flags.image.is_none() {
        let image = Text::new("Image to run:")
            .with_placeholder("docker.io/library/nginx:1.29")
            .with_validator(|text: &str| {
                Ok(match compute_core::image::Reference::parse(text) {
                    Ok(_) => Validation::Valid,
                    Err(_) => Validation::Invalid("that is not a valid image name".into()),
                })
            })
            .prompt();
        flags.image = Some(image.map_err(|error| unanswered(&error))?);
    }
    if flags.city.is_empty() {
        let chosen = MultiSelect::new("Cities to run in:", cities)
            .with_help_message("space to choose, enter to go on")
            .with_default(&[0])
            .with_validator(|chosen: &[inquire::list_option::ListOption<&String>]| {
                Ok(match chosen.is_empty() {
                    true => Validation::Invalid("choose at least one".into()),
                    false => Validation::Valid,
                })
            })
            .prompt();
        flags.city = chosen.map_err(|error| unanswered(&error))?;
    }
    if flags.min.is_none() {
        let least = CustomType::<i64>::new("Instances in each city:").with_default(1).prompt();
        flags.min = Some(least.map_err(|error| unanswered(&error))?);
    }
    if flags.instance_type.is_none() && CATALOG.len() > 1 {
        let types: Vec<&str> = CATALOG.iter().map(|one| one.name).collect();
        let chosen = Select::new("Type of instances:", types).prompt();
        flags.instance_type = Some(chosen.map_err(|error| unanswered(&error))?.to_owned());
    }
    if flags.port.is_empty() {
        let port = Text::new("Port that it listens on (empty for none):").prompt();
        let port = port.map_err(|error| unanswered(&error))?;
        if !port.trim().is_empty() {
            let port = super::flags::port(port.trim())
                .map_err(|why| Failure::usage("cannot deploy", why).advice("run the command again"))?;
            flags.port = vec![port];
        }
    }
    Ok((name, flags))
}

/// The failure when somebody wanted a new workload, and there is one.
pub(crate) fn exists(name: &str) -> Failure {
    Failure::new("cannot deploy", format!("there is a workload {name} already; nothing was written"))
        .advice("run the command again with another name")
        .next(format!("status {name}"), "see what it is")
}

/// The failure when there is nowhere to deploy to.
pub(crate) fn no_city() -> Failure {
    Failure::new("cannot deploy", "no city is offered to this project yet").next("cities", "see the cities")
}
