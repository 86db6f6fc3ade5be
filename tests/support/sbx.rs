//! The built program, run as an operator runs it: in a folder of its own, with a kubeconfig.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use super::control_plane::ControlPlane;
use super::{Error, Result};

/// How long one thing may take to be said, and a run to its end.
const PATIENCE: Duration = Duration::from_secs(150);

/// The program and the folder it runs in, where its backups and journals stay from run to run.
pub struct Sbx {
    folder: TempDir,
    kubeconfig: PathBuf,
}

/// What a run came to.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; none when it was killed.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// A run under way.
pub struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    said: Vec<String>,
    /// What was said since the last text that was waited for, as one line.
    since: String,
}

impl Sbx {
    /// As a user of a control plane.
    pub fn new(plane: &ControlPlane, user: &str) -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()?, kubeconfig: plane.kubeconfig(user)? })
    }

    /// By another kubeconfig, such as that of a proxy.
    pub fn through(kubeconfig: &Path) -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()?, kubeconfig: kubeconfig.to_owned() })
    }

    /// The folder it runs in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs to the end.
    pub async fn run(&self, words: &[&str]) -> Result<Ran> {
        self.start(words)?.end().await
    }

    /// Starts it; no terminal, nothing to read.
    pub fn start(&self, words: &[&str]) -> Result<Running> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sbx"))
            .args(words)
            .current_dir(self.folder.path())
            .env("KUBECONFIG", &self.kubeconfig)
            .env_remove("NO_COLOR")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let lines = BufReader::new(child.stderr.take().ok_or("no stderr")?).lines();
        Ok(Running { child, lines, said: Vec::new(), since: String::new() })
    }
}

impl Running {
    /// The process; none once it has ended.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Reads on until it has said `text`, on one line or wrapped over several.
    pub async fn says(&mut self, text: &str) -> Result<()> {
        let wait = async {
            loop {
                if let Some(at) = self.since.find(text) {
                    self.since.drain(..at + text.len());
                    return Ok::<_, Error>(true);
                }
                let Some(line) = self.lines.next_line().await? else { return Ok(false) };
                self.since = format!("{} {}", self.since, flat(&line));
                self.said.push(line);
            }
        };
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Err(error)) => Err(error),
            Ok(Ok(false)) => Err(format!("it ended without saying `{text}`:\n{}", self.said.join("\n")).into()),
            Err(_) => Err(format!("it did not say `{text}`, but:\n{}", self.said.join("\n")).into()),
        }
    }

    /// Ends it at once: SIGKILL.
    pub async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Sends it a signal: `INT`, as Ctrl-C does, `TERM` or `HUP`.
    pub async fn signal(&self, name: &str) -> Result<()> {
        let id = self.child.id().ok_or("it has ended")?.to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().await?;
        if sent.success() { Ok(()) } else { Err(format!("SIG{name} was not delivered").into()) }
    }

    /// Reads on to the end.
    pub async fn end(mut self) -> Result<Ran> {
        let mut out = String::new();
        let mut stdout = self.child.stdout.take().ok_or("no stdout")?;
        let (lines, said) = (&mut self.lines, &mut self.said);
        let listening = async {
            while let Some(line) = lines.next_line().await? {
                said.push(line);
            }
            std::io::Result::Ok(())
        };
        let reading = async { tokio::try_join!(listening, stdout.read_to_string(&mut out)).map(drop) };
        let Ok(read) = tokio::time::timeout(PATIENCE, reading).await else {
            return Err(format!("it did not end, but said:\n{}", self.said.join("\n")).into());
        };
        read?;
        let code = self.child.wait().await?.code();
        Ok(Ran { code, out, err: self.said.join("\n") })
    }
}

impl Ran {
    /// Itself, or everything it said where the exit code is another.
    pub fn ended(self, code: i32) -> Result<Self> {
        if self.code == Some(code) {
            return Ok(self);
        }
        Err(format!("exit {:?}, wanted {code}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.out, self.err).into())
    }

    /// Fails where neither stream holds `text`.
    pub fn says(self, text: &str) -> Result<Self> {
        if flat(&self.out).contains(&flat(text)) || flat(&self.err).contains(&flat(text)) {
            return Ok(self);
        }
        Err(format!("nowhere `{text}`\n--- stdout\n{}\n--- stderr\n{}", self.out, self.err).into())
    }
}

/// Lines are wrapped to the page.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The shipped runbook.
pub fn shipped() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/runbooks/v1.0.0.toml").into()
}

/// The most memory that a process has held so far, in KiB; none once it has ended.
pub fn memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
