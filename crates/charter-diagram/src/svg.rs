//! SVG output. It is deterministic, and all data is escaped.

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use charter_kernel::Definition;

use super::Overlay;
use super::drawing::{Drawing, drawings, is_compound};
use super::geometry::Layout;
use super::layout::layout;
use super::svg_parts::{STYLE, chart, escape};

/// The height of the name above a chart.
const NAME_HEIGHT: f64 = 34.0;

/// Draws a charter as SVG: the root statechart, and below it each machine.
///
/// A statechart with more than [`MAX_STATES`] states or twice as many arrows, or with states nested
/// very deeply, would be unreadable and would take minutes to lay out; the drawing contains a
/// message instead.
#[must_use]
pub fn svg(definition: &Definition, overlay: &Overlay) -> String {
    let mut body = String::new();
    let (mut width, mut top) = (0.0_f64, 0.0_f64);
    for drawing in drawings(definition, overlay) {
        let mut part = String::new();
        let (own_width, own_height) = match place(&drawing) {
            Ok(placed) => {
                chart(&mut part, &drawing, &placed);
                (placed.width, placed.height)
            }
            Err(error) => {
                let _ = writeln!(part, "<text class=\"line\" x=\"16\" y=\"20\">{}</text>", escape(&error.to_string()));
                (360.0, 40.0)
            }
        };
        let _ = writeln!(body, "<text class=\"name\" x=\"16\" y=\"{:.1}\">{}</text>", top + 24.0, escape(drawing.name));
        let _ = writeln!(body, "<g transform=\"translate(0 {:.1})\">\n{part}</g>", top + NAME_HEIGHT);
        width = width.max(own_width).max(super::layout::text_width(drawing.name, 16.0) + 32.0);
        top += NAME_HEIGHT + own_height;
    }
    let name = escape(definition.title.as_deref().unwrap_or(&definition.id));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {top:.1}\" width=\"{width:.1}\" height=\"{top:.1}\" role=\"img\">\n<title>{name}</title>\n{STYLE}\n<rect class=\"page\" width=\"{width:.1}\" height=\"{top:.1}\"/>\n{body}</svg>\n"
    )
}

/// Upper limit of states in a statechart for [`svg`].
pub const MAX_STATES: usize = 250;

/// Upper limit of the effort of a layout, about a second. The layout gives each level of nesting
/// ranks of its own, and each compound state a border in each of its ranks.
const MAX_EFFORT: usize = 150_000;

/// Why a statechart is not drawn.
#[derive(Debug, thiserror::Error)]
enum DrawError {
    #[error("{states} states and {arrows} arrows: too many to draw")]
    TooLarge { states: usize, arrows: usize },
    #[error("{states} states nested {depth} deep: too deep to draw; `--format mermaid` and `dot` have no limit")]
    TooDeep { states: usize, depth: usize },
    #[error("this statechart cannot be drawn")]
    Layout,
}

/// Returns how deep the states are nested.
fn depth(drawing: &Drawing<'_>) -> usize {
    // A parent comes before its children.
    let mut depths: Vec<usize> = Vec::with_capacity(drawing.shapes.len());
    for shape in &drawing.shapes {
        let outer = shape.parent.and_then(|parent| depths.get(parent).copied());
        depths.push(outer.map_or(0, |depth| depth.saturating_add(1)));
    }
    depths.into_iter().max().unwrap_or_default()
}

fn place(drawing: &Drawing<'_>) -> Result<Layout, DrawError> {
    let (states, arrows) = (drawing.shapes.len(), drawing.arrows.len());
    if states > MAX_STATES || arrows > MAX_STATES.saturating_mul(2) {
        return Err(DrawError::TooLarge { states, arrows });
    }
    let depth = depth(drawing);
    let compound = drawing.shapes.iter().filter(|shape| is_compound(shape.kind)).count();
    let effort = depth.saturating_mul(2).saturating_add(1).saturating_mul(states).saturating_mul(compound);
    if effort > MAX_EFFORT {
        return Err(DrawError::TooDeep { states, depth });
    }
    // The layout crate asserts its invariants. No failure is known, but a diagram must not crash
    // the program.
    catch_unwind(AssertUnwindSafe(|| layout(drawing))).map_err(|_| DrawError::Layout)
}
