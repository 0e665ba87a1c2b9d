//! Which number each field has on the wire, and how JSON calls it: `messages.txt`, parsed once.

use std::collections::BTreeMap;
use std::sync::LazyLock;

const SCHEMA: &str = "apiextensions.JSONSchemaProps";

/// The table of all messages.
pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(include_str!("messages.txt")));

/// When a field that was sent is part of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// Always: it would not have been sent otherwise, or JSON has it even if it is empty.
    IfSent,
    /// If it holds something: Protobuf sends it in any case, JSON does not.
    IfNotEmpty,
}

/// What a field holds.
#[derive(Debug)]
pub(super) enum Form {
    String,
    Bytes,
    Bool,
    Int,
    Double,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    Json,
    /// A message that JSON writes as the list of texts in it.
    Strings,
    /// A schema, or whether anything is allowed.
    SchemaOrBool(usize),
    /// A schema, or a list.
    SchemaOrList(usize, Box<Form>),
    Message(usize),
    List(Box<Form>),
    Map(Box<Form>),
}

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    number: u32,
    /// Empty for a message whose fields JSON has in the message around it.
    pub(super) name: &'static str,
    pub(super) presence: Presence,
    pub(super) form: Form,
}

/// One message.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<Field>);

impl Message {
    /// The field with this number.
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        self.0.iter().find(|field| field.number == number)
    }
}

/// All messages, and which of them are bodies.
#[derive(Debug)]
pub(super) struct Table {
    roots: BTreeMap<(&'static str, &'static str), usize>,
    messages: Vec<Message>,
}

impl Table {
    /// The message of a kind.
    pub(super) fn root(&self, api_version: &str, kind: &str) -> Option<&Message> {
        let found = self.roots.get(&(api_version, kind)).or_else(|| self.roots.get(&("*", kind)));
        found.map(|index| self.message(*index))
    }

    /// A message that a form refers to.
    pub(super) fn message(&self, index: usize) -> &Message {
        &self.messages[index]
    }

    fn parse(text: &'static str) -> Self {
        let lines = || text.lines().filter(|line| !line.starts_with(['#', '@']));
        let name = |line: &'static str| line.split(' ').next().unwrap_or_default();
        let indexes: BTreeMap<&str, usize> = lines().map(name).zip(0..).collect();
        let fields =
            |line: &'static str| line.split(' ').skip(1).filter_map(|text| field(text, &indexes)).collect();
        let roots = text.lines().filter_map(|line| {
            let mut words = line.strip_prefix("@ ")?.split(' ');
            Some(((words.next()?, words.next()?), *indexes.get(words.next()?)?))
        });
        Self { roots: roots.collect(), messages: lines().map(|line| Message(fields(line))).collect() }
    }
}

/// Reads `number:name:form`.
fn field(text: &'static str, indexes: &BTreeMap<&str, usize>) -> Option<Field> {
    let mut parts = text.splitn(3, ':');
    let (number, name, text) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
    let bare = text.trim_start_matches(['*', '!']);
    let presence = if bare == text { Presence::IfNotEmpty } else { Presence::IfSent };
    Some(Field { number, name, presence, form: form(bare, indexes)? })
}

fn form(text: &str, indexes: &BTreeMap<&str, usize>) -> Option<Form> {
    let schema = || indexes.get(SCHEMA).copied();
    if let Some(item) = text.strip_prefix("[]") {
        return Some(Form::List(Box::new(form(item, indexes)?)));
    }
    if let Some(item) = text.strip_prefix("{}") {
        return Some(Form::Map(Box::new(form(item, indexes)?)));
    }
    Some(match text {
        "string" => Form::String,
        "bytes" => Form::Bytes,
        "bool" => Form::Bool,
        "int" => Form::Int,
        "double" => Form::Double,
        "time" => Form::Time,
        "micro-time" => Form::MicroTime,
        "quantity" => Form::Quantity,
        "int-or-string" => Form::IntOrString,
        "json" => Form::Json,
        "strings" => Form::Strings,
        "schema-or-bool" => Form::SchemaOrBool(schema()?),
        "schema-or-array" => Form::SchemaOrList(schema()?, Box::new(Form::Message(schema()?))),
        "schema-or-strings" => Form::SchemaOrList(schema()?, Box::new(Form::String)),
        name => Form::Message(*indexes.get(name)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_understood() {
        let text = include_str!("messages.txt");
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(['#', '@'])).collect();
        assert_eq!(TABLE.messages.len(), lines.len());
        for (message, line) in TABLE.messages.iter().zip(lines) {
            assert_eq!(message.0.len(), line.split(' ').count() - 1, "{line}");
        }
        assert_eq!(TABLE.roots.len(), text.lines().filter(|line| line.starts_with('@')).count());
    }

    #[test]
    fn bodies_of_built_in_kinds_are_known() {
        for definition in crate::registry::built_in::definitions() {
            let (version, kind) = (definition.gv.to_string(), &definition.names.kind);
            assert!(TABLE.root(&version, kind).is_some(), "no message for {kind} of {version}");
        }
    }
}
