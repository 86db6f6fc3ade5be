//! Streams, colour, width and questions, on a real terminal and without one.

use std::{
    io::{Read, Write},
    path::Path,
    time::Duration,
};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use sbx::{apply::Ask, cli::Color, terminal::Terminal};

/// Set where this test binary is its own child, at the other end of a terminal.
const CHILD: &str = "SBX_TEST_ASKS";

/// Not a test of its own: what [`asked`] runs at the other end.
#[test]
#[expect(clippy::print_stdout, reason = "its screen is read by the test that started it")]
fn child_that_asks() {
    if std::env::var_os(CHILD).is_some() {
        let mut terminal = Terminal::new(Color::Auto);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let answer = runtime.block_on(terminal.ask("Type yes: "));
        println!("\nanswer: {answer:?}");
    }
}

/// What a question looks like to a person who types this, and what becomes of it.
fn asked(typed: &[u8]) -> String {
    let mut command = CommandBuilder::new(std::env::current_exe().expect("this binary"));
    command.args(["--exact", "terminal::child_that_asks", "--nocapture", "--test-threads=1"]);
    command.env(CHILD, "1");
    in_terminal(command, 80, typed)
}

/// Runs a command on a terminal of its own, types, and reads what is shown.
fn in_terminal(command: CommandBuilder, columns: u16, typed: &[u8]) -> String {
    let size = PtySize { rows: 24, cols: columns, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).expect("a terminal");
    let mut child = pair.slave.spawn_command(command).expect("it starts");
    drop(pair.slave);
    let mut keyboard = pair.master.take_writer().expect("a keyboard");
    let mut screen = pair.master.try_clone_reader().expect("a screen");
    let reader = std::thread::spawn(move || {
        let mut shown = Vec::new();
        // The end of a terminal is an error on Linux; what was shown before it counts.
        let _ = screen.read_to_end(&mut shown);
        String::from_utf8_lossy(&shown).into_owned()
    });
    keyboard.write_all(typed).expect("it is typed");
    let mut killer = child.clone_killer();
    let watch = std::thread::spawn(move || {
        std::thread::park_timeout(Duration::from_secs(20));
        // After the child has ended this finds nobody.
        let _ = killer.kill();
    });
    child.wait().expect("it ends");
    watch.thread().unpark();
    watch.join().expect("the watch");
    drop(keyboard);
    drop(pair.master);
    reader.join().expect("the screen")
}

#[test]
fn a_question_is_a_plain_line_and_its_answer_is_what_was_typed() {
    let shown = asked(b"yes\n");
    assert!(shown.contains("Type yes: ") && shown.contains(r#"answer: Some("yes\n")"#), "{shown}");
}

#[test]
fn the_end_of_input_is_an_answer_and_no_consent() {
    let shown = asked(&[4]);
    assert!(shown.contains(r#"answer: Some("")"#), "{shown}");
}

#[test]
fn what_is_no_text_is_an_answer_and_no_consent() {
    let shown = asked(b"y\xffes\n");
    assert!(shown.contains("answer: Some(\"y\u{fffd}es\\n\")"), "{shown}");
}

/// `yes | sbx apply` approves nothing, and neither does a person who cannot see the question.
#[test]
fn a_pipe_is_never_asked() {
    for line in
        [r#"printf 'yes\n' | "$0" "$@""#, r#""$0" "$@" 2>/dev/null"#, r#"printf 'yes\n' | "$0" "$@" 2>/dev/null"#]
    {
        let mut command = CommandBuilder::new("sh");
        command.args(["-c", line]);
        command.arg(std::env::current_exe().expect("this binary"));
        command.args(["--exact", "terminal::child_that_asks", "--nocapture", "--test-threads=1"]);
        command.env(CHILD, "1");
        let shown = in_terminal(command, 80, b"yes\n");
        assert!(shown.contains("answer: None") && !shown.contains("Type yes"), "{line}: {shown}");
    }
}

fn check_on_screen(columns: u16, variable: Option<(&str, &str)>) -> String {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_sbx"));
    command.args(["check", "runbook.toml"]);
    command.cwd(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/check/wrong-types"));
    command.env("TERM", "xterm-256color");
    command.env_remove("NO_COLOR");
    if let Some((name, value)) = variable {
        command.env(name, value);
    }
    in_terminal(command, columns, b"")
}

#[test]
fn a_screen_is_coloured_unless_it_should_not_be() {
    assert!(check_on_screen(80, None).contains("\u{1b}["));
    assert!(check_on_screen(80, Some(("NO_COLOR", ""))).contains("\u{1b}["), "an empty NO_COLOR is none");
    for plain in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let shown = check_on_screen(80, Some(plain));
        assert!(shown.contains("error: ") && !shown.contains('\u{1b}'), "{plain:?}: {shown}");
    }
}

#[test]
fn the_text_of_a_runbook_is_cut_to_the_screen() {
    for columns in [80, 120] {
        let shown = check_on_screen(columns, Some(("NO_COLOR", "1")));
        let quoted: Vec<usize> = shown
            .lines()
            .filter(|line| line.trim_start().starts_with("2 |"))
            .map(|line| line.trim_end().chars().count())
            .collect();
        assert!(quoted.len() > 10, "{shown}");
        let longest = quoted.iter().copied().max().unwrap_or_default();
        assert!(longest <= columns.into() && longest + 10 > columns.into(), "{longest} of {columns}");
    }
}
