//! Tests of syntax trees and syntax errors, one line each.

use super::parse;

/// Returns the canonical text of an expression.
#[track_caller]
fn reads_as(source: &str, expected: &str) {
    let ast = parse(source).unwrap_or_else(|e| panic!("{source}: {e}"));
    assert_eq!(ast.unparse(), expected, "{source}");
    assert_eq!(parse(expected).unwrap(), ast, "{source}");
}

/// Returns the error as `position: message (help)`.
#[track_caller]
fn refused(source: &str, expected: &str) {
    let e = parse(source).unwrap_err();
    assert_eq!(format!("{}..{}: {e}", e.span.start, e.span.end), expected, "{source}");
}

#[test]
fn precedence() {
    reads_as("1+2*3-4", "1 + 2 * 3 - 4");
    reads_as("(1+2)*3", "(1 + 2) * 3");
    reads_as("1-(2-3)", "1 - (2 - 3)");
    reads_as("a||b&&c==d+e*!f.g", "a || b && c == d + e * !f.g");
    reads_as("(a||b)&&(c)", "(a || b) && c");
    reads_as("a?b:c?d:e", "a ? b : c ? d : e");
    reads_as("(a?b:c)?d:(e?f:g)", "(a ? b : c) ? d : (e ? f : g)");
    reads_as("a<b==c in d", "a < b == c in d");
    reads_as("!!a", "!!a");
    reads_as("!(!a)", "!(!a)");
}

#[test]
fn minus_and_numbers() {
    reads_as("-9223372036854775808", "-9223372036854775808");
    reads_as("--1", "--1");
    reads_as("-(1)", "-(1)");
    reads_as("-(1.5).a", "-(1.5.a)");
    reads_as("2 -1", "2 - 1");
    reads_as("!-1", "!-1");
    reads_as("0xFFu + 0x10", "255u + 16");
    reads_as(".5 + 1e3", "0.5 + 1000.0");
    reads_as("1.size()", "1.size()");
    refused(
        "9223372036854775808",
        "0..19: `9223372036854775808` does not fit in a signed 64-bit integer (help: write a `u` after it to make it a uint)",
    );
    refused("1e999", "0..5: `1e999` is too large for a double");
    refused("12ab", "0..2: a name directly after a number (help: put a space or an operator between them)");
}

#[test]
fn names_fields_and_calls() {
    reads_as("a . b [ 0 ] . c ( 1 , 2 )", "a.b[0].c(1, 2)");
    reads_as("(a.b).c", "(a.b).c");
    reads_as(".a.`b c`", ".a.`b c`");
    reads_as("x.while", "x.while");
    reads_as("in('a.b') || 'a' in b", "in(\"a.b\") || \"a\" in b");
    reads_as("has(a.b)", "has(a.b)");
    reads_as("a.map(x, x > 1, x * 2)", "a.map(x, x > 1, x * 2)");
    reads_as("a.existsOne(x, x)", "a.exists_one(x, x)");
    reads_as("a.all(1, 2, 3, 4)", "a.all(1, 2, 3, 4)");
    reads_as("cel.bind(x, 1, x).y", "cel.bind(x, 1, x).y");
    reads_as("[1, 2,] == [] && {1: 2,} == {}", "[1, 2] == [] && {1: 2} == {}");
    refused("while", "0..5: `while` is reserved and cannot be a name");
    refused("a.in", "2..4: expected a field name, found `in` (help: write such a field as an index: `x[\"in\"]`)");
    refused(
        "has(a)",
        "0..5: `has` requires a field (help: write `has(x.field)`; for a key that is computed, `key in x`)",
    );
    refused("a.all(1, true)", "6..7: the variable of `all` must be a plain name");
    refused("a.all(x, x, true)", "9..10: the variable `x` of `all` is named twice");
    refused(
        "Foo{a: 1}",
        "3..4: message literals are not part of the language (help: write a map: `{\"field\": value}`)",
    );
    refused("a.?b", "2..3: optional values are not part of the language (help: check with `has(x.field)` first)");
}

#[test]
fn strings() {
    reads_as(r#"'a"b' + "c'd""#, r#""a\"b" + "c'd""#);
    reads_as(r"r'\n' + '''a'b'''", r#""\\n" + "a'b""#);
    reads_as(r"'\x41\u00e9\U0001F431\101'", "\"Aé🐱A\"");
    reads_as(r"b'\xff\101' + b'é'", r#"b"\xffA" + b"\xc3\xa9""#);
    refused("'abc", "4..4: the string is not closed (help: add `'`)");
    refused("'a\nb'", "2..2: the string is not closed on its line (help: use three quotes, or `\\n`)");
    refused(
        r"'\q'",
        "1..3: `\\q` is not an escape (help: write `\\\\` for a backslash, or put an `r` before the string)",
    );
    refused(r"'\ud800'", "1..7: the escape is not a Unicode character");
    refused(
        r"b'\u0041'",
        "2..4: `\\u` is not an escape (help: write `\\\\` for a backslash, or put an `r` before the string)",
    );
}

#[test]
fn what_is_missing_is_named() {
    refused("", "0..0: the expression is empty");
    refused("a +", "3..3: expected an operand, found the end");
    refused("(a", "2..2: expected `)`, found the end");
    refused("a b", "2..3: expected the end of the expression or an operator, found `b`");
    refused(
        "= 1",
        "0..1: unexpected character `=` (help: omit the leading `=`, which only marks expressions in charters)",
    );
    refused("a = b", "2..3: unexpected character `=` (help: equality is written `==`)");
    refused("f(a,)", "4..5: expected an argument, found `)`");
    refused("a ? b", "5..5: expected `:`, found the end");
    refused("a // comment\n +", "15..15: expected an operand, found the end");
}
