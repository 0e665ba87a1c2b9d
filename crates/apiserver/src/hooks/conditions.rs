//! Match conditions: expressions over the request that must all be true for a webhook to be called.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::request::AdmissionRequest;
use crate::field_error::{FieldError, FieldErrorType};
use crate::meta;
use crate::schema::expr::{Budget, EvalError, Program, Val};

/// As many as Kubernetes allows for one webhook.
const MAX_CONDITIONS: usize = 64;
/// What all conditions of one webhook together may spend on one request: some 25 ms, as Kubernetes bounds it.
const BUDGET: u64 = 2_500_000;
/// What conditions may read.
const VARIABLES: [&str; 3] = ["object", "oldObject", "request"];

/// A condition as it is written.
#[derive(Debug, Deserialize)]
pub(super) struct Spec {
    name: Option<String>,
    expression: Option<String>,
}

/// The compiled conditions of a webhook; without any, every request matches.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions(Vec<(String, Program)>);

/// The conditions that cannot be decided, in words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Undecided(String);

impl Conditions {
    /// Compiles conditions; what is wrong with them is added to `errors`.
    pub(super) fn compile(specs: Option<Vec<Spec>>, path: &str, errors: &mut Vec<FieldError>) -> Self {
        let specs = specs.unwrap_or_default();
        if specs.len() > MAX_CONDITIONS {
            let detail = format!("{}: must have at most {MAX_CONDITIONS} items", specs.len());
            errors.push(FieldError::new(path, FieldErrorType::TooMany, detail));
            // Compiling costs time, and nothing comes of it.
            return Self::default();
        }
        let mut names = BTreeSet::new();
        let mut compiled = Vec::with_capacity(specs.len());
        for (i, Spec { name, expression }) in specs.into_iter().enumerate() {
            let (name, expression) = (name.unwrap_or_default(), expression.unwrap_or_default());
            let at = format!("{path}[{i}].expression");
            if expression.trim().is_empty() {
                errors.push(FieldError::new(at, FieldErrorType::Required, ""));
            } else {
                match Program::compile(&expression, &VARIABLES) {
                    Ok(program) => compiled.push((name.clone(), program)),
                    Err(error) => {
                        let detail = format!("compilation failed: {error}");
                        errors.push(FieldError::invalid(at, &json!(expression), detail));
                    }
                }
            }
            let at = format!("{path}[{i}].name");
            if name.is_empty() {
                errors.push(FieldError::new(at, FieldErrorType::Required, ""));
            } else if let Some(problem) = meta::qualified_name_problem(&name) {
                errors.push(FieldError::invalid(at, &json!(name), problem));
            } else if !names.insert(name.clone()) {
                errors.push(FieldError::with_value(at, FieldErrorType::Duplicate, &json!(name), ""));
            }
        }
        Self(compiled)
    }

    /// Whether all conditions hold. One that is false decides, whatever the others come to.
    ///
    /// # Errors
    /// None is false, and some have no value.
    pub(super) fn hold(&self, request: &AdmissionRequest) -> Result<bool, Undecided> {
        if self.0.is_empty() {
            return Ok(true);
        }
        let reads_request = self.0.iter().any(|(_, program)| program.uses("request"));
        let variable = if reads_request { request.as_variable() } else { Value::Null };
        let null = Value::Null;
        let variables = [
            ("object", Val::from_json(request.object.as_ref().unwrap_or(&null), None)),
            ("oldObject", Val::from_json(request.old_object.as_ref().unwrap_or(&null), None)),
            ("request", Val::from_json(&variable, None)),
        ];
        let mut budget = Budget::new(BUDGET);
        let mut undecided = Vec::new();
        for (name, program) in &self.0 {
            let found = match program.eval(&variables, &mut budget) {
                Ok(Val::Bool(found)) => Ok(found),
                Ok(other) => Err(EvalError::no_overload("bool", &[other])),
                Err(error) => Err(error),
            };
            match found {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => undecided.push(format!("match condition {name:?}: {error}")),
            }
        }
        match undecided.as_slice() {
            [] => Ok(true),
            [one] => Err(Undecided(one.clone())),
            many => Err(Undecided(format!("[{}]", many.join(", ")))),
        }
    }
}
