// What embed.html shows: the elements are registered, and get their data as properties.
import "./components/charter-diff.js";
import "./components/charter-form.js";
import "./widget/sentinel-fsm-widget.js";

/** @param {string} selector @returns {any} */
const one = (selector) => document.querySelector(selector);

const run = new URLSearchParams(location.search).get("run");
if (run) one("sentinel-fsm-widget").run = run;

const form = one("charter-form");
form.schema = {
  type: "object",
  required: ["amount", "kind"],
  properties: {
    amount: { type: "number", minimum: 0, description: "In euros." },
    kind: { enum: ["new", "renewal"] },
    note: { type: "string", maxLength: 2000 },
    due: { type: "string", format: "date" },
    lines: { type: "array", items: { type: "object", required: ["item"], properties: { item: { type: "string", maxLength: 80 }, count: { type: "integer", minimum: 1 } } } },
  },
};
form.addEventListener("submit", (/** @type {CustomEvent} */ event) => {
  one("#data").hidden = false;
  one("#data").textContent = JSON.stringify(event.detail, null, 2);
});

one("#files").files = [
  { path: "greeting.txt", before: "Hello, world\nBye\n", after: "Guten Tag, world\nBye\n" },
  { path: "greeter.txt", before: null, after: "The greeting was written by sentinel.\n" },
];
one("#values").before = { goal: "greet", files: ["a", "b"], limit: 3 };
one("#values").after = { goal: "greet politely", files: ["a", "c", "b"] };
