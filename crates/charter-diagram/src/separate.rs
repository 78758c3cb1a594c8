//! Separates overlapping states: `dagre` guarantees that nodes do not overlap, but makes no such
//! guarantee for clusters.

use super::drawing::Drawing;
use super::geometry::{Layout, PADDING, Rect};

/// The distance between two states that were separated.
const GAP: f64 = 36.0;

/// Moves the right state of two overlapping siblings to the right until no siblings overlap. The
/// ancestors of a moved state grow to contain it.
pub(super) fn separate(drawing: &Drawing<'_>, layout: &mut Layout) {
    // The loop terminates because states only move to the right; the limit is a safeguard against
    // NaN.
    let most = drawing.shapes.len().saturating_mul(drawing.shapes.len());
    for _ in 0..most {
        let Some((id, by)) = overlap(drawing, layout) else {
            return;
        };
        push(drawing, layout, id, by);
    }
}

/// Finds the first overlapping siblings, innermost first. Returns which state to move, and how far.
fn overlap(drawing: &Drawing<'_>, layout: &Layout) -> Option<(usize, f64)> {
    drawing.shapes.iter().rev().find_map(|shape| {
        let mut children: Vec<(usize, Rect)> =
            shape.children.iter().filter_map(|child| Some((*child, *layout.boxes.get(*child)?))).collect();
        children.sort_by(|(_, a), (_, b)| a.x.total_cmp(&b.x));
        let pairs = children.iter().enumerate().flat_map(|(i, left)| {
            let further = children.iter().skip(i.saturating_add(1));
            further.map(move |right| (left, right))
        });
        pairs
            .filter(|((_, left), (_, right))| left.meets(right))
            .map(|((_, left), (id, right))| (*id, left.x + left.width + GAP - right.x))
            .next()
    })
}

/// Moves a state to the right, with its descendants and the ends of their arrows.
fn push(drawing: &Drawing<'_>, layout: &mut Layout, id: usize, by: f64) {
    let moves = |other: usize| other == id || drawing.inside(other, id);
    for (other, place) in layout.boxes.iter_mut().enumerate() {
        if moves(other) {
            place.x += by;
        }
    }
    for (other, dot) in layout.dots.iter_mut().enumerate() {
        if let Some(dot) = dot.as_mut().filter(|_| moves(other)) {
            dot.x += by;
        }
    }
    let starts = drawing.shapes.iter().enumerate().zip(&mut layout.starts);
    let starts = starts.filter_map(|((from, shape), route)| Some((from, shape.initial?, route.as_mut()?)));
    let arrows = drawing.arrows.iter().zip(&mut layout.arrows);
    let arrows = arrows.map(|(arrow, route)| (arrow.from, arrow.to, route));
    for (from, to, route) in starts.chain(arrows) {
        match (moves(from), moves(to)) {
            (true, true) => route.shift(by, 0.0),
            (true, false) => route.points.iter_mut().take(1).for_each(|p| p.x += by),
            (false, true) => route.points.iter_mut().rev().take(1).for_each(|p| p.x += by),
            (false, false) => {}
        }
    }
    // Grow the ancestors.
    let Some(edge) = layout.boxes.get(id).map(|own| own.x + own.width + PADDING) else {
        return;
    };
    let mut edge = edge;
    let mut above = drawing.shape(id).and_then(|shape| shape.parent);
    while let Some(parent) = above.filter(|parent| *parent != 0) {
        if let Some(place) = layout.boxes.get_mut(parent) {
            place.width = place.width.max(edge - place.x);
            edge = place.x + place.width + PADDING;
        }
        above = drawing.shape(parent).and_then(|shape| shape.parent);
    }
}
