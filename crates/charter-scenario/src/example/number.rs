//! Numbers within the limits of a schema.

use serde_json::{Number, Value as Json};

/// How many multiples of a step are tried.
const MAX_STEPS: u32 = 64;

/// Finds a number that fits: the one nearest to zero that is whole, if possible. If none was found,
/// returns the first that was tried.
pub(super) fn find(schema: &Json, fits: impl Fn(&Json) -> bool) -> Json {
    let all = candidates(schema);
    all.iter().find(|number| fits(number)).or(all.first()).cloned().unwrap_or_else(|| 0.into())
}

fn candidates(schema: &Json) -> Vec<Json> {
    let limit = |keyword: &str| schema.get(keyword).and_then(Json::as_f64);
    let above = |n: f64| if n.fract() == 0.0 { n + 1.0 } else { n.ceil() };
    let below = |n: f64| if n.fract() == 0.0 { n - 1.0 } else { n.floor() };
    let greatest = |limits: [Option<f64>; 2]| limits.into_iter().flatten().fold(f64::NEG_INFINITY, f64::max);
    let least = |limits: [Option<f64>; 2]| limits.into_iter().flatten().fold(f64::INFINITY, f64::min);
    let from = greatest([limit("minimum").map(f64::ceil), limit("exclusiveMinimum").map(above)]);
    let to = least([limit("maximum").map(f64::floor), limit("exclusiveMaximum").map(below)]);
    let nearest = 0.0_f64.max(from).min(to);
    let mut found = Vec::new();
    let step = limit("multipleOf").filter(|step| *step > 0.0);
    // Steps are counted in the direction away from zero.
    let direction = if nearest < 0.0 { -1.0 } else { 1.0 };
    if let Some(step) = step {
        let first = (nearest.abs() / step).floor();
        for more in 0..MAX_STEPS {
            let value = (first + f64::from(more)) * step * direction;
            found.extend([value, rounded(value)]);
        }
    } else {
        found.extend((0..4).map(|more| nearest + f64::from(more) * direction));
        // Between limits without a whole number.
        let lower = greatest([limit("minimum"), limit("exclusiveMinimum")]);
        let upper = least([limit("maximum"), limit("exclusiveMaximum")]);
        found.extend([lower, upper, lower + (upper - lower) / 2.0]);
        found.extend((0..4).map(|more| nearest - f64::from(more) * direction));
    }
    found.into_iter().filter_map(json).collect()
}

/// Without the error of a multiplication: 3 times 0.1 is 0.3.
fn rounded(value: f64) -> f64 {
    format!("{value:.9}").parse().unwrap_or(value)
}

fn json(value: f64) -> Option<Json> {
    match format!("{value:.0}").parse::<i64>() {
        Ok(whole) if value.fract() == 0.0 => Some(whole.into()),
        _ => Number::from_f64(value).map(Json::Number),
    }
}
