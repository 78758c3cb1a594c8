//! Draws the parts of an SVG drawing: boxes, arrows, labels.

use std::fmt::Write;

use charter_kernel::definition::StateKind;

use super::drawing::{Drawing, Shape, is_compound, is_history};
use super::geometry::{Layout, Point, Rect, Route};
use super::layout::{DOT, LINE, label_lines};

/// The style sheet, which a page can override, and an arrowhead for each color.
pub(crate) const STYLE: &str = r##"<defs>
<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 1 L9 5 L0 9 Z" fill="#57606a"/></marker>
<marker id="head-taken" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="5" markerHeight="5" orient="auto"><path d="M0 1 L9 5 L0 9 Z" fill="#1a7f37"/></marker>
</defs>
<style>
text { font-family: Helvetica, Arial, sans-serif; fill: #1f2328; }
.page { fill: #ffffff; }
.name { font-size: 16px; font-weight: bold; }
.title { font-size: 13px; font-weight: bold; paint-order: stroke; stroke: #f6f8fa; stroke-width: 3px; stroke-linejoin: round; }
.active + .title { stroke: none; }
.line { font-size: 11px; fill: #57606a; }
.label { font-size: 11px; paint-order: stroke; stroke: #ffffff; stroke-width: 3px; stroke-linejoin: round; }
.back { fill: #ffffff; fill-opacity: 0.85; }
.state { fill: #f6f8fa; stroke: #57606a; stroke-width: 1.2; }
.group { fill: #8c959f; fill-opacity: 0.08; stroke: #8c959f; stroke-width: 1.2; }
.region { stroke-dasharray: 6 4; }
.inner { fill: none; stroke: #57606a; stroke-width: 1.2; }
.dot { fill: #1f2328; }
.arrow { fill: none; stroke: #57606a; stroke-width: 1.2; marker-end: url(#head); }
.active { fill: #d3f2dc; stroke: #1a7f37; stroke-width: 2.5; fill-opacity: 1; }
.group.active { fill-opacity: 0.25; }
.taken { stroke: #1a7f37; stroke-width: 2.5; marker-end: url(#head-taken); }
</style>"##;

/// Draws a chart: groups, then arrows, then states, then labels, so that nothing covers text.
pub(crate) fn chart(out: &mut String, drawing: &Drawing<'_>, layout: &Layout) {
    let placed = || drawing.shapes.iter().zip(&layout.boxes).enumerate();
    for (_, (shape, place)) in placed().skip(1).filter(|(_, (shape, _))| is_compound(shape.kind)) {
        let is_region = shape
            .parent
            .and_then(|parent| drawing.shape(parent))
            .is_some_and(|parent| parent.kind == StateKind::Parallel);
        rect(out, place, &format!("group{}{}", if is_region { " region" } else { "" }, active(shape)), 10.0);
    }
    for start in layout.starts.iter().flatten() {
        path(out, start, "arrow");
    }
    for (arrow, route) in drawing.arrows.iter().zip(&layout.arrows) {
        path(out, route, if arrow.taken { "arrow taken" } else { "arrow" });
    }
    for (_, (shape, place)) in placed() {
        if is_compound(shape.kind) && shape.parent.is_some() {
            title_of_group(out, shape, place);
        } else if !is_compound(shape.kind) {
            state(out, shape, place);
        }
    }
    for dot in layout.dots.iter().flatten() {
        let _ = writeln!(out, "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{:.1}\"/>", dot.x, dot.y, DOT / 2.0);
    }
    for (arrow, route) in drawing.arrows.iter().zip(&layout.arrows) {
        if route.label.width > 0.0 {
            rect(out, &route.label, "back", 4.0);
        }
        let mut y = route.label.y + 13.0;
        for label in label_lines(&arrow.labels) {
            text(out, "label", "middle", route.label.x + route.label.width / 2.0, y, &label);
            y += LINE;
        }
    }
}

fn active(shape: &Shape<'_>) -> &'static str {
    if shape.active { " active" } else { "" }
}

fn title_of_group(out: &mut String, shape: &Shape<'_>, place: &Rect) {
    text(out, "title", "start", place.x + 12.0, place.y + 20.0, shape.key);
    let mut y = place.y + 20.0;
    for line in &shape.lines {
        y += LINE;
        text(out, "line", "start", place.x + 12.0, y, line);
    }
}

fn state(out: &mut String, shape: &Shape<'_>, place: &Rect) {
    let middle = place.x + place.width / 2.0;
    if is_history(shape.kind) {
        let centre = place.y + place.height / 2.0;
        let _ = writeln!(
            out,
            "<circle class=\"state{}\" cx=\"{middle:.1}\" cy=\"{centre:.1}\" r=\"{:.1}\"><title>{}</title></circle>",
            active(shape),
            place.width / 2.0,
            escape(shape.key)
        );
        return text(
            out,
            "title",
            "middle",
            middle,
            centre + 4.5,
            if shape.kind == StateKind::Deep { "H*" } else { "H" },
        );
    }
    rect(out, place, &format!("state{}", active(shape)), 8.0);
    if shape.kind == StateKind::Final {
        rect(
            out,
            &Rect { x: place.x + 3.5, y: place.y + 3.5, width: place.width - 7.0, height: place.height - 7.0 },
            "inner",
            5.0,
        );
    }
    let mut y = place.y + 21.5;
    text(out, "title", "middle", middle, y, shape.key);
    for line in &shape.lines {
        y += LINE;
        text(out, "line", "middle", middle, y, line);
    }
}

fn rect(out: &mut String, place: &Rect, class: &str, radius: f64) {
    let Rect { x, y, width, height } = place;
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{radius:.0}\"/>"
    );
}

fn text(out: &mut String, class: &str, anchor: &str, x: f64, y: f64, text: &str) {
    let _ = writeln!(
        out,
        "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
        escape(text)
    );
}

/// Draws a line through points, with rounded corners.
fn path(out: &mut String, route: &Route, class: &str) {
    const RADIUS: f64 = 16.0;
    let Some((first, rest)) = route.points.split_first() else {
        return;
    };
    let towards = |from: Point, to: Point| {
        let length = (to.x - from.x).hypot(to.y - from.y).max(0.001);
        let part = (RADIUS / length).min(0.5);
        Point { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part }
    };
    let mut data = format!("M{:.1} {:.1}", first.x, first.y);
    let mut before = *first;
    for (at, after) in rest.iter().zip(rest.iter().skip(1)) {
        let (into, out_of) = (towards(*at, before), towards(*at, *after));
        let _ = write!(data, " L{:.1} {:.1} Q{:.1} {:.1} {:.1} {:.1}", into.x, into.y, at.x, at.y, out_of.x, out_of.y);
        before = *at;
    }
    if let Some(last) = rest.last() {
        let _ = write!(data, " L{:.1} {:.1}", last.x, last.y);
    }
    let _ = writeln!(out, "<path class=\"{class}\" d=\"{data}\"/>");
}

/// Escapes text for XML. Control characters are dropped.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
