//! Rotation while lines are written.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);

fn lines_of(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn lines_are_appended_whole_to_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    fs::write(&path, "old\n").unwrap();
    let file = ReopenFile::open(&path).unwrap();
    file.line(b"one".to_vec());
    file.clone().write_all(b"two\n").unwrap();
    assert!(file.flush(PATIENCE));
    assert_eq!(lines_of(&path), ["old", "one", "two"]);
}

#[test]
fn every_line_is_there_once_over_ten_rotations() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let file = ReopenFile::open(&path).unwrap();
    let producers: Vec<_> = (0..4)
        .map(|worker| {
            let file = file.clone();
            std::thread::spawn(move || {
                for number in 0..2000 {
                    file.line(format!("{worker} {number} {}", "x".repeat(60)).into_bytes());
                    if number % 500 == 0 {
                        assert!(file.flush(PATIENCE));
                    }
                }
            })
        })
        .collect();
    for rotation in 0..10 {
        fs::rename(&path, folder.path().join(format!("access.log.{rotation}"))).unwrap();
        file.reopen();
        assert!(file.flush(PATIENCE));
        assert!(path.exists(), "the file is opened anew without a line to write");
    }
    for producer in producers {
        producer.join().unwrap();
    }
    assert!(file.flush(PATIENCE));
    let mut all: Vec<String> =
        fs::read_dir(folder.path()).unwrap().flat_map(|entry| lines_of(&entry.unwrap().path())).collect();
    let seen = all.len() as u64;
    assert_eq!(seen + file.counts().dropped_lines, 8000);
    assert!(all.iter().all(|line| line.ends_with(&"x".repeat(60))), "a line is torn");
    all.sort();
    all.dedup();
    assert_eq!(all.len() as u64, seen, "a line is there twice");
}

#[test]
fn a_failed_reopen_keeps_the_old_file_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logs").join("main.log");
    fs::create_dir(path.parent().unwrap()).unwrap();
    let file = ReopenFile::open(&path).unwrap();
    let moved = folder.path().join("moved");
    fs::rename(path.parent().unwrap(), &moved).unwrap();
    file.reopen();
    file.line(b"kept".to_vec());
    assert!(file.flush(PATIENCE));
    assert_eq!(lines_of(&moved.join("main.log")), ["kept"]);
    assert_eq!(file.counts().reopen_failures, 1);
}

#[test]
fn a_file_that_was_cut_short_gets_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let file = ReopenFile::open(&path).unwrap();
    file.line(vec![b'a'; 1000]);
    assert!(file.flush(PATIENCE));
    File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    file.line(b"after".to_vec());
    assert!(file.flush(PATIENCE));
    assert_eq!(fs::read(&path).unwrap(), b"after\n");
}

#[test]
fn a_full_disk_is_counted_and_holds_nobody_up() {
    let file = ReopenFile::open("/dev/full").unwrap();
    file.line(b"lost".to_vec());
    assert!(file.flush(PATIENCE));
    assert!(file.counts().write_failures > 0);
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error() {
    assert!(ReopenFile::open("/nonexistent/folder/main.log").is_err());
}

#[test]
fn lines_that_come_together_are_written_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let file = ReopenFile::open(&path).unwrap();
    file.line(b"zero".to_vec());
    let mut lines = Lines::with_capacity(64);
    assert!(lines.is_empty());
    lines.push(|line| line.extend_from_slice(b"one"));
    lines.push(|line| line.extend_from_slice(b"two"));
    assert_eq!(lines.len(), 8);
    file.lines(lines);
    file.line(b"three".to_vec());
    assert!(file.flush(PATIENCE));
    assert_eq!(lines_of(&path), ["zero", "one", "two", "three"]);
}

#[test]
fn more_bytes_than_may_wait_are_dropped_and_each_line_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let file = ReopenFile::open(&path).unwrap();
    let mut lines = Lines::default();
    for _ in 0..3 {
        lines.push(|line| line.resize(line.len() + QUEUED_BYTES / 2, b'x'));
    }
    file.lines(lines);
    file.line(b"after".to_vec());
    assert!(file.flush(PATIENCE));
    assert_eq!(fs::read(&path).unwrap(), b"after\n");
    assert_eq!(file.counts().dropped_lines, 3);
}

#[test]
fn what_waits_for_the_disk_takes_no_more_memory_than_is_counted() {
    let mut lines = Lines::with_capacity(32 * 1024);
    lines.push(|out| out.extend_from_slice(b"one"));
    let fitted = lines.fitted();
    assert!(fitted.bytes.capacity() <= 64 && fitted.len() == 4 && fitted.count == 1);
}

#[test]
fn a_flush_ends_in_its_time_where_the_sink_hangs_and_the_queue_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    // A reader that never reads; opened for both, so that nobody waits for the other end.
    let _reader = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let file = ReopenFile::open(&path).unwrap();
    let lines_of_a_full_queue = 4 * QUEUE;
    (0..lines_of_a_full_queue).for_each(|_| file.line(vec![b'x'; 63]));
    assert!(file.counts().dropped_lines > 0);
    let (told, answer) = sync_channel(1);
    std::thread::spawn(move || told.send(file.flush(Duration::from_millis(50))));
    assert!(!answer.recv_timeout(PATIENCE).unwrap());
}
