//! What a server's answer, or its silence, means to people.

use kube::core::Status;

use super::{Exit, Failure};

/// A server that did not answer in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    /// How long it was waited for, in tenths of a second.
    pub(crate) tenths: u64,
    /// Whether the request may have changed something.
    pub(crate) is_write: bool,
}

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no answer within {}.{} s", self.tenths / 10, self.tenths % 10)
    }
}

impl std::error::Error for Silence {}

/// What an error of a request means. `what` is what was being done, such as `cannot read the workloads`.
pub(crate) fn from_kube(what: impl Into<String>, error: &kube::Error) -> Failure {
    let what = what.into();
    match error {
        kube::Error::Api(status) => from_status(what, status),
        kube::Error::SerdeError(_) => Failure::new(what, "the answer is not what this service sends")
            .advice("check that the address is that of a Datum project")
            .next("--version", "compare with the version that the service asks for"),
        // What it says may hold the output of the program that gives credentials, or its arguments.
        kube::Error::Auth(_) => Failure::new(what, "the credentials that the kubeconfig names cannot be had")
            .exit(Exit::NotAllowed)
            .advice("sign in again, or run the program that the kubeconfig names for that by hand"),
        error => from_transport(what, error),
    }
}

fn from_status(what: String, status: &Status) -> Failure {
    match status.code {
        401 => Failure::new(what, "you are not signed in, or your session has ended")
            .exit(Exit::NotAllowed)
            .other("datumctl login", "sign in again"),
        403 => Failure::new(what, forbidden(&status.message))
            .exit(Exit::NotAllowed)
            .advice("ask whoever runs the project for access")
            .next("access", "see whether the service is enabled in this project"),
        409 => {
            Failure::new(what, "somebody else changed it at the same moment; nothing of yours was written")
                .advice("run the command again")
        }
        422 => invalid(what, status),
        404 => Failure::new(what, "the project does not exist, or does not offer the compute service")
            .advice("check --project")
            .next("access", "see whether the service is enabled in this project"),
        429 => Failure::new(what, "the service is busy").advice("try again in a minute"),
        500.. => Failure::new(what, format!("the service had an internal error: {}", plain(&status.message)))
            .advice("try again in a minute; if it stays, tell whoever runs the platform"),
        _ => Failure::new(what, plain(&status.message))
            .advice("if it makes no sense, tell whoever runs the platform"),
    }
}

/// Why somebody may not: what admission says, or that they lack a right. Which one is the server's own language.
fn forbidden(message: &str) -> String {
    match message.contains(" cannot ") && message.contains("resource ") {
        true => "you do not have permission for this".to_owned(),
        false => plain(message),
    }
}

/// Everything that is wrong with an object, a line each.
fn invalid(what: String, status: &Status) -> Failure {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let why: Vec<String> = causes
        .map(|cause| match cause.field.is_empty() {
            true => plain(&cause.message),
            false => format!("{}: {}", cause.field, plain(&cause.message)),
        })
        .collect();
    let why = if why.is_empty() { vec![plain(&status.message)] } else { why };
    Failure::new(what, "").because(why).advice("fix that and run the command again")
}

fn from_transport(what: String, error: &kube::Error) -> Failure {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut texts = Vec::new();
    while let Some(one) = source {
        if let Some(failure) = one.downcast_ref::<crate::connect::HelperFailed>() {
            return failure.0.clone();
        }
        if let Some(silence) = one.downcast_ref::<Silence>() {
            let failure = Failure::new(what, format!("the server gave {silence}")).exit(Exit::TimedOut);
            return match silence.is_write {
                true => failure
                    .advice("what you asked for may or may not have been done: look before you try again"),
                false => failure.advice("check your connection and try again"),
            };
        }
        texts.push(one.to_string());
        source = one.source();
    }
    let deepest = texts.last().cloned().unwrap_or_default();
    let all = texts.join(" ").to_lowercase();
    let why = if all.contains("certificate") {
        "the server's certificate is not trusted".to_owned()
    } else if all.contains("dns") || all.contains("lookup") || all.contains("resolve") {
        "the server's name cannot be found".to_owned()
    } else if all.contains("refused") {
        "the server refuses connections: nothing runs there".to_owned()
    } else if all.contains("timed out") || all.contains("deadline") || all.contains("elapsed") {
        return Failure::new(what, "the server cannot be reached in time")
            .exit(Exit::TimedOut)
            .advice("check your connection and try again");
    } else {
        format!("the server cannot be reached ({})", plain(&deepest))
    };
    Failure::new(what, why)
        .advice("check your connection, or start the platform on this machine")
        .other("compute-local up", "run a platform of your own")
}

/// A message without what is not for people: addresses, API groups and versions.
pub(crate) fn plain(message: &str) -> String {
    let words = message.split(' ').map(|word| {
        let bare = word.trim_matches(|c: char| "\"'(),.;:".contains(c));
        if bare.contains("://") {
            return word.replace(bare, "the server");
        }
        // `workloads.compute.datumapis.com` is `workloads`.
        let group = [".datumapis.com", ".miloapis.com"].iter().find_map(|suffix| {
            let end = word.find(suffix)? + suffix.len();
            let start = word[..end].find('.')?;
            Some(format!("{}{}", &word[..start], &word[end..]))
        });
        group.unwrap_or_else(|| word.to_owned())
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_groups_are_left_out() {
        assert_eq!(
            plain("workloads.compute.datumapis.com is forbidden: see \"https://x/y?token=z\"."),
            "workloads is forbidden: see \"the server\"."
        );
    }

    #[test]
    fn codes_have_their_exits() {
        let status = |code| {
            let status = Status { code, message: "m".to_owned(), ..Status::default() };
            from_kube("cannot do it", &kube::Error::Api(Box::new(status)))
        };
        assert_eq!(status(401).exit, Exit::NotAllowed);
        assert_eq!(status(403).exit, Exit::NotAllowed);
        assert_eq!(status(409).exit, Exit::Failed);
        assert_eq!(status(503).exit, Exit::Failed);
        let silence = Silence { tenths: 45, is_write: false };
        let failure = from_kube("cannot do it", &kube::Error::Service(Box::new(silence)));
        assert_eq!(
            (failure.exit, failure.why[0].as_str()),
            (Exit::TimedOut, "the server gave no answer within 4.5 s")
        );
    }
}
