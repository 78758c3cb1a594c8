//! Computes the positions of boxes and arrows: a layered layout by `dagre`, with nested states as
//! clusters.
//!
//! `dagre` does not support arrows to or from a cluster. Therefore every compound state has a head,
//! a node inside its cluster that contains the dot of its initial state: arrows are laid out to the
//! head and then cut off at the border of the cluster. Arrows that leave a compound state downwards
//! start at one of its last states instead, so that they do not cross the whole cluster.

use dagre::graph::{Graph, GraphOptions};
use dagre::layout::types::LabelPos;
use dagre::{EdgeLabel, LayoutOptions, NodeLabel};

use charter_kernel::definition::StateKind;

use super::drawing::{Arrow, Drawing, Shape, is_compound, is_history};
use super::geometry::{Layout, PADDING, Point, Rect, Route, cut_start, keep_label_on};
use super::separate::separate;

pub(crate) const DOT: f64 = 12.0;
pub(crate) const LINE: f64 = 15.0;
pub(crate) const TITLE: f64 = 20.0;
/// The margin of the drawing.
const MARGIN: f64 = 16.0;

/// Estimates the width of a string at the font sizes of the style sheet. The font is not available
/// here, so the estimate is generous.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let units: f64 = text
        .chars()
        .map(|c| {
            if c >= '\u{1100}' {
                1.05
            } else if "MW@%&".contains(c) {
                0.9
            } else if c.is_uppercase() {
                0.72
            } else {
                0.56
            }
        })
        .sum();
    units * size
}

/// Returns the size of the box of a state, or of the head of a compound state.
fn size(shape: &Shape<'_>) -> (f64, f64) {
    if is_history(shape.kind) {
        return (26.0, 26.0);
    }
    let widest = shape.lines.iter().map(|line| text_width(line, 11.0)).fold(text_width(shape.key, 14.5), f64::max);
    if is_compound(shape.kind) {
        // The head is as wide as the title, so that the cluster is wide enough for it.
        return if shape.parent.is_none() { (DOT, DOT) } else { (widest + 8.0, DOT) };
    }
    ((widest + 24.0).max(64.0), rows(shape.lines.len()) + 34.0)
}

/// Returns the height of a number of lines of text.
fn rows(lines: usize) -> f64 {
    #[allow(clippy::cast_precision_loss)] // a handful of lines
    let lines = lines as f64;
    lines * LINE
}

/// Lays out a drawing. The result is deterministic.
pub(crate) fn layout(drawing: &Drawing<'_>) -> Layout {
    let mut graph: Graph<NodeLabel, EdgeLabel> =
        Graph::with_options(GraphOptions { directed: true, multigraph: true, compound: true });
    for (id, shape) in drawing.shapes.iter().enumerate() {
        let (width, height) = size(shape);
        graph.set_node(head(id), Some(NodeLabel { width, height, ..NodeLabel::default() }));
        if is_compound(shape.kind) && shape.parent.is_some() {
            graph.set_node(cluster(id), Some(NodeLabel::default()));
            graph.set_parent(&head(id), Some(&cluster(id)));
        }
        if let Some(parent) = shape.parent.filter(|parent| *parent != 0) {
            let own = if is_compound(shape.kind) { cluster(id) } else { head(id) };
            graph.set_parent(&own, Some(&cluster(parent)));
        }
        // Regions are placed side by side, below the head of their parallel state.
        if let Some(parent) = shape
            .parent
            .filter(|parent| drawing.shape(*parent).is_some_and(|parent| parent.kind == StateKind::Parallel))
        {
            let label = EdgeLabel { weight: 0, labelpos: LabelPos::Center, ..EdgeLabel::default() };
            graph.set_edge(head(parent), head(id), Some(label), Some("order"));
        }
    }
    for (id, shape) in drawing.shapes.iter().enumerate() {
        if let Some(initial) = shape.initial.filter(|initial| *initial != id) {
            let label = EdgeLabel { weight: 2, labelpos: LabelPos::Center, ..EdgeLabel::default() };
            graph.set_edge(head(id), head(initial), Some(label), Some("start"));
        }
    }
    for arrow in &drawing.arrows {
        let (width, height) = label_size(&arrow.labels);
        let label = EdgeLabel { width, height, labelpos: LabelPos::Center, ..EdgeLabel::default() };
        let from = source(drawing, arrow);
        graph.set_edge(head(from), head(arrow.to), Some(label), Some(&arrow_name(arrow)));
    }
    let options = LayoutOptions {
        nodesep: 36.0,
        edgesep: 18.0,
        ranksep: 44.0,
        marginx: 16.0,
        marginy: 16.0,
        ..LayoutOptions::default()
    };
    dagre::layout(&mut graph, Some(options));
    collect(drawing, &graph)
}

/// Returns the node at which an arrow starts in the layout.
fn source(drawing: &Drawing<'_>, arrow: &Arrow) -> usize {
    let is_cluster = arrow.from != 0 && drawing.shape(arrow.from).is_some_and(|shape| is_compound(shape.kind));
    if !is_cluster || arrow.to < arrow.from || drawing.inside(arrow.to, arrow.from) {
        return arrow.from;
    }
    let mut at = arrow.from;
    while let Some(shape) = drawing.shape(at).filter(|shape| is_compound(shape.kind)) {
        let real = || {
            shape
                .children
                .iter()
                .copied()
                .filter(|child| drawing.shape(*child).is_some_and(|child| !is_history(child.kind)))
        };
        // An arrow for the completion of a state starts at its last final state; for a parallel
        // state, in the region with the most states.
        let finals =
            || real().filter(|child| drawing.shape(*child).is_some_and(|child| child.kind == StateKind::Final));
        let longest = || real().max_by_key(|child| drawing.inside_count(*child));
        let last = if shape.kind == StateKind::Parallel {
            longest()
        } else {
            finals().next_back().or_else(|| real().next_back())
        };
        match last {
            Some(child) => at = child,
            None => break,
        }
    }
    at
}

/// Names an arrow after its source state, because arrows from several states may start at the same
/// node.
fn arrow_name(arrow: &Arrow) -> String {
    format!("arrow{}", arrow.from)
}

fn head(id: usize) -> String {
    format!("h{id}")
}

fn cluster(id: usize) -> String {
    format!("c{id}")
}

pub(crate) fn label_size(labels: &[String]) -> (f64, f64) {
    let lines = label_lines(labels);
    let widest = lines.iter().map(|line| text_width(line, 11.0)).fold(0.0, f64::max);
    if widest > 0.0 { (widest + 10.0, rows(lines.len()) + 4.0) } else { (0.0, 0.0) }
}

/// Splits a label into lines: a long label is broken before the guard and before the roles.
pub(crate) fn label_lines(labels: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for label in labels.iter().filter(|label| !label.is_empty()) {
        let broken = if label.chars().count() > 24 {
            label.replacen(" [", "\n[", 1).replacen(" / ", "\n/ ", 1)
        } else {
            label.clone()
        };
        lines.extend(broken.lines().map(str::to_owned));
    }
    lines
}

/// Reads the positions from the graph.
fn collect(drawing: &Drawing<'_>, graph: &Graph<NodeLabel, EdgeLabel>) -> Layout {
    let place = |id: usize| {
        let node = graph.node(&head(id))?;
        Some(Rect::around(Point { x: node.x?, y: node.y? }, node.width, node.height))
    };
    let mut layout = Layout {
        boxes: (0..drawing.shapes.len()).map(|id| place(id).unwrap_or_default()).collect(),
        ..Layout::default()
    };
    for (shape, own) in drawing.shapes.iter().zip(&layout.boxes) {
        let dot = Point { x: own.x + own.width / 2.0, y: own.y + own.height / 2.0 };
        layout.dots.push((shape.initial.is_some() && is_compound(shape.kind)).then_some(dot));
    }
    let route = |from: usize, to: usize, name: &str| {
        let edge = graph.edge(&head(from), &head(to), Some(name))?;
        let points = edge.points.iter().map(|point| Point { x: point.x, y: point.y }).collect();
        let centre = Point { x: edge.x.unwrap_or_default(), y: edge.y.unwrap_or_default() };
        Some(Route { points, label: Rect::around(centre, edge.width, edge.height) })
    };
    for (id, shape) in drawing.shapes.iter().enumerate() {
        layout.starts.push(shape.initial.filter(|initial| *initial != id).and_then(|initial| {
            let mut start = route(id, initial, "start")?;
            if let (Some(Some(dot)), Some(first)) = (layout.dots.get(id), start.points.first_mut()) {
                *first = *dot;
            }
            Some(start)
        }));
    }
    layout.arrows = drawing
        .arrows
        .iter()
        .map(|arrow| route(source(drawing, arrow), arrow.to, &arrow_name(arrow)).unwrap_or_default())
        .collect();
    make_room(drawing, &mut layout);
    fit(drawing, &mut layout);
    separate(drawing, &mut layout);
    for (id, start) in layout.starts.iter_mut().enumerate() {
        if let (Some(start), Some(initial)) = (start, drawing.shape(id).and_then(|shape| shape.initial)) {
            clip(drawing, &layout.boxes, start, id, initial);
        }
    }
    for (arrow, way) in drawing.arrows.iter().zip(&mut layout.arrows) {
        clip(drawing, &layout.boxes, way, arrow.from, arrow.to);
        keep_label_on(way);
    }
    let routes = layout.arrows.iter().chain(layout.starts.iter().flatten());
    let all = layout
        .boxes
        .iter()
        .copied()
        .chain(routes.flat_map(Route::extent))
        .fold(None, |all: Option<Rect>, own| Some(all.map_or(own, |all| all.and(own))));
    let all = all.unwrap_or_default();
    // Clusters extend beyond the layout of `dagre`: shift the drawing so that everything is inside
    // the margin.
    layout.shift(MARGIN - all.x, MARGIN - all.y);
    (layout.width, layout.height) = (all.width + 2.0 * MARGIN, all.height + 2.0 * MARGIN);
    layout
}

/// Returns the bounding box of the contents of a cluster: its states and the arrows between them.
fn contents(drawing: &Drawing<'_>, layout: &Layout, id: usize) -> Option<Rect> {
    let inside = |end: usize| drawing.inside(end, id);
    let pairs = drawing.arrows.iter().zip(&layout.arrows);
    let arrows = pairs.filter(|(arrow, _)| inside(arrow.from) && inside(arrow.to)).map(|(_, route)| route);
    let starts = layout.starts.iter().enumerate().filter(|(from, _)| *from == id || inside(*from));
    let starts = starts.filter_map(|(_, route)| route.as_ref());
    let boxes = layout.boxes.iter().enumerate().filter(|(own, _)| *own == id || inside(*own));
    boxes.map(|(_, place)| *place).chain(arrows.chain(starts).flat_map(Route::extent)).reduce(Rect::and)
}

/// Returns the height of the title of a cluster.
fn title_height(shape: &Shape<'_>) -> f64 {
    TITLE + rows(shape.lines.len()) + PADDING / 2.0
}

/// Makes room for titles, which `dagre` ignores: moves the content of a cluster and everything
/// below it downwards.
fn make_room(drawing: &Drawing<'_>, layout: &mut Layout) {
    let clusters = drawing.shapes.iter().enumerate().skip(1).filter(|(_, shape)| is_compound(shape.kind));
    let strips: Vec<(f64, f64)> =
        clusters.filter_map(|(id, shape)| Some((contents(drawing, layout, id)?.y, title_height(shape)))).collect();
    let moved = |y: f64| -> f64 {
        let above = strips.iter().filter(|(top, _)| *top <= y + 0.01);
        y + above.map(|(_, height)| height).sum::<f64>()
    };
    layout.boxes.iter_mut().for_each(|place| place.y = moved(place.y));
    layout.dots.iter_mut().flatten().for_each(|dot| dot.y = moved(dot.y - DOT / 2.0) + DOT / 2.0);
    for route in layout.starts.iter_mut().flatten().chain(&mut layout.arrows) {
        route.points.iter_mut().for_each(|point| point.y = moved(point.y));
        route.label.y = moved(route.label.y);
    }
}

/// Resizes clusters to fit their content and title, starting with the inner ones.
fn fit(drawing: &Drawing<'_>, layout: &mut Layout) {
    for (id, shape) in drawing.shapes.iter().enumerate().skip(1).rev() {
        if !is_compound(shape.kind) {
            continue;
        }
        let Some(inner) = contents(drawing, layout, id) else {
            continue;
        };
        if let Some(own) = layout.boxes.get_mut(id) {
            let title = title_height(shape);
            *own = Rect {
                x: inner.x - PADDING,
                y: inner.y - title,
                width: inner.width + 2.0 * PADDING,
                height: inner.height + title + PADDING,
            };
        }
    }
}

/// Cuts off an arrow at the border of a compound state, unless the other end of the arrow is inside
/// that state.
fn clip(drawing: &Drawing<'_>, boxes: &[Rect], route: &mut Route, from: usize, to: usize) {
    let border = |end: usize, other: usize| {
        let is_cluster = end != 0 && drawing.shape(end).is_some_and(|shape| is_compound(shape.kind));
        boxes.get(end).filter(|_| is_cluster && !drawing.inside(other, end)).copied()
    };
    if let Some(rect) = border(from, to) {
        cut_start(&mut route.points, rect);
    }
    if let Some(rect) = border(to, from) {
        route.points.reverse();
        cut_start(&mut route.points, rect);
        route.points.reverse();
    }
}
