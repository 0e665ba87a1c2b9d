//! What an instance is to do, as its annotations and images say.

use std::time::Duration;

use compute_api::compute::Instance;
use compute_api::jiff::SignedDuration;
use compute_api::quantity::Amount;
use compute_core::image::Reference;
use compute_core::meta;
use compute_core::provider::{ImageFault, Trouble};

use super::Options;
use crate::engine::Usage;

/// Annotations that tell a simulated instance what to do.
pub mod annotations {
    /// How long it takes to start, such as `250ms`.
    pub const START_DELAY: &str = "simulated.datumapis.com/start-delay";
    /// How long it takes to stop.
    pub const STOP_DELAY: &str = "simulated.datumapis.com/stop-delay";
    /// `"true"`: it ends again and again.
    pub const CRASH: &str = "simulated.datumapis.com/crash";
    /// `"true"`: its image cannot be fetched.
    pub const IMAGE_FAILURE: &str = "simulated.datumapis.com/image-failure";
    /// What it uses, such as `cpu=250m,memory=64Mi`.
    pub const USAGE: &str = "simulated.datumapis.com/usage";
}

/// The domain that never exists: images of its registries cannot be fetched.
const NOWHERE: &str = ".invalid";

/// What an instance is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wishes {
    pub(super) start_delay: Duration,
    pub(super) trouble: Option<Trouble>,
    pub(super) usage: Usage,
    /// Names of its containers.
    pub(super) containers: Vec<String>,
}

impl Wishes {
    /// What an instance is to do. An annotation that makes no sense is a trouble of its configuration.
    pub(super) fn read(instance: &Instance, options: &Options) -> Self {
        let containers = instance.spec.runtime.sandbox.as_ref().map_or(&[][..], |one| &one.containers);
        let mut wishes = Self {
            start_delay: options.start_delay,
            trouble: None,
            usage: Usage::default(),
            containers: containers.iter().map(|container| container.name.clone()).collect(),
        };
        wishes.trouble = match wishes.take(instance) {
            Err(wrong) => Some(Trouble::Configuration(wrong)),
            Ok(asked) => image_trouble(instance, asked.image_failure).or_else(|| {
                // As a process that failed in general ends.
                asked.crash.then_some(Trouble::Crashing { exit_code: Some(1) })
            }),
        };
        wishes
    }

    /// How long an instance takes to stop. What makes no sense does not keep it from stopping.
    pub(super) fn stop_delay(instance: &Instance, options: &Options) -> Duration {
        let text = meta::annotation(&instance.metadata, annotations::STOP_DELAY);
        text.and_then(|text| duration(text).ok()).unwrap_or(options.stop_delay)
    }

    fn take(&mut self, instance: &Instance) -> Result<Asked, String> {
        let said = |key| meta::annotation(&instance.metadata, key);
        let wrong = |key: &str, what: &str| format!("annotation {key} is not {what}");
        let flag = |key| match said(key) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(wrong(key, "\"true\" or \"false\"")),
        };
        for key in [annotations::START_DELAY, annotations::STOP_DELAY] {
            let Some(text) = said(key) else { continue };
            let delay = duration(text).map_err(|()| wrong(key, "a duration such as 250ms"))?;
            if key == annotations::START_DELAY {
                self.start_delay = delay;
            }
        }
        if let Some(text) = said(annotations::USAGE) {
            self.usage = usage(text)
                .ok_or_else(|| wrong(annotations::USAGE, "amounts such as cpu=250m,memory=64Mi"))?;
        }
        Ok(Asked { crash: flag(annotations::CRASH)?, image_failure: flag(annotations::IMAGE_FAILURE)? })
    }
}

/// What can be asked to go wrong.
struct Asked {
    crash: bool,
    image_failure: bool,
}

fn image_trouble(instance: &Instance, is_asked_for: bool) -> Option<Trouble> {
    let sandbox = instance.spec.runtime.sandbox.as_ref();
    let mut images = sandbox.into_iter().flat_map(|one| &one.containers).map(|container| &*container.image);
    let unavailable = |image: &str, why| Trouble::ImageUnavailable { image: image.to_owned(), why };
    if is_asked_for {
        return Some(unavailable(images.next().unwrap_or_default(), ImageFault::NotFound));
    }
    images.find_map(|image| match Reference::parse(image) {
        Err(_) => Some(unavailable(image, ImageFault::Malformed)),
        Ok(reference) if reference.host().is_some_and(|host| host.ends_with(NOWHERE)) => {
            Some(unavailable(image, ImageFault::Unreachable))
        }
        Ok(_) => None,
    })
}

fn duration(text: &str) -> Result<Duration, ()> {
    let parsed: SignedDuration = text.trim().parse().map_err(|_| ())?;
    Duration::try_from(parsed).map_err(|_| ())
}

fn usage(text: &str) -> Option<Usage> {
    let mut usage = Usage::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (resource, amount) = part.split_once('=')?;
        let amount = Amount::parse(amount.trim()).ok()?;
        match resource.trim() {
            "cpu" => usage.cpu_millis = amount.millis_ceil().filter(|n| *n >= 0)?,
            "memory" => usage.memory_bytes = amount.units_ceil().filter(|n| *n >= 0)?,
            _ => return None,
        }
    }
    Some(usage)
}

#[cfg(test)]
mod tests {
    use compute_api::compute::{Sandbox, SandboxContainer};

    use super::*;

    fn instance(image: &str, said: &[(&str, &str)]) -> Instance {
        let mut instance = Instance::default();
        let container = SandboxContainer {
            name: "app".to_owned(),
            image: image.to_owned(),
            ..SandboxContainer::default()
        };
        instance.spec.runtime.sandbox = Some(Sandbox { containers: vec![container], ..Sandbox::default() });
        let said = said.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        instance.metadata.annotations = Some(said.collect());
        instance
    }

    fn trouble(image: &str, said: &[(&str, &str)]) -> Option<Trouble> {
        Wishes::read(&instance(image, said), &Options::default()).trouble
    }

    #[test]
    fn annotations_are_understood() {
        let said = [
            (annotations::START_DELAY, "250ms"),
            (annotations::STOP_DELAY, "1m30s"),
            (annotations::USAGE, "cpu=250m,memory=64Mi"),
        ];
        let asked = instance("app:1", &said);
        let wishes = Wishes::read(&asked, &Options::default());
        assert_eq!(wishes.trouble, None);
        assert_eq!(wishes.start_delay, Duration::from_millis(250));
        assert_eq!(wishes.usage, Usage { cpu_millis: 250, memory_bytes: 64 * 1024 * 1024 });
        assert_eq!(Wishes::stop_delay(&asked, &Options::default()), Duration::from_secs(90));
    }

    #[test]
    fn what_makes_no_sense_is_a_configuration_error_that_names_the_annotation() {
        for (key, value) in [
            (annotations::START_DELAY, "soon"),
            (annotations::START_DELAY, "-1s"),
            (annotations::STOP_DELAY, "5"),
            (annotations::CRASH, "yes"),
            (annotations::USAGE, "cpu=lots"),
            (annotations::USAGE, "disk=1"),
        ] {
            let found = trouble("app:1", &[(key, value)]);
            assert!(
                matches!(&found, Some(Trouble::Configuration(what)) if what.contains(key)),
                "{key}={value}: {found:?}"
            );
        }
        let wrong = instance("app:1", &[(annotations::STOP_DELAY, "5")]);
        assert_eq!(Wishes::stop_delay(&wrong, &Options::default()), Duration::ZERO, "it stops all the same");
    }

    #[test]
    fn images_that_cannot_be_had_are_named() {
        let unavailable = |image: &str, why| Some(Trouble::ImageUnavailable { image: image.to_owned(), why });
        assert_eq!(trouble("ghcr.io/a/b:1", &[]), None);
        let nowhere = "registry.invalid:5000/app";
        assert_eq!(trouble(nowhere, &[]), unavailable(nowhere, ImageFault::Unreachable));
        assert_eq!(trouble("not an image", &[]), unavailable("not an image", ImageFault::Malformed));
        let asked = [(annotations::IMAGE_FAILURE, "true"), (annotations::CRASH, "true")];
        assert_eq!(trouble("app:1", &asked), unavailable("app:1", ImageFault::NotFound));
        let crash = trouble("app:1", &[(annotations::CRASH, "true")]);
        assert_eq!(crash, Some(Trouble::Crashing { exit_code: Some(1) }));
    }
}
