// A server of charters for the tests: the program itself, in a folder of its own, with keys and runs.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { open } from "./browser.mjs";

const charter = process.env.CHARTER;
if (!charter) throw new Error("run the tests with `python3 .ci/page.py`, which builds the program and names it in CHARTER");

/** One that a person proposes and another approves, or rejects with a reason; some expire soon. */
const PAYMENT = `
charter: 1
id: payment
title: Payments
roles: {clerk: {}, controller: {}}
events:
  REQUEST: {by: clerk, data: {type: object, required: [amount, to], properties: {amount: {type: number, minimum: 0}, to: {type: string}, soon: {type: boolean}}}}
  APPROVE: {by: controller, data: {type: object, required: [digest], properties: {digest: {type: string}}}}
  REJECT: {by: controller, data: {type: object, required: [reason], properties: {reason: {type: string, minLength: 1, pattern: '[^ ]'}}}}
context: {payment: null, clerk: null, reason: null, patience: 72h}
delays: {patience: "= context.patience"}
initial: open
states:
  open:
    on:
      REQUEST: {target: review, actions: {assign: {payment: "= event.data", clerk: "= by.id", patience: "= has(event.soon) ? '2s' : '72h'"}}}
  review:
    description: Somebody else looks at the payment.
    tags: [waiting]
    on:
      APPROVE: {target: paid, approves: {value: context.payment, not_by: context.clerk}}
      REJECT: {target: open, actions: {assign: {reason: "= event.reason"}}}
    after:
      patience: expired
  paid: {type: final}
  expired: {type: final}
meta: {page: [{label: Payment, value: "= context.payment"}, {label: Rejected because, value: "= context.reason"}]}
`;

/** A proposal that two members have to agree to. */
const MOTION = `
charter: 1
id: motion
roles: {member: {}}
events: {PROPOSE: {by: member, data: {type: object, required: [text], properties: {text: {type: string}}}}, AGREE: {by: member, data: {type: object}}}
context: {text: ''}
initial: open
states:
  open: {on: {PROPOSE: {target: voting, actions: {assign: {text: "= event.text"}}}}}
  voting: {on: {AGREE: {target: carried, quorum: {count: 2, of: member}}}}
  carried: {type: final}
meta: {page: [{label: Motion, value: "= context.text"}]}
`;

export class Charter {
  constructor() {
    this.home = mkdtempSync(path.join(tmpdir(), "charter-page-"));
    mkdirSync(path.join(this.home, "charters"));
    writeFileSync(path.join(this.home, "charters/payment.yaml"), PAYMENT);
    writeFileSync(path.join(this.home, "charters/motion.yaml"), MOTION);
    this.keys = {};
    this.port = 0;
    /** Further arguments of `serve`. @type {string[]} */
    this.more = [];
  }

  run(...args) {
    const env = { ...process.env };
    delete env.CHARTER_DB;
    return execFileSync(charter, args, { cwd: this.home, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
  }

  /** Adds people with their roles. */
  people(people) {
    for (const [name, roles] of Object.entries(people)) {
      this.keys[name] = this.run("key", "add", name, ...roles.flatMap((role) => ["--role", role]));
    }
  }

  async start() {
    const env = { ...process.env };
    delete env.CHARTER_DB;
    this.child = spawn(charter, ["serve", "--listen", `127.0.0.1:${this.port}`, ...this.more], { cwd: this.home, env, stdio: ["ignore", "pipe", "ignore"] });
    this.url = await new Promise((resolve, reject) => {
      let text = "";
      this.child.stdout.on("data", (chunk) => {
        text += chunk;
        if (text.includes("\n")) resolve(text.split("\n")[0].trim());
      });
      this.child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    });
    this.port = Number(new URL(this.url).port);
    return this;
  }

  /** Ends the server at once, as a crash would. */
  async kill() {
    const ended = new Promise((done) => this.child.once("exit", done));
    this.child.removeAllListeners("exit");
    this.child.once("exit", () => {});
    this.child.kill("SIGKILL");
    await Promise.race([ended, new Promise((done) => setTimeout(done, 3000))]);
  }

  async close() {
    if (this.child && this.child.exitCode === null) await this.kill();
    rmSync(this.home, { recursive: true, force: true });
  }

  async ask(who, method, place, body) {
    const response = await fetch(this.url + place, {
      method,
      headers: { Authorization: `Bearer ${this.keys[who]}`, ...(body ? { "Content-Type": "application/json" } : {}) },
      body: body && JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  }

  start_run(who, charter, run, input) {
    return this.ask(who, "POST", "/v1/runs", { charter, run, input });
  }

  /** Waits until a run is in a state. */
  async reach(who, run, state) {
    for (let times = 0; times < 300; times++) {
      const { body } = await this.ask(who, "GET", `/v1/runs/${run}`);
      if (body.state?.includes(state)) return body;
      await new Promise((done) => setTimeout(done, 100));
    }
    throw new Error(`run ${run} does not reach ${state}`);
  }

  /** A run of sentinel in a copy of its example workspace, whose proposal waits for a person. */
  async proposal(who, run) {
    await this.start_run(who, "sentinel", run, { workspace: "scratch:example", goal: "Greet in German" });
    await this.reach(who, run, "AWAITING_CONTEXT_APPROVAL");
    const [request] = (await this.ask(who, "GET", `/v1/inbox?run=${run}`)).body.requests;
    const { digest } = request.decisions.find(({ type }) => type === "APPROVE_CONTEXT").demands.approves;
    await this.send(who, run, "APPROVE_CONTEXT", { digest });
    return this.reach(who, run, "AWAITING_PROPOSAL_APPROVAL");
  }

  send(who, run, type, data = {}) {
    return this.ask(who, "POST", `/v1/runs/${run}/events`, { type, data });
  }

  async records(who, run) {
    return (await this.ask(who, "GET", `/v1/runs/${run}/records?limit=1000`)).body.records;
  }

  /** A payment that waits for a controller. */
  async payment(run, data = {}) {
    await this.start_run("ana", "payment", run);
    const sent = await this.send("ana", run, "REQUEST", { amount: 250, to: "Blue Ink Ltd", ...data });
    if (sent.status !== 200) throw new Error(JSON.stringify(sent));
  }

  /** Opens the page as somebody, signed in with a key. */
  async page(browser, who, hash = "#/inbox", options = {}) {
    const page = await open(browser, this.url, options);
    await page.getByLabel("Your key").fill(this.keys[who]);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    if (hash !== "#/inbox") await page.goto(`${this.url}/${hash}`);
    return page;
  }
}

/** What a page reports besides the answers that a test provokes. */
export function unexpected(page, ...statuses) {
  // Before the sign-in, `/v1/me` is answered with 401.
  const known = ["401", ...statuses];
  return page.problems.filter((problem) => !known.some((status) => problem.includes(`status of ${status}`)));
}
