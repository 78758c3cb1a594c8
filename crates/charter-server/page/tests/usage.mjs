// What the models of a run took, in the head of its page; with a local server in place of a model.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import { axe, launch } from "./support/browser.mjs";
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

before(async () => {
  models = createServer((request, response) => {
    request.resume().on("end", () => {
      const choices = [{ message: { content: '{"n": 7}' }, finish_reason: "stop" }];
      const usage = { prompt_tokens: 12_000, completion_tokens: 350 };
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ model: "m", choices, usage }));
    });
  });
  await new Promise((done) => models.listen(0, "127.0.0.1", () => done(null)));
  server = new Charter();
  writeFileSync(path.join(server.home, "charters/asks.yaml"), ASKS);
  writeFileSync(path.join(server.home, "charters/p.md"), "You count.\n---\nHow many?\n");
  const address = `http://127.0.0.1:${models.address().port}/v1`;
  const providers = `default = "near:m"\n[providers.near]\nkind = "openai"\naddress = "${address}"\n`;
  writeFileSync(path.join(server.home, "m.toml"), `${providers}[prices."near:m"]\ninput = "2.50"\noutput = "10"\n`);
  server.more = ["--models", "m.toml"];
  server.people({ ana: ["asks/asker"] });
  [browser] = await Promise.all([launch(), server.start()]);
});

after(async () => {
  await browser?.close();
  await server?.close();
  models?.close();
});

test("the head of a run says what its models took, and follows", async () => {
  await server.start_run("ana", "asks", "asked", {});
  await server.reach("ana", "asked", "answered");
  const page = await server.page(browser, "ana", "#/run/asked");
  // 12,000 tokens read at 2.50 dollars per million, and 350 written at 10.
  await page.getByText("12,350 tokens, $0.0335").waitFor();
  assert.deepEqual(await axe(page), []);
  await server.send("ana", "asked", "AGAIN", {});
  await page.getByText("24,700 tokens, $0.0670").waitFor();
  assert.deepEqual(unexpected(page), []);
  await page.context().close();
});
