// `<charter-inbox>`: what waits for the caller in all runs, and what became of it.
import { css, html, nothing, repeat } from "../lit.js";
import { Component, isTyping } from "../lib/base.js";
import { ago, clock, count, until, words } from "../lib/format.js";
import { inboxOf, isMine, isPutOff, questionOf, titleOf } from "../lib/inbox.js";
import { visible as show } from "../lib/text.js";
import { shared } from "../lib/style.js";
import "./charter-request.js";

const HOUR_MS = 3_600_000;

/** @typedef {import("../lib/inbox.js").Request} Request */

/** Who brought it here. @param {Request} request @returns {string} */
const fromOf = (request) => (request.since && request.since.by.id !== "system" ? `from ${request.since.by.id}` : "");

export class CharterInbox extends Component {
  static properties = {
    request: { type: String },
    ofRun: { type: String, attribute: "run" },
    text: { state: true },
    version: { state: true },
  };

  static styles = [
    shared,
    css`
      .panes { display: grid; grid-template-columns: minmax(16rem, 24rem) minmax(0, 1fr); gap: 1.25rem; align-items: start; }
      .list { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem; position: sticky; top: 0.5rem; }
      .head { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; margin-bottom: 1rem; }
      .head input { flex: 1 1 10rem; max-width: 22rem; }
      li a { display: block; padding: 0.55rem 0.75rem; border: 1px solid var(--line); border-bottom-width: 0; color: var(--text); text-decoration: none; }
      li:first-child a { border-radius: 8px 8px 0 0; }
      li:last-child a { border-bottom-width: 1px; border-radius: 0 0 8px 8px; }
      li:only-child a { border-radius: 8px; }
      li a:hover { background: var(--surface); }
      li a[aria-current] { background: var(--surface); box-shadow: inset 3px 0 0 var(--accent); }
      .line { display: flex; justify-content: space-between; gap: 0.75rem; }
      .line > :first-child { min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
      .line > :last-child { white-space: nowrap; }
      .question { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; overflow-wrap: anywhere; }
      .empty { padding: 3rem 1rem; text-align: center; }
      .list h2 { margin-bottom: 0.35rem; color: var(--faint); font-size: 0.95rem; }
      .back { display: none; }
      @media (max-width: 52rem) {
        .panes { grid-template-columns: minmax(0, 1fr); }
        .list { position: static; }
        .chosen .list { display: none; }
        .chosen .back { display: inline-block; margin-bottom: 0.75rem; }
      }
    `,
  ];

  constructor() {
    super();
    /** The id of the request that is shown. @type {string | null} */
    this.request = null;
    /** @type {string | null} */
    this.ofRun = null;
    /** The request that is shown although none was chosen; another that arrives does not take its place. @type {string | null} */
    this.pinned = null;
    this.text = "";
    this.version = 0;
  }

  get inbox() {
    return inboxOf(this.api);
  }

  connectedCallback() {
    super.connectedCallback();
    const inbox = this.inbox;
    this.ends.push(inbox.use());
    this.listen(inbox, "change", () => (this.version += 1));
    this.listen(window, "keydown", (event) => this.#key(event));
  }

  /** What is shown has been seen. */
  updated() {
    const id = this.request ?? this.pinned;
    const request = id && this.inbox.requests.get(id);
    if (request && document.visibilityState === "visible") this.inbox.seen(request);
  }

  /** @param {Request} request */
  #matches(request) {
    const text = this.text.trim().toLowerCase();
    if (!text) return true;
    const all = [request.run, request.charter.id, request.charter.title, titleOf(request), questionOf(request), fromOf(request), ...request.state];
    return all.join(" ").toLowerCase().includes(text);
  }

  /** The groups of the list. */
  #groups() {
    const all = [...this.inbox.requests.values()].filter((request) => this.#matches(request));
    const me = this.api.me?.id;
    const isLater = (/** @type {Request} */ request) => isPutOff(request, this.now);
    const isOthers = (/** @type {Request} */ request) => Boolean(request.marks?.assigned && request.marks.assigned.to !== me);
    const own = all.filter(isMine);
    const closed = [...this.inbox.closed.values()].reverse();
    return {
      open: own.filter((request) => !isLater(request) && !isOthers(request)),
      later: own.filter((request) => isLater(request) && !isOthers(request)),
      assigned: own.filter(isOthers),
      others: all.filter((request) => !isMine(request)),
      closed: closed.filter(({ request, missed }) => !missed && this.#matches(request)),
      missed: closed.filter(({ request, missed }) => missed && this.#matches(request)),
    };
  }

  /** @param {Request} request */
  #href(request) {
    return `#/inbox?${new URLSearchParams({ run: request.run, request: request.id })}`;
  }

  /** @param {Request | undefined} request */
  #choose(request) {
    if (!request) return;
    this.request = request.id;
    this.ofRun = request.run;
    // The address names what is shown, so that it survives a reload and can be sent to others.
    if (location.hash.startsWith("#/inbox") || location.hash === "") history.replaceState(null, "", this.#href(request));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey || !["j", "k"].includes(event.key)) return;
    const { open, later, assigned, others } = this.#groups();
    const all = [...open, ...later, ...assigned, ...others];
    const at = all.findIndex((request) => request.id === this.request);
    const next = event.key === "j" ? at + 1 : Math.max(0, at - 1);
    this.#choose(all[Math.min(next, all.length - 1)]);
    this.updateComplete.then(() => /** @type {HTMLElement | null} */ (this.renderRoot.querySelector("a[aria-current]"))?.focus());
  }

  /** A request was put off or assigned: the next one is shown. */
  #putAside() {
    this.request = null;
    this.pinned = null;
    this.version += 1;
  }

  /** @param {Request} request @param {boolean} chosen @param {any} aside */
  #entry(request, chosen, aside) {
    const charter = request.charter.title ?? request.charter.id;
    const question = questionOf(request);
    return html`<li>
      <a
        href=${this.#href(request)}
        aria-current=${chosen ? "true" : nothing}
        @click=${(/** @type {MouseEvent} */ event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          this.#choose(request);
        }}
      >
        <span class="line"><strong>${show(titleOf(request))}</strong><span class="small">${aside}</span></span>
        ${question ? html`<span class="question">${show(question)}</span>` : nothing}
        <span class="line small faint"><span>${show(request.run)} · ${show(charter)}</span><span>${show(fromOf(request))}</span></span>
      </a>
    </li>`;
  }

  /** @param {Request} request */
  #deadline(request) {
    if (!request.due) return html`<span class="faint">${ago(request.since?.at, this.now)}</span>`;
    const ms = Date.parse(request.due) - this.now;
    return html`<span class=${ms < HOUR_MS ? "tag warn" : ""} title=${clock(request.due)}>${until(request.due, this.now)}</span>`;
  }

  /** @param {string} title @param {Request[]} requests @param {string | null} shown */
  #group(title, requests, shown) {
    if (!requests.length) return nothing;
    return html`<section>
      <h2>${title}</h2>
      <ul>
        ${repeat(requests, (request) => request.id, (request) => this.#entry(request, request.id === shown, this.#deadline(request)))}
      </ul>
    </section>`;
  }

  render() {
    const inbox = this.inbox;
    const { open, later, assigned, others, closed, missed } = this.#groups();
    // What is shown stays on the page when it is decided, by whomever, until another one is chosen.
    const find = (/** @type {string | null} */ id) => (id && (inbox.requests.get(id) ?? inbox.closed.get(id)?.request)) || null;
    const named = find(this.request);
    if (!this.request && !find(this.pinned)) this.pinned = open[0]?.id ?? null;
    const request = this.request ? named : find(this.pinned);
    const gone = this.request && !named && inbox.asOf ? this.request : null;
    const total = inbox.mine.length;
    const chosen = Boolean(this.request);
    return html`
      <div class="head">
        <h1>Inbox</h1>
        <span class="faint" role="status">${inbox.asOf ? (total ? `${count(total, "request")} for you` : "nothing waits for you") : "loading…"}</span>
        ${total + others.length > 5 || this.text
          ? html`<input type="search" aria-label="Filter" placeholder="Filter: run, charter, person" .value=${this.text}
              @input=${(/** @type {any} */ e) => (this.text = e.target.value)} />`
          : nothing}
        ${"Notification" in window && Notification.permission === "default"
          ? html`<button class="plain small" @click=${() => Notification.requestPermission().then(() => (this.version += 1))}>Notify me</button>`
          : nothing}
      </div>
      ${inbox.problem ? html`<p class="note bad" role="alert">${show(inbox.problem.detail)}</p>` : nothing}
      ${inbox.all ? nothing : html`<p class="note warn">There is more than one page can show; decide some of these first.</p>`}
      ${open.length + later.length + assigned.length + others.length + closed.length + missed.length === 0 && !gone
        ? inbox.asOf
          ? html`<div class="empty card">
              <h2>${this.text ? "No request matches" : "Nothing waits for you"}</h2>
              <p class="faint">${this.text ? "Clear the filter to see all." : "This page shows new requests by itself."}</p>
            </div>`
          : nothing
        : html`<div class="panes ${chosen ? "chosen" : ""}">
            <div class="list">
              ${this.#group("Waiting for you", open, request?.id ?? null)}
              ${this.#group("Later", later, request?.id ?? null)}
              ${this.#group("Assigned to others", assigned, request?.id ?? null)}
              ${this.#group("Waiting for others", others, request?.id ?? null)}
              ${missed.length
                ? html`<section>
                    <h2>Expired while you were away</h2>
                    <ul>
                      ${missed.slice(0, 20).map(({ request: one }) =>
                        this.#entry(one, one.id === request?.id, html`<span class="tag ${one.marks?.seen.length ? "" : "warn"}">${one.marks?.seen.length ? "seen" : "unseen"}</span>
                          <span title=${clock(one.expired.at)}>${ago(one.expired.at, this.now)}</span>`))}
                    </ul>
                  </section>`
                : nothing}
              ${closed.length
                ? html`<section>
                    <h2>Closed since you opened this page</h2>
                    <ul>
                      ${closed.slice(0, 20).map(({ request: one, record }) =>
                        this.#entry(one, one.id === request?.id, record ? show(`${words(record.event.type)}, ${record.by.id}`) : "closed"))}
                    </ul>
                  </section>`
                : nothing}
            </div>
            <div>
              <button class="back" @click=${() => (this.request = null)}>Back to the list</button>
              ${gone
                ? html`<div class="card empty">
                    <h2>This request does not wait any more</h2>
                    <p><a href=${`#/run/${encodeURIComponent(this.ofRun ?? "")}`}>What became of it in run ${show(this.ofRun)}</a></p>
                  </div>`
                : request
                  ? html`<charter-request
                      .client=${this.api}
                      .request=${request}
                      .closed=${inbox.closed.get(request.id) ?? null}
                      .version=${this.version}
                      @aside=${() => this.#putAside()}
                    ></charter-request>`
                  : html`<p class="faint empty">Nothing is chosen.</p>`}
            </div>
          </div>`}
    `;
  }
}

customElements.define("charter-inbox", CharterInbox);
