//! `sbx apply` on a terminal, and a person who answers, does not, or presses Ctrl-C.

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::served::Served;

const CTRL_C: &str = "\u{3}";
const END_OF_INPUT: &str = "\u{4}";
const YES: &str = "Type yes: ";
const PHRASE: &str = "type  merge@admin@pitower : ";

/// The program on a terminal.
struct Screen {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    shown: Arc<Mutex<Vec<u8>>>,
    _terminal: Box<dyn MasterPty + Send>,
}

impl Screen {
    fn apply(served: &Served) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_sbx"));
        command.args(["apply", "runbook.toml", "--color", "never", "--kubeconfig"]);
        command.arg(served.kubeconfig());
        command.cwd(served.folder());
        let size = PtySize { rows: 50, cols: 200, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let child = pair.slave.spawn_command(command).expect("it starts");
        drop(pair.slave);
        let keyboard = pair.master.take_writer().expect("a keyboard");
        let mut screen = pair.master.try_clone_reader().expect("a screen");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            // The end of a terminal is an error on Linux.
            while let Ok(read @ 1..) = screen.read(&mut part) {
                seen.lock().expect("nobody panics here").extend_from_slice(&part[..read]);
            }
        });
        Self { child, keyboard, shown, _terminal: pair.master }
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().expect("nobody panics here")).into_owned()
    }

    /// Types once this is shown.
    fn once(&mut self, text: &str, typed: &str) {
        let until = Instant::now() + Duration::from_secs(60);
        while !self.shown().contains(text) {
            assert!(Instant::now() < until, "never shown: {text}\n{}", self.shown());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.keyboard.write_all(typed.as_bytes()).expect("it is typed");
    }

    /// Exit code, and everything that was shown.
    fn end(mut self) -> (u32, String) {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                std::thread::sleep(Duration::from_millis(100));
                return (status.exit_code(), self.shown());
            }
            if Instant::now() > until {
                let shown = self.shown();
                // After this nobody waits for it any more.
                let _ = self.child.kill();
                panic!("it does not end\n{shown}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn whatever_is_no_yes_runs_nothing() {
    for (typed, code, said) in [
        ("no\n", 6, "Declined"),
        ("YES\n", 6, "Declined"),
        (END_OF_INPUT, 6, "Declined"),
        (CTRL_C, 130, "nothing was written"),
    ] {
        let served = Served::start();
        let mut screen = Screen::apply(&served);
        screen.once(YES, typed);
        let (ended, shown) = screen.end();
        assert_eq!(ended, code, "{typed:?}: {shown}");
        assert!(shown.contains(said), "{typed:?}: {shown}");
        assert_eq!((served.writes(), served.holder()), (0, None), "{typed:?}");
    }
}

#[test]
fn the_point_of_no_return_takes_its_own_phrase_and_ctrl_c_leaves_before_it() {
    for (typed, code, said) in [
        ("yes\n", 6, "Declined"),
        ("merge@admin@other\n", 6, "Declined"),
        (END_OF_INPUT, 6, "Declined"),
        (CTRL_C, 130, "nothing ran after step 3"),
    ] {
        let served = Served::start();
        let mut screen = Screen::apply(&served);
        screen.once(YES, "yes\n");
        screen.once(PHRASE, typed);
        let (ended, shown) = screen.end();
        assert_eq!(ended, code, "{typed:?}: {shown}");
        assert!(shown.contains(said), "{typed:?}: {shown}");
        assert_eq!(served.holder(), None, "{typed:?}: the lock is released");
    }
}

#[test]
fn the_typed_phrase_goes_on_and_a_wait_ends_with_ctrl_c() {
    let served = Served::start();
    let mut screen = Screen::apply(&served);
    screen.once(YES, "yes\n");
    screen.once(PHRASE, "merge@admin@pitower\n");
    screen.once("merge it now", CTRL_C);
    let (ended, shown) = screen.end();
    assert_eq!(ended, 130, "{shown}");
    assert!(shown.contains("approved: merge@admin@pitower (typed)"), "{shown}");
    assert_eq!(served.holder(), None, "the lock is released");
}

#[test]
fn the_second_ctrl_c_leaves_at_once_and_names_what_is_unknown() {
    let served = Served::start();
    served.answer_no_patch();
    let mut screen = Screen::apply(&served);
    screen.once(YES, "yes\n");
    let until = Instant::now() + Duration::from_secs(60);
    while served.unanswered() == 0 {
        assert!(Instant::now() < until, "no patch comes\n{}", screen.shown());
        std::thread::sleep(Duration::from_millis(20));
    }
    screen.once("migrate", CTRL_C);
    screen.once("once more to leave at once", CTRL_C);
    let (ended, shown) = screen.end();
    assert_eq!(ended, 130, "{shown}");
    assert!(shown.contains("in flight is unknown") && shown.contains("patch Sandbox"), "{shown}");
}

#[test]
fn a_pipe_approves_nothing() {
    let served = Served::start();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sbx"))
        .args(["apply", "runbook.toml", "--kubeconfig"])
        .arg(served.kubeconfig())
        .current_dir(served.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("a pipe").write_all(b"yes\nmerge@admin@pitower\n").expect("it is written");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("--yes"), "{said}");
    assert_eq!((served.writes(), served.holder()), (0, None));
}

#[test]
fn a_phrase_that_approves_nothing_is_wrong_usage_before_anything_is_asked() {
    let served = Served::start();
    for phrase in ["merge@admin@other", "marge@admin@pitower", "migrate@admin@pitower", "merge"] {
        let output = Command::new(env!("CARGO_BIN_EXE_sbx"))
            .args(["apply", "runbook.toml", "--yes", "--approve", phrase, "--kubeconfig"])
            .arg(served.kubeconfig())
            .current_dir(served.folder())
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{phrase}: {said}");
        assert!(said.contains("merge@admin@pitower"), "the valid one is named: {said}");
    }
    assert!(served.server.requests().is_empty());
}
