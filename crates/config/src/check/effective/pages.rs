//! Error pages and maintenance, written down.

use std::time::Duration;

use model::page::{ErrorPage, Maintenance};

use super::{Writer, list, quoted};
use crate::timespan;

/// Writes the pages, when there are any.
pub fn error_pages(w: &mut Writer<'_>, pages: &[ErrorPage]) {
    if pages.is_empty() {
        return;
    }
    w.block("error_pages", |w| {
        for page in pages {
            w.block(&page.status.to_string(), |w| {
                w.value("content_type", quoted(&page.content_type));
                match &page.file {
                    Some(file) => w.value("file", quoted(&file.to_string_lossy())),
                    None => w.value("body", quoted(&page.body)),
                }
            });
        }
    });
}

/// Writes a route's maintenance.
pub fn maintenance(w: &mut Writer<'_>, rules: &Maintenance) {
    w.block("maintenance", |w| {
        w.value("status", rules.status.to_string());
        if let Some(body) = &rules.body {
            w.value("body", quoted(body));
        }
        if let Some(seconds) = rules.retry_after {
            w.value("retry_after", timespan::format(Duration::from_secs(u64::from(seconds))));
        }
        let networks: Vec<_> = rules.allow.iter().map(ToString::to_string).collect();
        w.value("allow", list(networks.iter().map(String::as_str)));
    });
}
