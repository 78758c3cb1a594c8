// `<charter-request>`: one request of the inbox: what exactly, why, by whom, until when, and the answers to it.
import { css, html, keyed, nothing } from "../lit.js";
import { Component } from "../lib/base.js";
import { problemOf } from "../lib/api.js";
import { charterOf, leadsTo, stateAt } from "../lib/charter.js";
import { isChangeset, takesPart } from "../lib/contents.js";
import { canDigest, partOf } from "../lib/digest.js";
import { ago, clock, count, short, until, words } from "../lib/format.js";
import { inboxOf, isPutOff, titleOf } from "../lib/inbox.js";
import { visible as show } from "../lib/text.js";
import { shared } from "../lib/style.js";
import "./charter-changes.js";
import "./charter-event.js";
import "./charter-task.js";
import "./charter-value.js";

const HOUR_MS = 3_600_000;

/** Whether a decision is the one that is asked for. @param {any} decision */
const isMain = (decision) => Boolean(decision.demands?.approves || decision.demands?.quorum);

/**
 * `Approve` and `Reject` for the events whose names say so, if there is one of each; the others keep their names.
 * @param {string} type @param {any[]} decisions
 */
function caption(type, decisions) {
  for (const [label, pattern] of /** @type {[string, RegExp][]} */ ([["Approve", /approve/i], ["Reject", /reject/i]])) {
    const named = decisions.filter((decision) => pattern.test(decision.type));
    if (named.length === 1 && named[0].type === type) return label;
  }
  return "";
}

export class CharterRequest extends Component {
  static properties = {
    request: { attribute: false },
    closed: { attribute: false },
    version: { attribute: false },
    problem: { state: true },
    charter: { state: true },
    run: { state: true },
    earlier: { state: true },
    canChoose: { state: true },
    without: { state: true },
    accepting: { state: true },
  };

  static styles = [
    shared,
    css`
      article { display: grid; gap: 1.1rem; padding: 1.1rem 1.25rem; }
      header { display: grid; gap: 0.15rem; }
      section { display: grid; gap: 0.45rem; }
      h3 { color: var(--faint); }
      .answers { display: flex; flex-wrap: wrap; gap: 0.6rem; align-items: start; }
      .answers > charter-event { flex: 0 1 auto; min-width: 0; max-width: 100%; }
      .digest { font-family: var(--mono); font-size: 0.82rem; overflow-wrap: anywhere; color: var(--faint); }
      .content { padding: 0.75rem 0.9rem; background: var(--surface); border-radius: 8px; border: 1px solid var(--line); max-height: 60vh; overflow: auto; }
      .marks { border-top: 1px solid var(--line); padding-top: 0.6rem; }
      .later { display: flex; flex-wrap: wrap; gap: 0.25rem; align-items: center; }
      .later input { width: 12rem; }
      ol.votes { display: flex; flex-wrap: wrap; gap: 0.35rem; }
    `,
  ];

  constructor() {
    super();
    /** @type {any} */
    this.request = null;
    /** @type {import("../lib/inbox.js").Closed | null} */
    this.closed = null;
    /** Changes with the marks of the request. */
    this.version = 0;
    this.problem = "";
    /** @type {any} */
    this.charter = null;
    /** @type {any} */
    this.run = null;
    /** What the same approval was about when it was shown before. @type {any} */
    this.earlier = undefined;
    /** Whether files of the changeset can be left out here. */
    this.canChoose = false;
    /** The paths that are left out. @type {Set<string>} */
    this.without = new Set();
    /** What is approved then; `null`: all of it. @type {{digest: string, accepted: string[]} | null} */
    this.accepting = null;
  }

  /** @param {Map<string, any>} changed */
  willUpdate(changed) {
    if (changed.has("request") && this.request && changed.get("request")?.id !== this.request.id) this.#load();
  }

  async #load() {
    const { run, seq, charter } = this.request;
    this.charter = null;
    this.run = null;
    [this.canChoose, this.without, this.accepting] = [false, new Set(), null];
    const main = this.request.decisions.find(takesPart);
    const asked = this.request.decisions.find((/** @type {any} */ d) => d.demands?.approves && d.value !== null);
    this.earlier = asked && !this.closed ? inboxOf(this.api).show(this.request, asked.value) : undefined;
    if (this.earlier !== undefined) import("./charter-since.js");
    const same = () => this.request?.run === run && this.request.seq === seq;
    if (main && !main.withheld) canDigest(main.value, main.demands.approves.digest).then((can) => same() && (this.canChoose = can), () => {});
    charterOf(this.api, charter.digest).then((found) => same() && (this.charter = found), () => {});
    this.api.get(`/v1/runs/${encodeURIComponent(run)}/at/${seq}`).then((found) => same() && (this.run = found), () => {});
  }

  /** @param {Set<string>} without */
  async #choose(without) {
    const { request } = this;
    const value = request.decisions.find(takesPart)?.value;
    // Until the digest of what is chosen now is known, nothing can be approved.
    [this.without, this.accepting] = [without, null];
    const part = value && without.size ? await partOf(value, (path) => !without.has(path)) : null;
    if (this.request?.id === request.id && this.without === without) this.accepting = part;
  }

  #why() {
    const { since, state, run } = this.request;
    const description = this.charter && state.map((/** @type {string} */ path) => stateAt(this.charter.definition, path)?.description).find(Boolean);
    const link = (/** @type {number} */ seq) => `#/run/${encodeURIComponent(run)}?at=${seq}`;
    return html`<section>
      <h3>Why</h3>
      ${description ? html`<p>${show(description)}</p>` : nothing}
      ${since
        ? html`<p>
            ${since.by.id === "system" ? "The run came here" : html`<strong>${show(since.by.id)}</strong> (${since.by.kind ?? "person"}) sent`}
            ${since.by.id === "system" ? html`by <code>${show(since.type)}</code>` : html`<strong>${words(since.type)}</strong>`}
            <span title=${clock(since.at)}>${ago(since.at, this.now)}</span>:
            <a href=${link(since.seq)}>record ${since.seq}</a> and what led to it.
          </p>`
        : nothing}
    </section>`;
  }

  #page() {
    const rows = this.run?.page ?? [];
    if (!rows.length) return nothing;
    return html`<section>
      <h3>About the run</h3>
      <dl class="facts">
        ${rows.map((/** @type {any} */ row) => html`<dt>${show(row.label)}</dt><dd><charter-value .value=${row.value}></charter-value></dd>`)}
      </dl>
    </section>`;
  }

  /** @param {any} main */
  #content(main) {
    const approves = main?.demands?.approves;
    if (!approves) return nothing;
    return html`<section>
      <h3>Exactly this is approved</h3>
      ${main.value === null
        ? html`<p class="note warn">The value cannot be shown; its digest is below.</p>`
        : isChangeset(main.value)
          ? this.#changeset(main.value)
          : html`<div class="content" tabindex="0" role="region" aria-label="What is approved"><charter-value .value=${main.value}></charter-value></div>
              ${JSON.stringify(main.value).includes('sha256":') ? html`<p class="note">Files are named here by their digests.</p>` : nothing}`}
      ${this.earlier === undefined || main.value === null ? nothing : html`<charter-since .earlier=${this.earlier} .value=${main.value}></charter-since>`}
      <p class="digest"><abbr title="SHA-256 of the canonical JSON of ${approves.value}">Digest</abbr> ${(this.accepting ?? approves).digest.replace("sha256:", "")}</p>
    </section>`;
  }

  /** @param {import("../lib/contents.js").Changeset} value */
  #changeset(value) {
    const { run, seq } = this.request;
    return html`
      ${value.summary ? html`<p class="wrap">${show(value.summary)}</p>` : nothing}
      <charter-changes .client=${this.api} .run=${run} .at=${seq} .value=${value} ?choose=${this.canChoose && !this.closed} .without=${this.without}
        @choice=${(/** @type {CustomEvent} */ event) => this.#choose(event.detail)}></charter-changes>
      ${this.accepting && !this.closed
        ? html`<p class="note" role="status">${this.accepting.accepted.length
            ? html`Without ${count(this.without.size, "file")}: the approval is of the other ${count(this.accepting.accepted.length, "file")}, a changeset with a digest of its own.`
            : "No file is chosen, so there is nothing to approve; reject the request instead."}</p>`
        : nothing}
      <details><summary>As data, with the digests of the contents</summary><charter-value .value=${value}></charter-value></details>
    `;
  }

  /** @param {any} main */
  #votes(main) {
    const quorum = main?.demands?.quorum;
    if (!quorum) return nothing;
    const votes = quorum.votes.flat();
    return html`<section>
      <h3>Votes</h3>
      <p>${votes.length} of ${quorum.count} needed${quorum.of.length ? html`, from ${show(quorum.of.join(", "))}` : nothing}.</p>
      ${votes.length
        ? html`<ol class="votes">${votes.map((/** @type {string} */ id) => html`<li class="tag good">${show(id)}</li>`)}</ol>`
        : nothing}
    </section>`;
  }

  #then() {
    const { decisions, due, to } = this.request;
    const definition = this.charter?.definition;
    const machine = this.run?.actors?.find((/** @type {any} */ actor) => actor.id === to)?.machine ?? "root";
    const timer = this.run?.timers?.find((/** @type {any} */ t) => t.actor === to && t.due === due);
    const id = timer?.id?.includes("/after/") ? timer.id.slice(timer.id.startsWith(`${to}/`) ? to.length + 1 : 0) : "";
    const expiry = id && leadsTo(definition, id, machine);
    const rows = decisions
      .map((/** @type {any} */ d) => [caption(d.type, decisions) || words(d.type), leadsTo(definition, d.demands?.transition ?? "", machine), d.demands?.quorum])
      .filter((/** @type {any[]} */ [, target]) => target);
    if (!rows.length && !due) return nothing;
    return html`<section>
      <h3>What happens then</h3>
      <dl class="facts">
        ${rows.map((/** @type {any[]} */ [label, target, quorum]) => html`<dt>${show(label)}</dt><dd>${quorum ? "with enough votes, " : ""}goes to ${show(target)}</dd>`)}
        ${due
          ? html`<dt>No answer</dt><dd>${until(due, this.now)} (${clock(due)})${expiry ? html`, goes to ${show(expiry)}` : ", a timer fires"}</dd>`
          : nothing}
      </dl>
    </section>`;
  }

  /** Where the run is by now, and whether it asks again. */
  #since() {
    const now = this.closed?.now;
    const again = [...inboxOf(this.api).requests.values()].find((other) => other.run === this.request.run);
    const href = again && `#/inbox?${new URLSearchParams({ run: again.run, request: again.id })}`;
    return html`
      ${now ? html`<p>The run is now ${now.status === "active" ? html`in <strong>${show(now.state.join(", "))}</strong>` : html`<strong>${now.status}</strong>`}.</p>` : nothing}
      ${again ? html`<p><a href=${href}>It asks again: ${show(titleOf(again))}</a>.</p>` : nothing}
    `;
  }

  /** Whether nobody had it on their screen while it was open. */
  #unseen() {
    const seen = this.request.marks?.seen ?? [];
    return !seen.length && !inboxOf(this.api).noted.has(this.request.id);
  }

  #closed() {
    const record = this.closed?.record;
    const run = `#/run/${encodeURIComponent(this.request.run)}`;
    if (!record) return html`<p class="note">This request is closed. <a href=${run}>See the run</a>.</p>`;
    const expired = record.source?.kind === "timer" || record.event.type.startsWith("after.");
    const reason = record.event.data?.reason ?? record.event.data?.feedback;
    return html`<div class="note good" role="status">
      <p>
        ${expired
          ? html`<strong>Expired</strong> ${this.#unseen() ? "unseen: nobody had opened it" : "without an answer"}`
          : html`<strong>${words(record.event.type)}</strong> by <strong>${show(record.by.id)}</strong>`}
        at ${clock(record.at)} (<a href=${`${run}?at=${record.seq}`}>record ${record.seq}</a>).
      </p>
      ${typeof reason === "string" ? html`<p>“${show(reason)}”</p>` : nothing}
      ${this.#since()}
    </div>`;
  }

  #answers() {
    const { decisions, run, to, task } = this.request;
    if (task) return html`<charter-task .client=${this.api} .task=${task} .at=${this.request.seq} @sent=${this.#settled} @refused=${this.#settled}></charter-task>`;
    const sorted = [...decisions].sort((a, b) => Number(isMain(b)) - Number(isMain(a)));
    return html`<div class="answers">
      ${sorted.map((decision) =>
        keyed(
          `${this.request.id} ${decision.type}`,
          html`<charter-event
            .client=${this.api}
            .run=${run}
            .to=${to}
            .event=${decision}
            .caption=${this.#caption(decision)}
            .accepting=${takesPart(decision) ? this.accepting : null}
            ?idle=${takesPart(decision) && this.without.size > 0 && !this.accepting?.accepted.length}
            ?main=${isMain(decision)}
            @sent=${this.#settled}
            @refused=${this.#settled}
          ></charter-event>`,
        ),
      )}
    </div>`;
  }

  /** @param {any} decision */
  #caption(decision) {
    const label = caption(decision.type, this.request.decisions);
    if (!this.accepting || !takesPart(decision)) return label;
    return `${label || words(decision.type)} ${this.accepting.accepted.length} of ${count(decision.value.changes.length, "file")}`;
  }

  /** Whatever the answer was: the truth is read again. */
  #settled() {
    inboxOf(this.api).refresh(this.request.run);
  }

  /** @param {any} mark @param {boolean} [aside] Whether the next request is shown then. */
  async #mark(mark, aside = false) {
    try {
      this.problem = "";
      await inboxOf(this.api).mark(this.request, mark);
      if (aside) this.dispatchEvent(new CustomEvent("aside"));
    } catch (error) {
      this.problem = problemOf(error).detail;
    }
    this.requestUpdate();
  }

  /** @param {number} ms */
  #later(ms) {
    this.#mark({ mark: "later", until: new Date(Date.now() + ms).toISOString() }, true);
  }

  /** @param {SubmitEvent} event */
  #assign(event) {
    event.preventDefault();
    const to = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("to") ?? "").trim();
    if (to) this.#mark({ mark: "assign", to }, to !== this.api.me?.id);
  }

  /** Who has seen it, who looks after it, and until when it is put off. */
  #marks() {
    const { seen = [], assigned = null } = this.request.marks ?? {};
    const me = this.api.me?.id;
    const others = seen.filter((/** @type {any} */ one) => one.id !== me);
    return html`<section class="marks small" aria-label="Later, or somebody else">
      ${others.length
        ? html`<p class="faint">Seen by ${others.map((/** @type {any} */ one, /** @type {number} */ at) => html`${at ? ", " : ""}<span title=${clock(one.at)}>${show(one.id)}</span>`)}.</p>`
        : nothing}
      <div class="later">
        <span class="faint">Later:</span>
        ${isPutOff(this.request, this.now)
          ? html`<button class="plain" @click=${() => this.#mark({ mark: "now" })}>Now</button>`
          : html`<button class="plain" @click=${() => this.#later(HOUR_MS)}>in an hour</button>
              <button class="plain" @click=${() => this.#later(24 * HOUR_MS)}>tomorrow</button>`}
      </div>
      <form class="later" @submit=${this.#assign}>
        ${assigned
          ? html`<span>Assigned to <strong>${show(assigned.to)}</strong> by ${show(assigned.by)} ${ago(assigned.at, this.now)}</span>
              <button type="button" class="plain" @click=${() => this.#mark({ mark: "release" })}>Release</button>`
          : html`<label class="faint" for="to">Assign to:</label>
              <input id="to" name="to" autocomplete="off" required maxlength="256" placeholder="name of a key" />
              <button class="plain">Assign</button>`}
        ${me && assigned?.to !== me ? html`<button type="button" class="plain" @click=${() => this.#mark({ mark: "assign", to: me })}>Take it</button>` : nothing}
      </form>
      ${this.problem ? html`<p class="note bad" role="alert">${show(this.problem)}</p>` : nothing}
      <p class="faint">None of these decides anything; everybody with this request sees who has it.</p>
    </section>`;
  }

  render() {
    const request = this.request;
    if (!request) return nothing;
    const main = request.decisions.find(isMain);
    const title = titleOf(request);
    const charter = request.charter.title ?? request.charter.id;
    return html`<article class="card" aria-labelledby="title">
      <header>
        <h2 id="title">${show(title)}</h2>
        <p class="small faint wrap">
          <a href=${`#/run/${encodeURIComponent(request.run)}`}>${show(request.run)}</a> · ${show(charter)} · <code>${show(request.state.join(", "))}</code>
          ${request.to === "root" ? nothing : html` · ${show(request.to)}`}
        </p>
      </header>
      ${this.closed ? this.#closed() : nothing}
      ${main?.description && main.description !== title ? html`<p>${show(main.description)}</p>` : nothing}
      ${this.#content(main)} ${this.#votes(main)}
      ${this.closed ? nothing : html`<section aria-label="Answers">${this.#answers()}</section>`}
      ${this.closed ? nothing : this.#then()} ${this.#why()} ${this.#page()}
      ${this.closed
        ? nothing
        : html`${this.#marks()}
            ${main?.demands?.approves ? html`<span class="sr">Digest begins with ${short(main.demands.approves.digest)}</span>` : nothing}`}
    </article>`;
  }
}

customElements.define("charter-request", CharterRequest);
