// The views Charters, Journal and Try it, in a browser, with the program itself.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axe, launch, picture } from "./support/browser.mjs";
import { Charter, unexpected } from "./support/charter.mjs";

/** @type {Charter} */
let server;
let browser;

before(async () => {
  server = new Charter();
  server.people({ ana: ["payment/clerk", "motion/member"], bob: ["payment/controller", "motion/member"], root: ["admin"] });
  [browser] = await Promise.all([launch(), server.start()]);
  await server.payment("view-1");
});

after(async () => {
  await browser?.close();
  await server?.close();
});

test("a charter is shown with its chart, and checked", async () => {
  const page = await server.page(browser, "bob", "#/charters");
  await page.getByRole("link", { name: /payment/ }).click();
  await page.getByText("Runs: 1 active.").waitFor();
  await page.getByRole("group", { name: "Chart" }).getByText("review").waitFor();
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByText(/explored/).waitFor({ timeout: 60_000 });
  assert.deepEqual(await axe(page), []);
  await picture(page, "charter");
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("a browser computes the hashes of the records again, and finds one that was changed on the way", async () => {
  const page = await server.page(browser, "bob", "#/journal");
  await page.getByRole("button", { name: "Verify the hashes" }).click();
  await page.getByText("2 records of 1 run: all hashes are right.").waitFor();
  assert.deepEqual(await axe(page), []);
  await picture(page, "journal");
  await page.route(/\/records\?/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replace("Blue Ink", "Blue Oil") });
  });
  await page.getByRole("button", { name: "Verify the hashes" }).click();
  await page.getByText("Run view-1: record 1 is not what was hashed.").waitFor();
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("the journal says what came last, and which timers are overdue", async () => {
  const page = await server.page(browser, "bob", "#/journal");
  const facts = async () => page.locator("view-journal dl.facts").innerText();
  await page.getByText("No timer is overdue.").waitFor();
  await server.payment("view-2");
  await page.getByText("1 of view-2").waitFor();
  const last = (await server.records("bob", "view-2")).at(-1);
  await page.getByText(last.hash.replace("sha256:", "")).waitFor();
  assert.match(await facts(), /Came\s+(just now|\d+ s ago)/);
  // Three days later, by the clock of the browser.
  await page.clock.install({ time: Date.now() + 73 * 3_600_000 });
  await page.reload();
  await page.getByText(/in review: a timer is overdue by/).first().waitFor();
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "Verify the hashes" }).click();
  await page.getByText(/all hashes are right/).waitFor();
  await page.reload();
  await page.getByText(/Verified in this browser .* 4 records of 2 runs/).waitFor();
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("an administrator sees the head, and queries the journal", async () => {
  const bob = await server.page(browser, "bob", "#/journal");
  await bob.getByRole("heading", { name: "Last record" }).waitFor();
  assert.equal(await bob.getByRole("heading", { name: "Head" }).count() + (await bob.locator("charter-sql").count()), 0);
  await bob.context().close();
  const page = await server.page(browser, "root", "#/journal");
  const before = await page.locator(".hash.head").innerText();
  await server.payment("view-3");
  await page.waitForFunction((known) => {
    const shown = document.querySelector("charter-page")?.shadowRoot ?? document;
    const find = (/** @type {any} */ at) => [...at.querySelectorAll("*")].flatMap((one) => (one.matches(".hash.head") ? [one] : one.shadowRoot ? find(one.shadowRoot) : []));
    const [hash] = find(shown);
    return hash && hash.innerText !== known;
  }, before);
  await page.getByRole("button", { name: "Run the query" }).click();
  await page.getByText(/^\d+ rows?, in \d+ ms$/).waitFor();
  await page.getByLabel("Saved queries").selectOption({ label: "The longest runs" });
  await page.getByRole("button", { name: "Run the query" }).click();
  await page.getByRole("columnheader", { name: "records" }).waitFor();
  await page.getByRole("cell", { name: "view-3" }).waitFor();
  assert.deepEqual(await axe(page), []);
  await picture(page, "journal-queries");
  const query = page.getByLabel("Query", { exact: true });
  await query.fill("SELECT 'a' || char(8238) || '<img src=x onerror=alert(1)>' AS hidden, 1.5 AS half, NULL AS none");
  await query.press("Control+Enter");
  await page.getByText("1 row, in").waitFor();
  assert.match(await page.locator("charter-sql td charter-text").evaluate((text) => text.shadowRoot.textContent), /aU\+202E<img src=x onerror=alert\(1\)>/);
  await page.getByRole("button", { name: "Save this query…" }).click();
  await page.getByLabel("Name").fill("Hidden");
  await page.keyboard.press("Enter");
  await page.reload();
  await page.getByLabel("Saved queries").selectOption({ label: "Hidden" });
  assert.match(await query.inputValue(), /^SELECT 'a'/);
  await page.getByRole("button", { name: "Forget this query" }).click();
  assert.equal(await page.getByRole("option", { name: "Hidden" }).count(), 0);
  assert.deepEqual(unexpected(page), []);
  await query.fill("DROP TABLE runs");
  await page.getByRole("button", { name: "Run the query" }).click();
  await page.getByRole("alert").getByText("read-only").waitFor();
  assert.deepEqual(await axe(page), []);
  await page.context().close();
});

test("a charter is tried by clicking its events; findings come as it is typed", async () => {
  const page = await server.page(browser, "bob", "#/try?charter=motion");
  const active = page.getByRole("group", { name: "Chart" }).locator("rect.active + text");
  await active.filter({ hasText: "open" }).waitFor();
  await page.getByRole("button", { name: "Propose" }).click();
  await page.getByLabel("Text").fill("Paint it green");
  await page.getByRole("button", { name: /^Send: Propose/ }).click();
  await active.filter({ hasText: "voting" }).waitFor();
  await page.getByRole("button", { name: "Agree" }).click();
  await page.getByText("This person may send nothing now.").waitFor();
  await page.getByLabel("as", { exact: true }).fill("another");
  await page.keyboard.press("Tab");
  await page.getByRole("button", { name: "Agree" }).click();
  await page.getByText("The run is done.").waitFor();
  await page.getByRole("button", { name: "Take back" }).click();
  await active.filter({ hasText: "voting" }).waitFor();
  await picture(page, "try");
  assert.deepEqual(await axe(page), []);
  await page.getByLabel("Charter", { exact: true }).fill("charter: 1\nid: broken\ninitial: nowhere\nstates: {a: {}}\n");
  await page.getByText(/nowhere/).nth(1).waitFor();
  assert.deepEqual(await server.ask("bob", "GET", "/v1/runs?charter=motion").then(({ body }) => body.runs), [], "nothing is stored");
  assert.deepEqual(unexpected(page, "422", "429"), []);
  await page.context().close();
});
