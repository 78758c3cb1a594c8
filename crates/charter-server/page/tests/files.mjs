// The files of a changeset, before and after, as a reviewer of `sentinel` sees them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { canonical } from "../lib/digest.js";
import { axe, launch, picture } from "./support/browser.mjs";
import { Charter, unexpected } from "./support/charter.mjs";

/** @type {Charter} */
let server;
let browser;

before(async () => {
  server = new Charter();
  server.people({ ana: ["sentinel/operator", "sentinel/approver"] });
  server.more = ["--offer", "sentinel", "--model", "offline"];
  [browser] = await Promise.all([launch(), server.start()]);
});

after(async () => {
  await browser?.close();
  await server?.close();
});

test("a reviewer reads what each file was and would be, approves it, and finds it in the run's past", async () => {
  await server.proposal("ana", "files-1");
  const page = await server.page(browser, "ana");
  await page.getByRole("link", { name: /Greet in German/ }).first().click();
  const article = page.getByRole("article");
  await article.locator(".removed", { hasText: "Hello" }).waitFor();
  await article.locator(".added", { hasText: "Guten Tag" }).waitFor();
  await article.locator(".added", { hasText: "The greeting was written by sentinel." }).waitFor();
  await article.getByRole("button", { name: "Show greeter.txt" }).waitFor();
  assert.deepEqual(await axe(page), []);
  await picture(page, "files-request");

  const waiting = await server.reach("ana", "files-1", "AWAITING_PROPOSAL_APPROVAL");
  const run = await server.page(browser, "ana", `#/run/files-1?at=${waiting.seq}`);
  await run.getByRole("heading", { name: /Changes to files/ }).waitFor();
  await run.locator(".added", { hasText: "Guten Tag" }).first().waitFor();
  assert.deepEqual(await axe(run), []);
  await picture(run, "files-run", { fullPage: true });

  await article.getByRole("button", { name: "Approve" }).click();
  await server.reach("ana", "files-1", "IDLE");
  // The run has forgotten the changeset; its past has not.
  await run.reload();
  await run.getByText(`after record ${waiting.seq} of`).waitFor();
  await run.locator(".added", { hasText: "Guten Tag" }).first().waitFor();
  assert.deepEqual([...unexpected(page), ...unexpected(run)], []);
  await page.context().close();
  await run.context().close();
});

test("a reviewer leaves a file out: exactly the rest is approved and applied", async () => {
  await server.proposal("ana", "files-3");
  const page = await server.page(browser, "ana", "#/inbox?run=files-3");
  await page.getByRole("link", { name: /files-3/ }).first().click();
  const article = page.getByRole("article");
  await article.getByText("2 of 2 files chosen").waitFor();
  const whole = await article.locator(".digest").innerText();
  await article.getByRole("checkbox", { name: /greeter.txt/ }).uncheck();
  await article.getByRole("button", { name: "Approve 1 of 2 files" }).waitFor();
  assert.notEqual(await article.locator(".digest").innerText(), whole);
  assert.deepEqual(await axe(page), []);
  await picture(page, "files-choice");

  await article.getByRole("checkbox", { name: /greeting.txt/ }).uncheck();
  await article.getByText(/nothing to approve/).waitFor();
  assert.equal(await article.getByRole("button", { name: /^Approve/ }).isDisabled(), true);
  await article.getByRole("checkbox", { name: /greeting.txt/ }).check();
  await article.getByRole("button", { name: "Approve 1 of 2 files" }).click();

  await server.reach("ana", "files-3", "IDLE");
  const records = await server.records("ana", "files-3");
  const approval = records.find((record) => record.event.type === "APPROVE_PROPOSAL");
  assert.deepEqual([approval.verdict, approval.event.data.accepted], ["accepted", ["greeting.txt"]]);
  const applied = records.flatMap(({ effects = [] }) => effects).find(({ src }) => src === "apply");
  assert.deepEqual(applied.input.changeset.changes.map(({ file_path }) => file_path), ["greeting.txt"]);
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("canonical JSON is that of the kernel, also for names that are numbers", () => {
  const value = JSON.parse('{"b":[1e21,0.1,1.0,"\\u2028\\u0007"],"10":1,"9":{"\\ue000":1,"\\ud83d\\ude00":2},"__proto__":null}');
  assert.equal(canonical(value), '{"10":1,"9":{"\u{1f600}":2,"\ue000":1},"__proto__":null,"b":[1e+21,0.1,1,"\u2028\\u0007"]}');
});

test("a content that cannot be read is said, and not taken for an empty file", async () => {
  await server.proposal("ana", "files-2");
  const page = await server.page(browser, "ana", "#/runs");
  let blobs = 0;
  await page.route(/\/blobs\//, (route) => {
    blobs += 1;
    if (blobs === 1) return route.fulfill({ status: 413, contentType: "application/problem+json", body: '{"code":"too-large","detail":"the content has 9 bytes"}' });
    return route.fulfill({ contentType: "application/octet-stream", body: Buffer.from([0, 255, 1]) });
  });
  await page.goto(`${server.url}/#/inbox?run=files-2`);
  await page.getByRole("link", { name: /files-2/ }).first().click();
  await page.getByText("the content has 9 bytes").waitFor();
  await page.getByText("not text (3 bytes)").waitFor();
  assert.equal(await page.locator("charter-diff").count(), 0);
  assert.deepEqual(unexpected(page, "413"), []);
  await page.context().close();
});
