//! The parts of the random charters: conditions, actions, guards and properties.

pub(super) const OF_CONTEXT: [&str; 20] = [
    "context.n < 2",
    "context.n > 1",
    "context.n == 3",
    "context.flag",
    "!context.flag && context.n == 2",
    "context.who == null",
    "context.who != null",
    "size(context.list) < 3",
    "size(context.list) == 2",
    "context.kept != null && context.kept.x == 3",
    "has(context.kept.t)",
    "context.m > 2.5",
    "context.m <= 1.5",
    "context.s == 'b'",
    "context.n * 3 - 1 == 5",
    "context.kept == null || context.kept.s != context.s",
    "context.k > 1",
    "input.k == 2",
    "has(input.o)",
    "context.z == null",
];

pub(super) const OF_EVENT: [&str; 24] = [
    "event.x == 3",
    "event.x * 2 == 5",
    "event.x * 2 == 6",
    "event.x - 1 == 2",
    "event.x > context.n",
    "event.x + context.n < 3",
    "event.s == 'a'",
    "event.s != context.s",
    "has(event.t) && event.t == 'k'",
    "has(event.t)",
    "event.z == null",
    "event.z == context.z",
    "event.x in [1, 4]",
    "event.y > 2.5",
    "event.y < context.m",
    "event.x / 2 == 1 ? context.flag : event.s == 'a'",
    "context.kept.x == event.x",
    "event.x > context.k",
    "event.x >= 2 && event.x <= 3",
    "math.abs(event.x) > 2",
    "math.greatest(event.x, context.n) == 3",
    "strings.quote(event.s).size() == 3",
    "type(event.x) == int",
    "event.t < 'm'",
];

pub(super) const OF_SENDER: [&str; 13] = [
    "by.id != context.who",
    "by.id == context.who",
    "by.id in context.list",
    "!(by.id in context.list)",
    "by.id == 'p3'",
    "by.kind == 'agent'",
    "by.kind == 'person'",
    "by.auth == 'local'",
    "by.auth != 'none'",
    "'r' in by.roles",
    "context.list.exists(i, i == by.id)",
    "by.id < 'p2'",
    "size(by.roles) > 1",
];

/// Conditions that are true, or fail.
pub(super) const FAILING: [&str; 10] = [
    "6 / event.x == 6 / event.x",
    "event.x + 9223372036854775804 == 9223372036854775804 + event.x",
    "event.t == event.t",
    "event.t.size() >= 0",
    "6 / event.x < 100",
    "event.z + 1 > -100",
    "6 % (event.x - 2) < 100",
    "int(event.t) >= 0 || true",
    "context.list[1] != null",
    "event.t.startsWith('k') || event.x == 5",
];

pub(super) const OF_VALUE: [&str; 9] = [
    "context.at != null && now > timestamp(context.at)",
    "digest(event.s) == digest(context.s)",
    "context.mark == digest(event.s)",
    "event.s in context.map",
    "context.map[event.s] == event.x",
    "double(event.x) == context.m",
    "context.m == context.n",
    "event.y * 2.0 == 5.0",
    "size(context.map) == 2",
];

pub(super) const ACTIONS: [&str; 15] = [
    "assign: {n: '= context.n + 1'}",
    "assign: {n: '= context.n - 1'}",
    "assign: {n: 0}",
    "assign: {flag: '= !context.flag'}",
    "assign: {m: '= context.m * 2.0'}",
    "assign: {list: []}",
    "each: {in: context.list, as: i, do: [{assign: {n: '= context.n + 1'}}]}",
    "raise: {type: I}",
    "assign: {n: '= event.x'}",
    "assign: {kept: '= event.data', s: '= event.s'}",
    "assign: {m: '= event.y'}",
    "assign: {kept.x: '= event.x'}",
    "assign: {z: '= event.z'}",
    "raise: {type: I, data: {x: '= event.x'}}",
    "if: [{when: event.x > 2, do: [{assign: {flag: true}}]}, {do: [{assign: {flag: false, n: 2}}]}]",
];

pub(super) const ACTIONS_OF_SENDER: [&str; 3] = [
    "assign: {who: '= by.id'}",
    "assign: {list: '= context.list + [by.id]'}",
    "assign: {list: '= [by.id] + context.list', who: null}",
];

/// Actions that fail for some data.
pub(super) const FAILING_ACTIONS: [&str; 9] = [
    "assign: {n: '= 6 / event.x'}",
    "assign: {n: '= event.y'}",
    "assign: {s: '= event.t'}",
    "log: '= 1 / (event.x - 3)'",
    "emit: {type: out, data: '= event.t'}",
    "each: {in: event.l, as: i, do: [{log: '= 6 / i'}]}",
    "if: [{when: event.t == 'k', do: [{assign: {flag: true}}]}]",
    "assign: {'kept[event.s]': 1}",
    "assign: {'list[event.x]': q}",
];

pub(super) const ACTIONS_OF_LEDGER: [&str; 7] = [
    "grant: {kind: token, key: a, uses: 1}",
    "grant: {kind: token, key: a, expires: 5s, data: {x: '= context.n'}}",
    "revoke: {kind: token, key: a}",
    "revoke: {kind: token, all: true}",
    "open: {kind: duty, key: a, due: 3s}",
    "close: {kind: duty, key: a}",
    "close: {kind: duty, all: true}",
];

pub(super) const ACTIONS_OF_VALUE: [&str; 6] = [
    "assign: {at: '= string(now)'}",
    "assign: {mark: '= digest(event.s)'}",
    "assign: {'map[event.s]': '= event.x'}",
    "assign: {map: {}}",
    "assign: {m: '= event.x'}",
    "assign: {kept: '= context.map'}",
];

pub(super) const REQUIRED: [&str; 4] = [
    ", requires: [{use: {kind: token, key: a}}]",
    ", requires: [{use: {kind: token, key: a, when: entry.data.x == context.n}}]",
    ", requires: [{none: {kind: duty}}]",
    ", requires: [{open: {kind: duty, key: a}}]",
];

pub(super) const EXTRAS: [&str; 10] = [
    ", by: r",
    ", by: [r, s]",
    ", quorum: {count: 1}",
    ", quorum: {count: 2}",
    ", quorum: {count: 2, not_by: context.who}",
    ", quorum: {count: 3, of: r}",
    ", quorum: {count: 2}, agents: true",
    ", approves: context.kept",
    ", approves: {value: context.s, not_by: context.who}",
    ", approves: {value: context.kept, not_by: context.who}",
];

pub(super) const GUARDS: [&str; 7] = [
    "g0",
    "{not: g0}",
    "{not: g1}",
    "{and: [g0, {not: g2}]}",
    "{or: [g1, g2]}",
    "{not: {or: [g0, g2]}}",
    "{not: {and: [g1, g2]}}",
];

pub(super) const PROPERTIES: [&str; 22] = [
    "never: in('s1')",
    "never: in('s2')",
    "never: in('s3')",
    "never: in('s4')",
    "never: in('s3'), unless-before: E0",
    "never: in('s4'), unless-before: E1",
    "never: context.n > 2",
    "never: context.n < 0",
    "always: context.n < 4 || context.flag",
    "never: size(context.list) > 2",
    "never: context.kept != null && context.kept.x == 3",
    "never: context.flag && context.n == 1",
    "never: context.s == 'b' && in('s2')",
    "never: context.m > 4.0",
    "never: context.who != null && context.who in context.list",
    "never: in('s4') && context.who == null",
    "never: in('s4') && context.z != null",
    "never: in('s4') && context.k == 3",
    "never: size(context.map) == 2",
    "never: context.mark == digest('b')",
    "never: size(context.list) == 2 && context.list[0] == context.list[1]",
    "always: in('s0') || in('s1') || in('s2') || in('s3') || in('s4')",
];

pub(super) const PROPERTIES_OF_CHILDREN: [&str; 3] = [
    "never: \"actors.exists(a, x, x.machine == 'child' && 'c1' in x.state)\"",
    "never: \"actors.exists(a, x, x.machine == 'child' && x.context.v > 2)\"",
    "never: \"size(actors) > 2\"",
];
