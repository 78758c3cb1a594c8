// The inbox in a browser, with the program itself: nothing is pretended.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axe, launch, picture } from "./support/browser.mjs";
import { Charter, unexpected } from "./support/charter.mjs";

/** @type {Charter} */
let server;
let browser;

before(async () => {
  server = new Charter();
  server.people({
    ana: ["payment/clerk", "payment/controller", "motion/member"],
    bob: ["payment/controller", "motion/member"],
    carol: ["payment/controller", "motion/member"],
  });
  [browser] = await Promise.all([launch(), server.start()]);
});

after(async () => {
  await browser?.close();
  await server?.close();
});

/** Opens a request of the list. */
async function choose(page, run) {
  await page.getByRole("link", { name: new RegExp(`\\b${run}\\b`) }).first().click();
  await page.getByRole("article").getByText(run, { exact: true }).waitFor();
}

test("a wrong key is told so, and a session ends with sign out", async () => {
  const page = await (await browser.newContext()).newPage();
  await page.goto(server.url);
  await page.getByLabel("Your key").fill("chk_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").getByText(/key/).waitFor();
  await page.getByLabel("Your key").fill(server.keys.bob);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Nothing waits for you" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Nothing waits for you" }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Your key").waitFor();
  await page.reload();
  await page.getByLabel("Your key").waitFor();
  await page.context().close();
});

test("a login link is exchanged once, and its code does not stay in the address", async () => {
  const page = await (await browser.newContext()).newPage();
  const sent = [];
  await page.route(/\/v1\/session$/, (route) => {
    sent.push(route.request().postDataJSON());
    const body = { id: "uid:1000", kind: "person", auth: "session", roles: [], csrf: "token" };
    return route.fulfill({ status: 201, contentType: "application/json", body: JSON.stringify(body) });
  });
  await page.route(/\/v1\/(inbox|stream)/, (route) => route.fulfill({ contentType: "application/json", body: '{"requests": [], "all": true}' }));
  await page.goto(`${server.url}/#login=abc-123`);
  await page.getByText("uid:1000").waitFor();
  assert.deepEqual(sent, [{ code: "abc-123" }]);
  assert.equal(new URL(page.url()).hash, "#/inbox");
  await page.context().close();
});

test("a hidden tab gives its connection back, and has missed nothing when it is shown", async () => {
  const page = await server.page(browser, "bob");
  const open = () => page.evaluate(() => navigator.locks.query().then(({ held }) => held?.length ?? 0));
  await page.clock.install();
  // Another tab holds the lock, so this one does not go on.
  await page.evaluate(() => void navigator.locks.request("charter-live", () => new Promise(() => {})));
  const hide = (hidden) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => value });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  assert.equal(await open(), 1);
  const ended = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/v1/stream"));
  await hide(true);
  await page.clock.runFor(11_000);
  await ended;
  await server.payment("hidden-1");
  const resumed = page.waitForRequest((request) => request.url().endsWith("/v1/stream"));
  await hide(false);
  assert.match((await resumed).headers()["last-event-id"], /^\d+$/);
  await page.clock.runFor(1_000);
  await page.getByRole("link", { name: /\bhidden-1\b/ }).first().waitFor();
  await page.context().close();
  await server.send("bob", "hidden-1", "REJECT", { reason: "It was for a test." });
});

test("an inbox works alone in another page, with a key of its own", async () => {
  await server.payment("alone-1");
  const page = await (await browser.newContext()).newPage();
  await page.goto(`${server.url}/page/embed.html`);
  await page.evaluate(async (key) => {
    await import("/page/components/charter-inbox.js");
    const inbox = document.createElement("charter-inbox");
    inbox.setAttribute("key", key);
    document.body.append(inbox);
  }, server.keys.bob);
  await page.locator("charter-inbox").getByRole("button", { name: "Reject" }).click();
  await page.getByLabel("Reason").fill("Alone");
  await page.getByRole("button", { name: /^Send: Reject/ }).click();
  await page.getByText("The run is now in open.").waitFor();
  await page.context().close();
});

test("approved with the keyboard alone, from the first Tab", async () => {
  const page = await server.page(browser, "bob");
  await server.payment("keys-1");
  await page.getByRole("article").getByText("Blue Ink Ltd").first().waitFor();
  assert.match(await page.title(), /^\(1\) /);
  let reached = "";
  for (let presses = 0; presses < 40 && reached !== "Approve"; presses++) {
    await page.keyboard.press("Tab");
    reached = await page.evaluate(() => {
      let at = document.activeElement;
      while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
      return at?.textContent?.trim() ?? "";
    });
  }
  assert.equal(reached, "Approve");
  await page.keyboard.press("Enter");
  await page.getByText("The run is now done.").waitFor();
  const records = await server.records("bob", "keys-1");
  assert.deepEqual([records.at(-1).event.type, records.at(-1).by.id, records.length], ["APPROVE", "bob", 3]);
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("rejected with a reason, which arrives word for word", async () => {
  await server.payment("reason-1");
  const page = await server.page(browser, "bob");
  await choose(page, "reason-1");
  await page.getByRole("button", { name: "Reject" }).click();
  const reason = "Not this month:\n\t“twice” the price, <b>see</b> the offer of 3 May.";
  await page.getByLabel("Reason").fill(reason);
  await picture(page, "inbox-reject");
  await page.getByRole("button", { name: /^Send: Reject/ }).click();
  await page.getByText("The run is now in open.").waitFor();
  const last = (await server.records("bob", "reason-1")).at(-1);
  assert.equal(last.event.data.reason, reason);
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("what the server says about a reason is shown at its field", async () => {
  await server.payment("field-1");
  const page = await server.page(browser, "bob");
  await choose(page, "field-1");
  await page.getByRole("button", { name: "Reject" }).click();
  const reason = page.getByLabel("Reason");
  await reason.fill(" ");
  await page.getByRole("button", { name: /^Send: Reject/ }).click();
  const said = page.getByRole("alert").filter({ hasText: "[^ ]" });
  await said.waitFor();
  assert.equal(await said.count(), 1, "once");
  const seen = await reason.evaluate((field) => {
    const root = field.getRootNode();
    return [field.ariaInvalid, root.activeElement === field, root.getElementById(field.getAttribute("aria-describedby")).textContent.trim()];
  });
  assert.deepEqual(seen, ["true", true, (await said.innerText()).trim()]);
  assert.deepEqual(await axe(page), []);
  await picture(page, "inbox-refused-reason");
  await reason.fill("Too expensive");
  await page.getByRole("button", { name: /^Send: Reject/ }).click();
  await page.getByText("The run is now in open.").waitFor();
  assert.deepEqual(unexpected(page, "422"), []);
  await page.context().close();
});

test("the list says what each request is about, and finds it by that", async () => {
  for (const [run, to] of [["about-1", "Red Ink Ltd"], ["about-2", "Green Ink Ltd"]]) await server.payment(run, { to });
  const page = await server.page(browser, "bob");
  await page.getByRole("link", { name: /amount 250, to Red Ink Ltd/ }).waitFor();
  const filter = page.getByLabel("Filter");
  if (await filter.count()) {
    await filter.fill("green ink");
    await page.getByRole("link", { name: /Red Ink/ }).waitFor({ state: "detached" });
  }
  await page.getByRole("link", { name: /Green Ink Ltd/ }).waitFor();
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("where a run is now is said as long as it is there, and whether it asks again", async () => {
  await server.payment("again-1");
  const page = await server.page(browser, "bob");
  await choose(page, "again-1");
  await server.send("bob", "again-1", "REJECT", { reason: "First" });
  await page.getByText("The run is now in open.").waitFor();
  await server.send("ana", "again-1", "REQUEST", { amount: 251, to: "Blue Ink Ltd" });
  await page.getByText("The run is now in review.").waitFor();
  assert.equal(await page.getByText("The run is now in open.").count(), 0);
  const again = page.getByRole("link", { name: "It asks again" });
  await again.waitFor();
  await again.click();
  await page.getByRole("article").getByRole("button", { name: "Approve" }).click();
  await page.getByText("The run is now done.").waitFor();
  await page.context().close();
});

test("what changed since the approval was shown last is shown, and nothing to who sees it first", async () => {
  await server.payment("again-2");
  const page = await server.page(browser, "bob");
  await choose(page, "again-2");
  await page.getByRole("article").getByText("Blue Ink Ltd").first().waitFor();
  assert.equal(await page.getByText("Since you saw it last").count(), 0);
  await server.send("carol", "again-2", "REJECT", { reason: "too much" });
  await server.send("ana", "again-2", "REQUEST", { amount: 125, to: "Blue Ink Ltd" });
  await page.getByRole("link", { name: /It asks again/ }).click();
  const since = page.locator("charter-since");
  await since.getByText("1 part differs").waitFor();
  await since.locator(".removed", { hasText: "250" }).waitFor();
  await since.locator(".added", { hasText: "125" }).waitFor();
  assert.deepEqual(await axe(page), []);
  await picture(page, "inbox-since");
  const first = await server.page(browser, "carol");
  await choose(first, "again-2");
  await first.getByRole("article").getByText("125").first().waitFor();
  assert.equal(await first.getByText("Since you saw it last").count(), 0);
  assert.deepEqual([unexpected(page), unexpected(first)], [[], []]);
  for (const one of [page, first]) await one.context().close();
});

test("a double click is one event, and the second approver reads who decided", async () => {
  await server.payment("double-1");
  const [bob, carol] = await Promise.all([server.page(browser, "bob"), server.page(browser, "carol")]);
  await Promise.all([choose(bob, "double-1"), choose(carol, "double-1")]);
  await bob.getByRole("button", { name: "Approve" }).dblclick();
  for (const page of [bob, carol]) {
    const decided = page.getByRole("article").getByRole("status");
    await decided.getByText("Approve", { exact: true }).first().waitFor();
    await decided.getByText("bob", { exact: true }).waitFor();
  }
  assert.equal(await carol.getByRole("button", { name: "Approve" }).count(), 0);
  assert.equal((await server.records("bob", "double-1")).length, 3);
  await bob.context().close();
  await carol.context().close();
});

test("a decision that comes late is answered with who was first", async () => {
  await server.payment("late-1");
  const page = await server.page(browser, "carol");
  await choose(page, "late-1");
  // The page does not hear of it in time: its requests of the stream and the inbox wait.
  await page.route(/\/v1\/(stream|inbox)/, () => {});
  const [request] = (await server.ask("bob", "GET", "/v1/inbox?run=late-1")).body.requests;
  const { digest } = request.decisions.find((decision) => decision.type === "APPROVE").demands.approves;
  await page.evaluate(() => window.stop());
  assert.equal((await server.send("bob", "late-1", "APPROVE", { digest })).status, 200);
  const approve = page.getByRole("button", { name: "Approve" });
  if (await approve.count()) await approve.click({ timeout: 1000 }).catch(() => {});
  await page.unroute(/\/v1\/(stream|inbox)/);
  await page.getByText("The run is now done.").waitFor();
  await page.getByRole("article").getByText("bob", { exact: true }).waitFor();
  await page.context().close();
});

test("who proposed it cannot approve it, and reads why", async () => {
  await server.payment("eyes-1");
  const page = await server.page(browser, "ana");
  await choose(page, "eyes-1");
  const approve = page.getByRole("button", { name: "Approve" });
  assert.ok(await approve.isDisabled());
  await page.getByText(/Four eyes: this came from ana/).waitFor();
  await picture(page, "inbox-four-eyes");
  await page.context().close();
});

test("votes are counted, and a voter is told to wait", async () => {
  await server.start_run("ana", "motion", "vote-1");
  await server.send("ana", "vote-1", "PROPOSE", { text: "Paint it green" });
  const page = await server.page(browser, "bob");
  await choose(page, "vote-1");
  await page.getByText("0 of 2 needed, from member.").waitFor();
  await page.getByRole("button", { name: "Agree" }).click();
  await page.getByText("1 of 2 needed, from member.").waitFor();
  await page.getByText("You have voted; others have to agree.").waitFor();
  await server.send("carol", "vote-1", "AGREE", {});
  await page.getByText("The run is now done.").waitFor();
  await page.context().close();
});

test("put off, seen and assigned: on every device of everybody, and nothing is decided", async () => {
  for (const run of ["mark-1", "mark-2"]) await server.payment(run);
  const [bob, other, carol] = await Promise.all(["bob", "bob", "carol"].map((who) => server.page(browser, who)));
  await choose(carol, "mark-1");
  await choose(bob, "mark-1");
  await bob.getByText("Seen by carol.").waitFor();
  await bob.getByRole("button", { name: "tomorrow" }).click();
  const group = (page, title) => page.locator("section").filter({ has: page.getByRole("heading", { name: title, exact: true }) });
  await group(other, "Later").getByRole("link", { name: /mark-1/ }).waitFor();
  await group(carol, "Waiting for you").getByRole("link", { name: /mark-1/ }).waitFor();
  await choose(other, "mark-1");
  await other.getByRole("button", { name: "Now" }).click();
  await group(bob, "Waiting for you").getByRole("link", { name: /mark-1/ }).waitFor();

  await choose(bob, "mark-2");
  await bob.getByLabel("Assign to:").fill("nobody");
  await bob.getByRole("button", { name: "Assign", exact: true }).click();
  await bob.getByRole("alert").getByText(/nobody called/).waitFor();
  await bob.getByLabel("Assign to:").fill("carol");
  assert.deepEqual(await axe(bob), []);
  await bob.getByRole("button", { name: "Assign", exact: true }).click();
  await group(other, "Assigned to others").getByRole("link", { name: /mark-2/ }).waitFor();
  await choose(carol, "mark-2");
  await carol.getByText("Assigned to carol by bob").waitFor();
  await carol.getByRole("button", { name: "Release" }).click();
  await group(other, "Waiting for you").getByRole("link", { name: /mark-2/ }).waitFor();
  assert.equal((await server.records("bob", "mark-2")).length, 2, "no records");
  assert.deepEqual([unexpected(bob, "422"), unexpected(other), unexpected(carol)], [[], [], []]);
  for (const page of [bob, other, carol]) await page.context().close();
});

test("expiry while the page is open is announced, and nothing is decided", async () => {
  const page = await server.page(browser, "bob");
  await server.payment("soon-1", { soon: true });
  await choose(page, "soon-1");
  await page.getByText("without an answer").waitFor({ timeout: 15_000 });
  assert.equal((await server.records("bob", "soon-1")).at(-1).state[0], "expired");
  await page.context().close();
});

test("what expired while the page was closed is told to who could have decided, until the tab is closed", async () => {
  await server.payment("missed-1", { soon: true });
  await server.reach("bob", "missed-1", "expired");
  const page = await server.page(browser, "bob");
  const missed = page.locator("section", { has: page.getByRole("heading", { name: "Expired while you were away" }) });
  await missed.getByRole("link", { name: /missed-1/ }).getByText("unseen").waitFor();
  await missed.getByRole("link", { name: /missed-1/ }).click();
  await page.getByText("unseen: nobody had opened it").waitFor();
  await page.getByRole("article").getByText("Blue Ink Ltd").first().waitFor();
  assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0, "nothing to decide any more");
  assert.deepEqual(await axe(page), []);
  await picture(page, "inbox-missed");
  await page.goto(`${server.url}/#/inbox`);
  await page.reload();
  await missed.getByRole("link", { name: /missed-1/ }).waitFor();
  // Another tab of the same browser is opened later: it is no news there.
  const later = await page.context().newPage();
  await later.goto(`${server.url}/#/inbox`);
  await later.getByText(/for you|nothing waits for you/).first().waitFor();
  await later.waitForTimeout(1_000);
  assert.equal(await later.getByRole("link", { name: /missed-1/ }).count(), 0);
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("the server is killed and comes back: the page says so, recovers by itself, and shows the truth", async () => {
  await server.payment("kill-1");
  const page = await server.page(browser, "bob");
  await choose(page, "kill-1");
  await server.kill();
  await page.getByText(/Connection lost\. Shown as of/).waitFor();
  await picture(page, "inbox-lost");
  await server.start();
  await server.payment("kill-2");
  const session = page.getByLabel("Your key");
  const arrived = page.getByRole("link", { name: /\bkill-2\b/ });
  // Sessions end with the server: the page asks for the key again, and goes on where it was.
  await session.or(arrived).waitFor({ timeout: 20_000 });
  if (await session.count()) {
    await session.fill(server.keys.bob);
    await page.keyboard.press("Enter");
  }
  await arrived.waitFor();
  await page.getByText("Connection lost").waitFor({ state: "detached" });
  await page.context().close();
});

test("nothing of what others write runs, and what hides is visible", async () => {
  const hostile = [
    "<img src=x onerror=window.ran=1>", "<script>window.ran=1</script>", "</style><svg onload=window.ran=1>", "javascript:window.ran=1",
    "pay \u202e052$\u202c now", "zero\u200bwidth", "tag\u{e0041}\u{e0042}", "${window.ran=1}", "{{constructor.constructor('window.ran=1')()}}",
    "x".repeat(200_000),
  ];
  const page = await server.page(browser, "bob");
  for (const [index, to] of hostile.entries()) await server.payment(`hostile-${index}`, { to });
  for (const [index] of hostile.entries()) await choose(page, `hostile-${index}`);
  await choose(page, "hostile-4");
  await page.getByRole("article").getByText("U+202E").first().waitFor();
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("axe finds nothing: light, dark, 320 pixels wide", async () => {
  await server.payment("axe-1");
  for (const [name, options] of Object.entries({
    light: { colorScheme: "light" },
    dark: { colorScheme: "dark" },
    narrow: { viewport: { width: 320, height: 800 } },
  })) {
    const page = await server.page(browser, "bob", "#/inbox", options);
    await choose(page, "axe-1");
    await page.getByText("Exactly this is approved").waitFor();
    assert.deepEqual(await axe(page), [], name);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.equal(wide, false, `${name}: no sideways scrolling`);
    await picture(page, name === "light" ? "inbox" : `inbox-${name}`);
    if (name === "light") {
      await page.keyboard.press("?");
      await page.getByRole("heading", { name: "Keys" }).waitFor();
      assert.deepEqual(await axe(page), [], "help");
      await page.keyboard.press("Escape");
      await page.keyboard.press("g");
      await page.keyboard.press("r");
      await page.getByRole("heading", { name: "Runs" }).waitFor();
    }
    await page.context().close();
  }
});
