// Text of others is shown as text, whatever it holds.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { hostile } from "./support/hostile.mjs";
import { axe, launch, open, picture, serve } from "./support/browser.mjs";

let browser, server, page;

before(async () => {
  [browser, server] = await Promise.all([launch(), serve()]);
  page = await open(browser, `${server.url}/tests/support/blank.html`);
  await page.evaluate(async () => {
    const { render, html } = await import("/lit.js");
    const { visible } = await import("/lib/text.js");
    window.show = async (list) => {
      document.querySelector("#shown")?.remove();
      const box = document.createElement("div");
      box.id = "shown";
      document.querySelector("main").append(box);
      render(html`${list.map((text) => html`<p>${visible(text)}</p>`)}`, box);
      await Promise.all([...box.querySelectorAll("charter-text")].map((element) => element.updateComplete));
      return [...box.querySelectorAll("p")].map((p) => {
        const root = p.querySelector("charter-text")?.shadowRoot ?? p;
        const elements = [...root.querySelectorAll("*")].map((e) => e.localName).filter((name) => name !== "charter-text");
        return {
          text: root.textContent.trim(),
          marks: [...root.querySelectorAll(".mark")].map((mark) => mark.textContent),
          elements: [...new Set(elements)],
          width: p.scrollWidth - p.clientWidth,
        };
      });
    };
  });
});

after(() => Promise.all([browser?.close(), server?.close()]));

test("fifty hostile contents are text, and what they hide is seen", async () => {
  assert.ok(hostile.length >= 50);
  const shown = await page.evaluate((list) => window.show(list), hostile.map((entry) => entry.text));
  for (const [index, { text, marks = [] }] of hostile.entries()) {
    const found = shown[index];
    const name = JSON.stringify(text.slice(0, 60));
    for (const element of found.elements) assert.ok(["span", "style", "bdi", "button"].includes(element), `${name}: <${element}>`);
    for (const mark of marks) assert.ok(found.marks.includes(mark), `${name}: no ${mark} in ${found.marks}`);
    if (marks.length === 0) assert.deepEqual(found.marks, [], name);
    assert.equal(found.width, 0, `${name} is wider than the page`);
    // Without marks and cuts it is the text itself.
    if (marks.length === 0 && text.length < 400) assert.equal(found.text, text.trim(), name);
  }
  assert.equal(await page.evaluate(() => window.ran), undefined, "something ran");
  assert.deepEqual(page.problems, []);
  await picture(page, "text");
});

test("a line of a megabyte is cut, and all of it can be seen", async () => {
  const text = `${"a".repeat(1_000_000)}end`;
  const started = Date.now();
  await page.evaluate((list) => window.show(list), [text]);
  assert.ok(Date.now() - started < 2_000);
  const element = page.locator("charter-text");
  assert.ok((await element.evaluate((e) => e.shadowRoot.textContent.length)) < 3_000);
  for (let clicks = 0; (await page.getByRole("button", { name: /Show more/ }).count()) > 0; clicks += 1) {
    assert.ok(clicks < 5);
    await page.getByRole("button", { name: /Show more/ }).first().click();
  }
  assert.ok(await element.evaluate((e) => e.shadowRoot.textContent.trim().endsWith("end")));
});

test("no violation of accessibility, in light and in dark", async () => {
  await page.evaluate((list) => window.show(list), ["rm\u00a0-rf \u202etxt.exe", "x".repeat(5_000)]);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await axe(page), []);
  }
});
