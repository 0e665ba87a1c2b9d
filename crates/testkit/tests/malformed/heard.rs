//! What workers say in their logs, counted.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// All warnings and errors of this process so far.
#[derive(Clone, Default)]
pub struct Heard(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    /// How often an object was reported as one that cannot be read: by plane, kind and name.
    reports: BTreeMap<String, usize>,
    panics: Vec<String>,
    /// How often each other thing was said.
    others: BTreeMap<String, usize>,
}

impl Heard {
    /// Hears everything from now on.
    pub fn install() -> Self {
        let heard = Self::default();
        tracing_subscriber::registry().with(heard.clone()).init();
        heard
    }

    /// How often an object was reported.
    pub fn reports_of(&self, object: &str) -> usize {
        self.0.lock().reports.get(object).copied().unwrap_or(0)
    }

    /// All panics.
    pub fn panics(&self) -> Vec<String> {
        self.0.lock().panics.clone()
    }

    /// What was said more often than that.
    pub fn repeated(&self, most: usize) -> Vec<(String, usize)> {
        let told = self.0.lock();
        told.others
            .iter()
            .filter(|(_, times)| **times > most)
            .map(|(said, times)| (said.clone(), *times))
            .collect()
    }
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = self.0.entry(field.name()).or_default();
        let _ = write!(text, "{value:?}");
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl<S: Subscriber> Layer<S> for Heard {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() > Level::WARN {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let field = |name: &str| fields.0.get(name).map_or("", String::as_str);
        let mut told = self.0.lock();
        match field("message") {
            "skipped an object that cannot be decoded" => {
                let object = format!("{} {} {}", field("plane"), field("kind"), field("name"));
                *told.reports.entry(object).or_default() += 1;
            }
            message if message.contains("panicked") => told.panics.push(format!("{:?}", fields.0)),
            _ => *told.others.entry(format!("{:?}", fields.0)).or_default() += 1,
        }
    }
}
