//! The storage engine loses, keeps and mixes up nothing while it merges tables and is opened anew.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::engine::{Engine, View};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: usize = 3_000;
const ROUNDS: usize = 8;
const BATCHES: usize = 60;
const BATCH: usize = 64;

fn key(at: usize) -> Vec<u8> {
    format!("o/plane/{:02}/{at:05}", at % 7).into_bytes()
}

/// A value that no other write has, small or large.
fn value(random: &mut StdRng) -> Vec<u8> {
    let length =
        if random.random_bool(0.2) { random.random_range(0..600) } else { random.random_range(600..9_000) };
    let mut value = vec![0; length];
    random.fill(&mut value[..]);
    value
}

fn everything(view: &View) -> Model {
    let pairs = view.prefix(b"o/").map(|entry| entry.into_inner().unwrap());
    pairs.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

#[test]
fn the_engine_holds_what_was_written_last_through_merges_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = StdRng::seed_from_u64(7);
    let mut model = Model::new();
    let mut written = 0;
    for round in 0..ROUNDS {
        let engine = Engine::open(folder.path()).unwrap();
        assert!(everything(&engine.view()) == model, "after restart {round}");
        let (before, view) = (model.clone(), engine.view());
        for _ in 0..BATCHES {
            let mut batch = engine.unsynced_batch();
            for _ in 0..BATCH {
                // Some keys are written all the time, others stay for long.
                let wide = random.random_bool(0.3);
                let key = key(random.random_range(0..if wide { KEYS } else { KEYS / 10 }));
                if random.random_bool(0.15) {
                    batch.remove(&key[..]);
                    model.remove(&key);
                } else {
                    let value = value(&mut random);
                    written += value.len() as u64;
                    batch.insert(&key[..], value.clone());
                    model.insert(key, value);
                }
            }
            batch.commit().unwrap();
        }
        assert!(everything(&view) == before, "a view stands still");
        assert!(everything(&engine.view()) == model, "in round {round}");
        let tables = engine.table_bytes();
        assert!(
            round + 1 < ROUNDS || tables < written / 2,
            "nothing was merged: {tables} of {written} bytes"
        );
    }
}
