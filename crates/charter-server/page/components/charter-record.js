// `<charter-record run=... seq=...>`: one record of a run: what was sent, why it has its verdict, what it changed.
import { css, html, nothing } from "../lit.js";
import { problemOf } from "../lib/api.js";
import { changesOf, marksOf } from "../lib/changes.js";
import { explained } from "../lib/explained.js";
import { ago, clock } from "../lib/format.js";
import { OfRun } from "../lib/of-run.js";
import { visible as show } from "../lib/text.js";
import { shared } from "../lib/style.js";
import "./charter-value.js";

const MAX_SHOWN = 40;

/** The data of the actors of a run. @param {any} view */
const dataOf = (view) => Object.fromEntries((view?.actors ?? []).map((/** @type {any} */ actor) => [actor.id, actor.context]));

export class CharterRecord extends OfRun {
  static properties = {
    seq: { type: Number },
    reason: { state: true },
    views: { state: true },
  };

  static styles = [
    shared,
    css`
      :host { display: grid; gap: 1rem; }
      section { display: grid; gap: 0.4rem; }
      h3 { color: var(--faint); }
      .changes { display: grid; gap: 0.3rem; }
      .change { border-left: 3px solid var(--line); padding-left: 0.6rem; overflow-wrap: anywhere; }
      del { color: var(--bad); text-decoration: none; } ins { color: var(--good); text-decoration: none; }
      del::before { content: "− "; } ins::before { content: "+ "; }
      del, ins { display: block; white-space: pre-wrap; font-family: var(--mono); font-size: 0.86rem; }
      summary { cursor: pointer; }
    `,
  ];

  constructor() {
    super();
    this.seq = 0;
    /** @type {any} */
    this.reason = null;
    /** The state before and after. @type {{seq: number, before: any, after: any} | null} */
    this.views = null;
    this.shown = "";
  }

  /** @param {Map<string, any>} changed */
  willUpdate(changed) {
    super.willUpdate(changed);
    const store = this.store;
    const wanted = store ? `${store.id} ${this.seq}` : "";
    if (!store || wanted === this.shown || this.seq > store.last) return;
    this.shown = wanted;
    const seq = this.seq;
    const same = () => this.shown === wanted;
    store.explain(seq).then((reason) => same() && (this.reason = reason), (error) => same() && (this.reason = { problem: problemOf(error) }));
    Promise.all([seq > 0 ? store.at(seq - 1) : null, store.at(seq)]).then(
      ([before, after]) => same() && (this.views = { seq, before, after }),
      () => {},
    );
  }

  /** @param {import("../lib/changes.js").Change} change */
  #change({ path, before, after }) {
    const text = (/** @type {any} */ value) => show(typeof value === "string" ? value : JSON.stringify(value, null, 1));
    const where = path.replace(/^\/root\//, "").replace(/^\//, "").replaceAll("/", " / ");
    return html`<li class="change">
      <code>${show(where || "all")}</code>
      ${before === undefined ? nothing : html`<del>${text(before)}</del>`}
      ${after === undefined ? nothing : html`<ins>${text(after)}</ins>`}
    </li>`;
  }

  render() {
    const record = this.store?.record(this.seq);
    if (!record) return html`<p class="faint" aria-busy="true">Loading…</p>`;
    const { before, after } = this.views?.seq === this.seq ? this.views : { before: null, after: null };
    const now = dataOf(after);
    // What began with this record is compared with nothing, field by field.
    const then = { ...Object.fromEntries(Object.keys(now).map((id) => [id, {}])), ...dataOf(before) };
    const changes = after ? changesOf(then, now) : [];
    const data = record.event.data;
    const hasData = data !== null && data !== undefined && (typeof data !== "object" || Object.keys(data).length > 0);
    return html`
      <section>
        <h3>Record ${record.seq}</h3>
        <p class="wrap">
          <strong>${show(record.event.type)}</strong> by <strong>${show(record.by.id)}</strong>
          <span class="faint">(${record.by.kind ?? "person"}${record.by.auth ? `, ${record.by.auth}` : ""}${record.by.roles?.length ? html`; ${show(record.by.roles.join(", "))}` : nothing})</span>${record.to === "root" ? nothing : html` to ${show(record.to)}`}
          · <span title=${record.at}>${clock(record.at)}, ${ago(record.at, this.now)}</span>
        </p>
        ${this.reason ? explained(this.reason, record, this.api.base) : nothing}
      </section>
      ${hasData ? html`<section><h3>Its data</h3><charter-value .value=${data}></charter-value></section>` : nothing}
      ${record.effects?.length
        ? html`<section><h3>It asked for</h3>
            <ul>${record.effects.map((/** @type {any} */ effect) => html`<li><code>${show(effect.kind)}</code> ${show(effect.src ?? effect.type ?? effect.invocation ?? "")}</li>`)}</ul></section>`
        : nothing}
      <section>
        <h3>What it changed</h3>
        ${after
          ? changes.length
            ? html`<ul class="changes">${changes.slice(0, MAX_SHOWN).map((change) => this.#change(change))}</ul>
                ${changes.length > MAX_SHOWN ? html`<p class="small faint">and ${changes.length - MAX_SHOWN} more places, marked below</p>` : nothing}`
            : html`<p class="faint">No data.</p>`
          : html`<p class="faint" aria-busy="true">Comparing…</p>`}
      </section>
      ${after
        ? html`<section>
            <h3>All data after it</h3>
            <charter-value .value=${after.actors.length === 1 ? after.actors[0].context : now}
              .marks=${marksOf(changes.map((c) => ({ ...c, path: after.actors.length === 1 ? c.path.replace(/^\/[^/]*/, "") : c.path })))}></charter-value>
          </section>`
        : nothing}
      <p class="small faint wrap">Hash ${record.hash.replace("sha256:", "")}, id ${show(record.id)}</p>
    `;
  }
}

customElements.define("charter-record", CharterRecord);
