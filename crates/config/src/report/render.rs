//! Diagnostics drawn as a compiler draws them: place, line of the file, what was expected, what may have been meant.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::report::{Diagnostic, Severity};
use crate::source::{Source, Span};

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
    let group = match diagnostic.span {
        None => Group::with_title(level.primary_title(format!("{}: {}", source.name(), diagnostic.message))),
        Some(span) => {
            // Only the lines that are shown are handed over: a file may be long and its mistakes many.
            let whole = diagnostic.related.iter().fold(span, |all, related| all.cover(related.span));
            let lines = source.lines_of(whole);
            if lines.end - lines.start > MAX_SHOWN {
                return placed(source, diagnostic, span, level);
            }
            let within = |span: Span| Span::new(clip(span.start, lines), clip(span.end, lines)).range();
            let primary = AnnotationKind::Primary.span(within(span)).label(diagnostic.label.as_deref());
            let mut snippet = Snippet::source(source.slice(lines))
                .line_start(source.line(lines.start) as usize)
                .path(source.name())
                .annotation(primary);
            if let Some(related) = &diagnostic.related {
                let place = AnnotationKind::Context.span(within(related.span));
                snippet = snippet.annotation(place.label(related.message.as_str()));
            }
            level.primary_title(diagnostic.message.as_str()).element(snippet)
        }
    };
    group.elements(help(diagnostic))
}

/// The place in words, for a text on one endless line (or two places far apart) that nobody wants to see drawn.
fn placed<'a>(source: &'a Source, diagnostic: &'a Diagnostic, span: Span, level: Level<'a>) -> Group<'a> {
    let position = diagnostic.position.unwrap_or_default();
    let place = Origin::path(source.name()).line(position.line as usize).char_column(position.column as usize);
    let extract: String = source.slice(span).chars().take(60).collect();
    let label = diagnostic.label.as_deref().unwrap_or("here");
    let group = level.primary_title(diagnostic.message.as_str()).element(place);
    group.element(Level::NOTE.message(format!("`{extract}`: {label}"))).elements(help(diagnostic))
}

fn help(diagnostic: &Diagnostic) -> Option<annotate_snippets::Message<'_>> {
    diagnostic.help.as_deref().map(|help| Level::HELP.message(help))
}

/// An offset of the file as one of `lines`.
fn clip(offset: u32, lines: Span) -> usize {
    offset.clamp(lines.start, lines.end).saturating_sub(lines.start) as usize
}

/// Bytes of a file that are drawn for one diagnostic.
const MAX_SHOWN: u32 = 4096;
