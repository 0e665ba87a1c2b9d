//! Following a rollout until it is done, is certain not to get on, or is not waited for any more.
//!
//! On a terminal the cities are redrawn; elsewhere a line is added when one changes. Ctrl-C stops following and nothing else.

use std::time::Duration;

use compute_api::compute::Workload;
use compute_core::{meta, revisions};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

use crate::failure::{Exit, Failure, Result};
use crate::model::advice;
use crate::model::city::CityView;
use crate::model::rollout::{Verdict, instances_agree, verdict};
use crate::model::workload::{self, WorkloadView};
use crate::session::Session;
use crate::words::{self, time};
use crate::{fetch, render};

/// How often it is looked, at first.
const SOON: Duration = Duration::from_millis(200);
/// How often it is looked later: as often as a person likes to see something move.
const LATER: Duration = Duration::from_millis(700);
/// What is certain has to stay so: what is seen of several objects is not of one moment.
const CERTAIN_AFTER: Duration = Duration::from_millis(1500);
/// How long the instances of what is done may take to say so too: they come back from their cells on their own.
const AGREES_WITHIN: Duration = Duration::from_secs(5);
/// How long a server may be gone while it is being waited for.
pub(crate) const GONE: Duration = Duration::from_secs(30);
/// How often a spinner moves.
const TICK: Duration = Duration::from_millis(120);

/// Until when to wait.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Patience {
    /// How long to wait, such as 90s or 10m
    #[arg(long, value_name = "TIME", default_value = "10m", env = "DATUMCTL_COMPUTE_TIMEOUT", hide_env_values = true, value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// A time such as `90s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed: Result<compute_api::jiff::SignedDuration, _> = text.trim().parse();
    let parsed = parsed.ok().and_then(|parsed| Duration::try_from(parsed).ok());
    parsed.ok_or_else(|| "a time is a number with a unit, such as 90s or 10m".to_owned())
}

/// How following ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Everything is as wanted.
    Done,
    /// It waits until it is resumed.
    Paused,
    /// Ctrl-C.
    Detached,
    /// It was not to be followed.
    Unfollowed,
}

/// Something that moves while it is being waited, with a message.
pub(crate) fn spinner() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(TICK);
    bar
}

/// What is seen of a rollout at one look.
struct Seen {
    workload: Workload,
    view: WorkloadView,
    /// Whether its instances are what its counts say.
    agrees: bool,
}

async fn look(session: &Session, name: &str, what: &str) -> Result<Seen> {
    let (found, deployments, instances) = tokio::try_join!(
        fetch::required(session, name, what),
        fetch::deployments(session, Some(name)),
        fetch::instances(session, Some(name))
    )?;
    let workload = found.workload;
    let counted = workload::view(&workload, &deployments, &[]);
    // Instances say why a city is stuck; one that has got on has nothing to say.
    let view = match counted.is_done() {
        true => counted,
        false => workload::view(&workload, &deployments, &instances),
    };
    let agrees = instances_agree(&view, &instances);
    Ok(Seen { workload, view, agrees })
}

/// Shows a rollout as it goes on.
struct Show<'a> {
    session: &'a Session,
    bar: Option<ProgressBar>,
    /// What was said of each city, and whether it was late by then.
    last: Vec<(CityView, bool)>,
    began: Instant,
}

impl<'a> Show<'a> {
    fn new(session: &'a Session) -> Self {
        let bar = session.io.can_redraw.then(spinner);
        Self { session, bar, last: Vec::new(), began: Instant::now() }
    }

    fn seconds(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_secs()).unwrap_or(i64::MAX)
    }

    fn update(&mut self, view: &WorkloadView) {
        let look = self.session.io.err;
        if let Some(bar) = &self.bar {
            let rows = render::rollout::rows(view, self.seconds(), look);
            bar.set_message(format!("{}\n{}", headline(view), rows.join("\n")));
            return;
        }
        let is_late = self.seconds() >= render::rollout::SLOW;
        let known = |city: &CityView| (city.clone(), is_late && city.waits.is_some());
        for city in &view.cities {
            if self.last.contains(&known(city)) {
                continue;
            }
            let label = if view.has_placements() {
                format!("{}/{}", city.placement, city.city)
            } else {
                city.city.clone()
            };
            let rows = render::rollout::row(&label, 0, city, self.seconds(), look);
            self.session.io.say(&rows.join("\n"));
        }
        self.last = view.cities.iter().map(known).collect();
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => self.session.say(text),
        }
    }

    /// Leaves the last picture standing, apart from what follows.
    fn end(&self, view: Option<&WorkloadView>) {
        let Some(bar) = &self.bar else { return };
        bar.finish_and_clear();
        if let Some(view) = view {
            let rows = render::rollout::rows(view, self.seconds(), self.session.io.err);
            self.session.io.say(&format!("{}\n\n", rows.join("\n")));
        }
    }

    /// The same before a failure, which says itself what is in the way.
    fn end_in_failure(&self, view: Option<&WorkloadView>) {
        let bare = view.map(|view| {
            let mut view = view.clone();
            view.cities.iter_mut().for_each(|city| city.trouble = None);
            view
        });
        self.end(bare.as_ref());
    }
}

fn headline(view: &WorkloadView) -> String {
    format!("{}: {} of {} up to date and {} ready", view.name, view.updated, view.desired, view.ready)
}

/// Follows a rollout. What is in the way is said before it fails. Who wrote a workload follows that, and not what somebody else makes of
/// it meanwhile.
pub(crate) async fn follow(
    session: &Session,
    name: &str,
    patience: &Patience,
    written: Option<&Workload>,
) -> Result<Ended> {
    let what = format!("cannot follow {name}");
    let mut show = Show::new(session);
    let mut stuck_since: Option<Instant> = None;
    let mut done_since: Option<Instant> = None;
    let mut gone_since: Option<Instant> = None;
    let mut last: Option<Seen> = None;
    let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        let looked = tokio::select! {
            biased;
            _ = &mut interrupt => {
                show.end(last.as_ref().map(|seen| &seen.view));
                session.say(&detached(session, name));
                return Ok(Ended::Detached);
            }
            looked = look(session, name, &what) => looked,
        };
        match looked {
            Ok(seen) => {
                if gone_since.take().is_some() {
                    show.say("The server answers again.");
                }
                if let Some(failure) = written.and_then(|written| overtaken(name, written, &seen.workload)) {
                    show.end(None);
                    return Err(failure);
                }
                show.update(&seen.view);
                match verdict(&seen.workload, &seen.view) {
                    // Who is told that it is done finds instances that say the same.
                    Verdict::Done => {
                        let since = *done_since.get_or_insert_with(Instant::now);
                        if seen.agrees || since.elapsed() >= AGREES_WITHIN {
                            show.end(Some(&seen.view));
                            return Ok(Ended::Done);
                        }
                    }
                    Verdict::Paused => {
                        show.end(Some(&seen.view));
                        session.say(&paused(session, &seen.view));
                        return Ok(Ended::Paused);
                    }
                    Verdict::Stuck => {
                        let since = *stuck_since.get_or_insert_with(Instant::now);
                        if since.elapsed() >= CERTAIN_AFTER {
                            show.end_in_failure(Some(&seen.view));
                            return Err(stuck(session, &seen).await);
                        }
                    }
                    Verdict::Going => stuck_since = None,
                }
                last = Some(seen);
            }
            // What is gone is not coming back; a server that does not answer may.
            Err(failure)
                if failure.exit == Exit::NotAllowed
                    || failure.why.iter().any(|why| why.contains("there is no")) =>
            {
                show.end(None);
                return Err(failure);
            }
            Err(failure) => {
                let since = *gone_since.get_or_insert_with(|| {
                    show.say("The server does not answer; still trying. The rollout continues without us.");
                    Instant::now()
                });
                if since.elapsed() > GONE {
                    show.end(last.as_ref().map(|seen| &seen.view));
                    return Err(failure);
                }
            }
        }
        if show.began.elapsed() > patience.timeout {
            show.end(last.as_ref().map(|seen| &seen.view));
            return Err(timed_out(name, patience, last.as_ref().map(|seen| &seen.view)));
        }
        let pause = if show.began.elapsed() < Duration::from_secs(5) { SOON } else { LATER };
        tokio::select! {
            biased;
            _ = &mut interrupt => {
                show.end(last.as_ref().map(|seen| &seen.view));
                session.say(&detached(session, name));
                return Ok(Ended::Detached);
            }
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The failure when what was written is not what there is any more.
pub(crate) fn overtaken(name: &str, written: &Workload, now: &Workload) -> Option<Failure> {
    let why = if meta::uid(&written.metadata) != meta::uid(&now.metadata) {
        "it was destroyed and created again meanwhile".to_owned()
    } else if now.metadata.generation > written.metadata.generation {
        let number = revisions::current(now).map(|number| format!(" (revision {number})"));
        format!("it was changed again meanwhile{}", number.unwrap_or_default())
    } else {
        return None;
    };
    Some(
        Failure::new(format!("the rollout of {name} was overtaken"), why)
            .next(format!("rollout history {name}"), "see who changed what")
            .next(format!("rollout status {name}"), "follow what it is now"),
    )
}

fn detached(session: &Session, name: &str) -> String {
    let command = session.invocation.command(&format!("rollout status {name}"));
    format!("Stopped following; the rollout continues. Come back with:\n  {command}\n")
}

fn paused(session: &Session, view: &WorkloadView) -> String {
    let command = session.invocation.command(&format!("rollout resume {}", view.name));
    format!(
        "The rollout is paused with {} of {} up to date. Resume it with:\n  {command}\n",
        view.updated,
        words::count(view.desired, "instance")
    )
}

/// What is in the way, whose move it is, and what to do.
async fn stuck(session: &Session, seen: &Seen) -> Failure {
    let view = &seen.view;
    let history = fetch::readable_history(session, &seen.workload).await.unwrap_or_default();
    let mut failure = not_getting_on(view);
    failure.next = advice::next_steps(view, history.last_other(&seen.workload.spec).is_some());
    failure
}

/// The failure of a rollout of what is going away.
pub(crate) fn being_destroyed(name: &str) -> Failure {
    Failure::new(format!("the rollout of {name} is stuck"), "it is being destroyed")
        .next("workloads", "see what is left")
}

/// The failure of a rollout that is stuck.
pub(crate) fn not_getting_on(view: &WorkloadView) -> Failure {
    let what = format!("the rollout of {} is stuck", view.name);
    if view.leaving {
        return being_destroyed(&view.name);
    }
    let troubles = view.troubles();
    let why = troubles.iter().map(|(what, places, message)| format!("{what} in {places}: {message}"));
    Failure::new(what, "")
        .because(why.collect())
        .advice("the platform keeps retrying and recovers once the cause is fixed")
}

pub(crate) fn timed_out(name: &str, patience: &Patience, view: Option<&WorkloadView>) -> Failure {
    let seconds = i64::try_from(patience.timeout.as_secs()).unwrap_or(i64::MAX);
    let how_far = view.map_or_else(|| "nothing was seen of it".to_owned(), |view| view.because.clone());
    Failure::new(
        format!("{name} was not done within {}", time::short(seconds)),
        format!("{how_far}; the rollout continues"),
    )
    .exit(Exit::TimedOut)
    .next(format!("rollout status {name}"), "follow it again")
    .next(format!("status {name}"), "see how it is")
}
