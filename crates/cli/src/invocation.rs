//! How this program is called, so that every command it suggests works when it is pasted.

/// The program by itself.
const ALONE: &str = "datumctl-compute";

/// The words before a command, and the options that lead to the same project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Invocation {
    /// `datumctl compute` or `datumctl-compute`.
    program: String,
    /// Options that were given and are needed again, such as `--project shop`.
    options: Vec<String>,
}

impl Invocation {
    /// As a plugin of datumctl, or by itself.
    pub(crate) fn new(is_plugin: bool, options: Vec<String>) -> Self {
        let program = if is_plugin { "datumctl compute" } else { ALONE };
        Self { program: program.to_owned(), options }
    }

    /// A text that calls the program by its own name, as the program was called.
    pub(crate) fn spelled(&self, text: &str) -> String {
        // Names of files keep it.
        let spelled = text.replace(&format!("{ALONE} "), &format!("{} ", self.program));
        match spelled.strip_suffix(ALONE) {
            Some(before) => format!("{before}{}", self.program),
            None => spelled,
        }
    }

    /// A whole command line.
    pub(crate) fn command(&self, words: &str) -> String {
        let options: String = self.options.iter().map(|option| format!(" {}", quoted(option))).collect();
        // What follows `--` or a placeholder stays last.
        format!("{} {words}{options}", self.program)
    }
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_is_given_again() {
        let alone = Invocation::new(false, Vec::new());
        assert_eq!(alone.command("status web"), "datumctl-compute status web");
        let plugin = Invocation::new(true, vec!["--project".to_owned(), "my shop".to_owned()]);
        assert_eq!(plugin.command("status web"), "datumctl compute status web --project 'my shop'");
        assert_eq!(plugin.spelled("Usage: datumctl-compute status"), "Usage: datumctl compute status");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
