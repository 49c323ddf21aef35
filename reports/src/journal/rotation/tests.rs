//! Names of files, and files that are there.

use super::*;

#[test]
fn later_files_are_numbered_before_the_extension() {
    for (first, number, file) in [
        ("a/run.jsonl", 2, "a/run.0002.jsonl"),
        ("run", 12, "run.0012"),
        ("v.jsonl", 12_145, "v.12345.jsonl"),
        ("v.jsonl", 1899, "v.1899.jsonl"),
        ("v.jsonl", 1900, "v.2100.jsonl"),
    ] {
        assert_eq!(numbered(Path::new(first), number), Path::new(file));
        assert_eq!(place(Path::new(file)), (PathBuf::from(first), number));
    }
    for alone in
        ["run.jsonl", "run.2.jsonl", "run.0001.jsonl", "run.v2.jsonl", "run.1900.jsonl", "run.2026.jsonl", "-", "run"]
    {
        assert_eq!(place(Path::new(alone)), (PathBuf::from(alone), 1));
    }
}

#[test]
fn files_come_in_the_order_of_their_numbers_and_journals_in_that_of_the_command_line() {
    let given = ["v.0002.jsonl", "v.0010.jsonl", "v.jsonl", "-", "a/v.0002.jsonl", "a/v.jsonl", "b.jsonl"];
    let ordered = ["v.jsonl", "v.0002.jsonl", "v.0010.jsonl", "-", "a/v.jsonl", "a/v.0002.jsonl", "b.jsonl"];
    assert_eq!(in_order(&given), ordered.map(PathBuf::from));
    let years = ["run.2026.jsonl", "run.2025.jsonl"];
    assert_eq!(in_order(&years), years.map(PathBuf::from));
}

#[test]
fn the_latest_file_is_found_although_one_in_between_was_removed() {
    let folder = std::env::temp_dir().join(format!("windtunnel-rotation-{}", std::process::id()));
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("run.jsonl");
    assert_eq!(latest(&path), (path.clone(), 1));
    for file in ["run.jsonl", "run.0003.jsonl", "run.0005.jsonl", "run.2026.jsonl", "other.0009.jsonl", "run.0007"] {
        fs::write(folder.join(file), "").unwrap();
    }
    assert_eq!(latest(&path), (folder.join("run.0005.jsonl"), 5));
    fs::remove_dir_all(&folder).unwrap();
}
