#!/usr/bin/env python3
"""Verifies the hash chain of an exported run (`charter export RUN > run.jsonl`) independently of Charter's code.

    python3 verify_chain.py run.jsonl

The first line contains the charter: `charter.digest` is the SHA-256 of the text `charter.core`. Every
other line is a record: `hash` is the SHA-256 of the record without `hash`, as canonical JSON (RFC
8785); `prev` is the hash of the previous record, or 64 zeros in record 0; `seq` counts from 0. If the
host has dropped old records, the first line has `after`: the text of the last dropped `record`, and of
the `snapshot` after it, whose SHA-256 is in that record; the chain continues from there. In addition,
`charter verify` checks that the kernel gives these records for these events.

Exit code: 0 the chain is intact, 1 it is not, 2 the file cannot be read. Requires only Python 3.8.
"""

import hashlib
import json
import sys

ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def number(n):
    """Formats a number as ECMAScript does (RFC 8785, 3.2.2.3)."""
    if isinstance(n, int) and abs(n) < 2**53:
        return str(n)
    n = float(n)
    if n == int(n) and abs(n) < 2**53:
        return str(int(n))  # also -0.0
    # The shortest digits that give this double; Python computes the same ones.
    mantissa, _, exponent = repr(abs(n)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0)  # position of the decimal point in `whole + fraction`
    point -= len(whole + fraction) - len((whole + fraction).lstrip("0"))
    digits = digits.rstrip("0") or "0"
    k = len(digits)
    if k <= point <= 21:
        text = digits + "0" * (point - k)
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        e = point - 1
        text = digits[0] + ("." + digits[1:] if k > 1 else "") + "e" + ("+" if e > 0 else "-") + str(abs(e))
    return ("-" if n < 0 else "") + text


def string(s):
    out = []
    for c in s:
        if c in ESCAPES:
            out.append(ESCAPES[c])
        elif c < " ":
            out.append("\\u%04x" % ord(c))
        else:
            out.append(c)
    return '"' + "".join(out) + '"'


def canonical(value):
    """Canonical JSON (RFC 8785)."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, str):
        return string(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(v) for v in value) + "]"
    # Keys are sorted by UTF-16 code units.
    keys = sorted(value, key=lambda k: k.encode("utf-16-be"))
    return "{" + ",".join(string(k) + ":" + canonical(value[k]) for k in keys) + "}"


def digest(text):
    return "sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest()


def unique(pairs):
    """An object, if no key occurs twice: parsers disagree about which of the two values to keep."""
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("duplicate key")
    return value


def parse(text):
    return json.loads(text, object_pairs_hook=unique)


def check(lines):
    """Returns the first error (or None), the run, the number of records, and the head."""
    try:
        first = parse(lines[0]) if lines else {}
    except ValueError as e:
        return "line 1: not JSON: %s" % e, None, 0, None
    if not isinstance(first, dict) or first.get("journal") != 1:
        return "line 1: not the first line of an exported run", None, 0, None
    run, charter = first["run"], first["charter"]
    if digest(charter["core"]) != charter["digest"]:
        return "line 1: the charter does not match its digest", run, 0, None
    prev, begin = "sha256:" + "0" * 64, 0
    if "after" in first:
        where, text = "line 1: the record before the first one: ", first["after"]["record"]
        record = parse(text)
        said = record.pop("hash", None)
        if said != digest(canonical(record)):
            return where + "its content does not match its hash", run, 0, None
        if record["snapshot"] != digest(first["after"]["snapshot"]):
            return where + "it has another snapshot", run, 0, None
        if (record["run"], record["charter"]) != (run, charter["digest"]):
            return where + "it belongs to another run or charter", run, 0, None
        prev, begin = said, record["seq"] + 1
    for seq, line in enumerate(lines[1:], begin):
        where = "line %d: " % (seq - begin + 2)
        try:
            record = parse(line)
        except ValueError as e:
            return where + "not JSON: %s" % e, run, seq, prev
        said = record.pop("hash", None)
        given = digest(canonical(record))
        if said != given:
            return where + "its content does not match its hash: %s, but %s" % (said, given), run, seq, prev
        record["hash"] = said
        if canonical(record) != line:
            return where + "not in canonical form", run, seq, prev
        if record["seq"] != seq:
            return where + "`seq` is %s, expected %d" % (record["seq"], seq), run, seq, prev
        if record["run"] != run:
            return where + "it belongs to run %s" % record["run"], run, seq, prev
        if record["charter"] != charter["digest"]:
            return where + "it has another charter", run, seq, prev
        if record["prev"] != prev:
            return where + "`prev` is not the hash of the previous record", run, seq, prev
        prev = said
    if begin + len(lines) - 1 != first["records"] or prev != first["head"]:
        return "the file does not match its first line: expected %s records, head %s" % (first["records"], first["head"]), run, len(lines) - 1, prev
    return None, run, len(lines) - 1, prev


def self_test():
    """The examples of RFC 8785, 3.2.2 and appendix B."""
    numbers = {
        "0": "0", "-0.0": "0", "5e-324": "5e-324", "-5e-324": "-5e-324", "1.7976931348623157e308": "1.7976931348623157e+308",
        "9007199254740992": "9007199254740992", "295147905179352830000": "295147905179352830000", "9.999999999999997e22": "9.999999999999997e+22",
        "1e23": "1e+23", "1.0000000000000001e23": "1.0000000000000001e+23", "999999999999999700000": "999999999999999700000",
        "1e21": "1e+21", "9.999999999999997e-7": "9.999999999999997e-7", "0.000001": "0.000001", "333333333.33333325": "333333333.33333325",
        "-0.0000033333333333333333": "-0.0000033333333333333333", "1424953923781206.2": "1424953923781206.2", "4.50": "4.5", "2e-3": "0.002",
    }
    for written, expected in numbers.items():
        assert canonical(json.loads(written)) == expected, (written, canonical(json.loads(written)), expected)
    strings = json.loads('{"\\u20ac":"Euro","\\r":"CR","\\ufb33":"Hebrew","1":"One","\\ud83d\\ude00":"Smiley","\\u0080":"Control","\\u00f6":"o"}')
    order = ["CR", "One", "Control", "o", "Euro", "Smiley", "Hebrew"]
    found = [v for _, v in sorted(((canonical(strings).index('"%s"' % v), v) for v in strings.values()))]
    assert found == order, found
    assert canonical("\u20ac$\u000f\nA'B\"\\\\\"/") == '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    if len(arguments) == 2 and arguments[0] == "--numbers":
        with open(arguments[1], encoding="utf-8") as file:
            for line in file:
                print(number(float(line)))
        return 0
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with open(arguments[0], encoding="utf-8", newline="\n") as file:
            lines = file.read().split("\n")
    except UnicodeDecodeError:
        print("%s: not an exported run; write one with `charter export RUN -o FILE`" % arguments[0], file=sys.stderr)
        return 2
    except OSError as e:
        print("%s: %s" % (arguments[0], e), file=sys.stderr)
        return 2
    if lines and lines[-1] == "":
        lines.pop()
    try:
        sys.setrecursionlimit(10_000)
        wrong, run, records, head = check(lines)
    except (KeyError, TypeError, ValueError) as e:
        wrong, run, records, head = "not an exported run: %r" % e, None, 0, None
    if wrong:
        print("%s: %s" % (arguments[0], wrong))
        return 1
    print("%s: run %s: %d records, head %s: the chain is intact" % (arguments[0], run, records, head))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
