//! `x-kubernetes-validations`: rules that users write about their own kinds.
//!
//! A [`Rule`] is compiled with its schema, against the types that the schema gives `self` and its
//! fields. Running the rules of one object spends at most [`OBJECT_BUDGET`]; when that is used up the
//! object is refused and no further rule runs.

use serde_json::Value;

use super::Schema;
use super::correlate::{self, Entries};
use super::expr::{Budget, EvalError, Known, Program, RULE_BUDGET, Scalar, Val};
use super::path::Path;
use super::validate::Sink;
use crate::field_error::{FieldError, FieldErrorType};

pub use super::expr;

/// What all rules of one object may spend together: some hundreds of milliseconds.
pub const OBJECT_BUDGET: u64 = 10_000_000;

const SELF: &str = "self";
const OLD_SELF: &str = "oldSelf";

/// A compiled rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// As written.
    pub source: String,
    /// What is said when it does not hold, if the author said it.
    pub message: Option<String>,
    /// Computes what is said; goes before `message`.
    pub message_expression: Option<Program>,
    /// The class of the error.
    pub reason: FieldErrorType,
    /// The field below that the error is about, as text to put behind the path: `.a.b`.
    pub field_path: String,
    /// Whether `oldSelf` is an optional, so that the rule runs on creation too.
    pub optional_old_self: bool,
    program: Program,
    uses_old_self: bool,
}

impl Rule {
    fn failure_text(&self) -> String {
        match &self.message {
            Some(message) => message.trim().to_owned(),
            None => format!("failed rule: {}", self.source.trim()),
        }
    }
}

/// Compiles the rules of one schema; errors go to `sink`.
///
/// `root` says that the schema is that of a whole object, `correlatable` that a value of it can be found
/// again in an older object, without which a rule may not ask for the old value.
pub fn compile(
    rules: &Value,
    schema: &Schema,
    root: bool,
    correlatable: bool,
    path: &Path<'_>,
    sink: &mut Sink,
) -> Vec<Rule> {
    let Some(rules) = rules.as_array() else {
        sink.push(|| FieldError::invalid(path.text(), rules, "must be an array"));
        return Vec::new();
    };
    let mut compiled = Vec::with_capacity(rules.len());
    for (index, rule) in rules.iter().enumerate() {
        if sink.is_full() {
            break;
        }
        compiled.extend(compile_one(rule, schema, root, correlatable, &path.index(index), sink));
    }
    compiled
}

fn compile_one(
    json: &Value,
    schema: &Schema,
    root: bool,
    correlatable: bool,
    path: &Path<'_>,
    sink: &mut Sink,
) -> Option<Rule> {
    let text = |name: &str| json.get(name).and_then(Value::as_str);
    let source = text("rule").unwrap_or_default();
    if source.trim().is_empty() {
        sink.push(|| {
            FieldError::new(path.field("rule").text(), FieldErrorType::Required, "rule is not specified")
        });
        return None;
    }
    check_message(text("message"), source, path, sink);
    let optional_old_self = json.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or(false);
    let known = || match schema.embedded_resource || root {
        // Only then is `self` an object that has metadata to hide.
        true => Known::Schema(schema),
        false => Known::of(schema),
    };
    let old = if optional_old_self { Known::Optional(Box::new(known())) } else { known() };
    let variables = [(SELF, known()), (OLD_SELF, old)];
    let compile = |name: &str, source: &str, wanted: Scalar, sink: &mut Sink| {
        let program = Program::compile_typed(source, &variables, wanted, root);
        program
            .map_err(|error| {
                let detail = format!("compilation failed: {error}");
                sink.push(|| FieldError::invalid(path.field(name).text(), &Value::from(source), detail));
            })
            .ok()
    };
    let program = compile("rule", source, Scalar::Bool, sink);
    let message_expression = text("messageExpression")
        .and_then(|source| compile("messageExpression", source, Scalar::String, sink));
    let reason = reason(text("reason"), path, sink);
    let field_path = field_path(text("fieldPath"), schema, path, sink);
    let program = program?;
    let uses_old_self = program.uses(OLD_SELF);
    if uses_old_self && !correlatable {
        let detail = "oldSelf cannot be used on the uncorrelatable portion of the schema";
        sink.push(|| FieldError::invalid(path.field("rule").text(), &Value::from(source), detail));
    }
    Some(Rule {
        source: source.to_owned(),
        message: text("message").filter(|message| !message.is_empty()).map(str::to_owned),
        message_expression,
        reason,
        field_path,
        optional_old_self,
        program,
        uses_old_self,
    })
}

fn check_message(message: Option<&str>, rule: &str, path: &Path<'_>, sink: &mut Sink) {
    let at = path.field("message");
    match message.filter(|message| !message.is_empty()) {
        None if rule.trim().contains('\n') => {
            let detail = "message must be specified if rule contains line breaks";
            sink.push(|| FieldError::new(at.text(), FieldErrorType::Required, detail));
        }
        Some(message) if message.trim().is_empty() => {
            let detail = "message must be non-empty if specified";
            sink.push(|| FieldError::invalid(at.text(), &Value::from(message), detail));
        }
        Some(message) if message.trim().contains('\n') => {
            let detail = "message must not contain line breaks";
            sink.push(|| FieldError::invalid(at.text(), &Value::from(message), detail));
        }
        _ => {}
    }
}

fn reason(given: Option<&str>, path: &Path<'_>, sink: &mut Sink) -> FieldErrorType {
    let reasons = [
        FieldErrorType::Required,
        FieldErrorType::Forbidden,
        FieldErrorType::Invalid,
        FieldErrorType::Duplicate,
    ];
    let Some(given) = given.filter(|given| !given.is_empty()) else { return FieldErrorType::Invalid };
    if let Some(&known) = reasons.iter().find(|reason| reason.reason() == given) {
        return known;
    }
    let names: Vec<String> = reasons.iter().map(|reason| format!("\"{}\"", reason.reason())).collect();
    let detail = format!("supported values: {}", names.join(", "));
    sink.push(|| {
        let path = path.field("reason").text();
        FieldError::with_value(path, FieldErrorType::NotSupported, &Value::from(given), detail)
    });
    FieldErrorType::Invalid
}

/// Checks a `fieldPath` such as `.a.b` or `['x.y'].c` against the schema; returns it in the form in
/// which it is put behind a path.
fn field_path(given: Option<&str>, schema: &Schema, path: &Path<'_>, sink: &mut Sink) -> String {
    let Some(given) = given.filter(|given| !given.is_empty()) else { return String::new() };
    let mut made = String::new();
    let mut rest = given;
    let mut at = Some(schema);
    while let (false, Some(schema)) = (rest.is_empty(), at) {
        let plain = |after: &'_ str| after.find(['.', '[']).unwrap_or(after.len());
        let step = match rest.strip_prefix("['") {
            Some(quoted) => quoted.split_once("']"),
            None => rest.strip_prefix('.').map(|after| after.split_at(plain(after))),
        };
        let Some((name, after)) = step.filter(|(name, _)| !name.is_empty()) else {
            at = None;
            break;
        };
        let named = schema.properties.contains_key(name);
        made.push_str(&if named && !name.contains('.') { format!(".{name}") } else { format!("[{name}]") });
        at = schema.child(name);
        rest = after;
    }
    if at.is_none() {
        let detail = "fieldPath must be a valid path";
        sink.push(|| FieldError::invalid(path.field("fieldPath").text(), &Value::from(given), detail));
    }
    made
}

/// Runs the rules of `schema` and of everything below it; what fails goes to `sink`.
pub fn check(schema: &Schema, value: &Value, old: Option<&Value>, sink: &mut Sink) {
    let mut run = Run { budget: OBJECT_BUDGET, sink };
    // Running out ends the walk; the error says so.
    let _ = run.node(schema, value, old, &Path::ROOT);
}

/// The budget is used up.
struct Exhausted;

struct Run<'s> {
    budget: u64,
    sink: &'s mut Sink,
}

impl Run<'_> {
    fn node(
        &mut self,
        schema: &Schema,
        value: &Value,
        old: Option<&Value>,
        path: &Path<'_>,
    ) -> Result<(), Exhausted> {
        if !schema.rules_below || value.is_null() || self.sink.is_full() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        for rule in &schema.rules {
            self.rule(rule, schema, value, old, path)?;
        }
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let old = correlate::field(schema, old, name);
                    if let Some(child) = schema.properties.get(name) {
                        self.node(child, field, old, &path.field(name))?;
                    } else if let Some(child) = &schema.additional_properties {
                        self.node(child, field, old, &path.key(name))?;
                    }
                }
            }
            Value::Array(entries) => {
                let Some(items) = schema.items.as_ref().filter(|items| items.rules_below) else {
                    return Ok(());
                };
                let olds = Entries::of(schema, old);
                for (index, entry) in entries.iter().enumerate() {
                    self.node(items, entry, olds.get(schema, entry), &path.index(index))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rule(
        &mut self,
        rule: &Rule,
        schema: &Schema,
        value: &Value,
        old: Option<&Value>,
        path: &Path<'_>,
    ) -> Result<(), Exhausted> {
        let old_self = match (rule.optional_old_self, old) {
            (true, None) => Val::Optional(None),
            (true, Some(old)) => Val::some(Val::from_json(old, Some(schema))),
            (false, Some(old)) => Val::from_json(old, Some(schema)),
            (false, None) if rule.uses_old_self => return Ok(()),
            (false, None) => Val::Null,
        };
        let variables = [(SELF, Val::from_json(value, Some(schema))), (OLD_SELF, old_self)];
        let detail = match self.spend(|budget| rule.program.eval(&variables, budget)) {
            Ok(Val::Bool(true)) => return Ok(()),
            // What has not changed is not held against the writer, unless the rule is about change.
            _ if !rule.uses_old_self && old == Some(value) && self.budget > 0 => return Ok(()),
            Ok(Val::Bool(false)) => self.failure(rule, &variables),
            Ok(_) => format!("rule does not come to true or false: {}", rule.failure_text()),
            Err(EvalError::OverBudget) => {
                let detail = "validation failed due to running out of cost budget, \
                    no further validation rules will be run";
                self.sink.push(|| FieldError::invalid(path.text(), value, detail));
                return Err(Exhausted);
            }
            Err(EvalError::NoOverload(what)) => format!(
                "'{what}': call arguments did not match a supported operator, function or macro signature \
                 for rule: {}",
                rule.failure_text()
            ),
            Err(error) => format!("{error} evaluating rule: {}", rule.failure_text()),
        };
        self.sink.push(|| {
            let path = match (path.is_root(), rule.field_path.as_str()) {
                (_, "") => path.text(),
                (true, field) => field.strip_prefix('.').unwrap_or(field).to_owned(),
                (false, field) => format!("{path}{field}"),
            };
            match rule.reason {
                class @ (FieldErrorType::Required | FieldErrorType::Forbidden) => {
                    FieldError::new(path, class, detail)
                }
                class => FieldError::with_value(path, class, value, detail),
            }
        });
        Ok(())
    }

    /// What to say about a rule that does not hold. A message that cannot be computed, or comes out
    /// empty or with line breaks, is replaced by the fixed one.
    fn failure(&mut self, rule: &Rule, variables: &[(&str, Val<'_>)]) -> String {
        let computed = rule.message_expression.as_ref().and_then(|expression| {
            match self.spend(|budget| expression.eval(variables, budget)) {
                Ok(Val::Str(text)) => {
                    let text = text.trim();
                    (!text.is_empty() && !text.contains('\n') && text.len() <= 5_120).then(|| text.to_owned())
                }
                _ => None,
            }
        });
        computed.unwrap_or_else(|| rule.failure_text())
    }

    /// Evaluates within what one rule, and this object, may still spend.
    fn spend<'a>(
        &mut self,
        eval: impl FnOnce(&mut Budget) -> Result<Val<'a>, EvalError>,
    ) -> Result<Val<'a>, EvalError> {
        let allowed = self.budget.min(RULE_BUDGET);
        let mut budget = Budget::new(allowed);
        let result = eval(&mut budget);
        self.budget -= allowed - budget.left();
        result
    }
}

#[cfg(test)]
mod tests;
