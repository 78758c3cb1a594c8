// `<charter-timeline run=...>`: the records of a run, any number of them; what was refused is explained in place.
import { css, html, nothing, ref, repeat } from "../lit.js";
import { problemOf } from "../lib/api.js";
import { isTyping } from "../lib/base.js";
import { explained } from "../lib/explained.js";
import { clock, words } from "../lib/format.js";
import { OfRun } from "../lib/of-run.js";
import { visible as show } from "../lib/text.js";
import { shared } from "../lib/style.js";

const ROW = 38;
/** Rows above and below those that are seen. */
const SPARE = 12;
/** Browsers draw no boxes higher than about 33 million pixels. */
const MAX_HEIGHT = 30_000_000;
/** Records of a printed run; they are kept at the same time. */
export const MAX_PRINTED = 3_000;

/** What happened, in a few words. @param {any} record @returns {string} */
export function headline(record) {
  const type = record.event.type;
  const source = record.source ?? {};
  if (type === "charter.start") return "Started";
  if (source.kind === "done") return `${source.invocation} answered`;
  if (source.kind === "error") return `${source.invocation} failed`;
  if (source.kind === "timer") return `Timer: ${source.timer ?? type}`;
  return words(type);
}

/** Where the record led. @param {any} record */
const moved = (record) => (String(record.from) === String(record.state) ? "" : record.state.join(", "));

export class CharterTimeline extends OfRun {
  static properties = {
    at: { type: Number },
    opened: { state: true },
    top: { state: true },
    height: { state: true },
    extra: { state: true },
    printing: { state: true },
  };

  static styles = [
    shared,
    css`
      .frame { overflow: auto; height: 26rem; max-height: 75vh; border: 1px solid var(--line); border-radius: 8px; position: relative; overflow-anchor: none; }
      .space { position: relative; }
      .rows { position: absolute; inset: 0; }
      .rows:focus-visible { outline-offset: -3px; }
      .row { position: absolute; left: 0; right: 0; height: 38px; display: grid; gap: 0 0.6rem; align-items: center; padding: 0 0.7rem; flex-wrap: nowrap;
        grid-template-columns: minmax(2.5rem, max-content) minmax(0, 1.3fr) minmax(0, 1fr) max-content; border-bottom: 1px solid var(--line); cursor: pointer; }
      .row.still { grid-template-columns: minmax(2.5rem, max-content) minmax(0, 1fr) max-content; }
      .row:hover { background: var(--surface); }
      .row[aria-selected="true"] { background: var(--surface); box-shadow: inset 3px 0 0 var(--accent); }
      .row.refused { background: var(--bad-bg); }
      .row > * { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
      .number { color: var(--faint); font-variant-numeric: tabular-nums; text-align: right; }
      .refused .mark { color: var(--bad); font-weight: 650; }
      .why { position: absolute; left: 0; right: 0; padding: 0.6rem 0.9rem; background: var(--bg); border-bottom: 1px solid var(--line); }
      .why .note { margin-top: 0.25rem; }
      .why ul { margin-top: 0.4rem; padding-left: 1.1rem; list-style: disc; }
      table { width: 100%; border-collapse: collapse; font-size: 0.85rem; }
      td, th { text-align: left; padding: 0.15rem 0.5rem 0.15rem 0; border-bottom: 1px solid var(--line); }
      @media (max-width: 40rem) {
        .row { grid-template-columns: 2.5rem minmax(0, 1fr) minmax(0, 1fr); }
        .row.still { grid-template-columns: 2.5rem minmax(0, 1fr); }
        .row > :last-child { display: none; }
      }
    `,
  ];

  constructor() {
    super();
    /** The record that is chosen; the last one if it is null. @type {number | null} */
    this.at = null;
    /** The record that is explained. @type {number | null} */
    this.opened = null;
    this.top = 0;
    this.height = 400;
    /** The height of the explanation. */
    this.extra = 0;
    this.printing = false;
    /** @type {Map<number, any>} */
    this.reasons = new Map();
    this.atEnd = true;
  }

  connectedCallback() {
    super.connectedCallback();
    this.listen(window, "beforeprint", () => {
      this.printing = true;
      this.performUpdate();
    });
    this.listen(window, "afterprint", () => (this.printing = false));
  }

  get total() {
    return (this.store?.last ?? -1) + 1;
  }

  get frame() {
    return /** @type {HTMLElement | null} */ (this.renderRoot.querySelector(".frame"));
  }

  /** Where a row begins. @param {number} seq */
  #y(seq) {
    return seq * ROW + (this.opened !== null && seq > this.opened ? this.extra : 0);
  }

  /** The row at a height. @param {number} y */
  #seq(y) {
    if (this.opened !== null && y > (this.opened + 1) * ROW) y = Math.max((this.opened + 1) * ROW, y - this.extra);
    return Math.floor(y / ROW);
  }

  #scrolled() {
    const frame = this.frame;
    if (!frame) return;
    this.top = frame.scrollTop;
    this.height = frame.clientHeight;
    this.atEnd = frame.scrollTop + frame.clientHeight >= frame.scrollHeight - ROW;
  }

  /** @param {Map<string, any>} changed */
  updated(changed) {
    const frame = this.frame;
    if (!frame) return;
    if (frame.clientHeight && frame.clientHeight !== this.height) this.height = frame.clientHeight;
    const why = /** @type {HTMLElement | null} */ (this.renderRoot.querySelector(".why"));
    const extra = why ? why.offsetHeight : 0;
    if (extra !== this.extra) this.extra = extra;
    if (changed.has("at") && this.at !== null) this.reveal(this.at);
    else if (this.at === null && this.atEnd && this.opened === null) frame.scrollTop = frame.scrollHeight;
  }

  /** Scrolls to a record. @param {number} seq */
  reveal(seq) {
    const frame = this.frame;
    if (!frame) return;
    const y = this.#y(seq);
    if (y < frame.scrollTop) frame.scrollTop = y;
    else if (y + ROW > frame.scrollTop + frame.clientHeight) frame.scrollTop = y + ROW - frame.clientHeight;
  }

  /** @param {number} seq */
  choose(seq) {
    const last = this.total - 1;
    const at = Math.max(0, Math.min(seq, last));
    this.at = at;
    this.dispatchEvent(new CustomEvent("choose", { detail: at, bubbles: true, composed: true }));
  }

  /** @param {number} seq */
  #toggle(seq) {
    this.choose(seq);
    this.opened = this.opened === seq ? null : seq;
    if (this.opened === null || this.reasons.has(seq)) return;
    const settle = (/** @type {any} */ reason) => (this.reasons.set(seq, reason), this.requestUpdate());
    this.store?.explain(seq).then(settle, (error) => settle({ problem: problemOf(error) }));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (isTyping(event)) return;
    const last = this.total - 1;
    const at = this.at ?? last;
    const page = Math.max(1, Math.floor(this.height / ROW) - 1);
    /** @type {Record<string, number>} */
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: last };
    if (event.key in to) this.choose(/** @type {number} */ (to[event.key]));
    else if (event.key === "Enter" || event.key === " ") this.#toggle(at);
    else if (event.key === "Escape" && this.opened !== null) this.opened = null;
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} seq */
  #row(seq) {
    const record = this.store?.record(seq);
    const y = this.#y(seq);
    const chosen = seq === (this.at ?? this.total - 1);
    // The position is set as a property of the element: the policy of the page forbids attributes of style.
    const place = (/** @type {Element | undefined} */ element) => element instanceof HTMLElement && (element.style.top = `${y}px`);
    return html`<div class="row ${record?.verdict ?? ""} ${record && !moved(record) ? "still" : ""}" role="option" id=${`r${seq}`} aria-selected=${chosen} aria-setsize=${this.total} aria-posinset=${seq + 1}
      ${ref(place)} @click=${() => this.#toggle(seq)}>
      <span class="number">${seq}</span>
      ${record
        ? html`<span><span class="mark">${record.verdict === "refused" ? "Refused: " : record.verdict === "vote" ? "Vote: " : ""}</span>${show(headline(record))}
              <span class="faint">${record.by.id === "system" ? "" : show(record.by.id)}</span></span>
            ${moved(record) ? html`<span class="faint">→ ${show(moved(record))}</span>` : nothing}
            <span class="faint small">${clock(record.at)}</span>`
        : html`<span class="faint">…</span>`}
    </div>`;
  }

  #why() {
    const seq = this.opened;
    if (seq === null) return nothing;
    const reason = this.reasons.get(seq);
    const y = (seq + 1) * ROW;
    const place = (/** @type {Element | undefined} */ element) => element instanceof HTMLElement && (element.style.top = `${y}px`);
    const record = this.store?.record(seq);
    return html`<div class="why" ${ref(place)}>${reason && record ? explained(reason, record, this.api.base) : html`<p class="faint">Asking why…</p>`}</div>`;
  }

  #printed() {
    const rows = Array.from({ length: Math.min(this.total, MAX_PRINTED) }, (_, seq) => this.store?.record(seq)).filter(Boolean);
    return html`<table>
      <thead><tr><th>Record</th><th>At</th><th>By</th><th>Event</th><th>Verdict</th><th>State</th></tr></thead>
      <tbody>${rows.map((r) => html`<tr><td>${r.seq}</td><td>${r.at}</td><td>${show(r.by.id)}</td><td>${show(r.event.type)}</td><td>${r.verdict}</td><td>${show(r.state.join(", "))}</td></tr>`)}</tbody>
    </table>
    ${rows.length < this.total ? html`<p>${rows.length} of ${this.total} records are on this page; “Export” has all.</p>` : nothing}`;
  }

  render() {
    if (this.printing) return this.#printed();
    const total = this.total;
    const first = Math.max(0, this.#seq(this.top) - SPARE);
    const last = Math.min(total - 1, this.#seq(this.top + this.height) + SPARE);
    const rows = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
    const height = Math.min(MAX_HEIGHT, total * ROW + (this.opened === null ? 0 : this.extra));
    const chosen = this.at ?? total - 1;
    const size = (/** @type {Element | undefined} */ element) => element instanceof HTMLElement && (element.style.height = `${height}px`);
    return html`<div class="frame" @scroll=${this.#scrolled}>
      <div class="space" ${ref(size)}>
        <div class="rows" role="listbox" aria-label="Records" tabindex="0" aria-activedescendant=${rows.includes(chosen) ? `r${chosen}` : nothing} @keydown=${this.#key}>
          ${repeat(rows, (seq) => seq, (seq) => this.#row(seq))}
        </div>
        ${this.#why()}
      </div>
    </div>`;
  }
}

customElements.define("charter-timeline", CharterTimeline);
