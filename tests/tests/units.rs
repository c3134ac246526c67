//! The units start the programs with command lines that these understand, and with no privilege but the one they need.

use std::path::Path;
use std::process::Command;

use end_to_end::binaries;

#[test]
fn programs_understand_the_command_lines_of_their_units() {
    for unit in UNITS {
        let text = unit_text(unit);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("ExecStart")).collect();
        assert_eq!(lines.len(), 2, "{unit}: a check and a start");
        for line in lines {
            let mut words = line.split_once('=').expect("a key and a value").1.split(' ');
            let program = Path::new(words.next().expect("a program")).file_name().expect("a path to it");
            // Nothing starts: a file that is not there is refused with 3, and a wrong command line with 2.
            let arguments = words.map(|word| if word.ends_with(".yaml") { "/nonexistent/file.yaml" } else { word });
            let output = Command::new(binaries::path(&program.to_string_lossy())).args(arguments).output();
            assert_eq!(output.expect("it was built").status.code(), Some(3), "{unit}: {line}");
        }
    }
}

#[test]
fn units_grant_one_capability_each() {
    for (unit, capability) in UNITS.into_iter().zip(["CAP_NET_BIND_SERVICE", "CAP_NET_ADMIN"]) {
        let text = unit_text(unit);
        for key in ["AmbientCapabilities", "CapabilityBoundingSet"] {
            assert!(text.contains(&format!("\n{key}={capability}\n")), "{unit}: {key}");
        }
        let user = unit.trim_end_matches(".service");
        assert!(text.contains(&format!("\nUser={user}\n")), "{unit}");
        assert!(unit_text(&format!("{user}.sysusers")).contains(&format!("\nu {user} ")), "{unit}");
    }
}

fn unit_text(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/systemd");
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

const UNITS: [&str; 2] = ["lazaret.service", "lazaret-rhi.service"];
