//! Generates data from schemas: a plain value, and variations that conditions can distinguish.

mod sampler;

use charter_kernel::Schema;
use serde_json::{Map, Value as Json};

use super::cone::Probes;
use sampler::Sampler;

/// The data generated for a schema.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples {
    /// Distinct values that fit the schema.
    pub(crate) values: Vec<Json>,
    /// The number of possible combinations; more than `values` if the limit was reached.
    pub(crate) possible: usize,
}

/// Generates at most `limit` values that fit `schema` (`None`: any data) and cover the probes.
pub(crate) fn samples(schema: Option<&Json>, probes: &Probes, limit: usize) -> Samples {
    let sampler = Sampler { root: schema, probes };
    let compiled = schema.and_then(|s| Schema::compile(s).ok());
    let fits = |v: &Json| compiled.as_ref().is_none_or(|s| s.accepts(v));
    let out = varied(&sampler, sampler.bases(), probes, limit, &fits);
    if !out.values.is_empty() {
        return out;
    }
    // Some schemas need a search, as for the examples in suggested commands.
    match charter_scenario::example::data(schema, None) {
        Some(example) => varied(&sampler, vec![example], probes, limit, &fits),
        None => out,
    }
}

/// Varies values in what the probes read; keeps those that fit.
fn varied(
    sampler: &Sampler<'_>,
    bases: Vec<Json>,
    probes: &Probes,
    limit: usize,
    fits: &dyn Fn(&Json) -> bool,
) -> Samples {
    let mut out = Samples::default();
    let mut left = bases.len();
    for base in bases {
        let mut choices: Vec<(&Vec<String>, Vec<Option<Json>>)> = Vec::new();
        for (path, probe) in probes.iter().filter(|(_, p)| p.decides) {
            // A path below another path that decides (an object that may be null) is varied
            // together with it.
            let options = sampler.options(path, probe);
            if options.len() > 1 || options.first().is_some_and(|o| o.as_ref() != get(&base, path)) {
                choices.push((path, options));
            }
        }
        let total = choices.iter().fold(1usize, |n, (_, o)| n.saturating_mul(o.len().max(1)));
        out.possible = out.possible.saturating_add(total);
        // Each example and each alternative has its share; what one does not need is for others.
        let room = limit.saturating_sub(out.values.len()).div_ceil(left.max(1)).max(1);
        let most = if left > 1 { out.values.len().saturating_add(room) } else { usize::MAX };
        left = left.saturating_sub(1);
        for value in combinations(&base, &choices, total, room) {
            if out.values.len() < most && !out.values.contains(&value) && fits(&value) {
                out.values.push(value);
            }
        }
        if out.values.is_empty() && fits(&base) {
            out.values.push(base);
        }
        if out.values.len() >= limit {
            break;
        }
    }
    out
}

/// Combines the choices: all combinations if they are few, otherwise each choice once, then pairs,
/// up to `room`.
fn combinations(base: &Json, choices: &[(&Vec<String>, Vec<Option<Json>>)], total: usize, room: usize) -> Vec<Json> {
    let mut out = Vec::new();
    if total <= room.saturating_mul(4) {
        let mut digits = vec![0usize; choices.len()];
        for _ in 0..total {
            let mut value = base.clone();
            for ((path, options), digit) in choices.iter().zip(&digits) {
                set(&mut value, path, options.get(*digit).cloned().flatten());
            }
            out.push(value);
            for ((_, options), digit) in choices.iter().zip(digits.iter_mut()) {
                *digit = digit.saturating_add(1);
                if *digit < options.len() {
                    break;
                }
                *digit = 0;
            }
        }
        // If there are too many, keep the plainest, which come first.
        out.truncate(room.saturating_mul(4));
        return out;
    }
    out.push(base.clone());
    for (i, (path, options)) in choices.iter().enumerate() {
        for option in options {
            let mut value = base.clone();
            set(&mut value, path, option.clone());
            out.push(value.clone());
            for (other, options) in choices.iter().skip(i.saturating_add(1)) {
                for option in options {
                    if out.len() > room {
                        return out;
                    }
                    let mut value = value.clone();
                    set(&mut value, other, option.clone());
                    out.push(value);
                }
            }
        }
    }
    out
}

/// Returns the value at a path of fields.
pub(crate) fn get<'j>(value: &'j Json, path: &[String]) -> Option<&'j Json> {
    path.iter().try_fold(value, |v, key| v.get(key))
}

/// Sets or removes the value at a path, creating missing objects.
pub(crate) fn set(value: &mut Json, path: &[String], to: Option<Json>) {
    let Some((last, before)) = path.split_last() else {
        *value = to.unwrap_or(Json::Null);
        return;
    };
    let mut at = value;
    for key in before {
        if !at.is_object() {
            if to.is_none() {
                return;
            }
            *at = Json::Object(Map::new());
        }
        let Json::Object(map) = at else { return };
        at = map.entry(key.clone()).or_insert(Json::Null);
    }
    if !at.is_object() {
        if to.is_none() {
            return;
        }
        *at = Json::Object(Map::new());
    }
    if let Json::Object(map) = at {
        match to {
            Some(to) => drop(map.insert(last.clone(), to)),
            None => drop(map.remove(last)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::cone::Probe;
    use super::*;

    fn probe(path: &str, constants: &[Json]) -> (Vec<String>, Probe) {
        let path = if path.is_empty() { Vec::new() } else { path.split('.').map(str::to_string).collect() };
        (path, Probe { decides: true, constants: constants.to_vec(), ..Probe::default() })
    }

    #[test]
    fn a_schema_that_needs_a_search_has_samples() {
        let set = json!({"type": "array", "minItems": 2, "uniqueItems": true, "items": {"enum": ["a", "b"]}});
        let schema = json!({"type": "object", "required": ["l"], "properties": {"l": set}});
        let made = samples(Some(&schema), &Probes::new(), 8).values;
        assert_eq!(made, [json!({"l": ["a", "b"]})]);
    }

    #[test]
    fn required_fields_and_compared_values() {
        let schema = json!({"type": "object", "required": ["confidence", "human"], "properties": {
            "confidence": {"type": "number", "minimum": 0, "maximum": 1}, "human": {"type": "boolean"}, "note": {"type": "string"}}});
        let probes = Probes::from([probe("confidence", &[json!(0.85)]), probe("human", &[])]);
        let made = samples(Some(&schema), &probes, 64).values;
        let mut confidences: Vec<f64> = made.iter().map(|v| v["confidence"].as_f64().unwrap()).collect();
        confidences.sort_by(f64::total_cmp);
        confidences.dedup();
        assert_eq!(confidences, [0.84, 0.85, 0.86, 1.0]);
        assert_eq!(made.len(), 8);
        assert!(made.iter().all(|v| v.get("note").is_none()));
    }

    #[test]
    fn bounds_formats_references_and_alternatives() {
        let schema = json!({"$ref": "#/$defs/x", "$defs": {"x": {"type": "object", "required": ["n", "t", "e", "l"], "properties": {
            "n": {"type": "integer", "exclusiveMinimum": 5, "multipleOf": 4}, "t": {"type": "string", "format": "date-time"},
            "e": {"enum": ["p", "q"]}, "l": {"type": "array", "minItems": 2, "items": {"type": "null"}}}}}});
        let made = samples(Some(&schema), &Probes::new(), 64);
        assert_eq!(made.values, [json!({"n": 8, "t": "2026-01-01T00:00:00Z", "e": "p", "l": [null, null]})]);
        let schema = json!({"type": "object", "required": ["kind"], "oneOf": [
            {"properties": {"kind": {"const": "a"}}}, {"properties": {"kind": {"const": "b"}, "x": {"type": "integer"}}, "required": ["x"]}]});
        let made = samples(Some(&schema), &Probes::new(), 64).values;
        assert!(made.contains(&json!({"kind": "a"})) && made.contains(&json!({"kind": "b", "x": 1})), "{made:?}");
    }

    #[test]
    fn optional_fields_that_decide_are_left_out_once() {
        let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
        let made = samples(Some(&schema), &Probes::from([probe("ok", &[])]), 64).values;
        assert_eq!(made, [json!({"ok": true}), json!({"ok": false}), json!({})]);
    }

    #[test]
    fn examples_share_the_values_that_are_tried() {
        let schema = json!({"examples": [{"kind": "a"}, {"kind": "b"}, {"kind": "c"}]});
        let names: Vec<String> = (0..10).map(|i| format!("f{i}")).collect();
        let probes: Probes = names.iter().map(|n| probe(n, &[json!(1)])).collect();
        let made = samples(Some(&schema), &probes, 16).values;
        for kind in ["a", "b", "c"] {
            assert!(made.iter().filter(|v| v["kind"] == kind).count() >= 4, "{kind}: {made:?}");
        }
    }

    #[test]
    fn too_many_combinations_are_cut() {
        let names: Vec<String> = (0..10).map(|i| format!("f{i}")).collect();
        let probes: Probes = names.iter().map(|n| probe(n, &[json!(1)])).collect();
        let made = samples(None, &probes, 50);
        assert!(made.possible > 1_000 && made.values.len() <= 52 && made.values.len() > 20, "{}", made.values.len());
    }
}
