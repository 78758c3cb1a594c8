// What the models of a run took, in the head of its page; with a local server in place of a model.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import { axe, launch, picture } from "./support/browser.mjs";
import { Charter, unexpected } from "./support/charter.mjs";

const ASKS = `
charter: 1
id: asks
roles: {asker: {}}
events: {AGAIN: {by: asker}}
actors:
  ask: {kind: model, prompt: p.md, output: {type: object, required: [n], properties: {n: {type: integer}}}, timeout: 30s}
initial: asking
states:
  asking: {invoke: {src: ask, onDone: answered, onError: answered}}
  answered: {on: {AGAIN: asking}}
`;

/** @type {Charter} */
let server;
let browser;
let models;
/** Ends the answer to a question that streams. @type {() => void} */
let finish = () => {};
/** Sends the first half of a key. @type {() => void} */
let half = () => {};

before(async () => {
  models = createServer((request, response) => {
    let asked = "";
    request.on("data", (part) => (asked += part)).on("end", () => {
      if (asked.includes("Slowly")) {
        const says = (/** @type {any} */ delta) => response.write(`data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`);
        response.setHeader("content-type", "text/event-stream");
        says({ content: '{"said": "<b>One moment</b> ' });
        // What arrived before the page was opened is shown with the next piece.
        const goes_on = setInterval(() => says({ content: "please, " }), 100);
        half = () => {
          clearInterval(goes_on);
          says({ content: "with sk-very-" });
        };
        finish = () => {
          says({ content: "secret-0123456789, " });
          says({ content: 'done", "n": 1}' });
          response.end("data: [DONE]\n\n");
        };
        return;
      }
      const choices = [{ message: { content: '{"n": 7}' }, finish_reason: "stop" }];
      const usage = { prompt_tokens: 12_000, completion_tokens: 350 };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ model: "m", choices, usage }));
    });
  });
  await new Promise((done) => models.listen(0, "127.0.0.1", () => done(null)));
  process.env.NEAR_KEY = "sk-very-secret-0123456789";
  server = new Charter();
  writeFileSync(path.join(server.home, "charters/asks.yaml"), ASKS);
  const slow = ASKS.replace("id: asks", "id: slow").replace("p.md", "slow.md");
  writeFileSync(path.join(server.home, "charters/slow.yaml"), slow);
  writeFileSync(path.join(server.home, "charters/slow.md"), "You count.\n---\nSlowly, please.\n");
  writeFileSync(path.join(server.home, "charters/p.md"), "You count.\n---\nHow many?\n");
  const address = `http://127.0.0.1:${models.address().port}/v1`;
  const providers = `default = "near:m"\n[providers.near]\nkind = "openai"\naddress = "${address}"\nkey = "NEAR_KEY"\n`;
  writeFileSync(path.join(server.home, "m.toml"), `${providers}[prices."near:m"]\ninput = "2.50"\noutput = "10"\n`);
  server.more = ["--models", "m.toml"];
  server.people({ ana: ["asks/asker", "slow/asker"] });
  [browser] = await Promise.all([launch(), server.start()]);
});

after(async () => {
  await browser?.close();
  await server?.close();
  models?.closeAllConnections();
  models?.close();
});

test("the text of an answer is shown as it arrives, as text and without keys", async () => {
  await server.start_run("ana", "slow", "slow", {});
  const page = await server.page(browser, "ana", "#/run/slow");
  const text = page.getByLabel("What arrives for ask");
  await text.filter({ hasText: '{"said": "<b>One moment</b> please, ' }).waitFor();
  half();
  await text.filter({ hasText: "please, with [secret]" }).waitFor();
  await picture(page, "arriving");
  assert.ok(!(await text.innerText()).includes("sk-very"), "the beginning of a key is not shown");
  assert.deepEqual(await axe(page), []);
  finish();
  await server.reach("ana", "slow", "answered");
  await text.waitFor({ state: "detached" });
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});

test("the head of a run says what its models took, and follows", async () => {
  await server.start_run("ana", "asks", "asked", {});
  await server.reach("ana", "asked", "answered");
  const page = await server.page(browser, "ana", "#/run/asked");
  // 12,000 tokens read at 2.50 dollars per million, and 350 written at 10.
  await page.getByText("12,350 tokens, $0.0335").waitFor();
  assert.deepEqual(await axe(page), []);
  await server.send("ana", "asked", "AGAIN", {});
  await page.getByText("24,700 tokens, $0.067").waitFor();
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});
