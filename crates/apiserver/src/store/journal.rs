//! Group commit: one thread takes the writes of all planes in order, checks them, makes them durable in batches and then
//! shows them.
//!
//! Guarantees: a write is checked against everything that was accepted before it, shown or not; it is shown to readers and
//! watchers, and answered, only when it is on disk; within a plane, writes are shown in the order of their revisions; a write is refused
//! when everything that the refusal may be based on is shown. A batch that cannot be made durable is answered with an error and not shown, and so
//! is what it made be refused; whatever of it did reach the disk is put right before anything else is written.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::ahead::Accepted;
use super::disk::{Disk, Record, StorageError};
use super::engine::View;
use super::seal::Fingerprint;
use super::{CommitError, Event, GroupResource, Object, ObjectKey, PlaneStore, Revisions, Write};

/// Writes that share one sync at most: enough to saturate a disk, few enough to keep the wait short.
const BATCH: usize = 512;

/// Writes to one plane that are shown together at most: its readers wait meanwhile, and its watchers must find them all in the history.
pub(super) const SHOWN_AT_ONCE: usize = 64;
pub(super) const SHOWN_BYTES: usize = 256 << 10;

type Answer<T> = oneshot::Sender<Result<T, CommitError>>;

/// A write to a plane, and who waits for it.
type Request = (Arc<PlaneStore>, Box<Write>, Answer<Arc<Event>>);

enum Job {
    Commit(Request),
    CreatePlane(String, Answer<()>),
    DropPlane(String, Answer<()>),
    View(Answer<(View, Fingerprint)>),
}

/// The way to the journal. The thread ends when the last clone is gone.
#[derive(Clone, Debug)]
pub(super) struct Journal(mpsc::UnboundedSender<Job>);

impl Journal {
    pub(super) fn start(disk: Disk, revisions: Arc<Revisions>) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let writer = Writer { disk, revisions, doubtful: Vec::new(), doubtful_planes: Vec::new() };
        std::thread::Builder::new().name("store".to_owned()).spawn(move || writer.run(receiver))?;
        Ok(Self(sender))
    }

    pub(super) async fn commit(
        &self,
        store: Arc<PlaneStore>,
        write: Write,
    ) -> Result<Arc<Event>, CommitError> {
        self.ask(|answer| Job::Commit((store, Box::new(write), answer))).await
    }

    pub(super) async fn create_plane(&self, name: &str) -> Result<(), CommitError> {
        self.ask(|answer| Job::CreatePlane(name.to_owned(), answer)).await
    }

    pub(super) async fn drop_plane(&self, name: &str) -> Result<(), CommitError> {
        self.ask(|answer| Job::DropPlane(name.to_owned(), answer)).await
    }

    /// Everything that was answered before this was asked, and nothing that was refused; and by which key its secrets
    /// are sealed.
    pub(super) async fn view(&self) -> Result<(View, Fingerprint), CommitError> {
        self.ask(Job::View).await
    }

    async fn ask<T>(&self, job: impl FnOnce(Answer<T>) -> Job) -> Result<T, CommitError> {
        let (answer, answered) = oneshot::channel();
        self.0.send(job(answer)).map_err(|_| CommitError::NotDurable)?;
        answered.await.map_err(|_| CommitError::NotDurable)?
    }
}

/// A write that has been accepted and waits for the disk.
pub(super) struct Staged {
    pub(super) store: Arc<PlaneStore>,
    pub(super) resource: Arc<GroupResource>,
    pub(super) object: Arc<Object>,
    /// The object as it goes to disk if it is no secret.
    pub(super) value: Bytes,
    pub(super) delete: bool,
}

/// An object of which it is not known what is on disk.
type Doubtful = (Arc<PlaneStore>, Arc<GroupResource>, ObjectKey);

struct Writer {
    disk: Disk,
    revisions: Arc<Revisions>,
    doubtful: Vec<Doubtful>,
    /// Planes that must not be on disk but may be: one that could not be made or dropped.
    doubtful_planes: Vec<String>,
}

impl Writer {
    fn run(mut self, mut jobs: mpsc::UnboundedReceiver<Job>) {
        let mut next = jobs.blocking_recv();
        while let Some(job) = next.take() {
            match job {
                Job::Commit(first) => {
                    let mut batch = vec![first];
                    while batch.len() < BATCH {
                        match jobs.try_recv() {
                            Ok(Job::Commit(more)) => batch.push(more),
                            Ok(other) => {
                                next = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    self.commit(batch);
                }
                Job::CreatePlane(name, answer) => {
                    let done = self.persist(&[Record::CreatePlane(&name)]);
                    let _ = answer.send(self.plane_done(name, done));
                }
                Job::DropPlane(name, answer) => {
                    let done = self.persist(&[Record::DropPlane(&name)]);
                    let _ = answer.send(self.plane_done(name, done));
                }
                Job::View(answer) => {
                    let view = self.settle().and_then(|()| self.disk.view());
                    let _ = answer.send(view.map_err(|error| {
                        tracing::error!(error = &error as &dyn std::error::Error, "the store cannot be read");
                        CommitError::NotDurable
                    }));
                }
            }
            if next.is_none() {
                next = jobs.blocking_recv();
            }
        }
    }

    fn commit(&mut self, batch: Vec<Request>) {
        let mut accepted = Accepted::with_capacity(batch.len());
        let mut answers = Vec::with_capacity(batch.len());
        let mut refused = Vec::new();
        for (store, write, answer) in batch {
            match store.stage(*write, &accepted) {
                Ok(write) => {
                    accepted.push(write);
                    answers.push(answer);
                }
                Err(error) => refused.push((error, answer)),
            }
        }
        let staged = accepted.into_writes();
        let records: Vec<Record<'_>> = staged.iter().map(Staged::record).collect();
        let done = if records.is_empty() { Ok(()) } else { self.persist(&records) };
        match &done {
            Ok(()) => show(&staged, answers),
            Err(error) => {
                tracing::error!(error = error as &dyn std::error::Error, "a batch is not durable");
                for (write, answer) in staged.into_iter().zip(answers) {
                    self.doubtful.push((write.store, write.resource, write.object.meta.key.clone()));
                    let _ = answer.send(Err(CommitError::NotDurable));
                }
            }
        }
        for (error, answer) in refused {
            let _ = answer.send(Err(if done.is_ok() { error } else { CommitError::NotDurable }));
        }
    }

    fn plane_done(&mut self, name: String, done: Result<(), StorageError>) -> Result<(), CommitError> {
        done.map_err(|error| {
            tracing::error!(error = &error as &dyn std::error::Error, plane = name, "a plane is not durable");
            // Whether it could not be made or not be dropped: nobody sees it, so it must not come back.
            self.doubtful_planes.push(name);
            CommitError::NotDurable
        })
    }

    /// Writes records, after putting right what a failed batch may have left.
    fn persist(&mut self, records: &[Record<'_>]) -> Result<(), StorageError> {
        self.settle()?;
        self.disk.write(self.revisions.current(), records)
    }

    /// Puts right what a failed batch may have left.
    fn settle(&mut self) -> Result<(), StorageError> {
        let revision = self.revisions.current();
        if !self.doubtful.is_empty() {
            let present: Vec<_> = self
                .doubtful
                .iter()
                .map(|(store, resource, key)| (store, resource, key, store.get(resource, key)))
                .collect();
            let repairs: Vec<Record<'_>> = present
                .iter()
                .map(|(store, resource, key, object)| match object {
                    Some(object) if !store.is_of_template(resource, object) => {
                        put(store, resource, object, None)
                    }
                    Some(_) => remove(store, resource, key, false),
                    None => remove(store, resource, key, store.template_has(resource, key)),
                })
                .collect();
            self.disk.write(revision, &repairs)?;
            self.doubtful.clear();
        }
        // After the objects, which may be in one of these planes: what is dropped with a plane is what is on disk by then.
        if !self.doubtful_planes.is_empty() {
            let drops: Vec<_> = self.doubtful_planes.iter().map(|name| Record::DropPlane(name)).collect();
            self.disk.write(revision, &drops)?;
            self.doubtful_planes.clear();
        }
        Ok(())
    }
}

/// Shows what is durable, and answers. First the one, then the other: whoever is answered runs at once, and would wait for the plane.
fn show(staged: &[Staged], answers: Vec<Answer<Arc<Event>>>) {
    let mut answers = answers.into_iter();
    let mut rest = staged;
    while let Some(first) = rest.first() {
        let (run, after) = rest.split_at(shown_together(rest));
        rest = after;
        for (event, answer) in first.store.publish(run).into_iter().zip(answers.by_ref().take(run.len())) {
            // Whoever asked may have gone; the write stands.
            let _ = answer.send(Ok(event));
        }
    }
}

/// How many writes, from the first on, are shown together.
pub(super) fn shown_together(staged: &[Staged]) -> usize {
    let mut bytes = 0;
    let together = |(at, write): &(usize, &Staged)| {
        bytes += write.object.bytes.len();
        *at == 0 || (Arc::ptr_eq(&write.store, &staged[0].store) && bytes <= SHOWN_BYTES)
    };
    staged.iter().take(SHOWN_AT_ONCE).enumerate().take_while(together).count()
}

impl Staged {
    fn record(&self) -> Record<'_> {
        let (store, resource, key) = (&*self.store, &*self.resource, &self.object.meta.key);
        if self.delete {
            remove(store, resource, key, store.template_has(resource, key))
        } else {
            put(store, resource, &self.object, Some(&self.value))
        }
    }
}

fn put<'a>(
    store: &'a PlaneStore,
    resource: &'a GroupResource,
    object: &'a Object,
    ready: Option<&'a Bytes>,
) -> Record<'a> {
    let (key, revision, bytes) = (&object.meta.key, object.revision, &object.bytes[..]);
    Record::Put { plane: store.name(), resource, key, revision, bytes, ready }
}

fn remove<'a>(
    store: &'a PlaneStore,
    resource: &'a GroupResource,
    key: &'a ObjectKey,
    of_template: bool,
) -> Record<'a> {
    Record::Remove { plane: store.name(), resource, key, of_template }
}
