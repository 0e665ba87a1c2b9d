//! `cargo xtask clients test`: clients that others wrote must work against the embedded API server.
//!
//! One server runs for the whole test; the cases of a topic live in a namespace of their own. A case that fails
//! is shown with everything it saw, and the next one goes on. The last line is the count.

mod harness;
mod kubectl;
pub(crate) mod process;
mod python;
pub(crate) mod server;
pub(crate) mod tools;

use anyhow::{Result, bail};

use harness::Report;
use server::Server;

/// Runs kubectl and the Python client against a fresh server. Fails if any case does or a tool is missing.
pub(crate) fn test() -> Result<()> {
    let kubectl = tools::kubectl()?;
    let python = tools::python()?;
    println!("kubectl {} ({})", kubectl.version, kubectl.program.display());
    println!("python client {} ({})", tools::PYTHON_CLIENT, python.display());

    let mut server = Server::start(&kubectl)?;
    let mut report = Report::default();
    kubectl::run(&kubectl, &server, &mut report);
    python::run(&python, &server, &mut report);

    if report.failed() > 0 || !server.is_running() {
        println!("the server's last lines:\n{}", server.tail());
    }
    if !server.is_running() {
        report.fail("the server runs to the end", "it has stopped");
    }
    println!("{} kubectl commands ran", report.commands());
    println!("{} passed, {} failed", report.passed(), report.failed());
    if report.failed() > 0 {
        bail!("{} client cases failed", report.failed());
    }
    Ok(())
}
