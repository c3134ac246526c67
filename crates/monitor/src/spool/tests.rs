//! Segments' files on a real disk: bounded, private, beside others, and without patience for a disk that has none.

use std::fs::File;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use recorder::{Author, Piece, Place};
use telemetry::metrics::Metrics;

use super::folder::{Folder, read};
use super::{Lost, Spool};

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn contents(path: &Path) -> Vec<(String, Vec<u8>)> {
    read(path, 1 << 30).unwrap()
}

fn bytes_in(path: &Path) -> u64 {
    std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

fn piece(place: Place, bytes: &[u8]) -> Piece {
    Piece { place, bytes: bytes.to_vec() }
}

fn spool(folder: Folder) -> (Spool, Arc<Metrics>) {
    let metrics = Metrics::new();
    let author = Author { version: "1".to_owned(), instance: "one".to_owned() };
    (Spool::start(folder, author, Arc::clone(&metrics)).unwrap(), metrics)
}

fn flush(spool: &Spool) {
    assert!(spool.flush(Duration::from_secs(30)));
}

fn refusal(path: &Path) -> String {
    let error = Folder::open(path, 1000).unwrap_err();
    let checked = Folder::check(path).unwrap_err();
    assert_eq!(checked.mend(), error.mend());
    format!("{error}; {}", error.mend())
}

#[test]
fn a_folder_is_made_for_this_user_alone_and_so_is_each_file() {
    let parent = temporary();
    let path = parent.path().join("recorder");
    let mut folder = Folder::open(&path, 1000).unwrap();
    folder.begin(b"begin ").unwrap();
    assert_eq!(folder.append(b"more").unwrap(), 10);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&path.join("0000000001.segment"))), (0o700, 0o600));
    assert_eq!(contents(&path), [("0000000001.segment".to_owned(), b"begin more".to_vec())]);
    // What is there already is used as it is.
    let mut again = Folder::open(&path, 1000).unwrap();
    again.begin(b"next").unwrap();
    assert_eq!(contents(&path).len(), 2);
}

#[test]
fn a_place_that_is_none_is_refused_with_a_way_out() {
    let parent = temporary();
    let at = |name: &str| parent.path().join(name);
    std::fs::write(at("file"), "text").unwrap();
    std::fs::create_dir(at("shared")).unwrap();
    std::fs::set_permissions(at("shared"), PermissionsExt::from_mode(0o770)).unwrap();
    std::fs::create_dir(at("real")).unwrap();
    symlink(at("real"), at("link")).unwrap();
    for (name, why) in [
        ("none/below", "the folder around it has to be there"),
        ("file", "it is no folder; name one"),
        ("file/below", "it cannot be opened"),
        ("shared", "others may write to it (mode 770); take that from them: chmod go-w"),
        ("link", "it is a symbolic link; name the folder itself"),
        ("link/", "it is a symbolic link; name the folder itself"),
        ("link/.", "it is a symbolic link; name the folder itself"),
        ("/proc/sys", "keeps no files; name a folder on a disk"),
        ("/proc/recorder", "it cannot be made"),
    ] {
        let said = refusal(&at(name));
        assert!(said.contains(why), "{said}");
    }
    Folder::check(&at("new")).unwrap();
    Folder::check(&at("real")).unwrap();
    assert!(!at("new").exists());
}

#[test]
fn a_link_that_is_called_like_a_segment_is_never_written_through() {
    let parent = temporary();
    let (path, target) = (parent.path().join("recorder"), parent.path().join("target"));
    std::fs::write(&target, "untouched").unwrap();
    std::fs::create_dir(&path).unwrap();
    let links = [1, 2, 3].map(|number| path.join(format!("{number:010}.segment")));
    links.iter().for_each(|link| symlink(&target, link).unwrap());
    let mut folder = Folder::open(&path, 1000).unwrap();
    for _ in 0..10 {
        folder.begin(&[b'x'; 300]).unwrap();
    }
    assert_eq!(std::fs::read(&target).unwrap(), b"untouched");
    assert!(links.iter().all(|link| !link.is_symlink()));
}

#[test]
fn a_folder_that_was_removed_is_made_again_by_the_next_segment_and_no_link_is_followed() {
    let parent = temporary();
    let (path, target) = (parent.path().join("recorder"), parent.path().join("target"));
    let mut folder = Folder::open(&path, 1000).unwrap();
    folder.begin(b"one").unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    assert!(folder.append(b"more").is_err());
    folder.begin(b"two").unwrap();
    folder.append(b" more").unwrap();
    assert_eq!(contents(&path), [("0000000001.segment".to_owned(), b"two more".to_vec())]);
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::create_dir(&target).unwrap();
    symlink(&target, &path).unwrap();
    assert!(folder.begin(b"three").is_err());
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
}

#[test]
fn what_else_is_called_like_a_segment_is_in_nobodys_way() {
    let parent = temporary();
    let path = parent.path().join("recorder");
    let mut folder = Folder::open(&path, 1000).unwrap();
    folder.begin(&[b'x'; 300]).unwrap();
    std::fs::create_dir(path.join("0000000000.segment")).unwrap();
    std::fs::create_dir(path.join("0000000002.segment")).unwrap();
    let pipe = path.join("0000000003.segment");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(contents(&path).len(), 1);
    for _ in 0..10 {
        folder.begin(&[b'x'; 300]).unwrap();
    }
    assert_eq!(contents(&path).iter().map(|(_, bytes)| bytes.len()).sum::<usize>(), 900);
    assert!(path.join("0000000002.segment").is_dir());
}

#[test]
fn a_file_with_the_last_number_stops_nobody_and_the_order_stays() {
    let parent = temporary();
    let path = parent.path().join("recorder");
    let mut folders = [Folder::open(&path, 1000).unwrap(), Folder::open(&path, 1000).unwrap()];
    folders[0].begin(b"a").unwrap();
    for strange in ["9999999999", "10000000000", "18446744073709551615", "18446744073709551614"] {
        std::fs::write(path.join(format!("{strange}.segment")), "b").unwrap();
    }
    std::fs::create_dir(path.join("0000000002.segment")).unwrap();
    folders[1].begin(b"c").unwrap();
    folders[0].append(b"a").unwrap();
    folders[1].append(b"c").unwrap();
    folders[0].begin(b"d").unwrap();
    let held: Vec<_> = contents(&path).into_iter().map(|(name, bytes)| format!("{name} {}", bytes.len())).collect();
    let one_to_five = ["0000000001.segment 2", "0000000003.segment 1", "0000000004.segment 2", "0000000005.segment 1"];
    assert_eq!(held, one_to_five);
    assert!(path.join("10000000000.segment").exists(), "it is no segment's name");
    // Nor does a folder of that name.
    std::fs::create_dir(path.join("9999999999.segment")).unwrap();
    folders[0].begin(b"e").unwrap();
    assert_eq!(contents(&path).len(), 5);
}

#[test]
fn the_oldest_files_make_room_and_the_limit_holds_for_all_writers_together() {
    let parent = temporary();
    let path = parent.path().join("recorder");
    let size = 10_000;
    let mut writers = [Folder::open(&path, size).unwrap(), Folder::open(&path, size).unwrap()];
    std::fs::write(path.join("notes.txt"), "").unwrap();
    for round in 0..400_usize {
        let writer = &mut writers[usize::from(round % 3 == 0)];
        let bytes = [round as u8; 450];
        // One whose file has made room has to begin anew.
        let told = if round % 7 < 2 { writer.begin(&bytes) } else { writer.append(&bytes) };
        if let Ok(told) = told {
            assert_eq!(told, bytes_in(&path), "{round}");
        }
        assert!(bytes_in(&path) <= size, "{round}");
    }
    let files = contents(&path);
    assert!(files.len() > 3 && bytes_in(&path) > size - 2000, "{}", bytes_in(&path));
    assert!(files.is_sorted_by_key(|(name, _)| name.clone()));
    assert!(path.join("notes.txt").exists());
}

#[test]
fn two_threads_that_write_at_the_same_time_never_mix_their_bytes() {
    let parent = temporary();
    let path = parent.path().join("recorder");
    let write = |mark: u8| {
        let mut folder = Folder::open(&path, 1 << 20).unwrap();
        std::thread::spawn(move || {
            for _ in 0..30 {
                folder.begin(&[mark; 100]).unwrap();
                for _ in 0..10 {
                    folder.append(&[mark; 100]).unwrap();
                }
            }
        })
    };
    let both = [write(b'a'), write(b'b')];
    both.into_iter().for_each(|thread| thread.join().unwrap());
    let files = contents(&path);
    assert_eq!(files.len(), 60);
    for (name, bytes) in files {
        assert!(bytes.len() == 1100 && bytes.iter().all(|byte| *byte == bytes[0]), "{name}");
    }
}

#[test]
fn a_segment_that_is_larger_than_the_limit_is_refused_and_small_ones_are_not_too_many() {
    let parent = temporary();
    let path = parent.path().join("recorder");
    let mut folder = Folder::open(&path, 1000).unwrap();
    folder.begin(&[0; 900]).unwrap();
    assert_eq!(folder.append(&[0; 200]).unwrap_err().kind(), std::io::ErrorKind::QuotaExceeded);
    assert!(folder.append(&[0; 1]).is_err(), "its end would follow a gap");
    for _ in 0..400 {
        folder.begin(b"x").unwrap();
        folder.append(b"y").unwrap();
    }
    assert_eq!(contents(&path).len(), 256);
}

#[test]
fn a_write_that_fails_is_counted_and_the_next_segment_is_written_again() {
    let parent = temporary();
    let path = parent.path().join("recorder");
    let (spool, metrics) = spool(Folder::open(&path, 1 << 20).unwrap());
    spool.take(piece(Place::Begin, b"first ")).unwrap();
    flush(&spool);
    // As a person or another process does it.
    std::fs::remove_file(path.join("0000000001.segment")).unwrap();
    for _ in 0..3 {
        spool.take(piece(Place::More, b"lost ")).unwrap();
    }
    spool.take(piece(Place::Begin, b"second ")).unwrap();
    spool.take(piece(Place::More, b"kept ")).unwrap();
    spool.take(piece(Place::End, b"end")).unwrap();
    spool.take(piece(Place::More, b"out of place")).unwrap();
    flush(&spool);
    assert_eq!(contents(&path), [("0000000001.segment".to_owned(), b"second kept end".to_vec())]);
    assert_eq!(metrics.recorder_losses(), 4);
}

#[test]
fn nobody_waits_for_a_disk_that_hangs_and_what_waits_is_bounded() {
    let parent = temporary();
    let path = parent.path().join("recorder");
    let (spool, metrics) = spool(Folder::open(&path, 10_000).unwrap());
    // Whoever holds the lock keeps the writer waiting, as a disk would.
    let held = File::open(&path).unwrap();
    held.lock().unwrap();
    spool.take(piece(Place::Begin, &[0; 2000])).unwrap();
    spool.take(piece(Place::More, &[0; 2000])).unwrap();
    assert_eq!(spool.take(piece(Place::More, &[0; 2000])), Err(Lost), "more than half of the limit waits");
    let many = (0..1000).filter(|_| spool.take(piece(Place::More, b"")).is_ok()).count();
    assert!(many <= 256, "{many}");
    assert_eq!(metrics.recorder_losses(), 1001 - many as u64);
    assert!(!spool.flush(Duration::from_millis(1)));
    held.unlock().unwrap();
    let mut begun = spool.take(piece(Place::Begin, b"again"));
    for _ in 0..3000 {
        if begun.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        begun = spool.take(piece(Place::Begin, b"again"));
    }
    begun.unwrap();
    flush(&spool);
    let files = contents(&path);
    assert_eq!((files.len(), files[0].1.len(), files[1].1.as_slice()), (2, 4000, b"again".as_slice()));
}
