//! Mermaid output (`stateDiagram-v2`), which GitHub and most note-taking tools render.

use charter_kernel::Definition;
use charter_kernel::definition::{Require, StateKind};

use super::Overlay;
use super::drawing::{Drawing, Shape, drawings, is_history};

/// Draws a charter as a Mermaid state diagram, with a top-level state for each machine. Names are
/// escaped.
#[must_use]
pub fn mermaid(definition: &Definition, overlay: &Overlay) -> String {
    let drawings = drawings(definition, overlay);
    let mut out = String::from("stateDiagram-v2\n");
    let mut active = Vec::new();
    for (number, drawing) in drawings.iter().enumerate() {
        let page = Page { drawing, prefix: if number == 0 { "s".to_owned() } else { format!("m{number}_") } };
        // A single chart needs no frame, unless arrows start or end at it.
        let framed = drawings.len() > 1 || drawing.arrows.iter().any(|arrow| arrow.from == 0 || arrow.to == 0);
        if !framed {
            page.children(&mut out, 0, 1);
        } else {
            page.state(&mut out, 0, 1);
        }
        page.arrows(&mut out);
        page.notes(&mut out);
        active.extend(
            drawing.shapes.iter().enumerate().skip(1).filter(|(_, shape)| shape.active).map(|(id, _)| page.id(id)),
        );
    }
    if !active.is_empty() {
        out.push_str("    classDef active fill:#d3f2dc,stroke:#1a7f37,stroke-width:3px\n");
        out.push_str(&format!("    class {} active\n", active.join(",")));
    }
    out
}

struct Page<'p, 'd> {
    drawing: &'p Drawing<'d>,
    prefix: String,
}

impl Page<'_, '_> {
    /// The id of a state in the diagram: its index, because names can be arbitrary text.
    fn id(&self, shape: usize) -> String {
        format!("{}{shape}", self.prefix)
    }

    /// Draws a state and, recursively, its children. States beyond the depth limit of the reader
    /// are omitted.
    fn state(&self, out: &mut String, id: usize, depth: usize) {
        let Some(shape) = self.drawing.shape(id) else {
            return;
        };
        let indent = "    ".repeat(depth);
        let name = self.id(id);
        let title = match shape.kind {
            StateKind::Shallow => format!("{} (H)", shape.key),
            StateKind::Deep => format!("{} (H*)", shape.key),
            _ => shape.key.to_owned(),
        };
        out.push_str(&format!("{indent}state \"{}\" as {name}", escape(&title)));
        if shape.children.is_empty() || depth > 128 {
            out.push('\n');
        } else {
            out.push_str(" {\n");
            self.children(out, id, depth.saturating_add(1));
            out.push_str(&format!("{indent}}}\n"));
        }
        if shape.children.is_empty() {
            for line in &shape.lines {
                out.push_str(&format!("{indent}{name} : {}\n", escape(line)));
            }
        }
        if shape.kind == StateKind::Final {
            out.push_str(&format!("{indent}{name} --> [*]\n"));
        }
    }

    fn children(&self, out: &mut String, id: usize, depth: usize) {
        let Some(shape) = self.drawing.shape(id) else {
            return;
        };
        let indent = "    ".repeat(depth);
        if let Some(initial) = shape.initial {
            out.push_str(&format!("{indent}[*] --> {}\n", self.id(initial)));
        }
        for (number, child) in shape.children.iter().enumerate() {
            if shape.kind == StateKind::Parallel && number > 0 {
                out.push_str(&format!("{indent}--\n"));
            }
            self.state(out, *child, depth);
        }
    }

    fn arrows(&self, out: &mut String) {
        for (id, shape) in self.drawing.shapes.iter().enumerate().filter(|(_, shape)| is_history(shape.kind)) {
            if let Some(initial) = shape.initial {
                out.push_str(&format!("    {} --> {}\n", self.id(id), self.id(initial)));
            }
        }
        for arrow in &self.drawing.arrows {
            for label in &arrow.labels {
                let mark = if arrow.taken { "✓ " } else { "" };
                let text = format!("{mark}{}", escape(label));
                let colon = if text.is_empty() { "" } else { " : " };
                out.push_str(&format!("    {} --> {}{colon}{text}\n", self.id(arrow.from), self.id(arrow.to)));
            }
        }
    }

    /// Writes notes for requirements of transitions that are too long for labels.
    fn notes(&self, out: &mut String) {
        for (id, shape) in self.drawing.shapes.iter().enumerate().skip(1) {
            let lines = conditions(shape);
            if !lines.is_empty() {
                let text: String = lines.iter().map(|line| format!("        {}\n", escape(line))).collect();
                out.push_str(&format!("    note right of {}\n{text}    end note\n", self.id(id)));
            }
        }
    }
}

fn conditions(shape: &Shape<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for on in &shape.state.on {
        for transition in &on.transitions {
            let event = on.events.join(" ");
            if !transition.by.is_empty() {
                lines.push(format!("{event} by {}", transition.by.join(", ")));
            }
            if let Some(when) = &transition.when {
                lines.push(format!("{event} when {when}"));
            }
            if let Some(approves) = &transition.approves {
                lines.push(format!("{event} approves {approves}"));
            }
            if let Some(not_by) = &transition.not_by {
                lines.push(format!("{event} not by {not_by}"));
            }
            for require in &transition.requires {
                lines.push(match require {
                    Require::Use { kind, .. } => format!("{event} uses a {kind}"),
                    Require::Open { kind, .. } => format!("{event} needs an open {kind}"),
                    Require::None { kind, .. } => format!("{event} needs no open {kind}"),
                });
            }
        }
    }
    lines
}

/// Escapes Mermaid syntax as entity codes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_whitespace() || c.is_control() => out.push(' '),
            '"' | '#' | ';' | ':' | '<' | '>' | '&' | '{' | '}' | '%' | '`' | '\\' => {
                out.push_str(&format!("#{};", u32::from(c)))
            }
            c => out.push(c),
        }
    }
    out
}
