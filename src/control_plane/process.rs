//! A server process that cannot outlive the program that started it.

use std::{
    fs::File,
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
};

/// Runs the command beside a reader of standard input. That pipe closes when whoever started this is gone, however
/// it went, `kill -9` included: then the command is killed and the data folder removed.
const SUPERVISE: &str = r#"
root=$1; shift
exec 3<&0 </dev/null
"$@" 3<&- & child=$!
{ read -r line <&3; kill -9 $child; [ "$line" = stop ] || { sleep 1; rm -rf -- "$root"; }; } 2>/dev/null & reader=$!
wait $child; code=$?
[ $code -eq 137 ] || kill $reader 2>/dev/null
exit $code
"#;

/// One server, killed when this value is dropped or the process that holds it dies.
#[derive(Debug)]
pub struct Process {
    supervisor: Child,
    name: String,
}

impl Process {
    /// Starts `command`; its output goes to `<root>/<name>.log`. `root` is what is removed after an unclean end.
    pub fn start(name: &str, root: &Path, program: &Path, arguments: &[String]) -> io::Result<Self> {
        let log = File::options().create(true).append(true).open(root.join(format!("{name}.log")))?;
        let supervisor = Command::new("sh")
            .args(["-c", SUPERVISE, "sh"])
            .arg(root)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C is for the program; the pipe tells the supervisor.
            .process_group(0)
            .spawn()
            .map_err(|error| io::Error::other(format!("start {}: {error}", program.display())))?;
        Ok(Self { supervisor, name: name.into() })
    }

    /// An error when the server has ended by itself.
    pub fn check(&mut self) -> io::Result<()> {
        match self.supervisor.try_wait()? {
            None => Ok(()),
            Some(status) => Err(io::Error::other(format!("{} ended: {status}", self.name))),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.supervisor.stdin.take() {
            let _ = io::Write::write_all(&mut pipe, b"stop\n");
        }
        let _ = self.supervisor.wait();
    }
}
