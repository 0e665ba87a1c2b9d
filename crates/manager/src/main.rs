//! The binary: reads what it is given, says in one line what is wrong with it, or runs until it is told to stop.

use std::collections::BTreeMap;
use std::process::ExitCode;

use compute_manager::config::Disk;
use compute_manager::flags::Instead;
use compute_manager::{Config, Failure, Flags, logs};
use tokio::signal::unix::{SignalKind, signal};

/// Watches and passes are many small allocations; this one takes half the time of the system's, and gives memory back.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let flags = match Flags::read(std::env::args_os()) {
        Ok(flags) => flags,
        Err(Instead::Print(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(Instead::Complain(mistake)) => return complain(&mistake),
    };
    // A variable that is not text is none of ours.
    let env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let config = match Config::from(&flags, &env, &Disk) {
        Ok(config) => config,
        Err(mistake) => return complain(&mistake),
    };
    logs::start(config.log_format, env.get("COMPUTE_LOG").map(String::as_str));
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&error),
    };
    let code = match runtime.block_on(run(config)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Mistake(mistake)) => complain(&mistake),
        Err(Failure::Ended(ended)) => {
            tracing::error!(reason = %ended, "ended");
            ExitCode::FAILURE
        }
    };
    // What still waits for a plane is not waited for.
    runtime.shutdown_background();
    code
}

async fn run(config: Config) -> Result<(), Failure> {
    // Before anything else, so that no signal is missed.
    let stop = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
    compute_manager::run(config, async move {
        let [Ok(mut terminate), Ok(mut interrupt)] = stop else {
            // Without signals the process can only be killed; that is better than not to work.
            tracing::error!("signals cannot be heard");
            return std::future::pending().await;
        };
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
    .await
}

fn complain(mistake: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("error: {mistake}");
    ExitCode::FAILURE
}
