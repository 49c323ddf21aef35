//! `windtunnel replay` as users meet it: what it prints and the exit codes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

fn windtunnel(arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_windtunnel")).args(arguments).output();
    command.expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// A file that is gone with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, content: &str) -> Scratch {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, content).expect("the scratch file is written");
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("the path is text")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left behind lies in the build folder.
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn equal_journals_are_told_in_a_line() {
    let paths = [golden("routing.jsonl"), golden("endings.jsonl")].map(|path| path.display().to_string());
    let out = windtunnel(&["replay", &paths[0], &paths[1]]);
    let said = text(&out.stdout);
    assert!(said.starts_with("3 runs, ") && said.ends_with(" effects: equal\n"), "{said} {}", text(&out.stderr));
    assert_eq!((out.status.code(), text(&out.stderr).as_str()), (Some(0), ""));
}

#[test]
fn a_difference_is_printed_and_fails() {
    let journal = fs::read_to_string(golden("endings.jsonl")).expect("it is there");
    let tampered =
        Scratch::new("tampered.jsonl", &journal.replacen("\"outcome\":\"cancelled\"", "\"outcome\":\"completed\"", 1));
    let out = windtunnel(&["replay", tampered.path()]);
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{said}");
    for part in
        ["differs at", "before it", "the input, line", "in the journal", "complete  ", "in the replay", "cancel  "]
    {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    let out = windtunnel(&["replay", tampered.path(), "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("one JSON object");
    assert_eq!((out.status.code(), &json["equal"]), (Some(1), &serde_json::Value::Bool(false)));
    assert!(json["difference"]["replay"]["json"]["effect"]["effect"]["finish"].is_object(), "{json}");
}

#[test]
fn a_checkpoint_that_was_tampered_with_is_said_with_its_file_and_line() {
    let journal = Scratch::new("checkpoints.jsonl", "");
    let scenario = golden("guard-and-modes.toml").display().to_string();
    let out = windtunnel(&["sim", &scenario, "--journal", journal.path(), "--checkpoint", "1s"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let whole = fs::read_to_string(journal.path()).expect("it was written");
    let line = 1 + whole.lines().position(|line| line.starts_with("{\"checkpoint\"")).expect("it has checkpoints");
    for (from, to, expected) in [
        (
            "\"next_job\":",
            "\"next_job\":0,\"was\":",
            "the checkpoint cannot be restored: instances.0.slot: there is no",
        ),
        ("\"unengaged\":", "\"unengaged\":7", "the checkpoint cannot be restored: the state: devices that are not"),
        ("\"phase\":", "\"phase\":7,\"was\":", "the checkpoint cannot be restored: invalid type: integer `7`"),
    ] {
        let tampered = Scratch::new("tampered-checkpoints.jsonl", &whole.replacen(from, to, 1));
        let out = windtunnel(&["replay", tampered.path(), "--from-checkpoint", "1"]);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("tampered-checkpoints.jsonl: line {line}: {expected}")), "{said}");
    }
}

#[test]
fn bad_input_is_said_with_its_file() {
    let header = fs::read_to_string(golden("endings.jsonl")).expect("it is there");
    let header = header.lines().next().expect("a line");
    let broken = Scratch::new("broken.jsonl", &format!("{header}\n{{\"input\":5}}\n{header}\n"));
    let out = windtunnel(&["replay", broken.path()]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("broken.jsonl: line 2 is not a record of a journal"), "{}", text(&out.stderr));
    let golden = golden("endings.jsonl").display().to_string();
    for (arguments, part) in [
        (&["--from-checkpoint", "2"][..], "no run has so many"),
        (&["--set", "policy.background_share=0.1"], "`replay` changes nothing"),
        (&["--format", "csv"], "prints text or JSON"),
    ] {
        let out = windtunnel(&[&["replay", &golden], arguments].concat());
        assert_eq!(out.status.code(), Some(2));
        assert!(text(&out.stderr).contains(part), "{}", text(&out.stderr));
    }
}

/// A shell sorts `run.0002.jsonl` before `run.jsonl`.
#[test]
fn a_run_in_several_files_is_one_run_whatever_their_order() {
    let whole = Scratch::new("rotated-whole.jsonl", "");
    let scenario = golden("guard-and-modes.toml").display().to_string();
    let out = windtunnel(&["sim", &scenario, "--journal", whole.path(), "--checkpoint", "1s"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let lines = fs::read_to_string(whole.path()).expect("it was written");
    let cut = 1 + lines.find("\n{\"checkpoint\"").expect("it has checkpoints");
    let (first, second) =
        (Scratch::new("rotated.jsonl", &lines[..cut]), Scratch::new("rotated.0002.jsonl", &lines[cut..]));
    for command in ["replay", "report", "events", "whatif"] {
        let (one, two) =
            (windtunnel(&[command, whole.path()]), windtunnel(&[command, second.path(), first.path(), "--quiet"]));
        assert_eq!((two.status.code(), text(&two.stderr).as_str()), (Some(0), ""), "{command}");
        assert_eq!(text(&two.stdout), text(&one.stdout), "{command}");
        let alone = windtunnel(&[command, first.path()]);
        let said = text(&alone.stderr);
        assert!(said.contains("rotated.jsonl goes on in") && said.contains("rotated.0002.jsonl"), "{command}: {said}");
    }
}
