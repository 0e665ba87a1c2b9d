//! Feature gates.

use super::Mistake;
use super::section::closest;

/// What can be turned on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// Whether instances are put on networks, and locations read.
    pub networking_integration: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Self { networking_integration: true }
    }
}

const NETWORKING_INTEGRATION: &str = "NetworkingIntegration";
const KNOWN: [&str; 1] = [NETWORKING_INTEGRATION];

impl Gates {
    /// Reads `A=true,B=false`.
    pub(super) fn read(field: &str, text: &str) -> Result<Self, Mistake> {
        let mut gates = Self::default();
        let mut seen = Vec::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let Some((name, value)) = entry.split_once('=') else {
                return Err(Mistake::new(field, format!("{entry:?} must be NAME=true or NAME=false")));
            };
            let is_on = match value {
                "true" => true,
                "false" => false,
                _ => return Err(Mistake::new(field, format!("{name} must be true or false, not {value:?}"))),
            };
            if seen.contains(&name) {
                return Err(Mistake::new(field, format!("{name} is there twice")));
            }
            seen.push(name);
            match name {
                NETWORKING_INTEGRATION => gates.networking_integration = is_on,
                _ => return Err(unknown(field, name)),
            }
        }
        Ok(gates)
    }
}

fn unknown(field: &str, name: &str) -> Mistake {
    let hint = match closest(name, KNOWN.into_iter()) {
        Some(close) => format!("did you mean {close}?"),
        None => format!("known are {}", KNOWN.join(", ")),
    };
    Mistake::new(field, format!("there is no feature gate {name:?}; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read() {
        for (text, wanted) in [
            ("", true),
            (" , ", true),
            ("NetworkingIntegration=true", true),
            ("NetworkingIntegration=false", false),
            (" NetworkingIntegration=false ,", false),
        ] {
            assert_eq!(Gates::read("f", text).unwrap().networking_integration, wanted, "{text:?}");
        }
        for (text, said) in [
            (
                "networking=true",
                "f: there is no feature gate \"networking\"; did you mean NetworkingIntegration?",
            ),
            ("Xyz=true", "f: there is no feature gate \"Xyz\"; known are NetworkingIntegration"),
            ("NetworkingIntegration", "f: \"NetworkingIntegration\" must be NAME=true or NAME=false"),
            ("NetworkingIntegration=1", "f: NetworkingIntegration must be true or false, not \"1\""),
            (
                "NetworkingIntegration=true,NetworkingIntegration=false",
                "f: NetworkingIntegration is there twice",
            ),
        ] {
            assert_eq!(Gates::read("f", text).unwrap_err().to_string(), said);
        }
    }
}
