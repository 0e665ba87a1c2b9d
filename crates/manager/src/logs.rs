//! Log lines, on standard error: JSON or text, and never a secret. What they carry is names and reasons, no objects, headers or tokens.

use tracing_subscriber::EnvFilter;

use crate::flags::LogFormat;

/// Starts to log. `filter` says what, in the form of `tracing`; `info` if it says nothing that can be understood.
pub fn start(format: LogFormat, filter: Option<&str>) {
    let filter = filter.and_then(|filter| EnvFilter::try_new(filter).ok());
    let filter = filter.unwrap_or_else(|| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter);
    match format {
        LogFormat::Json => builder.json().flatten_event(true).with_current_span(false).init(),
        LogFormat::Text => builder.with_ansi(false).init(),
    }
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let said = panic.payload_as_str().unwrap_or("no reason given");
        tracing::error!(place, said, "panic");
    }));
}
