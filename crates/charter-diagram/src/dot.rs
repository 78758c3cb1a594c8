//! DOT output, for Graphviz.

use charter_kernel::Definition;
use charter_kernel::definition::StateKind;

use super::Overlay;
use super::drawing::{Drawing, drawings, is_compound, is_history};

/// Draws a charter as DOT, with a cluster for each compound state and each machine. Names are
/// escaped.
#[must_use]
pub fn dot(definition: &Definition, overlay: &Overlay) -> String {
    let mut out = String::from("digraph charter {\n  compound=true;\n  rankdir=TB;\n  fontname=\"Helvetica\";\n");
    out.push_str("  node [fontname=\"Helvetica\", fontsize=11, shape=box, style=\"rounded,filled\", fillcolor=white];\n  edge [fontname=\"Helvetica\", fontsize=10];\n");
    for (number, drawing) in drawings(definition, overlay).iter().enumerate() {
        let page = Page { drawing, prefix: format!("n{number}_") };
        page.state(&mut out, 0, 1);
        page.arrows(&mut out);
    }
    out.push_str("}\n");
    out
}

struct Page<'p, 'd> {
    drawing: &'p Drawing<'d>,
    prefix: String,
}

impl Page<'_, '_> {
    /// Returns the node that represents a state: its own node, or a point inside its cluster.
    fn node(&self, id: usize) -> String {
        format!("{}{id}", self.prefix)
    }

    /// Draws a state and, recursively, its children. States beyond the depth limit of the reader
    /// are omitted.
    fn state(&self, out: &mut String, id: usize, depth: usize) {
        let Some(shape) = self.drawing.shape(id) else {
            return;
        };
        let indent = "  ".repeat(depth);
        let node = self.node(id);
        let color = if shape.active { ", fillcolor=\"#d3f2dc\", color=\"#1a7f37\", penwidth=2" } else { "" };
        if is_compound(shape.kind) && depth <= 128 {
            let lines: String = shape.lines.iter().map(|line| format!("\\n{}", escape(line))).collect();
            let style = if shape.kind == StateKind::Parallel { "rounded,dashed" } else { "rounded" };
            let pen = if shape.active { "#1a7f37" } else { "#57606a" };
            out.push_str(&format!("{indent}subgraph cluster_{node} {{\n{indent}  label=\"{}{lines}\"; style=\"{style}\"; color=\"{pen}\";\n", escape(shape.key)));
            let point = if shape.kind == StateKind::Parallel {
                "shape=point, style=invis"
            } else {
                "shape=point, width=0.12, style=filled, fillcolor=black"
            };
            out.push_str(&format!("{indent}  {node} [{point}, label=\"\"];\n"));
            for child in &shape.children {
                self.state(out, *child, depth.saturating_add(1));
            }
            out.push_str(&format!("{indent}}}\n"));
            return;
        }
        let lines: String = std::iter::once(shape.key)
            .chain(shape.lines.iter().map(String::as_str))
            .map(escape)
            .collect::<Vec<_>>()
            .join("\\n");
        let shape_of = match shape.kind {
            StateKind::Final => ", peripheries=2",
            StateKind::Shallow | StateKind::Deep => ", shape=circle",
            _ => "",
        };
        let text = match shape.kind {
            StateKind::Shallow => "H".to_owned(),
            StateKind::Deep => "H*".to_owned(),
            _ => lines,
        };
        out.push_str(&format!("{indent}{node} [label=\"{text}\"{shape_of}{color}];\n"));
    }

    fn arrows(&self, out: &mut String) {
        for (id, shape) in self.drawing.shapes.iter().enumerate() {
            if let Some(initial) = shape.initial {
                let end = self.end("lhead", initial, id);
                let style = if is_history(shape.kind) { "style=dashed" } else { "arrowsize=0.7" };
                out.push_str(&format!("  {} -> {} [{style}{end}];\n", self.node(id), self.node(initial)));
            }
        }
        for arrow in &self.drawing.arrows {
            let label: Vec<String> = arrow.labels.iter().map(|label| escape(label)).collect();
            let color = if arrow.taken { ", color=\"#1a7f37\", penwidth=2.5" } else { "" };
            let ends = self.end("ltail", arrow.from, arrow.to) + &self.end("lhead", arrow.to, arrow.from);
            let (from, to) = (self.node(arrow.from), self.node(arrow.to));
            out.push_str(&format!("  {from} -> {to} [label=\"{}\"{ends}{color}];\n", label.join("\\n")));
        }
    }

    /// Returns the attribute that ends an arrow at the border of a compound state, unless its other
    /// end is inside that state.
    fn end(&self, key: &str, at: usize, other: usize) -> String {
        let is_cluster = self.drawing.shape(at).is_some_and(|shape| is_compound(shape.kind));
        if is_cluster && at != other && !self.drawing.inside(other, at) {
            format!(", {key}=cluster_{}", self.node(at))
        } else {
            String::new()
        }
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
