//! `cargo xtask cli-screens`: pictures of `datumctl-compute` on a real terminal (tmux), with a real platform behind it.
//!
//! What a picture shows is what the terminal showed at that moment; nothing is drawn by hand.

mod svg;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Columns and rows of the terminal.
const SIZE: (usize, usize) = (100, 40);
/// How long a picture may take to come about.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A workload that takes its time to start, so that there is something to see.
const SLOW: &str = "apiVersion: compute.datumapis.com/v1alpha
kind: Workload
metadata: {name: web}
spec:
  template:
    metadata: {annotations: {simulated.datumapis.com/start-delay: 2s}}
    spec:
      runtime:
        resources: {instanceType: datumcloud/d1-standard-2}
        sandbox: {containers: [{name: app, image: ghcr.io/example/web:1.0}]}
      networkInterfaces: [{network: {name: default}}]
  placements:
  - {name: main, cityCodes: [DFW, IAD, LHR], scaleSettings: {minReplicas: 3}}
";

/// Makes the pictures.
pub(crate) fn run() -> Result<()> {
    let root = crate::root();
    let built = Command::new("cargo")
        .args(["build", "--quiet", "-p", "compute-local", "-p", "compute-cli"])
        .status()?;
    if !built.success() {
        bail!("the programs cannot be built");
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join("debug");
    let home = tempfile::tempdir()?;
    fs::write(home.path().join("slow.yaml"), SLOW)?;
    let _platform = Platform::start(&target, home.path())?;
    let terminal = Terminal::open(&target, home.path())?;
    let folder = root.join("docs/screens");
    fs::create_dir_all(&folder)?;
    let shot = |name: &str, screen: &str| -> Result<()> {
        fs::write(folder.join(format!("{name}.svg")), svg::draw(screen, SIZE.0))?;
        println!("wrote docs/screens/{name}.svg");
        Ok(())
    };
    terminal.type_line("datumctl-compute deploy -f slow.yaml -y")?;
    shot("rollout", &terminal.until(|text| text.contains("2/3 ready"))?)?;
    terminal.until(|text| text.contains("9 Available"))?;
    terminal.clear()?;
    terminal.type_line("datumctl-compute deploy web --image registry.invalid/web:2.0")?;
    shot("blocked", &terminal.until(|text| text.contains("next:"))?)?;
    terminal.clear()?;
    terminal.type_line("datumctl-compute status web")?;
    shot("status", &terminal.until(|text| text.contains("Next steps") && text.ends_with("$ "))?)?;
    terminal.clear()?;
    terminal.type_line("datumctl-compute explain web")?;
    shot("explain", &terminal.until(|text| text.contains("Next steps") && text.ends_with("$ "))?)?;
    Ok(())
}

/// A platform for as long as pictures are made.
struct Platform(Child);

impl Platform {
    fn start(target: &Path, home: &Path) -> Result<Self> {
        let data = home.join("data");
        let child = Command::new(target.join("compute-local"))
            .args(["up", "--ephemeral", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(&data)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("compute-local cannot be started")?;
        let platform = Self(child);
        wait(|| data.join("running.json").exists().then_some(())).context("the platform is not up")?;
        Ok(platform)
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A terminal that a program can look at.
struct Terminal {
    name: String,
}

impl Terminal {
    fn open(target: &Path, home: &Path) -> Result<Self> {
        let name = format!("cli-screens-{}", std::process::id());
        let path = format!("{}:{}", target.display(), std::env::var("PATH").unwrap_or_default());
        let shell = format!(
            "env -i HOME={home} PATH={path} TERM=xterm-256color PS1='$ ' COMPUTE_LOCAL_DATA_DIR={home}/data sh",
            home = home.display()
        );
        let (columns, rows) = (SIZE.0.to_string(), SIZE.1.to_string());
        let home = home.display().to_string();
        tmux(&["new-session", "-d", "-s", &name, "-x", &columns, "-y", &rows, "-c", &home, &shell])?;
        let terminal = Self { name };
        terminal.until(|text| text.ends_with("$ "))?;
        Ok(terminal)
    }

    fn type_line(&self, line: &str) -> Result<()> {
        tmux(&["send-keys", "-t", &self.name, "-l", line])?;
        tmux(&["send-keys", "-t", &self.name, "Enter"]).map(drop)
    }

    fn clear(&self) -> Result<()> {
        self.until(|text| text.ends_with("$ "))?;
        self.type_line("clear")?;
        self.until(|text| text.trim_start().starts_with('$') && text.lines().count() == 1).map(drop)
    }

    /// Waits until the terminal shows something; what it shows then, with its colours.
    fn until(&self, shows: impl Fn(&str) -> bool) -> Result<String> {
        let mut last = String::new();
        wait(|| {
            let plain = tmux(&["capture-pane", "-p", "-t", &self.name]).ok()?;
            last = plain.trim_end_matches('\n').to_owned();
            // A prompt has a blank behind it that is not shown.
            let shown = if last.ends_with('$') { format!("{last} ") } else { last.clone() };
            shows(&shown).then(|| tmux(&["capture-pane", "-p", "-e", "-t", &self.name]).ok())?
        })
        .with_context(|| format!("it did not show what it should:\n{last}"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = tmux(&["kill-session", "-t", &self.name]);
    }
}

fn tmux(arguments: &[&str]) -> Result<String> {
    let output = Command::new("tmux").args(arguments).output().context("tmux cannot be run")?;
    if !output.status.success() {
        bail!("tmux {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn wait<T>(mut found: impl FnMut() -> Option<T>) -> Result<T> {
    let began = Instant::now();
    loop {
        if let Some(found) = found() {
            return Ok(found);
        }
        if began.elapsed() > PATIENCE {
            bail!("not within {} s", PATIENCE.as_secs());
        }
        // Another program's terminal has nothing to wait on.
        std::thread::park_timeout(LOOK_EVERY);
    }
}
