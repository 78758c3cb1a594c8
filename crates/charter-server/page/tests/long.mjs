// A run of 100,000 records scrolls: no task of the page over 50 ms of the processor. The server is played here, because
// making such a run would take longer than the test.
import assert from "node:assert/strict";
import { test } from "node:test";
import { launch, open, serve } from "./support/browser.mjs";

const COUNT = 100_000;
const HASH = `sha256:${"0".repeat(64)}`;

function record(seq) {
  const refused = seq % 7 === 3;
  return {
    v: 2, run: "long", seq, at: new Date(1.79e12 + seq * 1000).toISOString(), id: `long/${seq}`, charter: HASH, to: "root",
    by: { id: `person-${seq % 13}`, roles: ["clerk"], kind: "person", auth: "key" },
    event: { type: seq ? "NOTE" : "charter.start", data: { text: `Note ${seq}: `.padEnd(400, "lorem ipsum ") } },
    verdict: refused ? "refused" : "accepted", from: ["open"], state: [seq % 2 ? "open" : "review"], status: "active", transitions: [], effects: [],
    snapshot: HASH, prev: HASH, hash: HASH,
  };
}

function answer(request, response) {
  const url = new URL(request.url, "http://loopback");
  if (url.pathname.startsWith("/page/")) {
    request.url = url.pathname.slice("/page".length);
    return false;
  }
  if (url.pathname === "/") {
    request.url = "/index.html";
    return false;
  }
  const json = (body) => {
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify(body));
    return true;
  };
  const state = (seq) => ({
    run: "long", charter: { id: "notes", digest: HASH, version: "" }, status: "active", seq, state: ["open"], started: record(0).at, updated: record(seq).at,
    actors: [{ id: "root", machine: "root", status: "active", state: ["open"], context: { seq } }], invocations: [], working: [], tasks: [], timers: [],
    output: null, stuck: false, dry: false, untrusted: false, snapshot: {}, page: [],
  });
  const path = url.pathname;
  if (path === "/v1/me") return json({ id: "ana", kind: "person", auth: "session", roles: [] });
  if (path.startsWith("/v1/charters/")) return json({ id: "notes", digest: HASH, core: JSON.stringify({ root: { state: {} } }) });
  if (path === "/v1/inbox") return json({ requests: [], all: true });
  if (path.endsWith("/stream")) {
    response.setHeader("Content-Type", "text/event-stream");
    response.write("retry: 1000\n\n");
    return true;
  }
  if (path === "/v1/runs/long") return json(state(COUNT - 1));
  if (path === "/v1/runs/long/legal") return json({ run: "long", seq: COUNT - 1, events: [], tasks: [], by: { id: "ana", roles: [] } });
  if (path === "/v1/runs/long/records") {
    const after = url.searchParams.has("after") ? Number(url.searchParams.get("after")) : -1;
    const end = Math.min(COUNT, after + 1 + Number(url.searchParams.get("limit")));
    return json({ records: Array.from({ length: Math.max(0, end - after - 1) }, (_, i) => record(after + 1 + i)) });
  }
  const at = /\/at\/(\d+)$/.exec(path);
  if (at) return json(state(Number(at[1])));
  const explain = /\/explain\/(\d+)$/.exec(path);
  if (explain) return json({ run: "long", seq: Number(explain[1]), verdict: "accepted", transitions: [], notes: [], refusal: null });
  if (path.endsWith("/graph.svg")) {
    response.setHeader("Content-Type", "image/svg+xml");
    response.end('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10" width="10" height="10"></svg>');
    return true;
  }
  return false;
}

test("100,000 records scroll without a task over 50 ms", async () => {
  const [browser, server] = await Promise.all([launch(), serve(answer)]);
  try {
    const page = await open(browser, `${server.url}/#/run/long`, { viewport: { width: 1280, height: 900 } });
    await page.getByText("live, 100,000 records").waitFor();
    const list = page.getByRole("listbox", { name: "Records" });
    await list.getByRole("option", { name: /^99999/ }).waitFor();
    await browser.startTracing(page, { categories: ["toplevel", "disabled-by-default-devtools.timeline", "__metadata"] });
    await page.evaluate(async () => {
      const deep = (root) => root.querySelector(".frame .rows")?.closest(".frame") ?? [...root.querySelectorAll("*")].map((e) => e.shadowRoot && deep(e.shadowRoot)).find(Boolean);
      const frame = deep(document);
      const frames = (n) => new Promise((done) => { const next = () => (n-- > 0 ? requestAnimationFrame(next) : done(undefined)); next(); });
      // From the end to the beginning in steps of a reader, in leaps, and back.
      for (let i = 0; i < 60; i++) { frame.scrollTop -= 300; await frames(1); }
      for (let i = 0; i <= 60; i++) { frame.scrollTop = ((60 - i) / 60) * frame.scrollHeight; await frames(2); }
      for (let i = 0; i < 60; i++) { frame.scrollTop += 300; await frames(1); }
    });
    const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
    const mains = new Set(traceEvents.filter((e) => e.name === "thread_name" && e.args.name === "CrRendererMain").map((e) => `${e.pid} ${e.tid}`));
    const tasks = traceEvents.filter((e) => e.ph === "X" && e.tdur > 0 && mains.has(`${e.pid} ${e.tid}`) && /RunTask/.test(e.name));
    assert.ok(tasks.length > 100, `tasks are measured: ${tasks.length}`);
    const longest = Math.max(...tasks.map((e) => e.tdur)) / 1000;
    assert.ok(longest < 50, `the longest task took ${longest.toFixed(1)} ms`);
    console.log(`longest of ${tasks.length} tasks: ${longest.toFixed(1)} ms of the processor`);
    // Every row is there, in its place.
    await list.press("Home");
    await list.getByRole("option", { name: /^0 Started/ }).waitFor();
    await list.press("End");
    await list.getByRole("option", { name: /^99999 .*Note/ }).waitFor();
    // The server for files ends every answer, also that of a stream.
    assert.deepEqual(page.problems.filter((problem) => !problem.includes("/stream")), []);
  } finally {
    await Promise.all([browser.close(), server.close()]);
  }
});
