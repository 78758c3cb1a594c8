// The plain HTML file that embeds the parts: all of them draw, under the policy of the page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axe, launch, open, picture, serve } from "./support/browser.mjs";

test("an HTML file embeds the parts, without inline code", async () => {
  const [browser, server] = await Promise.all([launch(), serve()]);
  try {
    const page = await open(browser, `${server.url}/embed.html`);
    await page.getByLabel("amount").fill("12.5");
    await page.getByLabel("renewal").check();
    await page.getByRole("button", { name: "Show the data" }).click();
    assert.deepEqual(JSON.parse(await page.locator("#data").textContent()), { amount: 12.5, kind: "renewal" });
    await page.getByRole("checkbox", { name: /greeter\.txt/ }).uncheck();
    await page.getByText("1 of 2 files chosen").waitFor();
    assert.equal(await page.locator("charter-text .mark").first().textContent(), "U+202E");
    assert.equal(await page.getByRole("button", { name: "Test Cycle" }).count(), 1);
    assert.deepEqual(await axe(page), []);
    assert.deepEqual(page.problems, []);
    await picture(page, "embed", { fullPage: true });
  } finally {
    await Promise.all([browser.close(), server.close()]);
  }
});
