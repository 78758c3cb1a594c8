// The widget of sentinel, in every state, at a server that speaks as docs/http.md says.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { hostile } from "./support/hostile.mjs";
import { Sentinel } from "./support/sentinel.mjs";
import { axe, launch, open, picture, serve } from "./support/browser.mjs";

let browser, server, page;
const sentinel = new Sentinel();

before(async () => {
  [browser, server] = await Promise.all([launch(), serve((request, response) => sentinel.answer(request, response))]);
});

after(() => Promise.all([browser?.close(), server?.close()]));

beforeEach(async () => {
  Object.assign(sentinel, { roles: ["approver", "operator"], requests: [], started: [], delay: 0, isDown: false, charter: "sentinel" });
  sentinel.reset();
  await page?.context().close();
  page = await open(browser, `${server.url}/tests/support/blank.html`);
  await page.evaluate(() => import("/widget/sentinel-fsm-widget.js"));
});

/** Puts the widget on the page and waits until it knows the run. */
async function show(attributes = { run: "s" }) {
  await page.evaluate((all) => {
    const widget = document.createElement("sentinel-fsm-widget");
    for (const [name, value] of Object.entries(all)) widget.setAttribute(name, value);
    window.moves = [];
    widget.addEventListener("fsm:transition", (event) => window.moves.push(event.detail));
    window.widget = widget;
    document.querySelector("main").append(widget);
  }, attributes);
  if (attributes.run) await until(() => window.widget.getControls().length > 0 || window.widget.getStatus().message !== null || window.widget.state !== "IDLE");
}

const until = (condition, argument) => page.waitForFunction(condition, argument, { timeout: 8_000 });
const reach = (state) => until((wanted) => window.widget.state === wanted && window.widget.getStatus().primaryMetric === `State: ${wanted}`, state);
const status = () => page.evaluate(() => window.widget.getStatus());
const controls = () => page.evaluate(() => window.widget.getControls().map((control) => control.id));
const act = (id) => page.evaluate((wanted) => window.widget.getControls().find((control) => control.id === wanted).action(), id);
const files = [{ path: "greeting.txt", size: 34 }, { path: "<img src=x onerror=window.ran=1>\u202etxt", size: 1 }];

test("every state has its status and its controls, and arrives without asking", async () => {
  await show();
  assert.deepEqual(await status(), { state: "idle", primaryMetric: "State: IDLE", secondaryMetric: "No active cycle", lastActivity: null, message: null });
  assert.deepEqual(await controls(), ["test-cycle"]);
  await page.getByLabel("Goal", { exact: true }).fill("Greet in German");
  await page.getByRole("button", { name: "Start" }).click();
  await reach("CURATING_CONTEXT");
  assert.equal(await page.evaluate(() => window.widget.goal), "Greet in German");
  assert.deepEqual({ ...(await status()), lastActivity: 0 }, { state: "active", primaryMetric: "State: CURATING_CONTEXT", secondaryMetric: "Cycle: 1", lastActivity: 0, message: null });
  assert.deepEqual(await controls(), ["pause"]);

  sentinel.move("AWAITING_CONTEXT_APPROVAL", { bundle: { files } });
  await reach("AWAITING_CONTEXT_APPROVAL");
  assert.equal((await status()).state, "warning");
  assert.equal((await status()).message, "Waits for approval of the context");
  assert.deepEqual(await controls(), ["pause", "approve", "revise", "reject"]);
  assert.deepEqual(await act("revise"), { success: false, message: "Write what should change, or why, into the field first." });
  await picture(page, "widget-context");
  await page.getByLabel("Feedback").fill("also the tests");
  assert.deepEqual(await act("revise"), { success: true, message: "Sent back with your feedback" });
  assert.deepEqual(sentinel.requests.at(-1).body, { type: "REVISE_CONTEXT", data: { feedback: "also the tests" } });

  sentinel.move("AWAITING_CONTEXT_APPROVAL");
  await reach("AWAITING_CONTEXT_APPROVAL");
  assert.deepEqual(await act("pause"), { success: true, message: "Cycle paused" });
  assert.deepEqual([(await status()).state, (await status()).message], ["warning", "Paused"]);
  assert.deepEqual(await controls(), ["resume", "reject"]);
  assert.deepEqual(await act("resume"), { success: true, message: "Cycle resumed" });
  await until(() => window.widget.getControls().length === 4);
  await page.getByRole("button", { name: "Approve" }).click();
  await reach("PLANNING_WITH_CONTEXT");
  sentinel.move("GENERATING_PROPOSAL");
  await reach("GENERATING_PROPOSAL");
  assert.equal((await status()).state, "active");

  sentinel.move("AWAITING_PROPOSAL_APPROVAL", { proposal: { summary: "Greet <b>", changes: [{ operation: "MODIFY", file_path: "greeting.txt" }] } });
  await reach("AWAITING_PROPOSAL_APPROVAL");
  await picture(page, "widget-proposal");
  assert.deepEqual(await act("approve"), { success: true, message: "Approved the proposal" });
  await reach("APPLYING_CHANGESET");
  sentinel.move("REFLECTING");
  await reach("REFLECTING");
  assert.deepEqual(await controls(), ["pause"]);
  sentinel.move("ERROR", { error: { message: "verify failed", code: "verify" } });
  await reach("ERROR");
  assert.deepEqual([(await status()).state, (await status()).message], ["error", "FSM encountered an error: verify failed"]);
  assert.deepEqual(await controls(), ["reset"]);
  await picture(page, "widget-error");
  assert.deepEqual(await act("reset"), { success: true, message: "Back to the beginning" });
  await reach("IDLE");
  const history = await page.evaluate(() => window.widget.history);
  assert.deepEqual(history.map((one) => one.to), [
    "CURATING_CONTEXT", "AWAITING_CONTEXT_APPROVAL", "CURATING_CONTEXT", "AWAITING_CONTEXT_APPROVAL", "PLANNING_WITH_CONTEXT",
    "GENERATING_PROPOSAL", "AWAITING_PROPOSAL_APPROVAL", "APPLYING_CHANGESET", "REFLECTING", "ERROR", "IDLE",
  ]);
  assert.deepEqual(Object.keys(history[0]), ["from", "to", "timestamp", "context"]);
  assert.deepEqual(await page.evaluate(() => window.moves), history.map(({ from, to }) => ({ from, to })));
  assert.equal((await status()).lastActivity, history.at(-1).timestamp);
  assert.deepEqual(page.problems, []);
});

test("reject says why, in the words that were written", async () => {
  for (const [state, type] of [["AWAITING_CONTEXT_APPROVAL", "REJECT_CONTEXT"], ["AWAITING_PROPOSAL_APPROVAL", "REJECT_PROPOSAL"]]) {
    sentinel.move(state, { bundle: { files }, proposal: { summary: "s", changes: [] }, goal: "g", cycle: 1 });
    if (state === "AWAITING_CONTEXT_APPROVAL") await show();
    await reach(state);
    await page.getByLabel("Feedback").fill("not <these>, please");
    await page.getByRole("button", { name: "Reject" }).click();
    await reach("IDLE");
    assert.deepEqual(sentinel.requests.at(-1).body, { type, data: { reason: "not <these>, please" } });
    assert.equal(sentinel.requests.at(-1).headers["x-csrf-token"], "token");
  }
});

test("a click approves what was shown, or nothing; two clicks are one", async () => {
  sentinel.move("AWAITING_CONTEXT_APPROVAL", { bundle: { files } });
  await show();
  await reach("AWAITING_CONTEXT_APPROVAL");
  // Changed after it was shown, before the click.
  await page.evaluate(() => (window.approve = window.widget.getControls().find((control) => control.id === "approve")));
  sentinel.move("AWAITING_CONTEXT_APPROVAL", { bundle: { files: [...files, { path: "secret", size: 1 }] } });
  assert.deepEqual(await page.evaluate(() => window.approve.action()), { success: false, message: "the digest is that of something else" });
  assert.equal(sentinel.state, "AWAITING_CONTEXT_APPROVAL");
  await page.getByText("secret").waitFor();
  sentinel.delay = 300;
  sentinel.requests = [];
  await page.evaluate(() => {
    const button = window.widget.shadowRoot.querySelector("[data-control=approve]");
    button.click();
    button.click();
    window.widget.getControls().find((control) => control.id === "approve").action();
  });
  await reach("PLANNING_WITH_CONTEXT");
  assert.equal(sentinel.requests.length, 1);
});

test("a rejection of what has changed since it was shown is not sent through", async () => {
  sentinel.move("AWAITING_PROPOSAL_APPROVAL", { proposal: { summary: "s", changes: [] }, cycle: 1 });
  await show();
  await reach("AWAITING_PROPOSAL_APPROVAL");
  await page.getByLabel("Feedback").fill("no");
  await page.evaluate(() => (window.reject = window.widget.getControls().find((control) => control.id === "reject")));
  sentinel.record("note");
  assert.deepEqual(await page.evaluate(() => window.reject.action()), { success: false, message: "Something newer has happened; look again." });
  assert.equal(sentinel.state, "AWAITING_PROPOSAL_APPROVAL");
});

test("what one may not do is not offered", async () => {
  sentinel.roles = ["reader"];
  sentinel.move("AWAITING_CONTEXT_APPROVAL", { bundle: { files }, cycle: 1 });
  await show();
  await reach("AWAITING_CONTEXT_APPROVAL");
  assert.deepEqual(await controls(), []);
  assert.match(await page.evaluate(() => window.widget.shadowRoot.textContent), /You cannot approve this/);
});

test("a test cycle is a new run in a scratch workspace, which the widget then shows", async () => {
  await show({});
  assert.deepEqual(await controls(), ["test-cycle"]);
  assert.match((await act("test-cycle")).message, /scratch workspace: run s-test/);
  assert.deepEqual(sentinel.started, [{ charter: "sentinel", input: { workspace: "scratch:example", goal: "Test goal: Verify FSM functionality" } }]);
  await reach("CURATING_CONTEXT");
});

test("a cut is said, and mended by itself with nothing lost", async () => {
  sentinel.move("CURATING_CONTEXT", { cycle: 1, goal: "g" });
  await show();
  await reach("CURATING_CONTEXT");
  await until(() => window.widget.history.length === 1);
  sentinel.down();
  await until(() => /Connection lost/.test(window.widget.getStatus().message));
  sentinel.move("AWAITING_CONTEXT_APPROVAL", { bundle: { files } });
  sentinel.move("PLANNING_WITH_CONTEXT");
  sentinel.isDown = false;
  await reach("PLANNING_WITH_CONTEXT");
  await until(() => window.widget.history.length === 3 && window.widget.getStatus().message === null);
  // A server that comes back after the page was opened.
  await page.evaluate(() => window.widget.remove());
  sentinel.down();
  await page.evaluate(() => document.querySelector("main").append(window.widget));
  await until(() => /does not answer/.test(window.widget.getStatus().message));
  sentinel.isDown = false;
  await reach("PLANNING_WITH_CONTEXT");
});

test("no run of this name, and a run of another charter, are errors in words", async () => {
  await show({ run: "other" });
  assert.deepEqual([(await status()).state, (await status()).message], ["error", "no run `<i>x</i>`"]);
  assert.equal(await page.locator("sentinel-fsm-widget i").count(), 0);
  sentinel.charter = "fred";
  await page.evaluate(() => (window.widget.run = "s"));
  await until(() => /of the charter `fred`, not `sentinel`/.test(window.widget.getStatus().message));
  assert.deepEqual(await controls(), []);
});

test("nothing goes on after it was removed", async () => {
  sentinel.move("CURATING_CONTEXT", { cycle: 1 });
  await show();
  await reach("CURATING_CONTEXT");
  for (let wait = 0; sentinel.streams.size === 0; wait += 1) {
    assert.ok(wait < 100);
    await new Promise((done) => setTimeout(done, 20));
  }
  const running = await page.evaluate(() => {
    const [set, clear] = [window.setInterval, window.clearInterval];
    const timers = new Set();
    window.setInterval = (...all) => (timers.add(set(...all)), [...timers].at(-1));
    window.clearInterval = (timer) => (timers.delete(timer), clear(timer));
    window.widget.remove();
    document.querySelector("main").append(window.widget);
    const whileShown = timers.size;
    window.widget.remove();
    return [whileShown, timers.size];
  });
  assert.deepEqual(running, [1, 0]);
  for (let wait = 0; sentinel.streams.size > 0; wait += 1) {
    assert.ok(wait < 100, "a stream is still open");
    await new Promise((done) => setTimeout(done, 20));
  }
});

test("goals are text, whatever they hold", async () => {
  sentinel.move("CURATING_CONTEXT", { cycle: 1, goal: "<script>window.ran=1</script>" });
  await show();
  await reach("CURATING_CONTEXT");
  const shown = () => page.evaluate(() => {
    const goal = window.widget.shadowRoot.querySelector(".goal");
    return { text: (goal?.querySelector("charter-text")?.shadowRoot ?? goal)?.textContent, elements: [...(goal?.querySelectorAll("*") ?? [])].map((e) => e.localName) };
  });
  assert.deepEqual(await shown(), { text: "<script>window.ran=1</script>", elements: [] });
  for (const { text } of hostile) {
    sentinel.context.goal = text;
    sentinel.record("note");
    await until((goal) => window.widget.goal === goal, JSON.parse(JSON.stringify(text)));
    for (const name of (await shown()).elements) assert.ok(["charter-text"].includes(name), name);
  }
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.deepEqual(page.problems, []);
});

test("the shadow root is open from the start, and the element is registered once", async () => {
  const found = await page.evaluate(async () => {
    const { widget } = await import("/widget/sentinel-fsm-widget.js");
    const element = document.createElement("sentinel-fsm-widget");
    return [element.shadowRoot?.mode, widget];
  });
  assert.deepEqual(found, ["open", { element: "sentinel-fsm-widget", displayName: "Sentinel FSM", icon: "🔄", category: "agent" }]);
});

test("no violation of accessibility in light, dark and 320 px, and nothing is wider than that", async () => {
  sentinel.move("AWAITING_CONTEXT_APPROVAL", { bundle: { files: Array.from({ length: 60 }, (_, n) => ({ path: `src/${"deep/".repeat(10)}${n}.rs`, size: n })) }, goal: "g".repeat(3_000), cycle: 3 });
  await show();
  await reach("AWAITING_CONTEXT_APPROVAL");
  await until(() => window.widget.history.length === 1);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await axe(page), []);
  }
  await page.setViewportSize({ width: 320, height: 900 });
  assert.deepEqual(await axe(page), []);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320);
  const wide = await page.evaluate(() => {
    const root = window.widget.shadowRoot;
    const edge = root.querySelector(".panel").getBoundingClientRect().right;
    return [...root.querySelectorAll(".panel *")].filter((e) => e.getBoundingClientRect().right > edge).map((e) => e.className || e.localName);
  });
  assert.deepEqual(wide, []);
  await picture(page, "widget-320");
});
