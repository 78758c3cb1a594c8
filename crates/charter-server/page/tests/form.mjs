// Forms from schemas: every value can be written by a person, and is sent exactly.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { axe, launch, open, picture, serve } from "./support/browser.mjs";

let browser, server, page;

before(async () => {
  [browser, server] = await Promise.all([launch(), serve()]);
  page = await open(browser, `${server.url}/tests/support/blank.html`);
  await page.evaluate(async () => {
    const { formFor, errorsOf } = await import("/lib/form.js");
    Object.assign(window, { formFor, errorsOf, sent: [] });
    window.show = async (schema, options) => {
      document.querySelector("charter-form")?.remove();
      window.sent = [];
      const form = formFor(schema, options);
      form.addEventListener("submit", (event) => window.sent.push(JSON.stringify(event.detail)));
      document.querySelector("main").append(form);
      await form.updateComplete;
    };
  });
});

beforeEach(() => page.setViewportSize({ width: 900, height: 900 }));
after(() => Promise.all([browser?.close(), server?.close()]));

const show = (schema, options = {}) => page.evaluate((text) => window.show(...JSON.parse(text)), JSON.stringify([schema, options]));
const send = async () => {
  await page.getByRole("button", { name: "Send" }).click();
  return sent();
};
// As texts: values lose `__proto__` on their way from the browser.
const sent = async () => (await page.evaluate(() => window.sent)).map((text) => JSON.parse(text));
const alert = () => page.getByRole("alert").textContent();

const ORDER = {
  type: "object",
  required: ["customer", "amount", "urgent", "kind", "lines", "version", "how"],
  properties: {
    version: { const: 2, description: "Of the form." },
    customer: { type: "string", minLength: 1, maxLength: 80, title: "Customer", examples: ["ACME"] },
    note: { type: "string", maxLength: 2000, description: "What the reviewer should know." },
    amount: { type: "number", minimum: 0, maximum: 1e6, description: "In euros." },
    urgent: { type: "boolean" },
    kind: { enum: ["new", "renewal", "other"] },
    country: { enum: ["AT", "BE", "CH", "DE", "ES", "FR"] },
    due: { type: "string", format: "date" },
    at: { type: "string", format: "date-time" },
    contact: { type: "string", format: "email" },
    link: { type: "string", format: "uri" },
    lines: {
      type: "array", minItems: 1, maxItems: 3,
      items: { type: "object", required: ["item"], properties: { item: { $ref: "#/$defs/name" }, count: { type: "integer", minimum: 1 } } },
    },
    tags: { type: "array", uniqueItems: true, items: { type: "string" } },
    how: {
      oneOf: [
        { properties: { by: { const: "card" }, last4: { type: "string", pattern: "^\\d{4}$" } }, required: ["by", "last4"], type: "object" },
        { properties: { by: { const: "invoice" } }, required: ["by"], type: "object" },
      ],
    },
    discount: { type: ["number", "null"] },
    labels: { type: "object", additionalProperties: { type: "string" } },
  },
  additionalProperties: false,
  $defs: { name: { type: "string", minLength: 1, maxLength: 40 } },
};

test("a person writes every kind of field, and the data are exactly that", async () => {
  await show(ORDER);
  await page.getByLabel("Customer").fill("Zoë");
  await page.getByLabel("note").fill("two\nlines");
  await page.getByLabel("amount").fill("0.10");
  await page.getByRole("radiogroup", { name: "urgent" }).getByLabel("yes").check();
  await page.getByRole("radiogroup", { name: "kind" }).getByLabel("renewal").check();
  await page.getByLabel("country").selectOption("DE");
  await page.getByLabel("due").fill("2026-03-31");
  await page.getByLabel("at", { exact: true }).fill("2026-03-31T10:20:30");
  await page.getByLabel("contact").fill("zoe@example.org");
  await page.getByLabel("link").fill("https://example.org/?a=b");
  await page.getByLabel("item", { exact: false }).first().fill("paper");
  await page.getByRole("group", { name: "lines" }).getByRole("button", { name: "Add an item" }).click();
  await page.getByRole("group", { name: "Item 2" }).getByLabel("item").fill("ink");
  await page.getByRole("group", { name: "Item 2" }).getByLabel("count").fill("12");
  await page.getByRole("button", { name: "Move lines, item 2 up" }).click();
  await page.getByRole("button", { name: "Add tags" }).click();
  await page.getByLabel("tags, item 1", { exact: true }).fill("a");
  await page.getByLabel("how required").selectOption("by: card");
  await page.getByLabel("last4").fill("4242");
  await page.getByLabel("discount").selectOption("nothing (null)");
  await page.getByRole("button", { name: "Add labels" }).click();
  await page.getByRole("group", { name: "labels" }).getByRole("button", { name: "Add a field" }).click();
  await page.getByLabel("Name of the field").fill("__proto__");
  await page.getByLabel("Value of __proto__").fill("plain");
  await picture(page, "form-filled", { fullPage: true });
  const [data] = await send();
  const at = await page.evaluate(() => new Date("2026-03-31T10:20:30").toISOString().replace(".000Z", "Z"));
  assert.deepEqual(data.labels, JSON.parse('{"__proto__": "plain"}'));
  assert.deepEqual({ ...data, labels: 0 }, {
    version: 2, customer: "Zoë", note: "two\nlines", amount: 0.1, urgent: true, kind: "renewal", country: "DE", due: "2026-03-31", at,
    contact: "zoe@example.org", link: "https://example.org/?a=b", lines: [{ item: "ink", count: 12 }, { item: "paper" }], tags: ["a"],
    how: { by: "card", last4: "4242" }, discount: null, labels: 0,
  });
  assert.deepEqual(page.problems, []);
});

test("what is missing or wrong is said at its field, and nothing is sent", async () => {
  await show(ORDER);
  assert.deepEqual(await send(), []);
  const said = await alert();
  for (const name of ["customer: required", "amount: required", "urgent: choose yes or no", "kind: choose one", "lines/0/item: required", "how: choose one"]) {
    assert.ok(said.includes(name), `${name} in ${said}`);
  }
  await picture(page, "form-errors", { fullPage: true });
  // From the summary to the field by keyboard.
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.shadowRoot.activeElement.getAttribute("aria-invalid")), "true");
  assert.deepEqual(await axe(page), []);
});

test("numbers are sent exactly or not at all", async () => {
  const schema = { type: "object", required: ["n"], properties: { n: { type: "integer" }, x: { type: "number" } } };
  for (const [field, text, wanted] of [
    ["n", "9007199254740991", 9007199254740991], ["n", "-0", 0], ["n", "9007199254740992", /exactly/], ["n", "9007199254740993", /exactly/],
    ["n", "1.5", /whole number/], ["n", "1e3", 1000], ["n", "0x10", /whole number/], ["n", "١٢", /whole number/],
    ["x", "0.1", 0.1], ["x", "1.50", 1.5], ["x", "1e-7", 1e-7], ["x", "12345678901234567890", /exactly/],
    ["x", "0.1000000000000000055511151231257827", /more digits/], ["x", "1e400", /too large/], ["x", "1,5", /such as/], ["x", "NaN", /such as/],
  ]) {
    await show(schema, field === "x" ? { value: { n: 1 } } : {});
    await page.getByLabel(field).fill(text);
    const all = await send();
    if (wanted instanceof RegExp) assert.match(await alert(), wanted, text);
    else assert.deepEqual(all.map((data) => data[field]), [wanted], text);
  }
});

test("values come out as they went in", async () => {
  const any = [true, {}, { description: "anything" }];
  const values = [null, true, -1.5, "", " \u202e<b>\n", [], [[{}]], { a: { b: [1, "2", null] } }];
  const cases = [
    ...any.flatMap((schema) => values.map((value) => [schema, value])),
    [{ $ref: "#/$defs/a", $defs: { a: { allOf: [{ type: "object", properties: { p: { type: "integer" } } }, { required: ["p"] }] } } }, { p: 3 }],
    [{ type: "object", properties: { a: { type: "string" } } }, { a: "", other: [1] }],
    [{ type: "object", properties: { a: { type: "string", format: "date-time" } } }, { a: "2026-01-02T03:04:05.678+09:00" }],
    [{ type: "object", properties: { a: { type: "string", format: "date" } } }, { a: "someday" }],
    [{ type: "object", properties: { a: { type: "integer" } } }, { a: "not a number" }],
    [{ anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] }, ["x"]],
    [{ type: "object", patternProperties: { "^x": { type: "string" } } }, { xa: "1", y: [2] }],
    [{ type: "object", patternProperties: { "^x": { type: "string" }, "^y": {} }, additionalProperties: false }, { xa: "1", y: [2] }],
    [{ type: "array", prefixItems: [{ type: "string" }] }, ["x", 1]],
    [{ enum: [1, "1", null, { a: [] }] }, { a: [] }],
    [{ oneOf: [{ const: "a", title: "First" }, { const: "b", title: "Second" }] }, "b"],
    [{ type: "object", required: ["__proto__"], properties: JSON.parse('{"__proto__": {"type": "string"}}') }, JSON.parse('{"__proto__": "x"}')],
    [{ type: "object", maxProperties: 0 }, {}],
  ];
  const out = await page.evaluate(
    (text) => JSON.parse(text).map(([schema, value]) => {
      const { value: read, errors } = window.formFor(schema, { value }).read();
      return { read: JSON.stringify(read), errors };
    }),
    JSON.stringify(cases),
  );
  // A date that is not one stays, and is an error.
  out.forEach(({ read, errors }, index) => {
    const [schema, value] = cases[index];
    const name = JSON.stringify([schema, value]);
    if (value?.a === "someday") assert.deepEqual(errors, [{ pointer: "/a", message: "a date, such as 2026-03-31" }]);
    else assert.deepEqual([read, errors], [JSON.stringify(value), []], name);
  });
});

test("a part that is no form is JSON, that part alone, and says why", async () => {
  await show({
    type: "object",
    required: ["name", "odd"],
    properties: { name: { type: "string" }, odd: { type: "array", prefixItems: [{ type: "string" }], description: "Odd." } },
  });
  await page.getByLabel("name").fill("n");
  const odd = page.getByLabel("odd");
  assert.match(await page.locator("charter-form").evaluate((form) => form.shadowRoot.textContent), /JSON, because each item of the list has a schema of its own/);
  await odd.fill("[12345678901234567890]");
  assert.deepEqual(await send(), []);
  assert.match(await alert(), /exactly/);
  await odd.fill("[1, ");
  await send();
  assert.match(await alert(), /not JSON/);
  await odd.fill('[1.5, "12345678901234567890"]');
  assert.deepEqual(await send(), [{ name: "n", odd: [1.5, "12345678901234567890"] }]);
});

test("fields whose names follow a pattern", async () => {
  await show({ type: "object", additionalProperties: false, properties: { a: { type: "string" } }, patternProperties: { "^_": { type: "integer" } } });
  await page.getByRole("button", { name: "Add another field" }).click();
  await page.getByLabel("Name of the field").fill("note");
  await page.getByLabel("Value of note").fill("3");
  assert.deepEqual(await send(), []);
  assert.match(await alert(), /note: its name has to match \^_/);
  await page.getByLabel("Name of the field").fill("_note");
  assert.deepEqual(await send(), [{ _note: 3 }]);
});

test("a schema that contains itself opens on demand", async () => {
  await show({ $ref: "#/$defs/tree", $defs: { tree: { type: "object", required: ["name"], properties: { name: { type: "string" }, left: { $ref: "#/$defs/tree" }, children: { type: "array", items: { $ref: "#/$defs/tree" } } } } } });
  await page.getByLabel("name").fill("root");
  await page.getByRole("button", { name: "Add left" }).click();
  await page.getByRole("group", { name: "left" }).getByLabel("name").fill("leaf");
  assert.deepEqual(await send(), [{ name: "root", left: { name: "leaf" } }]);
  // Without an end: not a form, and no endless loop.
  await show({ $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } });
  assert.match(await page.locator("charter-form").evaluate((form) => form.shadowRoot.textContent), /refers to itself/);
  await show({ $ref: "#/$defs/a", $defs: { a: { type: "object", required: ["a"], properties: { a: { $ref: "#/$defs/a" } } } } });
  assert.ok((await page.locator("charter-form").evaluate((form) => form.shadowRoot.querySelectorAll("fieldset").length)) < 10);
});

test("the server's answer is shown at the field", async () => {
  const types = { "types.text": { maxLength: 20000, minLength: 1, type: "string" } };
  await show({ $defs: types, type: "object", required: ["feedback"], properties: { feedback: { $ref: "#/$defs/types.text" }, to: { type: "array", items: { type: "string" } } } }, { value: { feedback: "x", to: ["a"] } });
  await page.evaluate(() => {
    const problem = {
      refusal: { misfits: [
        { at: "/to/0", message: '"a" does not match <b>', rule: "/x/pattern" }, { at: "", message: '"feedback" is a required property', rule: "/required" },
        { at: "/elsewhere", message: "is not expected", rule: "/additionalProperties" },
      ] },
      record: { refusal: { misfits: [{}, { limit: "feedback" }, {}] } },
    };
    document.querySelector("charter-form").showErrors(window.errorsOf(problem));
  });
  const field = page.getByLabel("feedback");
  assert.equal(await field.getAttribute("aria-invalid"), "true");
  assert.match(await page.locator("charter-form").evaluate((form, id) => form.shadowRoot.getElementById(id).textContent, await field.getAttribute("aria-describedby")), /required/);
  assert.match(await alert(), /to\/0: "a" does not match <b>.*elsewhere: is not expected/s);
  // Typing mends it.
  await field.fill("more");
  assert.equal(await field.getAttribute("aria-invalid"), "false");
});

test("the same schema again keeps what was typed, another one does not", async () => {
  const schema = { type: "object", properties: { a: { type: "string" } } };
  await show(schema);
  await page.getByLabel("a", { exact: true }).fill("typed");
  const again = (other) => page.evaluate(async (s) => {
    const form = document.querySelector("charter-form");
    form.schema = s;
    await form.updateComplete;
    return form.read().value;
  }, other);
  assert.deepEqual(await again(structuredClone(schema)), { a: "typed" });
  assert.deepEqual(await again({ type: "object", properties: { b: { type: "string" } } }), {});
});

test("a value that is nested 50,000 times is an error in words", async () => {
  const found = await page.evaluate(() => {
    const value = JSON.parse(`${"[".repeat(50_000)}${"]".repeat(50_000)}`);
    const form = window.formFor(true, { value });
    document.querySelector("main").append(form);
    return form.updateComplete.then(() => {
      const { errors } = form.read();
      const text = form.shadowRoot.textContent;
      form.remove();
      return [errors.map((error) => error.message), /nested too deeply/.test(text)];
    });
  });
  assert.deepEqual(found, [["required"], true]);
});

test("an example of all the data can be filled in; what is required comes first", async () => {
  const example = { to: "x", amount: 3, lines: [{ n: 1 }] };
  await show({ type: "object", required: ["to"], examples: [example], properties: { amount: { type: "integer" }, lines: { type: "array", items: { type: "object", properties: { n: { type: "integer" } } } }, to: { type: "string" } } });
  assert.equal(await page.locator("charter-form .label").first().textContent(), "to");
  await page.getByRole("button", { name: "Fill in an example" }).click();
  assert.deepEqual(await send(), [example]);
});

test("keyboard only: fill, add, move, remove, send", async () => {
  await show({ type: "object", required: ["tags"], properties: { tags: { type: "array", minItems: 1, items: { type: "string", maxLength: 20 } } } });
  await page.evaluate(() => document.querySelector("charter-form").focus());
  const keys = async (...list) => {
    for (const key of list) await (key.startsWith("=") ? page.keyboard.type(key.slice(1)) : page.keyboard.press(key));
  };
  await keys("=one", "Tab", "Tab", "Enter"); // Remove, Add an item
  await keys("=two", "Tab", "Enter"); // Up: the focus goes with it
  await keys("Tab", "Tab", "Tab", "Tab", "Tab", "Enter", "=x"); // Add an item
  await keys("Shift+Tab", "Enter", "Control+Enter"); // Remove the one before
  assert.deepEqual(await sent(), [{ tags: ["two", "x"] }]);
});

test("labels of others are text, and the form fits 320 px, in light and dark", async () => {
  const hostile = "<img src=x onerror=window.ran=1>\u202e" + "w".repeat(200);
  await show({ type: "object", required: [hostile], title: hostile, description: hostile, properties: { [hostile]: { type: "string", description: hostile, examples: [hostile] }, e: { enum: [hostile, "b"] }, c: { oneOf: [{ title: hostile, type: "string" }, { type: "null" }] }, o: { type: "array", title: hostile } } });
  const texts = await page.locator("charter-form charter-text").evaluateAll((all) => all.map((element) => element.shadowRoot.textContent));
  assert.ok(texts.filter((text) => text.includes("<img src=x onerror=window.ran=1>U+202E")).length >= 5, String(texts));
  assert.equal(await page.locator("charter-form img").count(), 0);
  await page.setViewportSize({ width: 320, height: 900 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320);
  await show(ORDER, { value: { lines: [{ item: "a" }, { item: "b" }], tags: ["x"], labels: { k: "v" }, discount: 2, how: { by: "card" } } });
  await page.getByRole("button", { name: "Send" }).click();
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 320, height: 900 });
    assert.deepEqual(await axe(page), []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320);
    await picture(page, `form-320-${colorScheme}`, { fullPage: true });
  }
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.deepEqual(page.problems, []);
});
