//! No function of the language hides what its arguments are: a proof that goes through a call holds
//! for all data.

use charter_check::{Options, Verdict};
use charter_kernel::{Envelope, Event, Principal};
use serde_json::{Value as Json, json};

use crate::support::{all, machine, report_with};

/// The name of a function, the forms of its arguments, and the values in them.
type Sample = (&'static str, &'static [&'static str], Vec<[Json; 2]>);

/// For each function of the language: its arguments, in which `$` is a value, that value in
/// each place, and for each place another one with which the result is different.
fn samples() -> Vec<Sample> {
    let instant = ["2026-01-02T03:04:05.006Z", "2027-11-30T23:59:58.999Z"].map(Json::from);
    let of_time = |name| -> Sample { (name, &["timestamp($)"], vec![instant.clone()]) };
    vec![
        ("size", &["$"], vec![[json!("abc"), json!("ab")]]),
        ("type", &["$"], vec![[json!(1), json!("1")]]),
        ("dyn", &["$"], vec![[json!(1), json!(2)]]),
        ("bool", &["$"], vec![[json!("true"), json!("false")]]),
        ("int", &["$"], vec![[json!("7"), json!("8")]]),
        ("uint", &["$"], vec![[json!("7"), json!("8")]]),
        ("double", &["$"], vec![[json!("7.5"), json!("8.5")]]),
        ("string", &["$"], vec![[json!(7), json!(8)]]),
        ("bytes", &["$"], vec![[json!("ab"), json!("cd")]]),
        ("timestamp", &["$"], vec![instant.clone()]),
        ("duration", &["$"], vec![[json!("2s"), json!("3s")]]),
        ("matches", &["$", "$"], vec![[json!("abc"), json!("xyz")], [json!("^a"), json!("^b")]]),
        ("contains", &["$", "$"], vec![[json!("abc"), json!("xyz")], [json!("b"), json!("y")]]),
        ("startsWith", &["$", "$"], vec![[json!("abc"), json!("xyz")], [json!("a"), json!("x")]]),
        ("endsWith", &["$", "$"], vec![[json!("abc"), json!("xyz")], [json!("c"), json!("z")]]),
        of_time("getFullYear"),
        of_time("getMonth"),
        of_time("getDate"),
        of_time("getDayOfMonth"),
        of_time("getDayOfWeek"),
        of_time("getDayOfYear"),
        of_time("getHours"),
        of_time("getMinutes"),
        of_time("getSeconds"),
        of_time("getMilliseconds"),
        ("charAt", &["$", "$"], vec![[json!("abc"), json!("xyz")], [json!(1), json!(2)]]),
        ("indexOf", &["$", "$"], vec![[json!("abc"), json!("cba")], [json!("a"), json!("b")]]),
        ("lastIndexOf", &["$", "$"], vec![[json!("abc"), json!("cba")], [json!("a"), json!("b")]]),
        ("lowerAscii", &["$"], vec![[json!("AB"), json!("CD")]]),
        ("upperAscii", &["$"], vec![[json!("ab"), json!("cd")]]),
        (
            "replace",
            &["$", "$", "$"],
            vec![[json!("ab"), json!("cd")], [json!("a"), json!("b")], [json!("x"), json!("y")]],
        ),
        ("split", &["$", "$"], vec![[json!("a-b"), json!("c-d")], [json!("-"), json!("b")]]),
        ("substring", &["$", "$"], vec![[json!("abc"), json!("xyz")], [json!(1), json!(2)]]),
        ("trim", &["$"], vec![[json!(" a "), json!(" b ")]]),
        ("join", &["[$, 'z']", "$"], vec![[json!("a"), json!("b")], [json!("-"), json!("+")]]),
        ("reverse", &["$"], vec![[json!("ab"), json!("cd")]]),
        ("format", &["$", "[$]"], vec![[json!("%s"), json!("<%s>")], [json!("a"), json!("b")]]),
        ("strings.quote", &["$"], vec![[json!("a"), json!("b")]]),
        ("math.greatest", &["$", "$", "2"], vec![[json!(5), json!(6)], [json!(1), json!(9)]]),
        ("math.least", &["$", "$", "2"], vec![[json!(-5), json!(-6)], [json!(1), json!(-9)]]),
        ("math.ceil", &["$"], vec![[json!(7.25), json!(8.25)]]),
        ("math.floor", &["$"], vec![[json!(7.25), json!(8.25)]]),
        ("math.round", &["$"], vec![[json!(7.25), json!(8.25)]]),
        ("math.trunc", &["$"], vec![[json!(7.25), json!(8.25)]]),
        ("math.sqrt", &["$"], vec![[json!(16.0), json!(25.0)]]),
        ("math.abs", &["$"], vec![[json!(-16), json!(-25)]]),
        ("math.sign", &["$"], vec![[json!(-16), json!(25)]]),
        ("math.isNaN", &["double($)"], vec![[json!("NaN"), json!("1")]]),
        ("math.isInf", &["double($)"], vec![[json!("Infinity"), json!("1")]]),
        ("math.isFinite", &["double($)"], vec![[json!("1"), json!("NaN")]]),
        ("math.bitAnd", &["$", "$"], vec![[json!(12), json!(3)], [json!(10), json!(4)]]),
        ("math.bitOr", &["$", "$"], vec![[json!(12), json!(3)], [json!(10), json!(4)]]),
        ("math.bitXor", &["$", "$"], vec![[json!(12), json!(3)], [json!(10), json!(4)]]),
        ("math.bitNot", &["$"], vec![[json!(12), json!(3)]]),
        ("math.bitShiftLeft", &["$", "$"], vec![[json!(12), json!(3)], [json!(1), json!(2)]]),
        ("math.bitShiftRight", &["$", "$"], vec![[json!(12), json!(3)], [json!(1), json!(2)]]),
        ("base64.encode", &["bytes($)"], vec![[json!("ab"), json!("cd")]]),
        ("base64.decode", &["$"], vec![[json!("YWI="), json!("Y2Q=")]]),
    ]
}

fn call(name: &str, method: bool, args: &[String]) -> String {
    match (method, args) {
        (true, [receiver, rest @ ..]) => format!("{receiver}.{name}({})", rest.join(", ")),
        _ => format!("{name}({})", args.join(", ")),
    }
}

/// Conditions that read the data `event.a`, each with data for which it holds: for each function
/// and each of its arguments.
fn conditions() -> Vec<(String, Json)> {
    let mut out = Vec::new();
    let samples = samples();
    for (name, method) in charter_expr::apply::functions() {
        let (_, forms, values) = samples
            .iter()
            .find(|(known, ..)| *known == name)
            .unwrap_or_else(|| panic!("`{name}` is new: add a sample of its arguments"));
        for place in 0..values.len() {
            // All arguments are known, but the one in this place.
            let with = |one: &str| {
                let arg = |(i, form): (usize, &&str)| match values.get(i) {
                    Some([value, _]) => form.replace('$', &if i == place { one.to_owned() } else { value.to_string() }),
                    None => (*form).to_owned(),
                };
                call(name, method, &forms.iter().enumerate().map(arg).collect::<Vec<_>>())
            };
            let [value, other] = &values[place];
            let (read, same, different) = (with("event.a"), with(&value.to_string()), with(&other.to_string()));
            out.push((format!("{read} == {same} && {read} != {different}"), value.clone()));
        }
    }
    // What is not a function, but has a name like one.
    out.push(("type(event.a) == int".to_owned(), json!(1)));
    out.push(("type(timestamp(event.a)) == google.protobuf.Timestamp".to_owned(), json!("2026-01-01T00:00:00Z")));
    out.push(("[1].exists(math, math + event.a == 3) && math.abs(event.a) == 2".to_owned(), json!(2)));
    out
}

#[test]
fn nothing_is_proved_that_data_refutes_through_a_function() {
    let conditions = conditions();
    let mut source = String::from("events:\n");
    for i in 0..conditions.len() {
        source += &format!("  E{i}: {{data: {{type: object, required: [a], properties: {{a: {{}}}}}}}}\n");
    }
    source += "states:\n  s:\n    on:\n";
    for (i, (when, _)) in conditions.iter().enumerate() {
        source += &format!("      E{i}: {{target: t{i}, when: {}}}\n", Json::from(when.as_str()));
    }
    for i in 0..conditions.len() {
        source += &format!("  t{i}: {{type: final}}\n");
    }
    source += "properties:\n";
    for i in 0..conditions.len() {
        source += &format!("  - {{id: p{i}, never: \"in('t{i}')\"}}\n");
    }
    let machine = machine(&source);
    let begin = machine.start("r", &Envelope::host(0, Event::Start { input: json!(null) }, 0)).unwrap().snapshot;
    for (i, (when, data)) in conditions.iter().enumerate() {
        let by = Principal::new("p", &[]);
        let step = machine.step(&begin, &Envelope::event(1, &format!("E{i}"), json!({"a": data}), by, 0));
        let step = step.unwrap_or_else(|e| panic!("{when} with {data}: {e:?}"));
        assert_eq!(step.verdict, charter_kernel::Verdict::Accepted, "{when} with {data}");
    }
    // Almost nothing is explored with examples, so that the claims are from above.
    let report = report_with(&source, &Options { max_data: 1, effort: 20_000, ..Options::default() });
    let proved = report.findings.iter().filter(|f| f.verdict == Some(Verdict::Proved));
    let places: Vec<&str> = proved.map(|f| f.at.as_str()).collect();
    let mut wrong = Vec::new();
    for (i, (when, data)) in conditions.iter().enumerate() {
        let claims = [format!("/properties/{i}"), format!("/root/states/s/on/E{i}/0"), format!("/root/states/t{i}")];
        if claims.iter().any(|claim| places.contains(&claim.as_str())) {
            wrong.push(format!("{when}, which is true of {data}"));
        }
    }
    assert!(wrong.is_empty(), "called never true: {wrong:#?}");
    let left_open = report.findings.iter().filter(|f| f.verdict == Some(Verdict::Undecided)).count();
    assert!(left_open > conditions.len() / 2, "{:#?}", all(&report));
}
