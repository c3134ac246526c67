//! Diagnostics drawn as a compiler draws them: place, line of the file, what was expected, what may have been meant.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::report::{Diagnostic, Severity};
use crate::source::Source;

/// Whether colours are used. The caller knows whether somebody looks at a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Text alone.
    #[default]
    Plain,
    /// ANSI colours.
    Coloured,
}

/// Draws `diagnostics`, which belong to `source`, one after the other.
pub fn render(source: &Source, diagnostics: &[Diagnostic], style: Style) -> String {
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Coloured => Renderer::styled(),
    };
    let mut out = String::new();
    for diagnostic in diagnostics {
        out.push_str(&renderer.render(&[group(source, diagnostic)]));
        out.push('\n');
    }
    out
}

fn group<'a>(source: &'a Source, diagnostic: &'a Diagnostic) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Alarm => Level::WARNING.with_name("SECURITY WARNING"),
        Severity::Warning => Level::WARNING,
    };
    let mut group = match diagnostic.span {
        None => Group::with_title(level.primary_title(format!("{}: {}", source.name(), diagnostic.message))),
        Some(span) => {
            let primary = AnnotationKind::Primary.span(span.range()).label(diagnostic.label.as_deref());
            let mut snippet = Snippet::source(source.text()).path(source.name()).annotation(primary);
            if let Some(related) = &diagnostic.related {
                let place = AnnotationKind::Context.span(related.span.range());
                snippet = snippet.annotation(place.label(related.message.as_str()));
            }
            level.primary_title(diagnostic.message.as_str()).element(snippet)
        }
    };
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    group
}
