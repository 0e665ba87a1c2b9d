//! A stack in this process: the embedded API server, and workers that reach it over wires that can be cut.

use std::collections::BTreeMap;
use std::time::Duration;

use compute_apiserver::{ApiServer, Options, PlaneName};
use compute_local::{Platform, Settings, planes};
use compute_platform::propagation::Probe;
use compute_runtime::Runtime;
use compute_runtime::tasks::{Ended, Tasks};
use kube::Client;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::faults::Wires;
use crate::stack::{Place, Stack, Worker};

/// A stack in this process.
pub struct Embedded {
    /// What its workers' requests go over.
    pub wires: Wires,
    /// What it is made of.
    pub platform: Platform,
    running: Mutex<BTreeMap<Worker, JoinHandle<Result<(), Ended>>>>,
}

impl Embedded {
    /// Two cities, and everybody at work.
    pub async fn start() -> Self {
        let probe = Probe { every: Duration::from_millis(100), timeout: Duration::from_secs(2) };
        let cities = ["DFW", "ORD"].map(str::to_owned).to_vec();
        let stack = Self::with(
            Options::default(),
            Runtime::beside_planes(),
            Settings { cities, probe, ..Settings::default() },
        );
        stack.await
    }

    /// As the settings say, and everybody at work.
    pub async fn with(options: Options, runtime: Runtime, settings: Settings) -> Self {
        // What workers say while a story fails: COMPUTE_LOG=info cargo test …
        let filter = tracing_subscriber::EnvFilter::try_from_env("COMPUTE_LOG");
        let filter = filter.unwrap_or_else(|_| "off".into());
        let _ = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init();
        let server = ApiServer::new(Options { routes: vec![planes::project_route()], ..options });
        let wires = Wires::default();
        let (over, at) = (wires.clone(), server.clone());
        let connect = move |worker: &Worker, plane: &PlaneName| over.connect(&at, worker, plane);
        let platform = Platform::with(&server, runtime, settings, Box::new(connect)).await.unwrap();
        let stack = Self { wires, platform, running: Mutex::default() };
        for worker in stack.platform.workers() {
            stack.start(&worker).await;
        }
        stack.platform.until_cells_are_there().await.unwrap();
        stack
    }
}

fn plane(place: &Place) -> PlaneName {
    match place {
        Place::Core => planes::core(),
        Place::Hub => planes::hub(),
        Place::Cell(city) => planes::cell(city).unwrap(),
        Place::Project(name) => planes::project(name).unwrap(),
    }
}

impl Stack for Embedded {
    fn cities(&self) -> Vec<String> {
        self.platform.cities().to_vec()
    }

    fn client(&self, place: &Place) -> Client {
        self.platform.client(&plane(place))
    }

    async fn make_project(&self, name: &str) {
        self.platform.make_project(name).await.unwrap();
    }

    async fn cut(&self, place: &Place) {
        self.wires.cut(&plane(place));
    }

    async fn mend(&self, place: &Place) {
        self.wires.mend(&plane(place));
    }

    async fn crash(&self, worker: &Worker) {
        let running = self.running.lock().remove(worker);
        let Some(running) = running else { panic!("{worker:?} does not run") };
        assert!(!running.is_finished(), "{worker:?} had ended by itself");
        running.abort();
        let _ = running.await;
    }

    async fn start(&self, worker: &Worker) {
        self.wires.unlimited(worker);
        let mut tasks = Tasks::new();
        self.platform.spawn(worker, &mut tasks);
        let running = tokio::spawn(tasks.run(std::future::pending(), Duration::from_secs(5)));
        let before = self.running.lock().insert(worker.clone(), running);
        assert!(before.is_none(), "{worker:?} runs already");
    }

    fn allow_writes(&self, worker: &Worker, writes: u64) {
        self.wires.allow_writes(worker, writes);
    }

    fn is_out_of_writes(&self, worker: &Worker) -> bool {
        self.wires.is_spent(worker)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        for (worker, running) in std::mem::take(&mut *self.running.lock()) {
            // Nobody may have given up while the story was told.
            if running.is_finished() && !std::thread::panicking() {
                panic!("{worker:?} ended by itself");
            }
            running.abort();
        }
    }
}
