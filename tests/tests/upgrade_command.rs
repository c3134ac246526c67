//! `lazaret upgrade`: comes back when another process serves, or tells why none does.

use std::process::{Command, Output};
use std::time::Duration;

use end_to_end::generations::Generations;

const BODY: &str = "routes: {all: {match: {path: \"/{**rest}\"}, respond: {body: here}}}\nclusters: {}\n";

fn upgrade(generations: &Generations) -> Output {
    let control = generations.lazaret.control.to_string();
    let mut command = Command::new(end_to_end::binaries::path("lazaret"));
    command.args(["upgrade", "--control", &control]).output().expect("the program starts")
}

#[test]
fn it_waits_for_the_new_process_and_tells_why_there_is_none() {
    let mut generations = Generations::start(BODY);
    generations.lazaret.wait_ready();
    let instance = generations.instance();
    let good = std::fs::read(generations.lazaret.config_file()).expect("it is there");

    let text = String::from_utf8_lossy(&good).into_owned();
    let log = generations.lazaret.folder.path().join("access.log").display().to_string();
    // Refused by the reader; and what shows only when a place is to be opened.
    let no_folder = text.replace(&log, "/nowhere/at/all/access.log");
    for (text, why) in [
        ("clusters: [".to_owned(), "lazaret.yaml:1:11: error: this is not valid YAML"),
        (no_folder, "lazaret.yaml:3:13: error: the access log `/nowhere/at/all/access.log` cannot be opened"),
    ] {
        std::fs::write(generations.lazaret.config_file(), text).expect("the folder is ours");
        let failed = upgrade(&generations);
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!(failed.status.code(), Some(1), "{said}");
        assert!(said.contains("no upgrade, process") && said.contains("did not take over"), "{said}");
        assert!(said.contains(why), "{said}");
        assert_eq!(generations.instance(), instance);
        generations.lazaret.wait_until("the log says why", || {
            let log = generations.lazaret.process.output();
            log.lines().any(|line| line.contains("no upgrade, this process goes on") && line.contains(why))
        });
    }

    std::fs::write(generations.lazaret.config_file(), good).expect("the folder is ours");
    let done = upgrade(&generations);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.contains(&format!("in place of {}", generations.lazaret.process.id())), "{said}");
    assert_ne!(generations.instance(), instance);
    assert_eq!(generations.lazaret.process.wait(Duration::from_secs(20)).code(), Some(0));
}
