//! Reading a Workload, and saying where it cannot be read.
//!
//! Every field of ours has an empty value that stands for "absent", so a part of an object decodes by itself if and only if the fault is not in
//! it. That is how the place of a fault is found: what is left of the object when all else is taken away still fails.

use compute_api::compute::Workload;
use serde_json::{Map, Value};

use super::error::{FieldError, Reason};

/// Reads a Workload, without its status: that is nobody's to judge who writes the object, and must not keep anybody from mending it.
///
/// # Errors
///
/// Every place that is of a wrong type.
pub fn workload(object: &Value) -> Result<Workload, Vec<FieldError>> {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let object = &object;
    match serde_json::from_value(object.clone()) {
        Ok(workload) => {
            let mut found = Vec::new();
            compare(
                object,
                &serde_json::to_value(&workload).unwrap_or_default(),
                &mut Vec::new(),
                &mut found,
            );
            if found.is_empty() { Ok(workload) } else { Err(found) }
        }
        Err(error) => {
            let mut found = Vec::new();
            find(object, &mut Vec::new(), &mut found);
            if found.is_empty() {
                // Only the parts together fail.
                found.push(fault(&[], object, &error));
            }
            Err(found)
        }
    }
}

/// Adds the places where a list was taken for an object: the decoder reads fields from it in their order, which nobody means.
fn compare(came: &Value, read: &Value, steps: &mut Vec<Step>, found: &mut Vec<FieldError>) {
    match (came, read) {
        (Value::Array(_), Value::Object(_)) => {
            let path = path(steps);
            let detail = "must be an object".to_owned();
            found.push(FieldError { path, reason: Reason::Invalid, value: Some(came.clone()), detail });
        }
        (Value::Object(came), Value::Object(read)) => {
            for (name, value) in came {
                let Some(read) = read.get(name) else { continue };
                steps.push(Step::Field(name.clone()));
                compare(value, read, steps, found);
                steps.pop();
            }
        }
        (Value::Array(came), Value::Array(read)) => {
            for (at, (value, read)) in came.iter().zip(read).enumerate() {
                steps.push(Step::Entry(at));
                compare(value, read, steps, found);
                steps.pop();
            }
        }
        _ => {}
    }
}

#[derive(Clone)]
enum Step {
    Field(String),
    Entry(usize),
}

/// Adds the faults in a part of an object, which is known to hold one; without a step the part is the object.
fn find(part: &Value, steps: &mut Vec<Step>, found: &mut Vec<FieldError>) {
    let before = found.len();
    let below: Vec<(Step, &Value)> = match part {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (Step::Field(name.clone()), value)).collect()
        }
        Value::Array(entries) => {
            entries.iter().enumerate().map(|(at, value)| (Step::Entry(at), value)).collect()
        }
        _ => Vec::new(),
    };
    for (step, value) in below {
        steps.push(step);
        if read(steps, value).is_err() {
            find(value, steps, found);
        }
        steps.pop();
    }
    if found.len() == before
        && let Err(error) = read(steps, part)
    {
        found.push(fault(steps, part, &error));
    }
}

/// Reads an object that has nothing but one value at one place.
fn read(steps: &[Step], value: &Value) -> Result<Workload, serde_json::Error> {
    let alone = steps.iter().rev().fold(value.clone(), |inner, step| match step {
        Step::Field(name) => Value::Object(Map::from_iter([(name.clone(), inner)])),
        Step::Entry(_) => Value::Array(vec![inner]),
    });
    let Value::Object(mut fields) = alone else { return serde_json::from_value(alone) };
    // What the root type asks for.
    for (name, empty) in [("metadata", Value::Object(Map::new())), ("spec", Value::Object(Map::new()))] {
        fields.entry(name).or_insert(empty);
    }
    serde_json::from_value(Value::Object(fields))
}

fn fault(steps: &[Step], value: &Value, error: &serde_json::Error) -> FieldError {
    let detail = match expected(&error.to_string()) {
        Some(wanted) => format!("must be {wanted}"),
        None => format!("cannot be read: {error}"),
    };
    FieldError { path: path(steps), reason: Reason::Invalid, value: Some(value.clone()), detail }
}

fn path(steps: &[Step]) -> String {
    let mut path = String::new();
    let mut after_map = false;
    for step in steps {
        match step {
            Step::Entry(at) => path.push_str(&format!("[{at}]")),
            Step::Field(name) if after_map => path.push_str(&format!("[{name}]")),
            Step::Field(name) if path.is_empty() => path.push_str(name),
            Step::Field(name) => path.push_str(&format!(".{name}")),
        }
        after_map = matches!(step, Step::Field(name) if MAPS.contains(&name.as_str()));
    }
    path
}

/// Fields whose own fields are keys that people choose.
const MAPS: [&str; 4] = ["labels", "annotations", "requests", "limits"];

/// What serde says it wanted, for people.
fn expected(error: &str) -> Option<&'static str> {
    let wanted = error.rsplit_once("expected ")?.1;
    Some(match wanted {
        "i64" | "i32" | "u32" | "u64" => "a whole number",
        "a boolean" => "true or false",
        "a string" => "a string",
        "a map" => "an object",
        "a sequence" => "a list",
        _ if wanted.starts_with("struct ") => "an object",
        _ => return None,
    })
}
