// The view Try it: a charter in an editor beside its chart; findings as it is typed; its events, by clicking them.
import { css, html, nothing, repeat } from "../lit.js";
import { problemOf } from "../lib/api.js";
import { Component } from "../lib/base.js";
import { words } from "../lib/format.js";
import { markLegal, pictureOf, pictureStyles } from "../lib/picture.js";
import { shared } from "../lib/style.js";
import { visible as show } from "../lib/text.js";
import "../components/charter-event.js";
import "../components/charter-value.js";
import { findingStyles, findingsOf } from "./charters.js";

const TYPED_MS = 500;
const KEPT = "charter-try";
const FIRST = `charter: 1
id: lamp
roles: {guest: {}}
events:
  SWITCH: {by: guest}
context: {count: 0}
initial: dark
states:
  dark:
    on:
      SWITCH: {target: light, actions: {assign: {count: "= context.count + 1"}}}
  light:
    on:
      SWITCH: dark
    after:
      5m: dark
`;

/** A client that sends nothing: events go to the lines of the view. */
class Trial {
  /** @param {(event: any) => Promise<any>} step */
  constructor(step) {
    this.base = "";
    this.step = step;
  }

  /** Nobody is asked. */
  known() {}

  /** @param {string} _run @param {any} event */
  send(_run, event) {
    return this.step(event);
  }
}

class ViewTry extends Component {
  static properties = {
    charter: { type: String },
    source: { state: true },
    input: { state: true },
    who: { state: true },
    lines: { state: true },
    events: { state: true },
    current: { state: true },
    picture: { state: true },
    findings: { state: true },
    problem: { state: true },
    checking: { state: true },
  };

  static styles = [
    shared,
    pictureStyles,
    findingStyles,
    css`
      :host { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr); }
      .panes { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1.25rem; align-items: start; }
      .pane { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr); }
      section { display: grid; gap: 0.45rem; grid-template-columns: minmax(0, 1fr); }
      textarea.source { min-height: 28rem; tab-size: 2; white-space: pre; overflow: auto; }
      textarea.input { min-height: 3rem; }
      .frame { overflow: auto; border: 1px solid var(--line); border-radius: 8px; max-height: 60vh; }
      .events { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: start; }
      ol.lines li { display: grid; grid-template-columns: 2rem minmax(0, 1fr) max-content; gap: 0.5rem; padding: 0.25rem 0; border-bottom: 1px solid var(--line); }
      li.refused { background: var(--bad-bg); }
      @media (max-width: 56rem) { .panes { grid-template-columns: minmax(0, 1fr); } }
    `,
  ];

  constructor() {
    super();
    /** The id of a charter to begin with. */
    this.charter = "";
    this.source = localStorage.getItem(KEPT) ?? FIRST;
    this.input = "{}";
    this.who = "you";
    /** @type {any[]} */
    this.lines = [];
    /** The lines that were sent. @type {any[]} */
    this.events = [];
    /** @type {any} */
    this.current = null;
    /** @type {SVGElement | null} */
    this.picture = null;
    /** @type {any[] | null} */
    this.findings = null;
    /** @type {import("../lib/api.js").Problem | null} */
    this.problem = null;
    this.checking = false;
    this.timer = 0;
    this.asked = 0;
    /** @type {Promise<any>} */
    this.queue = Promise.resolve();
    this.trial = new Trial((event) => this.#send(event));
  }

  /** @param {Map<string, any>} changed */
  willUpdate(changed) {
    if (changed.has("charter")) this.#begin();
  }

  async #begin() {
    if (this.charter) {
      try {
        this.source = (await this.api.get(`/v1/charters/${encodeURIComponent(this.charter)}`)).source;
      } catch (error) {
        this.problem = problemOf(error);
      }
    }
    this.#restart();
  }

  /** @param {string} source */
  #typed(source) {
    this.source = source;
    if (!this.charter) localStorage.setItem(KEPT, source);
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.#restart(), TYPED_MS);
  }

  #restart() {
    this.#change(() => []);
    this.#check();
  }

  async #check() {
    const asked = ++this.asked;
    this.checking = true;
    try {
      const report = await this.api.post("/v1/check", { source: this.source });
      if (asked === this.asked) this.findings = report.findings;
    } catch (error) {
      const problem = problemOf(error);
      if (asked !== this.asked) return;
      this.findings = problem.body.findings?.diagnostics ?? (Array.isArray(problem.body.findings) ? problem.body.findings : null);
      if (!this.findings && problem.status !== 429) this.findings = [{ severity: "error", message: problem.detail }];
    }
    if (asked === this.asked) this.checking = false;
  }

  /** Changes the lines that were sent and steps through them, one change after the other. @param {(events: any[]) => any[]} change */
  #run(change) {
    const done = this.queue.then(() => this.#step(change(this.events)));
    this.queue = done.catch(() => {});
    return done;
  }

  /** @param {(events: any[]) => any[]} change */
  #change(change) {
    this.#run(change).catch(() => {});
  }

  /** @param {any[]} events */
  async #step(events) {
    try {
      const body = { source: this.source, input: JSON.parse(this.input || "{}"), events, now: this.who || "you", at: new Date().toISOString() };
      const answer = await this.api.post("/v1/step", body);
      this.events = events;
      this.lines = answer.lines;
      this.current = answer.now ?? null;
      this.picture = answer.now ? pictureOf(answer.now.chart) : null;
      this.problem = null;
      markLegal(this.picture, new Set((answer.now?.events ?? []).map((/** @type {any} */ event) => event.type)));
      return answer;
    } catch (error) {
      this.problem = problemOf(error);
      throw this.problem;
    }
  }

  /** @param {any} event */
  async #send(event) {
    return this.#run((events) => [...events, { ...event, by: this.current?.by ?? { id: this.who, roles: [] } }]);
  }

  /** @param {any} invocation @param {SubmitEvent} event */
  #answer(invocation, event) {
    event.preventDefault();
    const text = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("output"));
    try {
      const output = JSON.parse(text);
      this.#change((events) => [...events, { done: invocation.invocation, to: invocation.actor, output }]);
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  #happened() {
    return html`<ol class="lines">
      ${this.lines.map(
        (line, i) => html`<li class=${line.verdict ?? ""}>
          <span class="faint">${i}</span>
          <span class="wrap">${i === 0 ? "Start" : show(this.events[i - 1]?.type ?? Object.keys(this.events[i - 1] ?? {})[0] ?? "")}
            ${line.refusal ? html`<span class="small">${show(line.refusal.message)}</span>` : line.error ? html`<span class="small">${show(line.error)}</span>` : nothing}</span>
          <span class="faint">${show((line.state ?? []).join(", "))}</span>
        </li>`,
      )}
    </ol>`;
  }

  render() {
    const current = this.current;
    const timers = (current?.timers ?? []).filter((/** @type {any} */ timer) => timer.due);
    const next = timers.map((/** @type {any} */ timer) => timer.due).sort()[0];
    return html`
      <div class="row"><h1>Try it</h1><span class="faint">Nothing is stored; no actor is called.</span></div>
      <div class="panes">
        <div class="pane">
          <label>Charter <textarea class="source" spellcheck="false" .value=${this.source} @input=${(/** @type {any} */ e) => this.#typed(e.target.value)}></textarea></label>
          <label>Input, as JSON <textarea class="input" spellcheck="false" .value=${this.input} @change=${(/** @type {any} */ e) => ((this.input = e.target.value), this.#restart())}></textarea></label>
          <section aria-busy=${this.checking}>
            <h2>Findings</h2>
            ${this.findings ? (this.findings.length ? findingsOf(this.findings) : html`<p>Nothing wrong was found.</p>`) : html`<p class="faint">Checking…</p>`}
          </section>
        </div>
        <div class="pane">
          ${this.problem ? html`<p class="note bad" role="alert">${show(this.problem.detail)}</p>` : nothing}
          ${this.picture ? html`<div class="frame" tabindex="0" role="group" aria-label="Chart">${this.picture}</div>` : nothing}
          ${current
            ? html`<section>
                  <div class="row"><h2>Send</h2><label class="row small">as <input size="10" .value=${this.who} @change=${(/** @type {any} */ e) => ((this.who = e.target.value.trim() || "you"), this.#change((events) => events))} /></label>
                    <span class="faint small">with every role</span></div>
                  <div class="events">
                    ${repeat(current.events, (/** @type {any} */ event) => `${event.to} ${event.type}`, (/** @type {any} */ event) => html`<charter-event .client=${this.trial} run="trial" .to=${event.to} .event=${event} .caption=${words(event.type)}></charter-event>`)}
                    ${next ? html`<button @click=${() => this.#change((events) => [...events, { tick: next }])}>Let time pass: ${show(timers.find((/** @type {any} */ t) => t.due === next)?.id)}</button>` : nothing}
                    ${this.events.length ? html`<button class="plain" @click=${() => this.#change((events) => events.slice(0, -1))}>Take back</button>` : nothing}
                  </div>
                  ${current.invocations.map(
                    (/** @type {any} */ i) => html`<form @submit=${(/** @type {SubmitEvent} */ e) => this.#answer(i, e)}>
                      <label>Answer of ${show(i.src)}, as JSON <textarea class="input" name="output">{}</textarea></label> <button>Answer</button>
                    </form>`,
                  )}
                  ${current.events.length + timers.length + current.invocations.length === 0 ? html`<p class="faint">${current.status === "active" ? "This person may send nothing now." : `The run is ${current.status}.`}</p>` : nothing}
                </section>
                <section><h2>What happened</h2>${this.#happened()}</section>
                <section><h2>Data</h2><charter-value .value=${current.actors.length === 1 ? current.actors[0].context : Object.fromEntries(current.actors.map((/** @type {any} */ a) => [a.id, a.context]))}></charter-value></section>`
            : nothing}
        </div>
      </div>
    `;
  }
}

customElements.define("view-try", ViewTry);
