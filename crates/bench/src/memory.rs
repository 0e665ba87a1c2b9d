//! Memory: what objects and planes take, as resident memory of a process that does nothing else.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use compute_apiserver::PlaneName;
use futures::StreamExt as _;
use kube::api::WatchParams;
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::child::{Child, Role, tell};
use crate::host::{Kept, Local, PLANE};
use crate::process::resident;
use crate::report::Section;
use crate::table::{Table, figure};
use crate::{load, sample};

const TEXT: &str = "\
Resident memory (`VmRSS`) of a fresh process for each row: server, storage engine, the clients that wrote the objects, and \
the program itself. A plane's share is the growth of that divided by the number of planes. A busy plane has 10 objects of \
2 KiB, the history of their creation, and an open watch. `dropped` is what the process still holds when every plane has \
been dropped: an allocator keeps freed memory for a while. `filled again` shows that it is free: a second plane of the \
same size takes its place. For comparison: the platform's own figure for a virtual control plane is 0.8 MB.";

/// Objects of a busy plane.
const OBJECTS_OF_BUSY: usize = 10;
/// Clients that fill a plane at once.
const FILLERS: usize = 64;

/// What a process with objects takes, in KiB.
#[derive(Debug, Serialize, Deserialize)]
struct WithObjects {
    empty: f64,
    full: f64,
    dropped: f64,
    again: f64,
}

/// What a process with planes takes, in KiB.
#[derive(Debug, Serialize, Deserialize)]
struct WithPlanes {
    empty: f64,
    idle: f64,
    busy: f64,
    dropped: f64,
}

/// Measures it.
pub async fn measure(
    folder: &Path,
    objects: usize,
    planes: usize,
    busy: usize,
    budgets: &mut Vec<Budget>,
) -> Result<Section> {
    let mib = |kib: f64| figure(kib / 1024.0);
    let head = [
        "objects of 2 KiB",
        "objects",
        "empty (MiB)",
        "full (MiB)",
        "per object (KiB)",
        "dropped (MiB)",
        "filled again (MiB)",
    ];
    let mut with_objects = Table::new(&head);
    let head = [
        "planes",
        "planes",
        "none (MiB)",
        "all idle (MiB)",
        "per idle plane (KiB)",
        "busy",
        "per busy plane (KiB)",
        "dropped (MiB)",
    ];
    let mut with_planes = Table::new(&head);
    for kept in [Kept::InMemory, Kept::OnDisk] {
        let data = kept.folder(folder)?;
        let path = data.as_ref().map(|data| data.path().to_owned());
        let found: WithObjects =
            Child::start(&Role::Objects { folder: path, count: objects })?.line().await?;
        with_objects.row([
            kept.words().to_owned(),
            objects.to_string(),
            mib(found.empty),
            mib(found.full),
            figure((found.full - found.empty) / objects as f64),
            mib(found.dropped),
            mib(found.again),
        ]);
        let what = format!("{objects} objects of 2 KiB {}, resident in all", kept.words());
        budgets.push(Budget::at_most(what, found.full / 1024.0, 60.0, "MiB"));
    }
    for kept in [Kept::InMemory, Kept::OnDisk] {
        let data = kept.folder(folder)?;
        let path = data.as_ref().map(|data| data.path().to_owned());
        let role = Role::Planes { folder: path, count: planes, busy };
        let found: WithPlanes = Child::start(&role)?.line().await?;
        let idle = (found.idle - found.empty) / planes as f64;
        with_planes.row([
            kept.words().to_owned(),
            planes.to_string(),
            mib(found.empty),
            mib(found.idle),
            figure(idle),
            busy.to_string(),
            figure(idle + (found.busy - found.idle) / busy as f64),
            mib(found.dropped),
        ]);
        budgets.push(Budget::at_most(format!("idle plane {}", kept.words()), idle, 24.0, "KiB"));
    }
    Ok(Section { title: "Memory", text: TEXT, tables: vec![with_objects, with_planes] })
}

/// The child's side: one plane full of objects.
pub async fn hold_objects(folder: Option<PathBuf>, count: usize) -> Result<()> {
    let local = Local::open(folder.as_deref()).await?;
    let plane = local.plane(PLANE).await?;
    let empty = resident()?;
    let clients: Vec<_> = (0..FILLERS).map(|_| local.client(&plane)).collect();
    load::fill(&clients, count).await?;
    let full = resident()?;
    local.server.drop_plane(&plane).await?;
    let dropped = resident()?;
    // The clients know the plane by its name.
    local.plane(PLANE).await?;
    load::fill(&clients, count).await?;
    tell(&WithObjects { empty, full, dropped, again: resident()? })
}

/// The child's side: many planes.
pub async fn hold_planes(folder: Option<PathBuf>, count: usize, busy: usize) -> Result<()> {
    let local = Local::open(folder.as_deref()).await?;
    let first = local.plane(PLANE).await?;
    let empty = resident()?;
    let mut names = Vec::with_capacity(count);
    for number in 0..count {
        names.push(local.plane(&format!("plane-{number:05}")).await?);
    }
    let idle = resident()?;
    let mut watches = tokio::task::JoinSet::new();
    for name in names.iter().take(busy) {
        watches.spawn(put_to_use(&local, name).await?);
    }
    let busy = resident()?;
    for name in names.iter().chain([&first]) {
        local.server.drop_plane(name).await?;
    }
    // A dropped plane ends its watches.
    while watches.join_next().await.is_some() {}
    tell(&WithPlanes { empty, idle, busy, dropped: resident()? })
}

async fn put_to_use(local: &Local, name: &PlaneName) -> Result<impl Future<Output = ()> + Send + 'static> {
    let client = local.client(name);
    let watch = sample::api(&client).watch(&WatchParams::default(), "0").await?;
    let (seen, mut all_seen) = tokio::sync::mpsc::channel(OBJECTS_OF_BUSY);
    let watch = async move {
        let mut watch = std::pin::pin!(watch);
        while let Some(Ok(_)) = watch.next().await {
            // Nobody counts any more when the plane is in use.
            let _ = seen.try_send(());
        }
    };
    let mut watch = Box::pin(watch);
    let fill = async {
        load::fill(&[client], OBJECTS_OF_BUSY).await?;
        for _ in 0..OBJECTS_OF_BUSY {
            all_seen.recv().await.context("a watch ended early")?;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        () = &mut watch => anyhow::bail!("a watch ended early"),
        done = fill => done?,
    }
    Ok(watch)
}
