// The list of runs and the view of one, in a browser, with the program itself.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { axe, launch, picture } from "./support/browser.mjs";
import { Charter, unexpected } from "./support/charter.mjs";

/** @type {Charter} */
let server;
let browser;

before(async () => {
  server = new Charter();
  server.people({ ana: ["payment/clerk", "motion/member"], bob: ["payment/controller", "motion/member", "operator"] });
  [browser] = await Promise.all([launch(), server.start()]);
});

after(async () => {
  await browser?.close();
  await server?.close();
});

/** The row of a record. */
const row = (page, text) => page.getByRole("listbox", { name: "Records" }).getByRole("option").filter({ hasText: text });

test("runs are found by status and text, and change while they are looked at", async () => {
  for (const run of ["list-1", "list-2"]) await server.payment(run);
  const page = await server.page(browser, "bob", "#/runs");
  await page.getByRole("row", { name: /list-1.*review/ }).waitFor();
  await page.getByRole("searchbox").fill("list-2");
  await page.getByRole("row", { name: /list-1/ }).waitFor({ state: "detached" });
  assert.match(page.url(), /text=list-2/);
  await server.send("ana", "list-2", "REQUEST", { amount: 1, to: "x" });
  await page.getByText("1 refusal", { exact: true }).waitFor();
  await page.getByLabel("Status").selectOption("done");
  await page.getByText("No run matches").waitFor();
  await page.getByRole("searchbox").fill("");
  await server.send("bob", "list-1", "charter.cancel");
  await page.getByLabel("Status").selectOption("cancelled");
  await page.getByRole("row", { name: /list-1/ }).waitFor();
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("why did this run stop? A refusal is explained in place", async () => {
  await server.payment("why-1");
  await server.send("ana", "why-1", "APPROVE", { digest: "0".repeat(64) });
  const page = await server.page(browser, "bob", "#/run/why-1", { viewport: { width: 1200, height: 800 } });
  await row(page, "Refused: Approve").click();
  const why = page.locator(".why");
  await why.getByRole("link", { name: "authority" }).waitFor();
  assert.match(await why.innerText(), /controller/);
  await picture(page, "run");
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("any record can be looked at: chart, data, what it changed; the address names it", async () => {
  await server.payment("past-1");
  const page = await server.page(browser, "bob", "#/run/past-1");
  await page.getByText("live, 2 records").waitFor();
  await page.getByRole("group", { name: "Chart" }).locator("rect.active + text", { hasText: "review" }).waitFor();
  await page.getByRole("button", { name: "The record before" }).click();
  await page.getByText("after record 0 of 1").waitFor();
  await page.getByRole("group", { name: "Chart" }).locator("rect.active + text", { hasText: "open" }).waitFor();
  assert.match(page.url(), /at=0$/);
  await page.reload();
  await page.getByText("after record 0 of 1").waitFor();
  await row(page, "Request").click();
  await page.locator("ins", { hasText: "Blue Ink Ltd" }).waitFor();
  await page.getByRole("button", { name: "Live" }).click();
  await server.send("bob", "past-1", "REJECT", { reason: "Not now" });
  await page.getByText("live, 3 records").waitFor();
  await row(page, "Reject").waitFor();
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("an operator pauses, resumes, forks, exports and cancels", async () => {
  await server.payment("ops-1");
  const page = await server.page(browser, "bob", "#/run/ops-1");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("Active", { exact: true }).waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
  const lines = (await readFile(await download.path(), "utf8")).trim().split("\n");
  const stored = (await server.records("bob", "ops-1")).map((record) => record.hash);
  assert.deepEqual(lines.map((line) => JSON.parse(line).hash), stored);
  await page.getByRole("button", { name: "Fork…" }).click();
  await page.getByLabel(/^Id/).fill("ops-2");
  await page.getByRole("button", { name: "Fork", exact: true }).click();
  await page.getByRole("heading", { name: "ops-2" }).waitFor();
  await page.getByText("Dry fork").waitFor();
  await page.goto(`${server.url}/#/run/ops-1`);
  await page.getByRole("button", { name: "Cancel…" }).click();
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await page.getByText("Cancelled", { exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Pause" }).count(), 0);
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("a print is white, has no buttons, and has every record", async () => {
  await server.payment("print-1");
  for (let times = 0; times < 36; times++) {
    await server.send("bob", "print-1", "REJECT", { reason: `Round ${times}` });
    await server.send("ana", "print-1", "REQUEST", { amount: times, to: "Blue Ink Ltd" });
  }
  const page = await server.page(browser, "bob", "#/run/print-1", { colorScheme: "dark" });
  await page.getByLabel("Colors").selectOption("dark");
  await page.getByText("live, 74 records").waitFor();
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), "rgb(15, 18, 22)");
  await page.evaluate(() => (window.print = () => (window.dispatchEvent(new Event("beforeprint")), (window.printed = true))));
  await page.keyboard.press("Control+p");
  await page.waitForFunction(() => window.printed);
  await page.emulateMedia({ media: "print" });
  const rows = page.locator("charter-timeline tbody tr");
  assert.equal(await rows.count(), 74);
  assert.match(await rows.last().innerText(), /^73\s/);
  assert.equal(await page.locator("button:visible").count(), 0);
  const colors = await page.evaluate(() => {
    const of = (element) => ((style) => [style.backgroundColor, style.color])(getComputedStyle(element));
    const run = document.querySelector("charter-app").shadowRoot.querySelector("charter-run");
    return [of(document.documentElement), of(run)];
  });
  assert.deepEqual(colors, [["rgb(255, 255, 255)", "rgb(27, 31, 36)"], ["rgba(0, 0, 0, 0)", "rgb(27, 31, 36)"]]);
  await picture(page, "run-print", { fullPage: true });
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("with reduced motion, nothing moves", async () => {
  await server.payment("still-1");
  const moving = async (reducedMotion) => {
    const page = await server.page(browser, "bob", "#/run/still-1", { reducedMotion });
    await page.getByRole("group", { name: "Chart" }).waitFor();
    await page.getByRole("button", { name: "Fork…" }).click();
    const found = await page.evaluate(() => {
      const all = [];
      const visit = (root) => {
        for (const element of root.querySelectorAll("*")) {
          const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(element);
          const moves = transitionDuration.split(", ").some((time) => parseFloat(time) > 0) || animationName !== "none" || scrollBehavior === "smooth";
          if (moves) all.push(`${element.localName} ${transitionDuration} ${animationName}`);
          if (element.shadowRoot) visit(element.shadowRoot);
        }
      };
      visit(document);
      return [...all, ...document.getAnimations().map((animation) => String(animation.effect?.target?.localName))];
    });
    await page.context().close();
    return found;
  };
  assert.deepEqual(await moving("reduce"), []);
  assert.notDeepEqual(await moving("no-preference"), [], "otherwise this test sees nothing");
});

test("who has no role reads no buttons that would be refused", async () => {
  await server.payment("ana-1");
  const page = await server.page(browser, "ana", "#/run/ana-1");
  await page.getByText("Nothing now.").waitFor();
  await page.getByRole("heading", { name: "Not by you now" }).waitFor();
  await page.getByText(/may be sent only by .*controller/).first().waitFor();
  for (const name of ["Pause", "Cancel…"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
  await page.goto(`${server.url}/#/run/none`);
  await page.getByText(/there is no run `none`/).waitFor();
  assert.deepEqual(unexpected(page, "404"), []);
  await page.context().close();
});

test("axe finds nothing: runs and run, light, dark, 320 pixels wide", async () => {
  await server.payment("axe-2");
  await server.send("ana", "axe-2", "APPROVE", { digest: "0".repeat(64) });
  for (const [name, options] of Object.entries({
    light: { colorScheme: "light" },
    dark: { colorScheme: "dark" },
    narrow: { viewport: { width: 320, height: 800 } },
  })) {
    const page = await server.page(browser, "bob", "#/runs", options);
    await page.getByRole("link", { name: "axe-2" }).waitFor();
    assert.deepEqual(await axe(page), [], `runs, ${name}`);
    await picture(page, `runs-${name}`);
    await page.getByRole("link", { name: "axe-2" }).click();
    await row(page, "Refused").click();
    await page.getByRole("group", { name: "Chart" }).waitFor();
    await page.getByText("All data after it").waitFor();
    assert.deepEqual(await axe(page), [], `run, ${name}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.equal(wide, false, `${name}: no sideways scrolling`);
    await picture(page, `run-${name}`);
    await page.context().close();
  }
});

test("any event and any start is a form; what the server refuses is shown at its field", async () => {
  const page = await server.page(browser, "ana", "#/runs");
  await page.getByRole("button", { name: "Start a run" }).click();
  await page.locator("select").filter({ hasText: "choose one" }).selectOption("payment");
  await page.getByLabel(/^Id/).fill("form-1");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByRole("heading", { name: "form-1" }).waitFor();
  await page.getByRole("button", { name: "Request" }).click();
  await page.getByRole("button", { name: /^Send: Request/ }).click();
  await page.getByText(/not right yet/).waitFor();
  await page.getByLabel(/^amount/).fill("12.5");
  await page.getByLabel(/^to/).fill("Blue Ink Ltd");
  await picture(page, "run-form");
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: /^Send: Request/ }).click();
  await page.getByText("live, 2 records").waitFor();
  assert.deepEqual((await server.records("ana", "form-1")).at(-1).event.data, { amount: 12.5, to: "Blue Ink Ltd" });
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("votes are shown, and who has voted reads why they may not again", async () => {
  await server.start_run("ana", "motion", "vote-9");
  await server.send("ana", "vote-9", "PROPOSE", { text: "Paint the door" });
  await server.send("ana", "vote-9", "AGREE");
  const page = await server.page(browser, "bob", "#/run/vote-9");
  await page.getByRole("list", { name: "Votes" }).getByText("Agree: 1 of 2 votes (ana), from member").waitFor();
  assert.deepEqual(await axe(page), []);
  await page.context().close();
  const own = await server.page(browser, "ana", "#/run/vote-9");
  await own.getByText(/has voted already/).waitFor();
  assert.deepEqual(unexpected(own), []);
  await own.context().close();
});
