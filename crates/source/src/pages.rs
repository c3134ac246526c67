//! Error pages that lie in files of their own: read with the configuration, so that a reload reads them again and a page
//! that cannot be read keeps the configuration before.

use config::raw::path::Path;
use config::{Loaded, Report};
use model::page::{ErrorPage, LONGEST_BODY};

/// Reads the pages that a configuration names; what is wrong with one is said at its place. Blocks for as long as the
/// disk does.
pub fn read(mut loaded: Loaded) -> Result<Loaded, Box<Report>> {
    let mut faults = Vec::new();
    fill(&mut loaded.config.answers.error_pages, &[], &mut faults);
    for route in &mut loaded.config.routes {
        fill(&mut route.policy.error_pages, &["routes", route.id.as_str()], &mut faults);
    }
    if faults.is_empty() {
        return Ok(loaded);
    }
    Err(loaded.refuse(faults.iter().map(|(path, what)| (path.clone(), what.as_str(), MEND))))
}

fn fill(pages: &mut [ErrorPage], place: &[&str], faults: &mut Vec<(Path, String)>) {
    for page in pages {
        let Some(file) = &page.file else { continue };
        match files::read_text(file, LONGEST_BODY) {
            Ok(text) => page.body = text.into(),
            Err(why) => {
                let status = page.status.to_string();
                let names = place.iter().copied().chain(["error_pages", status.as_str(), "file"]);
                faults.push((Path::of(names), format!("the page `{}` cannot be used: {why}", file.display())));
            }
        }
    }
}

const MEND: &str = "expected a file of UTF-8 text that lazaret can read, 64 KiB at most";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::fs;

    #[test]
    fn pages_are_read_with_the_configuration_and_again_at_the_next_load() {
        let folder = tempfile::tempdir().unwrap();
        let (all, route) = (folder.path().join("all.html"), folder.path().join("route.html"));
        let text = format!(
            "listeners: {{web: {{address: \"127.0.0.1:0\"}}}}\nerror_pages: {{5xx: {{file: {}}}}}\nroutes: {{r: {{deny: \
             403, error_pages: {{403: {{file: {}}}}}}}}}\nclusters: {{}}\n",
            all.display(),
            route.display()
        );
        let file = crate::file::File::new(folder.path().join("lazaret.yaml"));
        fs::write(file.path(), text).unwrap();
        fs::write(&all, "<b>all</b>").unwrap();
        let said = file.load().unwrap_err().to_string();
        assert!(said.contains("lazaret.yaml:3:") && said.contains("route.html` cannot be used: "), "{said}");
        for (bytes, why) in [(vec![b'x'; 64 * 1024 + 1], "64 KiB"), (vec![0xff], "not UTF-8")] {
            fs::write(&route, bytes).unwrap();
            let said = file.load().unwrap_err().to_string();
            assert!(said.contains("lazaret.yaml:3:") && said.contains(why), "{said}");
        }
        for body in ["one", "two"] {
            fs::write(&route, body).unwrap();
            let config = file.load().unwrap().config;
            assert_eq!(&*config.answers.error_pages[0].body, "<b>all</b>");
            assert_eq!(&*config.routes[0].policy.error_pages[0].body, body);
        }
    }
}
