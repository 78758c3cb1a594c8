// The vendored library draws a component under the policy of the page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { launch, open, serve } from "./support/browser.mjs";

test("a component draws text, never markup, under a policy without inline code", async () => {
  const [browser, server] = await Promise.all([launch(), serve()]);
  try {
    const page = await open(browser, `${server.url}/tests/support/blank.html`);
    const shown = await page.evaluate(async () => {
      const { LitElement, css, html } = await import("/lit.js");
      class Probe extends LitElement {
        static styles = css`p { color: rgb(1, 2, 3); }`;
        render() {
          return html`<p>${"<img src=x onerror=alert(1)>"}</p>`;
        }
      }
      customElements.define("charter-probe", Probe);
      const probe = document.createElement("charter-probe");
      document.querySelector("main").append(probe);
      await probe.updateComplete;
      const p = probe.shadowRoot.querySelector("p");
      return { text: p.textContent, color: getComputedStyle(p).color, images: p.querySelectorAll("img").length };
    });
    assert.deepEqual(shown, { text: "<img src=x onerror=alert(1)>", color: "rgb(1, 2, 3)", images: 0 });
    // The policy holds here: nothing inline runs.
    const refused = await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.ran = true";
      document.body.append(script);
      return window.ran === undefined;
    });
    assert.ok(refused);
    assert.equal(page.problems.length, 1, String(page.problems));
    assert.match(page.problems[0], /Content Security Policy/);
  } finally {
    await Promise.all([browser.close(), server.close()]);
  }
});
