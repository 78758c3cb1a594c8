// `<charter-run run=...>`: one run: where it is and how it came there, what may be sent, who works, what is due.
import { css, html, nothing, repeat } from "../lit.js";
import { newKey, problemOf } from "../lib/api.js";
import { charterOf } from "../lib/charter.js";
import { changesetsOf } from "../lib/contents.js";
import { votesOf } from "../lib/demands.js";
import { ago, clock, count, span, until, words } from "../lib/format.js";
import { OfRun } from "../lib/of-run.js";
import { visible as show } from "../lib/text.js";
import { shared } from "../lib/style.js";
import "./charter-changes.js";
import "./charter-chart.js";
import "./charter-event.js";
import "./charter-record.js";
import { tone } from "./charter-runs.js";
import "./charter-task.js";
import { MAX_PRINTED } from "./charter-timeline.js";
import "./charter-value.js";

/** @param {any} event */
const keyOf = (event) => `${event.to} ${event.type}`;

/**
 * What the models of a run took.
 * @param {{input: number, output: number, picodollars: number, questions: number, unpriced: number, estimated: boolean} | undefined} usage
 */
function spent(usage) {
  if (!usage) return "";
  const tokens = ` · ${usage.estimated ? "about " : ""}${(usage.input + usage.output).toLocaleString("en")} tokens`;
  if (usage.unpriced === usage.questions) return tokens;
  // As `charter show` does: small amounts with more places.
  const places = usage.picodollars >= 1e12 || usage.picodollars === 0 ? 2 : usage.picodollars >= 1e10 ? 4 : 6;
  // What cost something is never shown as nothing.
  const least = usage.picodollars > 0 ? 1 : 0;
  const count = Math.max(Math.round(usage.picodollars / 10 ** (12 - places)), least);
  const cost = `$${(count / 10 ** places).toFixed(places).replace(/(\.\d\d\d*?)0+$/, "$1")}`;
  return `${tokens}, ${cost}${usage.unpriced ? " and questions without a price" : ""}`;
}

export class CharterRun extends OfRun {
  static properties = {
    at: { type: Number },
    charter: { state: true },
    problem: { state: true },
    asking: { state: true },
    said: { state: true },
    past: { state: true },
  };

  static styles = [
    shared,
    css`
      :host { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr); }
      .head { display: flex; flex-wrap: wrap; gap: 0.4rem 0.75rem; align-items: center; }
      h1 { overflow-wrap: anywhere; }
      .actions { margin-left: auto; display: flex; flex-wrap: wrap; gap: 0.4rem; }
      .panes { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 6fr); gap: 1.5rem; align-items: start; }
      .pane { display: grid; gap: 1.25rem; grid-template-columns: minmax(0, 1fr); }
      section { display: grid; gap: 0.45rem; grid-template-columns: minmax(0, 1fr); }
      .events { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: start; }
      .events > charter-event { max-width: 100%; }
      .scrubber { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
      .scrubber input { flex: 1 1 12rem; padding: 0; }
      .news { max-height: 12rem; overflow: auto; }
      .arriving { max-height: 9rem; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.84rem; }
      .news li { font-family: var(--mono); font-size: 0.84rem; overflow-wrap: anywhere; white-space: pre-wrap; }
      form.ask { display: grid; gap: 0.6rem; padding: 1rem; max-width: 36rem; }
      @media (max-width: 60rem) { .panes { grid-template-columns: minmax(0, 1fr); } }
      @media print { .actions, .scrubber, .now { display: none; } .panes, .pane { display: block; } section, .pane + .pane, charter-timeline, charter-record { margin-top: 1rem; } }
    `,
  ];

  constructor() {
    super();
    /** The record that is looked at; the last one, as it changes, if it is null. @type {number | null} */
    this.at = null;
    /** @type {any} */
    this.charter = null;
    /** @type {import("../lib/api.js").Problem | null} */
    this.problem = null;
    /** Which question is asked: `cancel` or `fork`. @type {string | null} */
    this.asking = null;
    this.said = "";
    /** The state after `at`. @type {any} */
    this.past = null;
    /** Ids of run control by what was asked for after which record, so that a second click is the same. @type {Map<string, string>} */
    this.keys = new Map();
  }

  connectedCallback() {
    super.connectedCallback();
    this.listen(window, "keydown", (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || event.key !== "p") return;
      event.preventDefault();
      this.#print();
    });
  }

  /** @param {Map<string, any>} changed */
  willUpdate(changed) {
    super.willUpdate(changed);
    if (changed.has("run")) this.charter = null;
    if (changed.has("at") || changed.has("run")) this.#look();
  }

  changed() {
    const digest = this.store?.view?.charter.digest;
    if (digest && !this.charter) {
      this.charter = {};
      charterOf(this.api, digest).then((charter) => (this.charter = charter), () => {});
    }
    if (this.at !== null && this.past?.seq !== this.at) this.#look();
    this.requestUpdate();
  }

  #look() {
    const at = this.at;
    if (at === null || !this.store) return void (this.past = null);
    this.store.at(at).then((view) => this.at === at && (this.past = view), (error) => (this.problem = problemOf(error)));
  }

  /** @param {number | null} at */
  #choose(at) {
    this.at = at;
    const query = at === null ? "" : `?at=${at}`;
    if (location.hash.startsWith("#/run/")) history.replaceState(null, "", `#/run/${encodeURIComponent(this.run)}${query}`);
  }

  /** @param {string} type */
  async #control(type) {
    const seq = this.store?.last ?? 0;
    const asked = `${type} ${seq}`;
    const key = this.keys.get(asked) ?? newKey();
    this.keys.set(asked, key);
    this.problem = null;
    this.asking = null;
    try {
      await this.api.send(this.run, { type, data: {} }, { key });
    } catch (error) {
      this.problem = problemOf(error);
    }
    this.store?.load();
  }

  /** @param {SubmitEvent} event */
  async #fork(event) {
    event.preventDefault();
    const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const run = String(data.get("run")).trim();
    try {
      const at = this.at ?? this.store?.last ?? 0;
      const made = await this.api.post(`${this.store?.path}/fork`, { at, live: data.has("live"), ...(run ? { run } : {}) });
      this.asking = null;
      if (location.hash.startsWith("#/run/")) location.hash = `#/run/${encodeURIComponent(made.run)}`;
      else this.said = `Made run ${made.run}.`;
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  async #export() {
    this.said = "Exporting…";
    try {
      const parts = [];
      for await (const part of this.store?.lines() ?? []) parts.push(part);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob(parts, { type: "application/jsonl" }));
      link.download = `${this.run.replace(/[^\w.-]+/g, "_")}.jsonl`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      this.said = "Exported.";
    } catch (error) {
      this.said = "";
      this.problem = problemOf(error);
    }
  }

  /** A print has all records, not only those that were looked at. */
  async #print() {
    if (this.said) return;
    this.said = "Reading the records…";
    await this.store?.first(MAX_PRINTED);
    this.said = "";
    await this.updateComplete;
    window.print();
  }

  #head() {
    const store = this.store;
    const view = store?.view;
    const roles = store?.legal?.by?.roles ?? [];
    const operates = roles.includes("operator");
    const ended = ["done", "failed", "cancelled"].includes(view.status);
    const button = (/** @type {string} */ label, /** @type {() => void} */ act) => html`<button @click=${act}>${label}</button>`;
    return html`<div class="head">
      <h1>${show(this.run)}</h1>
      <span class="tag ${tone(view.status, view.stuck)}">${view.stuck ? "Stuck" : words(view.status)}</span>
      ${view.dry ? html`<span class="tag warn">Dry fork</span>` : nothing} ${view.untrusted ? html`<span class="tag warn">Untrusted</span>` : nothing}
      <span class="faint wrap">${show(this.charter?.title ?? view.charter.id)} · <code>${show(view.state.join(", "))}</code> · changed ${ago(view.updated, this.now)}${spent(view.usage)}</span>
      <div class="actions">
        ${operates && view.status === "active" ? button("Pause", () => this.#control("charter.pause")) : nothing}
        ${operates && view.status === "paused" ? button("Resume", () => this.#control("charter.resume")) : nothing}
        ${operates && !ended ? button("Cancel…", () => (this.asking = "cancel")) : nothing}
        ${roles.length ? button("Fork…", () => (this.asking = "fork")) : nothing} ${button("Print", () => this.#print())}
        ${button("Export", () => this.#export())}
      </div>
    </div>`;
  }

  #question() {
    if (this.asking === "cancel") {
      return html`<div class="card"><form class="ask" @submit=${(/** @type {Event} */ e) => (e.preventDefault(), this.#control("charter.cancel"))}>
        <p><strong>Cancel this run for good?</strong> Its actors are stopped; it accepts nothing afterwards.</p>
        <div class="row"><button class="main">Cancel the run</button><button type="button" class="plain" @click=${() => (this.asking = null)}>Keep it</button></div>
      </form></div>`;
    }
    if (this.asking !== "fork") return nothing;
    const operates = (this.store?.legal?.by?.roles ?? []).includes("operator");
    return html`<div class="card"><form class="ask" @submit=${this.#fork}>
      <p><strong>A new run that shares the records up to ${this.at ?? this.store?.last}.</strong></p>
      <label>Id <span class="small faint">(a new one if empty)</span> <input name="run" maxlength="200" /></label>
      ${operates ? html`<label><input type="checkbox" name="live" /> Actors work for it</label>` : nothing}
      <div class="row"><button class="main">Fork</button><button type="button" class="plain" @click=${() => (this.asking = null)}>Cancel</button></div>
    </form></div>`;
  }

  #scrubber() {
    const last = this.store?.last ?? 0;
    const at = this.at ?? last;
    const go = (/** @type {number} */ to) => this.#choose(Math.max(0, Math.min(last, to)));
    return html`<div class="scrubber">
      <button aria-label="The record before" ?disabled=${at <= 0} @click=${() => go(at - 1)}>‹</button>
      <input type="range" aria-label="Record" min="0" max=${last} .value=${String(at)} @input=${(/** @type {any} */ e) => go(Number(e.target.value))} />
      <button aria-label="The record after" ?disabled=${at >= last} @click=${() => go(at + 1)}>›</button>
      <span class="small" role="status">${this.at === null ? html`live, ${count(last + 1, "record")}` : `after record ${at} of ${last}`}</span>
      ${this.at === null ? nothing : html`<button class="main" @click=${() => this.#choose(null)}>Live</button>`}
    </div>`;
  }

  #now() {
    const legal = this.store?.legal;
    const events = legal?.events ?? [];
    const tasks = legal?.tasks ?? [];
    const votes = events.flatMap(votesOf);
    const not = legal?.not_legal ?? [];
    const refresh = () => this.store?.load();
    return html`<section class="now">
      <h2>What you may send</h2>
      ${events.length
        ? html`<div class="events">
            ${repeat(events, keyOf, (event) => html`<charter-event .client=${this.api} .run=${this.run} .to=${event.to} .event=${event}
              .caption=${event.to === "root" ? "" : `${words(event.type)} (${event.to})`} @sent=${refresh} @refused=${refresh}></charter-event>`)}
          </div>`
        : html`<p class="faint">Nothing now.</p>`}
      ${votes.length ? html`<ul class="small" aria-label="Votes">${votes.map((/** @type {string} */ line) => html`<li class="wrap">${show(line)}</li>`)}</ul>` : nothing}
      ${not.length
        ? html`<h3>Not by you now</h3>
            <dl class="facts small">${not.map((/** @type {any} */ { type, to, message }) => html`<dt>${show(words(type))}${to === "root" ? nothing : html` (${show(to)})`}</dt><dd class="wrap">${show(message)}</dd>`)}</dl>`
        : nothing}
      ${tasks.map((/** @type {any} */ task) => html`<h3>${show(task.title ?? words(task.src))}</h3><charter-task .client=${this.api} .task=${task} .at=${this.store?.view.seq} @sent=${refresh}></charter-task>`)}
    </section>`;
  }

  /** The files that the data of the run name as changed. @param {any} view */
  #files(view) {
    const found = (view.actors ?? []).flatMap((/** @type {any} */ actor) => changesetsOf(actor.context));
    return found.map(
      (/** @type {any} */ { name, value }) => html`<section><h2>Changes to files <span class="faint">(${show(words(name))})</span></h2>
        ${value.summary ? html`<p class="wrap">${show(value.summary)}</p>` : nothing}
        <charter-changes .client=${this.api} .run=${this.run} .at=${view.seq} .value=${value}></charter-changes></section>`,
    );
  }

  /** @param {any} view */
  #working(view) {
    const works = view.working ?? [];
    const news = this.store?.news ?? [];
    const open = view.invocations.filter((/** @type {any} */ i) => !works.some((/** @type {any} */ w) => w.effect === i.effect));
    if (!works.length && !news.length && !open.length) return nothing;
    return html`<section>
      <h2>Actors</h2>
      ${works.map((/** @type {any} */ w) => html`<p><strong>${show(w.src)}</strong> ${w.since > this.now ? "waits" : "works"} <span class="faint">(${show(w.kind)}, attempt ${w.attempt}, ${w.since > this.now ? until(new Date(w.since).toISOString(), this.now) : `since ${ago(new Date(w.since).toISOString(), this.now)}`})</span></p>
        ${arrivingOf(this.store, w.effect).map((progress) => html`<pre class="block arriving" role="region" tabindex="0" aria-label="What arrives for ${show(w.src)}">${show(progress.text)}</pre>`)}`)}
      ${open.map((/** @type {any} */ i) => html`<p><strong>${show(i.src)}</strong> <span class="faint">waits for an answer (${show(i.actor)})</span></p>`)}
      ${news.length
        ? html`<ol class="block news" tabindex="0" aria-label="Output" role="log">${news.map(({ at, kind, news: item }) => html`<li>${clock(new Date(at))} ${told(kind, item)}</li>`)}</ol>`
        : nothing}
    </section>`;
  }

  /** @param {any} view */
  #due(view) {
    const ledger = view.snapshot?.ledger ?? {};
    const entries = ledgerOf(ledger);
    if (!view.timers.length && !entries.length) return nothing;
    return html`<section>
      <h2>Timers, permits, obligations</h2>
      <dl class="facts">
        ${view.timers.map((/** @type {any} */ t) => html`<dt class="wrap"><code>${show(t.id)}</code></dt><dd>
          ${t.due ? html`${until(t.due, this.now)} <span class="faint">(${clock(t.due)})</span>` : html`${span(t.left_ms ?? 0)} left when the run goes on`}
        </dd>`)}
        ${entries.map(({ label, value }) => html`<dt class="wrap">${show(label)}</dt><dd><charter-value .value=${value}></charter-value></dd>`)}
      </dl>
    </section>`;
  }

  render() {
    const store = this.store;
    if (!store?.view) return store?.problem ? html`<p class="note bad" role="alert">${show(store.problem.detail)}</p>` : html`<p class="faint" aria-busy="true">Loading…</p>`;
    const view = this.at !== null && this.past?.seq === this.at ? this.past : store.view;
    const problem = this.problem ?? store.problem;
    return html`
      ${this.#head()}
      <div role="status" class="small">${show(this.said)}</div>
      ${problem ? html`<p class="note bad" role="alert">${show(problem.detail)}</p>` : nothing} ${this.#question()} ${this.#scrubber()}
      <div class="panes">
        <div class="pane">
          <charter-chart .client=${this.api} .run=${this.run} .at=${this.at}></charter-chart>
          ${this.at === null || this.at === store.last ? this.#now() : html`<p class="note small">This is the past: what you may send is shown live.</p>`}
          ${view.page?.length
            ? html`<section><h2>About the run</h2>
                <dl class="facts">${view.page.map((/** @type {any} */ row) => html`<dt>${show(row.label)}</dt><dd><charter-value .value=${row.value}></charter-value></dd>`)}</dl></section>`
            : nothing}
          ${view.output === null || view.output === undefined ? nothing : html`<section><h2>Output</h2><charter-value .value=${view.output}></charter-value></section>`}
          ${this.#files(view)} ${this.#working(view)} ${this.#due(view)}
        </div>
        <div class="pane">
          <charter-timeline .client=${this.api} .run=${this.run} .at=${this.at}
            @choose=${(/** @type {CustomEvent} */ e) => this.#choose(e.detail)}></charter-timeline>
          <charter-record .client=${this.api} .run=${this.run} .seq=${this.at ?? store.last}></charter-record>
        </div>
      </div>
    `;
  }
}

/** What arrives for an actor, one text for each of its calls. @param {any} store @param {string} effect @returns {any[]} */
function arrivingOf(store, effect) {
  const all = [...(store?.arriving.values() ?? [])];
  return all.filter((progress) => progress.effect === effect && progress.text).sort((a, b) => a.call - b.call).slice(0, 8);
}

/** News in a line. @param {string} kind @param {any} item */
function told(kind, item) {
  if (kind === "began") return html`${show(item.src)} began${item.attempt > 1 ? `, attempt ${item.attempt}` : ""}`;
  if (kind === "retrying") return html`${show(item.work.src)} failed: ${show(item.error?.message ?? item.error?.code ?? "")}; another attempt follows`;
  if (kind === "waiting") return html`${show(item.src)} waits for a person`;
  if (kind === "stopped") return html`${show(item.src)} was stopped`;
  if (kind === "logged") return html`${show(item.label ?? "log")}: ${show(typeof item.value === "string" ? item.value : JSON.stringify(item.value))}`;
  if (kind === "emitted") return html`${show(item.type)} ${show(JSON.stringify(item.data))}`;
  if (kind === "progress") return html`${show(item.src)}: ${show(item.note)}`;
  if (kind === "missed") return html`${count(Number(item), "line")} missed`;
  return html`${kind} ${show(item?.message ?? JSON.stringify(item))}`;
}

/** The permits and obligations of a snapshot. @param {any} ledger @returns {{label: string, value: any}[]} */
function ledgerOf(ledger) {
  const found = [];
  for (const [kind, entries] of Object.entries(ledger)) {
    if (typeof entries !== "object" || entries === null) continue;
    for (const [key, value] of Object.entries(entries)) found.push({ label: `${kind} ${key}`, value });
  }
  return found.slice(0, 200);
}

customElements.define("charter-run", CharterRun);
