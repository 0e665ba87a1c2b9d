//! Loops over lists and maps: `all`, `exists`, `exists_one`, `map` and `filter`.

use std::sync::Arc;

use super::{EvalError, Evaluated, Evaluation};
use crate::schema::expr::node::{Loop, LoopKind};
use crate::schema::expr::value::{List, Val};

impl<'a> Evaluation<'a, '_> {
    pub(super) fn run_loop(&mut self, body: &'a Loop) -> Evaluated<'a> {
        let (keys, values) = match self.node(&body.range)? {
            Val::List(list) => (None, list),
            Val::Map(map) => {
                self.budget.charge(map.len() as u64)?;
                let keys = List::Own(Arc::new(map.keys()));
                match body.second {
                    Some(_) => {
                        let values = map.entries().into_iter().map(|(_, value)| value).collect();
                        (Some(keys), List::Own(Arc::new(values)))
                    }
                    None => (None, keys),
                }
            }
            other => return Err(EvalError::no_overload("@iter", &[other])),
        };
        let mut outcome = LoopOutcome::default();
        for at in 0..values.len() {
            let Some(entry) = values.get(at) else { break };
            match body.second {
                None => self.slots[body.slot] = entry.clone(),
                Some(second) => {
                    let first = keys.as_ref().and_then(|keys| keys.get(at));
                    self.slots[body.slot] = first.unwrap_or(Val::Int(at as i64));
                    self.slots[second] = entry.clone();
                }
            }
            if let Some(filter) = &body.filter {
                match self.node(filter)? {
                    Val::Bool(true) => {}
                    Val::Bool(false) => continue,
                    other => return Err(EvalError::no_overload("_?_:_", &[other])),
                }
            }
            let result = self.node(&body.body);
            if let Some(decided) = outcome.take(body.kind, entry, result)? {
                return Ok(decided);
            }
        }
        outcome.finish(body.kind)
    }
}

/// What a loop has found so far.
#[derive(Default)]
struct LoopOutcome<'a> {
    made: Vec<Val<'a>>,
    count: usize,
    failure: Option<EvalError>,
}

impl<'a> LoopOutcome<'a> {
    /// Takes the result for one entry; `Some` if it decides the loop.
    fn take(
        &mut self,
        kind: LoopKind,
        entry: Val<'a>,
        result: Evaluated<'a>,
    ) -> Result<Option<Val<'a>>, EvalError> {
        // `all` and `exists` pass over failures as long as another entry may decide.
        let passes = matches!(kind, LoopKind::All | LoopKind::Exists);
        let value = match result {
            Ok(value) => value,
            Err(error) if passes && error != EvalError::OverBudget => {
                self.failure.get_or_insert(error);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        match (kind, value) {
            (LoopKind::Map, value) => self.made.push(value),
            (LoopKind::All, Val::Bool(false)) => return Ok(Some(Val::Bool(false))),
            (LoopKind::Exists, Val::Bool(true)) => return Ok(Some(Val::Bool(true))),
            (LoopKind::ExistsOne, Val::Bool(true)) => self.count += 1,
            (LoopKind::Filter, Val::Bool(true)) => self.made.push(entry),
            (_, Val::Bool(_)) => {}
            (_, other) => return Err(EvalError::no_overload("_?_:_", &[other])),
        }
        Ok(None)
    }

    fn finish(self, kind: LoopKind) -> Evaluated<'a> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        Ok(match kind {
            LoopKind::All => Val::Bool(true),
            LoopKind::Exists => Val::Bool(false),
            LoopKind::ExistsOne => Val::Bool(self.count == 1),
            LoopKind::Map | LoopKind::Filter => Val::list(self.made),
        })
    }
}
