// The pictures of docs/page.md, made with the program itself: `SCREENSHOTS=1 python3 .ci/page.py pictures`.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { axe, launch, PAGE } from "./support/browser.mjs";
import { Charter, unexpected } from "./support/charter.mjs";

const FOLDER = path.join(PAGE, "../../../docs/page");
const MAX_BYTES = 200_000;
const SIZE = { width: 1200, height: 800 };

/** @type {Charter} */
let server;
let browser;

before(async () => {
  if (!process.env.SCREENSHOTS) return;
  server = new Charter();
  server.people({ ana: ["payment/clerk", "sentinel/operator"], bob: ["payment/controller", "motion/member", "sentinel/approver", "sentinel/operator", "operator"], carol: ["motion/member"] });
  server.more = ["--offer", "sentinel", "--model", "offline"];
  [browser] = await Promise.all([launch(), server.start()]);
  await server.payment("march-rent", { amount: 1400, to: "Harbor Estates" });
  await server.payment("ink-order", { amount: 250, to: "Blue Ink Ltd" });
  await server.payment("paper-order", { amount: 86.4, to: "White Paper & Sons" });
  await server.send("bob", "paper-order", "REJECT", { reason: "Twice the price of last year" });
  await server.send("ana", "paper-order", "REQUEST", { amount: 43.2, to: "White Paper & Sons" });
  await server.send("ana", "paper-order", "APPROVE", { digest: "0".repeat(64) });
  await server.start_run("carol", "motion", "front-door");
  await server.send("carol", "front-door", "PROPOSE", { text: "Paint the front door green" });
  await server.send("carol", "front-door", "AGREE", {});
  await server.proposal("bob", "greeting");
});

after(async () => {
  await browser?.close();
  await server?.close();
});

/** @type {Record<string, {at: string, options?: object, ready: (page: any) => Promise<void>}>} */
const PICTURES = {
  inbox: { at: "#/inbox?run=ink-order", ready: open("ink-order", "Blue Ink Ltd") },
  "inbox-dark": { at: "#/inbox?run=ink-order", options: { colorScheme: "dark" }, ready: open("ink-order", "Blue Ink Ltd") },
  "inbox-narrow": { at: "#/inbox?run=front-door", options: { viewport: { width: 320, height: 640 } }, ready: open("front-door", "1 of 2 needed") },
  files: { at: "#/inbox?run=greeting", ready: open("greeting", "Guten Tag") },
  run: {
    at: "#/run/paper-order",
    ready: async (page) => {
      await page.getByRole("option", { name: /Refused: Approve/ }).click();
      await page.locator(".why").getByRole("link", { name: "authority" }).waitFor();
      await page.getByRole("group", { name: "Chart" }).waitFor();
      await page.getByText("All data after it").waitFor();
    },
  },
  charter: {
    at: "#/charters/payment",
    ready: async (page) => {
      await page.getByRole("group", { name: "Chart" }).getByText("review").waitFor();
      await page.getByRole("button", { name: "Check" }).click();
      await page.getByText(/explored/).waitFor({ timeout: 60_000 });
    },
  },
  journal: {
    at: "#/journal",
    ready: async (page) => {
      await page.getByRole("button", { name: "Verify the hashes" }).click();
      await page.getByText(/all hashes are right/).waitFor();
    },
  },
  try: {
    at: "#/try?charter=motion",
    ready: async (page) => {
      await page.getByRole("button", { name: "Propose" }).click();
      await page.getByLabel("Text").fill("Paint it green");
      await page.getByRole("button", { name: /^Send: Propose/ }).click();
      await page.getByRole("group", { name: "Chart" }).locator("rect.active + text", { hasText: "voting" }).waitFor();
    },
  },
};

/** A request of the list, when its content is there. @param {string} run @param {string} text */
function open(run, text) {
  return async (/** @type {any} */ page) => {
    await page.getByRole("link", { name: new RegExp(`\\b${run}\\b`) }).first().click();
    await page.getByRole("article").getByText(text).first().waitFor();
  };
}

for (const [name, { at, options, ready }] of Object.entries(PICTURES)) {
  test(`docs/page/${name}.png`, { skip: !process.env.SCREENSHOTS }, async () => {
    const page = await server.page(browser, "bob", at, { viewport: SIZE, ...options });
    await ready(page);
    // The pointer and the focus are not part of the picture.
    await page.mouse.move(0, 0);
    await page.evaluate(() => scrollTo(0, 0));
    assert.deepEqual(await axe(page), []);
    const file = path.join(FOLDER, `${name}.png`);
    await page.screenshot({ path: file });
    assert.ok(statSync(file).size < MAX_BYTES, `${name}.png has ${statSync(file).size} bytes`);
    assert.deepEqual(unexpected(page), []);
    await page.context().close();
  });
}
