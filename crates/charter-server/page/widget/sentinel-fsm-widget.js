// `<sentinel-fsm-widget>`: the state, the goal and the moves of a run of the charter `sentinel`, and what may be done.
import { css, html, nothing, render } from "../lit.js";
import { newKey, problemOf } from "../lib/api.js";
import { tokens } from "../lib/style.js";
import { markStyles, visible } from "../lib/text.js";
import { SentinelRun, clientFor } from "./sentinel-run.js";

const ELEMENT = "sentinel-fsm-widget";
const TEST_GOAL = "Test goal: Verify FSM functionality";
/** How long it is said that an action has gone well. */
const SAID_MS = 8_000;
/** A copy of the example, made for the run: nothing else can change. */
const TEST_WORKSPACE = "scratch:example";

/** @typedef {import("./sentinel-run.js").Outcome} Outcome */
/** @typedef {{id: string, label: string, action: () => Promise<Outcome> | Outcome}} Control */
/** @typedef {{state: "idle" | "active" | "warning" | "error", primaryMetric: string, secondaryMetric: string, lastActivity: number | null, message: string | null}} Status */

/** The events of the two gates. @type {Record<string, {approve: string, revise: string, reject: string, what: string}>} */
const GATES = {
  AWAITING_CONTEXT_APPROVAL: { approve: "APPROVE_CONTEXT", revise: "REVISE_CONTEXT", reject: "REJECT_CONTEXT", what: "the context" },
  AWAITING_PROPOSAL_APPROVAL: { approve: "APPROVE_PROPOSAL", revise: "EDIT_PROPOSAL", reject: "REJECT_PROPOSAL", what: "the proposal" },
};

const styles = css`
  :host { display: block; }
  :host([hidden]), [hidden] { display: none !important; }
  *, *::before, *::after { box-sizing: border-box; }
  h2, h3, p, ol, ul { margin: 0; padding: 0; }
  h2 { font-size: 0.95rem; } h3 { font-size: 0.87rem; font-weight: 650; }
  .panel { border: 1px solid var(--line); border-radius: 8px; background: var(--bg); padding: 0.8rem 0.9rem; display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.7rem; }
  .now { border-left: 4px solid var(--strong-line); background: var(--surface); border-radius: 0 6px 6px 0; padding: 0.55rem 0.8rem; }
  .active { border-color: var(--accent); } .warning { border-color: var(--warn); } .error { border-color: var(--bad); }
  .name { font: 600 1.05rem/1.4 var(--mono); overflow-wrap: anywhere; }
  .active .name { color: var(--accent); } .warning .name { color: var(--warn); } .error .name { color: var(--bad); }
  .faint { color: var(--faint); font-size: 0.87rem; }
  .goal { overflow-wrap: anywhere; max-height: 12rem; overflow: auto; }
  .controls { display: flex; flex-wrap: wrap; gap: 0.45rem; }
  button, textarea { font: inherit; color: var(--text); background: var(--bg); border: 1px solid var(--strong-line); border-radius: 6px; }
  button { padding: 0.2rem 0.75rem; min-height: 2rem; cursor: pointer; }
  button:hover:not(:disabled) { background: var(--surface); }
  button:disabled { color: var(--faint); cursor: progress; }
  button.plain { border: 0; background: none; color: var(--accent); padding: 0; }
  textarea { width: 100%; padding: 0.3rem 0.5rem; min-height: 3.4rem; resize: vertical; }
  label { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.2rem; font-size: 0.87rem; }
  ol, ul { list-style: none; max-height: 14rem; overflow: auto; font: 0.82rem/1.6 var(--mono); }
  li { overflow-wrap: anywhere; }
  .said.failed { color: var(--bad); }
  :focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
`;

export class SentinelFSMWidget extends HTMLElement {
  static observedAttributes = ["src", "run"];

  /** @type {SentinelRun | null} */
  #run = null;
  /** The run that is shown instead of the one that `run` names, by a test cycle. @type {string | null} */
  #test = null;
  /** @type {string | null} */
  #key = null;
  /** Actions that are not answered yet, by control. @type {Map<string, Promise<Outcome>>} */
  #busy = new Map();
  /** What came of the last action, and when. @type {(Outcome & {at: number}) | null} */
  #said = null;
  /** @type {number} */
  #clock = 0;

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [tokens, markStyles, styles].map((style) => /** @type {CSSStyleSheet} */ (style.styleSheet));
  }

  connectedCallback() {
    this.#open();
    // For countdowns only: what changes comes by the stream.
    this.#clock = window.setInterval(() => document.hidden || this.render(), 1_000);
  }

  disconnectedCallback() {
    clearInterval(this.#clock);
    this.#clock = 0;
    this.#close();
  }

  /** @param {string} name @param {string | null} before @param {string | null} now */
  attributeChangedCallback(name, before, now) {
    if (before === now || !this.isConnected) return;
    this.#test = null;
    this.#open();
  }

  /** Address of the server; without it, the one of the page. */
  get src() {
    return this.getAttribute("src") ?? "";
  }

  set src(value) {
    this.setAttribute("src", value);
  }

  /** Id of the run. */
  get run() {
    return this.getAttribute("run") ?? "";
  }

  set run(value) {
    this.setAttribute("run", value);
  }

  /** A key of the server, where there is no session; never an attribute. */
  get key() {
    return this.#key;
  }

  set key(value) {
    this.#key = value;
    if (this.isConnected) this.#open();
  }

  /** The state of the nine. @returns {string} */
  get state() {
    return this.#run?.view ? String(this.#run.context?.phase ?? this.#run.view.state[0] ?? "IDLE") : "IDLE";
  }

  /** The goal of the cycle. @returns {string | null} */
  get goal() {
    return this.state === "IDLE" ? null : (this.#run?.context?.goal ?? null);
  }

  /** The last transitions, oldest first. */
  get history() {
    return [...(this.#run?.history ?? [])];
  }

  #close() {
    this.#run?.close();
    this.#run = null;
  }

  #open() {
    this.#close();
    const id = this.#test ?? this.run;
    if (id) {
      const run = new SentinelRun(clientFor(this.src, this.#key), id);
      this.#run = run;
      run.addEventListener("change", () => this.render());
      run.addEventListener("transition", (event) => {
        const { from, to } = /** @type {CustomEvent} */ (event).detail;
        this.dispatchEvent(new CustomEvent("fsm:transition", { detail: { from, to }, bubbles: true, composed: true }));
      });
      run.open();
    }
    this.render();
  }

  get #isPaused() {
    return this.#run?.view?.status === "paused";
  }

  get #hasEnded() {
    return ["done", "failed", "cancelled"].includes(this.#run?.view?.status);
  }

  /** The status, for a dashboard. @returns {Status} */
  getStatus() {
    const run = this.#run;
    const state = this.state;
    const context = run?.context;
    const isIdle = state === "IDLE" || this.#hasEnded;
    const isWaiting = Object.hasOwn(GATES, state);
    const isWrong = state === "ERROR" || run?.view?.status === "failed" || Boolean(run?.problem);
    return {
      state: isWrong ? "error" : this.#isPaused || (isWaiting && !isIdle) ? "warning" : isIdle ? "idle" : "active",
      primaryMetric: `State: ${state}`,
      secondaryMetric: !isIdle && context?.cycle > 0 ? `Cycle: ${context.cycle}` : "No active cycle",
      lastActivity: run?.history.at(-1)?.timestamp ?? null,
      message: this.#message(),
    };
  }

  /** @returns {string | null} */
  #message() {
    const run = this.#run;
    if (run?.problem) return run.problem.detail;
    if (run?.lostSince) return `Connection lost; this is the state of ${run.lostSince.toLocaleTimeString()}`;
    if (this.#hasEnded) return `The run is ${run?.view.status}`;
    if (this.state === "ERROR") {
      const { error, dirty } = run?.context ?? {};
      const what = error?.message ? `: ${error.message}` : "";
      return `FSM encountered an error${what}${dirty ? ` (look at the workspace first: ${dirty})` : ""}`;
    }
    if (this.#isPaused) return "Paused";
    const gate = GATES[this.state];
    return gate ? `Waits for approval of ${gate.what}` : null;
  }

  /** What the caller may do now. @returns {Control[]} */
  getControls() {
    const run = this.#run;
    const state = this.state;
    /** @type {Control[]} */
    const controls = [];
    const add = (/** @type {string} */ id, /** @type {string} */ label, /** @type {() => Promise<Outcome> | Outcome} */ act) =>
      controls.push({ id, label, action: () => this.#once(id, act) });
    if (!run || (run.view && (state === "IDLE" || this.#hasEnded))) add("test-cycle", "☇ Test Cycle", () => this.#testCycle());
    if (!run?.view || this.#hasEnded) return controls;
    const seen = run.view.seq;
    if (run.operates && this.#isPaused) add("resume", "▶ Resume", () => this.resume());
    else if (run.operates && state !== "IDLE" && state !== "ERROR") add("pause", "⏸ Pause", () => this.pause());
    const gate = GATES[state];
    if (gate) {
      // Of what is shown now: a click on it approves that, or nothing.
      const digest = run.may(gate.approve)?.demands?.approves?.digest;
      if (digest) add("approve", "Approve", () => run.send(gate.approve, { digest }, `Approved ${gate.what}`));
      if (run.may(gate.revise)) add("revise", "Revise", () => this.#withText((feedback) => run.send(gate.revise, { feedback }, "Sent back with your feedback", seen)));
      if (run.may(gate.reject)) add("reject", "Reject", () => this.#withText((reason) => run.send(gate.reject, { reason }, `Rejected ${gate.what}`, seen)));
    }
    if (state === "ERROR" && run.may("RESET")) add("reset", "Reset", () => run.send("RESET", undefined, "Back to the beginning", seen));
    return controls;
  }

  /** Another click on a control that is not answered yet is the same click. @param {string} id @param {() => Promise<Outcome> | Outcome} act @returns {Promise<Outcome>} */
  #once(id, act) {
    const known = this.#busy.get(id);
    if (known) return known;
    const outcome = Promise.resolve(act())
      .catch((error) => ({ success: false, message: problemOf(error).detail }))
      .then((said) => {
        this.#busy.delete(id);
        this.#say(said);
        return said;
      });
    this.#busy.set(id, outcome);
    this.render();
    return outcome;
  }

  /** @param {(text: string) => Promise<Outcome>} send @returns {Promise<Outcome> | Outcome} */
  #withText(send) {
    const field = /** @type {HTMLTextAreaElement | null} */ (this.shadowRoot?.querySelector("#note"));
    const text = field?.value.trim() ?? "";
    if (!text) {
      field?.focus();
      return { success: false, message: "Write what should change, or why, into the field first." };
    }
    return send(text).then((said) => {
      if (said.success && field) field.value = "";
      return said;
    });
  }

  /** @returns {Promise<Outcome>} */
  async #testCycle() {
    try {
      const client = clientFor(this.src, this.#key);
      if (!client.me) await client.whoami();
      const input = { workspace: TEST_WORKSPACE, goal: TEST_GOAL };
      const record = await client.post("/v1/runs", { charter: "sentinel", input }, { key: newKey() });
      this.#test = String(record.run);
      this.#open();
      return { success: true, message: `Test cycle started in a scratch workspace: run ${record.run}` };
    } catch (error) {
      return { success: false, message: problemOf(error).detail };
    }
  }

  /** Starts a cycle. @param {string} goal @returns {Promise<Outcome>} */
  start(goal) {
    return this.#do("start", (run) => run.send("START", { goal }, "Cycle started"));
  }

  /** @returns {Promise<Outcome>} */
  pause() {
    return this.#do("pause-run", (run) => run.send("charter.pause", undefined, "Cycle paused"));
  }

  /** @returns {Promise<Outcome>} */
  resume() {
    return this.#do("resume-run", (run) => run.send("charter.resume", undefined, "Cycle resumed"));
  }

  /** @param {string} id @param {(run: SentinelRun) => Promise<Outcome>} act */
  #do(id, act) {
    const run = this.#run;
    if (!run) return Promise.resolve({ success: false, message: "There is no run: set the attribute `run`, or start a test cycle." });
    return this.#once(id, () => act(run));
  }

  /** Reads the state again. @returns {Promise<void>} */
  async refresh() {
    await this.#run?.refresh().catch((error) => this.#say({ success: false, message: problemOf(error).detail }));
    this.render();
  }

  /** @param {Outcome} outcome */
  #say(outcome) {
    this.#said = { ...outcome, at: Date.now() };
    this.render();
  }

  /** What is to be approved. */
  #subject() {
    const context = this.#run?.context;
    const gate = GATES[this.state];
    if (!gate || !context) return nothing;
    const digest = this.#run?.may(gate.approve)?.demands?.approves?.digest;
    const isContext = this.state === "AWAITING_CONTEXT_APPROVAL";
    const rows = isContext
      ? (context.bundle?.files ?? []).map((/** @type {any} */ file) => html`<li>${visible(file.path)} <span class="faint">${file.size} bytes</span></li>`)
      : (context.proposal?.changes ?? []).map((/** @type {any} */ change) => html`<li>${visible(change.operation)} ${visible(change.file_path)}</li>`);
    return html`<div>
      <h3>${isContext ? "Files that the agent reads" : visible(context.proposal?.summary ?? "Changes")} (${rows.length})</h3>
      <ul tabindex="0" aria-label=${isContext ? "Files" : "Changes"}>${rows}</ul>
      ${digest ? html`<p class="faint" title=${digest}>Digest ${digest.replace("sha256:", "").slice(0, 16)}…</p>` : html`<p class="faint">You cannot approve this.</p>`}
    </div>`;
  }

  #countdown() {
    const due = this.#run?.view?.next_due;
    if (!due || this.#isPaused || !Object.hasOwn(GATES, this.state)) return nothing;
    const seconds = Math.max(0, Math.round((Date.parse(due) - Date.now()) / 1_000));
    return html` · <span>Expires in ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}</span>`;
  }

  /** @param {SubmitEvent} event */
  #submit(event) {
    event.preventDefault();
    const field = /** @type {HTMLTextAreaElement | null} */ (this.shadowRoot?.querySelector("#goal"));
    if (field?.value.trim()) this.start(field.value.trim()).then((said) => said.success && (field.value = ""));
  }

  /** Draws the widget. */
  render() {
    if (!this.shadowRoot) return;
    const status = this.getStatus();
    const controls = this.getControls();
    const history = this.history.reverse();
    const needsText = controls.some((control) => control.id === "revise" || control.id === "reject");
    const busy = this.#busy.size > 0;
    // What has gone well does not have to be read for long.
    if (this.#said?.success && Date.now() - this.#said.at > SAID_MS) this.#said = null;
    render(
      html`<section class="panel" aria-labelledby="title">
        <h2 id="title">Sentinel FSM</h2>
        <div class="now ${status.state}" part="state">
          <div class="name">${visible(this.state)}</div>
          <div class="faint">${status.secondaryMetric}${status.message ? html` · ${visible(status.message)}` : nothing}${this.#countdown()}</div>
          ${this.goal ? html`<div class="goal" tabindex="0" role="group" aria-label="Goal">${visible(this.goal)}</div>` : nothing}
        </div>
        ${this.#test && this.run ? html`<div><button class="plain" @click=${() => ((this.#test = null), this.#open())}>Back to run ${visible(this.run)}</button></div>` : nothing}
        ${this.#subject()}
        ${this.#run?.may("START") && this.state === "IDLE"
          ? html`<form @submit=${this.#submit.bind(this)}>
              <label>Goal <textarea id="goal" rows="2"></textarea></label>
              <div class="controls"><button ?disabled=${busy}>Start</button></div>
            </form>`
          : nothing}
        ${needsText ? html`<label>Feedback, or the reason to reject <textarea id="note" rows="2"></textarea></label>` : nothing}
        <div class="controls" part="controls">
          ${controls.map((control) => html`<button data-control=${control.id} ?disabled=${this.#busy.has(control.id)} @click=${() => control.action()}>${control.label.replace(/^[^\p{L}]+/u, "")}</button>`)}
        </div>
        <div class="said ${this.#said && !this.#said.success ? "failed" : ""}" role="status">${visible(this.#said?.message ?? "")}</div>
        ${history.length === 0
          ? nothing
          : html`<div><h3>Last moves</h3>
              <ol tabindex="0" aria-label="Last moves" part="history">
                ${history.map((one) => html`<li><time datetime=${new Date(one.timestamp).toISOString()}>${new Date(one.timestamp).toLocaleTimeString()}</time> ${visible(one.from)} → ${visible(one.to)}</li>`)}
              </ol>
            </div>`}
      </section>`,
      this.shadowRoot,
    );
  }
}

if (!customElements.get(ELEMENT)) customElements.define(ELEMENT, SentinelFSMWidget);

/** How a dashboard lists the widget. */
export const widget = { element: ELEMENT, displayName: "Sentinel FSM", icon: "🔄", category: "agent" };
export default widget;
