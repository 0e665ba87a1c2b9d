//! A pass over one project: what is uncertain is found out, then everything is decided, then it is written, in the order of
//! [`Plan`].

use std::sync::Arc;
use std::time::Duration;

use compute_api::k8s::{Namespace, ObjectMeta};
use compute_api::quota::{
    AllowanceBucket, ResourceClaim, ResourceClaimStatus, ResourceGrant, ResourceRegistration,
};
use compute_core::ledger::{self, Observed, Plan};
use compute_core::meta;
use compute_runtime::cache::ObjectName;
use compute_runtime::controller::Error;
use compute_runtime::own_writes::BELIEVED;
use compute_runtime::write::{self, Target};
use compute_runtime::{Key, Next, Reconciler};
use futures::{StreamExt as _, stream};
use kube::api::PropagationPolicy;
use kube::{Api, ResourceExt as _};

use super::book::{Accounts, Book};
use super::{Ledger, NAME, NAMESPACE};
use crate::status::{self, Onto};

/// Answers on their way at the same time: enough to hide the way to a server, few enough to leave room for others.
const IN_FLIGHT: usize = 16;

impl Reconciler for Ledger {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let Some(book) = self.books.lock().of.get(&key.plane).cloned() else { return Ok(Next::Done) };
        // What is not known yet, or not known any more, wakes the project when it is.
        if !self.registrations.is_synced() || !book.claims.cache().is_connected() {
            return Ok(Next::Done);
        }
        let Some((accounts, rest)) = book.accounts() else { return Ok(Next::Done) };
        if !accounts.is_connected() {
            return Ok(Next::Done);
        }
        match self.keep(&book, &accounts).await {
            Ok(again) => Ok([rest, again].into_iter().flatten().min().map_or(Next::Done, Next::After)),
            Err(error) => error.into_next(),
        }
    }
}

/// What a plan is made from, held while it is carried out.
struct Known {
    registrations: Vec<Arc<ResourceRegistration>>,
    is_current: bool,
    grants: Vec<Arc<ResourceGrant>>,
    buckets: Vec<Arc<AllowanceBucket>>,
    namespaces: Vec<String>,
}

impl Known {
    fn observed(&self) -> Observed<'_> {
        Observed {
            registrations: self.registrations.iter().map(|one| &**one).collect(),
            is_current: self.is_current,
            grants: self.grants.iter().map(|one| &**one).collect(),
            buckets: self.buckets.iter().map(|one| &**one).collect(),
            namespaces: self.namespaces.iter().map(String::as_str).collect(),
        }
    }
}

impl Ledger {
    /// One pass; how long until the next, if nothing happens before.
    async fn keep(&self, book: &Book, accounts: &Accounts) -> write::Result<Option<Duration>> {
        // What became of answers that were sent and not acknowledged.
        book.claims.make_sure(&self.writer, book.plane.client()).await?;
        let now = self.queue.runtime().clock().now();
        let mut known = self.known(accounts);
        let (missing, _) =
            book.count(|tally| ledger::decide(&known.observed(), tally, NAMESPACE, now).create);
        if !missing.is_empty() {
            self.create_buckets(book, accounts, &missing).await?;
            known = self.known(accounts);
        }
        let observed = known.observed();
        let (plan, is_behind) = book.count(|tally| ledger::decide(&observed, tally, NAMESPACE, now));
        self.carry_out(book, accounts, plan).await?;
        Ok(is_behind.then_some(BELIEVED))
    }

    fn known(&self, accounts: &Accounts) -> Known {
        Known {
            registrations: self
                .registrations
                .list()
                .into_iter()
                .filter(|one| ledger::makes_sense(one))
                .collect(),
            is_current: self.registrations.is_connected(),
            grants: accounts.grants.list(),
            buckets: accounts.buckets.list(),
            namespaces: accounts.namespaces(),
        }
    }

    async fn create_buckets(
        &self,
        book: &Book,
        accounts: &Accounts,
        missing: &[AllowanceBucket],
    ) -> write::Result<()> {
        if !accounts.namespaces.list().iter().any(|one| one.name_any() == NAMESPACE) {
            let api: Api<Namespace> = Api::all(book.plane.client().clone());
            let metadata = ObjectMeta { name: Some(NAMESPACE.to_owned()), ..ObjectMeta::default() };
            let new = Namespace { metadata, ..Namespace::default() };
            unless_there(self.writer.create(&api, &new).await)?;
        }
        let api: Api<AllowanceBucket> = Api::namespaced(book.plane.client().clone(), NAMESPACE);
        for bucket in missing {
            let made = match unless_there(self.writer.create(&api, bucket).await)? {
                Some(made) => made,
                // The cache is about to show it.
                None => self.writer.request(api.get(&bucket.name_any())).await?,
            };
            accounts.buckets.wrote(made);
        }
        Ok(())
    }

    async fn carry_out(&self, book: &Book, accounts: &Accounts, plan: Plan<'_>) -> write::Result<()> {
        let client = book.plane.client();
        for claim in plan.collect {
            let Some(target) = Target::of(&*claim) else { continue };
            if !self.is_abandoned(book, &claim).await? {
                continue;
            }
            tracing::info!(project = %book.id(), claim = %target.name, "collected a claim whose owner is gone");
            let api: Api<ResourceClaim> = Api::namespaced(client.clone(), meta::namespace(&claim.metadata));
            match self.writer.delete(&api, &target, PropagationPolicy::Background).await {
                Ok(()) | Err(write::Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        for (grant, wanted) in plan.grants {
            let api: Api<ResourceGrant> = Api::namespaced(client.clone(), meta::namespace(&grant.metadata));
            let written = status::apply(&self.writer, &api, grant, &wanted, Onto::Any).await?;
            accounts.grants.wrote(written);
        }
        self.answer(book, plan.granted).await?;
        for (bucket, wanted) in plan.buckets {
            let api: Api<AllowanceBucket> =
                Api::namespaced(client.clone(), meta::namespace(&bucket.metadata));
            let written = status::apply(&self.writer, &api, bucket, &wanted, Onto::Any).await?;
            accounts.buckets.wrote(written);
        }
        self.answer(book, plan.refused).await
    }

    /// Whether the server has none of the namespaces that a claim was made for, whatever the cache shows: what is taken from an instance
    /// that runs cannot be given back.
    async fn is_abandoned(&self, book: &Book, claim: &ResourceClaim) -> write::Result<bool> {
        let namespaces: Api<Namespace> = Api::all(book.plane.client().clone());
        for owner in claim.metadata.owner_references.iter().flatten() {
            let found = self.writer.request(namespaces.get_metadata_opt(&owner.name)).await?;
            if found.is_some_and(|found| found.metadata.uid.as_ref() == Some(&owner.uid)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes answers, several at a time. All are tried, and the first failure is what counts.
    async fn answer(
        &self,
        book: &Book,
        answers: Vec<(Arc<ResourceClaim>, ResourceClaimStatus)>,
    ) -> write::Result<()> {
        let writes: Vec<_> =
            answers.iter().map(|(claim, wanted)| self.answer_one(book, claim, wanted)).collect();
        let results: Vec<_> = stream::iter(writes).buffer_unordered(IN_FLIGHT).collect().await;
        results.into_iter().collect()
    }

    async fn answer_one(
        &self,
        book: &Book,
        claim: &ResourceClaim,
        wanted: &ResourceClaimStatus,
    ) -> write::Result<()> {
        let api: Api<ResourceClaim> =
            Api::namespaced(book.plane.client().clone(), meta::namespace(&claim.metadata));
        let write = status::apply(&self.writer, &api, claim, wanted, Onto::AsSeen);
        // Whatever comes of it.
        book.mark(ObjectName::of(claim));
        match book.claims.write(ObjectName::of(claim), write).await {
            // One that is gone asks for nothing.
            Ok(_) | Err(write::Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// None if an object of that name is there already.
fn unless_there<T>(result: write::Result<T>) -> write::Result<Option<T>> {
    match result {
        Ok(made) => Ok(Some(made)),
        Err(write::Error::AlreadyExists(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
