// Differences: exact, quick with many lines, and chosen by file.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { hostile } from "./support/hostile.mjs";
import { axe, launch, open, picture, serve } from "./support/browser.mjs";

let browser, server, page;

before(async () => {
  [browser, server] = await Promise.all([launch(), serve()]);
  page = await open(browser, `${server.url}/tests/support/blank.html`);
  await page.evaluate(async () => {
    await import("/components/charter-diff.js");
    const { shownRows, textRows, patchRows } = await import("/lib/diff-rows.js");
    const { jsonChanges } = await import("/lib/diff.js");
    Object.assign(window, { shownRows, textRows, patchRows, jsonChanges });
    window.show = async (properties) => {
      document.querySelector("charter-diff")?.remove();
      const diff = Object.assign(document.createElement("charter-diff"), properties);
      window.choices = [];
      diff.addEventListener("choice", (event) => window.choices.push(event.detail));
      document.querySelector("main").append(diff);
      await diff.updateComplete;
      await new Promise(requestAnimationFrame);
      await diff.updateComplete;
    };
  });
});

after(() => Promise.all([browser?.close(), server?.close()]));

const show = (properties) => page.evaluate((p) => window.show(p), properties);
const lines = () => page.locator("charter-diff .line").evaluateAll((rows) => rows.map((row) => [...row.classList].at(-1)[0] + row.textContent.replace(/\s+/g, " ").trim()));

test("random texts: the rows rebuild both sides, and share as much as they can", async () => {
  const worst = await page.evaluate(() => {
    let seed = 7;
    const random = (n) => ((seed = (seed * 1103515245 + 12345) & 0x7fffffff) >> 8) % n;
    // The longest common subsequence, by the textbook.
    const common = (a, b) => {
      const row = new Int32Array(b.length + 1);
      for (const one of a) {
        let diagonal = 0;
        b.forEach((two, j) => {
          const kept = row[j + 1];
          row[j + 1] = one === two ? diagonal + 1 : Math.max(row[j + 1], row[j]);
          diagonal = kept;
        });
      }
      return row[b.length];
    };
    let worst = 0;
    for (let round = 0; round < 2_020; round += 1) {
      // The last ones are large, where lines that both sides have once are anchors, or the budget ends.
      const isLarge = round >= 2_000;
      const [size, letters] = isLarge ? [3_000, round % 2 ? 5 : 2_000] : [14, 4];
      const text = () => Array.from({ length: random(size) }, () => `l${random(letters)}`);
      const [a, b] = [text(), text()];
      const [before, after] = [a, b].map((list) => list.map((l) => `${l}\n`).join(""));
      const rows = window.textRows(before, after);
      const side = (kind) => rows.filter((row) => row.kind === "same" || row.kind === kind).map((row) => `${row.text}\n`).join("");
      if (side("removed") !== before || side("added") !== after) throw new Error(JSON.stringify({ before, after, rows }));
      if (!isLarge) worst = Math.max(worst, common(a, b) - rows.filter((row) => row.kind === "same").length);
    }
    return worst;
  });
  assert.equal(worst, 0);
});

test("lines, words and the end of a file", async () => {
  await show({ before: "one\ntwo three\nfour\nlast", after: "one\ntwo 3\nfour\nlast\n" });
  assert.deepEqual(await lines(), ["s11one", "r2−two three", "a2+two 3", "s33four", "r4−last", "nno newline at the end", "a4+last"]);
  assert.deepEqual(await page.locator("charter-diff .word").allTextContents(), ["three", "3"]);
  await show({ before: "same\n", after: "same\n" });
  assert.match(await page.locator("charter-diff").evaluate((d) => d.shadowRoot.textContent), /Nothing changed/);
  // Carriage returns and marks of direction are differences that are seen.
  await show({ before: "a\nb\n", after: "a\r\n\u202eb\n" });
  assert.deepEqual(await page.locator("charter-diff .mark").allTextContents(), ["U+000D", "U+202E"]);
});

test("a unified diff: git's, with files made, deleted and renamed, and lines that look like headers", async () => {
  const patch = [
    "diff --git a/src/a.rs b/src/a.rs", "index 1..2 100644", "--- a/src/a.rs", "+++ b/src/a.rs", "@@ -1,3 +1,3 @@ fn main", " one", "--- not a header", "+++ not one either", " three",
    "diff --git a/new b/new", "new file mode 100644", "--- /dev/null", "+++ b/new", "@@ -0,0 +1 @@", "+<b>", "\\ No newline at end of file",
    "diff --git a/old b/old", "deleted file mode 100644", "--- a/old", "+++ /dev/null", "@@ -1 +0,0 @@", "-gone",
    "diff --git a/x b/y", "similarity index 100%", "rename from x", "rename to y", "diff --git a/bin b/bin", "Binary files a/bin and b/bin differ", "",
  ].join("\n");
  const files = await page.evaluate((text) => window.patchRows(text).map((f) => [f.path, f.operation, f.added, f.removed, f.rows.map((r) => r.kind[0] + r.text)]), patch);
  assert.deepEqual(files, [
    ["src/a.rs", "modify", 1, 1, ["n@@ -1,3 +1,3 @@ fn main", "sone", "r-- not a header", "a++ not one either", "sthree"]],
    ["new", "create", 1, 0, ["n@@ -0,0 +1 @@", "a<b>", "n\\ No newline at end of file"]],
    ["old", "delete", 0, 1, ["n@@ -1 +0,0 @@", "rgone"]],
    ["y", "rename", 0, 0, ["nsimilarity index 100%", "nrename from x"]],
    ["bin", "modify", 0, 0, ["nBinary files a/bin and b/bin differ"]],
  ]);
  // Nothing that is there is hidden, whatever it is.
  const odd = await page.evaluate(() => window.patchRows("hello\n@@ -1,2 +1,2 @@\nevil\n x\n").flatMap((f) => f.rows.map((r) => r.text)));
  assert.deepEqual(odd, ["hello", "@@ -1,2 +1,2 @@", "evil", "x"]);
});

test("JSON: what was added, removed and changed, by its path", async () => {
  const changes = (a, b) => page.evaluate((text) => JSON.parse(JSON.stringify(window.jsonChanges(...JSON.parse(text)))), JSON.stringify([a, b]));
  assert.deepEqual(await changes({ a: 1, "b/c": [1, 2, 3], d: { e: null } }, { "b/c": [1, 3, 4], d: { e: {} }, f: "" }), [
    { pointer: "/a", before: 1 }, { pointer: "/b~1c/1", before: 2 }, { pointer: "/b~1c/2", after: 4 },
    { pointer: "/d/e", before: null, after: {} }, { pointer: "/f", after: "" },
  ]);
  assert.deepEqual(await changes({ a: 1, b: [] }, { b: [], a: 1 }), []);
  await show({ mode: "json", before: { goal: "greet", steps: ["read", "write"] }, after: { goal: "greet politely", steps: ["read", "ask", "write"], approved: true } });
  assert.deepEqual(await lines(), ["p/goal: changed", 'r−"greet"', 'a+"greet politely"', "p/steps/1: added", 'a+"ask"', "p/approved: added", "a+true"]);
  await picture(page, "diff-json");
  // Nested 50,000 times: an answer, not an overflow.
  const deep = await page.evaluate(() => {
    const nest = (leaf) => JSON.parse(`${"[".repeat(50_000)}${leaf}${"]".repeat(50_000)}`);
    return [window.jsonChanges(nest(1), nest(1)).length, window.jsonChanges(nest(1), nest(2)).length];
  });
  assert.deepEqual(deep, [0, 1]);
});

test("files are chosen one by one, and the choice is told", async () => {
  const files = [
    { path: "greeting.txt", before: "Hello\nworld\n", after: "Guten Tag\nworld\n" },
    { path: "greeter.txt", before: null, after: "The greeting was written by sentinel.\n" },
    { path: "old\u202etxt.exe", before: "gone\n", after: null },
  ];
  await show({ files, choose: true, label: "Proposed changes" });
  await page.getByRole("checkbox", { name: "greeter.txt create" }).uncheck();
  await page.getByRole("button", { name: "Choose all" }).click();
  await page.getByRole("button", { name: "Choose none" }).click();
  await page.getByRole("checkbox", { name: "greeting.txt" }).focus();
  await page.keyboard.press("Space");
  assert.deepEqual(await page.evaluate(() => window.choices), [["greeting.txt", "old\u202etxt.exe"], files.map((f) => f.path), [], ["greeting.txt"]]);
  assert.match(await page.locator("charter-diff").getByRole("status").textContent(), /1 of 3/);
  assert.equal(await page.getByRole("button", { name: "Show old[U+202E]txt.exe" }).count(), 1);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await axe(page), []);
    await picture(page, `diff-files-${colorScheme}`);
  }
  await page.setViewportSize({ width: 320, height: 700 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320);
  assert.deepEqual(await axe(page), []);
  await picture(page, "diff-320");
  await page.setViewportSize({ width: 900, height: 700 });
});

test("ten thousand lines: few rows are drawn, quickly, and all can be reached", async () => {
  const took = await page.evaluate(async () => {
    const before = Array.from({ length: 10_000 }, (_, n) => `line ${n} ${n % 7 === 0 ? "x" : "y"}\n`).join("");
    const after = before.replace(/line (\d*5) y/g, "line $1 changed");
    const started = performance.now();
    await window.show({ before, after, context: 100 });
    return performance.now() - started;
  });
  assert.ok(took < 1_500, `${took} ms`);
  const rows = await page.locator("charter-diff .line").count();
  assert.ok(rows < 120, `${rows} rows`);
  await page.locator("charter-diff .scroll").evaluate((scroll) => (scroll.scrollTop = scroll.scrollHeight));
  await page.getByText("line 9999 y").waitFor();
  // Scrolling has no long task.
  const longest = await page.evaluate(async () => {
    const scroll = document.querySelector("charter-diff").shadowRoot.querySelector(".scroll");
    let longest = 0;
    const observer = new PerformanceObserver((list) => list.getEntries().forEach((entry) => (longest = Math.max(longest, entry.duration))));
    observer.observe({ entryTypes: ["longtask"] });
    for (let top = 0; top < 100_000; top += 5_000) {
      scroll.scrollTop = top;
      await new Promise(requestAnimationFrame);
    }
    await new Promise((done) => setTimeout(done, 100));
    observer.disconnect();
    return longest;
  });
  assert.ok(longest < 250, `a task of ${longest} ms`);
});

test("unchanged ranges open on demand; long lines are cut and can be seen", async () => {
  const body = Array.from({ length: 50 }, (_, n) => `${n}\n`).join("");
  await show({ before: `${body}a\n`, after: `${body}${"long ".repeat(20_000)}\n` });
  assert.equal((await lines()).length, 6);
  await page.getByRole("button", { name: "47 unchanged lines" }).click();
  await page.getByText("12", { exact: true }).first().waitFor();
  await page.locator("charter-diff .scroll").evaluate((scroll) => (scroll.scrollTop = scroll.scrollHeight));
  await page.getByRole("button", { name: /more characters/ }).click();
  assert.equal(await page.getByRole("region", { name: "One line in full" }).count(), 1);
});

test("hostile contents are text", async () => {
  await show({ files: hostile.map(({ text }, n) => ({ path: `${n} ${text.slice(0, 300)}`, before: text, after: `${text}${text}`.slice(0, 1_000_000) })), choose: true, label: hostile[0].text });
  await show({ mode: "json", before: hostile.map((entry) => entry.text), after: [] });
  await show({ patch: hostile.map((entry) => entry.text).join("\n") });
  const found = await page.locator("charter-diff").evaluate((diff) => [...diff.shadowRoot.querySelectorAll("*")].map((e) => e.localName));
  for (const name of new Set(found)) assert.ok(["div", "span", "strong", "button", "charter-text", "style"].includes(name), name);
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.deepEqual(page.problems, []);
});
