//! Points, rectangles and routes.

/// The padding inside a cluster.
pub(crate) const PADDING: f64 = 12.0;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Rect {
    pub(crate) fn around(centre: Point, width: f64, height: f64) -> Rect {
        Rect { x: centre.x - width / 2.0, y: centre.y - height / 2.0, width, height }
    }

    /// Returns the smallest rectangle that contains both.
    pub(crate) fn and(self, other: Rect) -> Rect {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        let (right, bottom) =
            ((self.x + self.width).max(other.x + other.width), (self.y + self.height).max(other.y + other.height));
        Rect { x, y, width: right - x, height: bottom - y }
    }

    pub(crate) fn holds(&self, point: Point) -> bool {
        point.x >= self.x && point.x <= self.x + self.width && point.y >= self.y && point.y <= self.y + self.height
    }

    pub(crate) fn meets(&self, other: &Rect) -> bool {
        self.x < other.x + other.width
            && other.x < self.x + self.width
            && self.y < other.y + other.height
            && other.y < self.y + self.height
    }
}

/// A route between boxes, and the position of its label.
#[derive(Debug, Clone, Default)]
pub(crate) struct Route {
    pub(crate) points: Vec<Point>,
    pub(crate) label: Rect,
}

impl Route {
    /// The rectangles that a route occupies, including its label.
    pub(crate) fn extent(&self) -> impl Iterator<Item = Rect> {
        let label = Some(self.label).filter(|label| label.width > 0.0);
        self.points.iter().map(|point| Rect { x: point.x, y: point.y, width: 0.0, height: 0.0 }).chain(label)
    }

    pub(crate) fn shift(&mut self, x: f64, y: f64) {
        self.points.iter_mut().for_each(|point| *point = Point { x: point.x + x, y: point.y + y });
        (self.label.x, self.label.y) = (self.label.x + x, self.label.y + y);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// The boxes by state; the first is the whole drawing.
    pub(crate) boxes: Vec<Rect>,
    /// The dots in compound states that mark the start of their initial transition.
    pub(crate) dots: Vec<Option<Point>>,
    /// From the dot of a compound state, or from a history state, to the initial state.
    pub(crate) starts: Vec<Option<Route>>,
    /// The routes by arrow.
    pub(crate) arrows: Vec<Route>,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Layout {
    pub(crate) fn shift(&mut self, x: f64, y: f64) {
        self.boxes.iter_mut().for_each(|place| (place.x, place.y) = (place.x + x, place.y + y));
        self.dots.iter_mut().flatten().for_each(|dot| (dot.x, dot.y) = (dot.x + x, dot.y + y));
        self.starts.iter_mut().flatten().chain(&mut self.arrows).for_each(|route| route.shift(x, y));
    }
}

pub(crate) fn cut_start(points: &mut Vec<Point>, rect: Rect) {
    let Some(last) = points.iter().rposition(|point| rect.holds(*point)) else {
        return;
    };
    let (Some(inside), Some(outside)) = (points.get(last).copied(), points.get(last.saturating_add(1)).copied()) else {
        return;
    };
    let crossing = crossing(inside, outside, rect);
    points.drain(..last);
    if let Some(first) = points.first_mut() {
        *first = crossing;
    }
}

/// Moves the label to the middle of the route if it was on the part of the route that was cut off.
pub(crate) fn keep_label_on(route: &mut Route) {
    let centre = Point { x: route.label.x + route.label.width / 2.0, y: route.label.y + route.label.height / 2.0 };
    if route.label.width <= 0.0
        || route.points.iter().any(|point| (point.x - centre.x).abs() < 1.0 && (point.y - centre.y).abs() < 1.0)
    {
        return;
    }
    let length = |(a, b): (&Point, &Point)| (a.x - b.x).hypot(a.y - b.y);
    let pairs = || route.points.iter().zip(route.points.iter().skip(1));
    let mut left = pairs().map(length).sum::<f64>() / 2.0;
    let mut middle = route.points.first().copied().unwrap_or(centre);
    for (a, b) in pairs() {
        let own = length((a, b));
        if own >= left && own > 0.0 {
            middle = Point { x: a.x + (b.x - a.x) * left / own, y: a.y + (b.y - a.y) * left / own };
            break;
        }
        left -= own;
    }
    route.label = Rect::around(middle, route.label.width, route.label.height);
}

/// Returns the point where the line from a point inside a rectangle to a point outside crosses its
/// border.
fn crossing(inside: Point, outside: Point, rect: Rect) -> Point {
    let (dx, dy) = (outside.x - inside.x, outside.y - inside.y);
    let along = |from: f64, by: f64, low: f64, high: f64| {
        if by > 0.0 {
            (high - from) / by
        } else if by < 0.0 {
            (low - from) / by
        } else {
            f64::INFINITY
        }
    };
    let t = along(inside.x, dx, rect.x, rect.x + rect.width)
        .min(along(inside.y, dy, rect.y, rect.y + rect.height))
        .clamp(0.0, 1.0);
    Point { x: inside.x + dx * t, y: inside.y + dy * t }
}
