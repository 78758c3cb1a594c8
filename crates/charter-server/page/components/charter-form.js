// `<charter-form>`: fields for the data of a schema. What they are is in lib/schema.js, what was written in lib/draft.js.
import { LitElement, css, html, nothing } from "../lit.js";
import { each, find, partOf, valueOf } from "../lib/draft.js";
import { canonical, isObject } from "../lib/schema.js";
import { shared } from "../lib/style.js";
import { markStyles, visible } from "../lib/text.js";
import { content } from "./form/parts.js";

/** @typedef {import("../lib/draft.js").Part} Part */
/** @typedef {import("../lib/draft.js").PointedError} PointedError */

/**
 * Properties: `schema`, `value` (what it begins with), `label` (of the button; attribute, too), `busy` (attribute, too).
 * Events: `submit` (`detail`: the data). Methods: `showErrors`, `read`, `focus`. Slot: `actions`, beside the button.
 */
export class CharterForm extends LitElement {
  static properties = {
    schema: { attribute: false },
    value: { attribute: false },
    label: { type: String },
    busy: { type: Boolean, reflect: true },
    summary: { state: true },
    announced: { state: true },
  };

  static styles = [
    shared,
    markStyles,
    css`
      form, .fields, .items { display: grid; gap: 0.9rem; min-width: 0; }
      .field { display: grid; gap: 0.2rem; min-width: 0; }
      .label { font-weight: 600; overflow-wrap: anywhere; }
      .need { font-weight: 400; color: var(--faint); font-size: 0.85rem; }
      .help { color: var(--faint); font-size: 0.87rem; overflow-wrap: anywhere; }
      .error { color: var(--bad); font-size: 0.9rem; overflow-wrap: anywhere; }
      input:not([type="radio"], [type="checkbox"]), select { width: 100%; }
      input.short { max-width: 16rem; }
      textarea { field-sizing: content; min-height: 2.1rem; max-height: 24rem; resize: vertical; font-family: inherit; font-size: inherit; }
      textarea.long { min-height: 5.5rem; }
      textarea.json { min-height: 5.5rem; font-family: var(--mono); font-size: 0.88rem; }
      [aria-invalid="true"] { border-color: var(--bad); outline-color: var(--bad); }
      fieldset { border: 0; border-left: 2px solid var(--line); margin: 0; padding: 0 0 0 0.9rem; min-width: 0; display: grid; gap: 0.5rem; }
      fieldset.choice { border: 0; padding: 0; gap: 0.15rem; }
      fieldset[data-invalid] { border-color: var(--bad); }
      legend { padding: 0; float: left; width: 100%; margin-bottom: 0.1rem; }
      legend + * { clear: both; }
      .options { display: flex; flex-wrap: wrap; gap: 0.1rem 1.1rem; }
      .options label { display: inline-flex; align-items: center; gap: 0.4rem; min-height: 1.9rem; overflow-wrap: anywhere; }
      .options input { min-height: 0; width: 1.05rem; height: 1.05rem; margin: 0; accent-color: var(--accent); flex: none; }
      .item { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0.3rem 0.5rem; align-items: start; }
      .item.wide, .entry { grid-template-columns: minmax(0, 1fr); }
      .tools { display: flex; gap: 0.25rem; justify-content: end; }
      .tools button { padding: 0 0.5rem; min-width: 2.1rem; }
      .item.wide .tools { justify-content: start; order: 2; }
      .entry { display: grid; gap: 0.4rem; border-left: 2px solid var(--line); padding-left: 0.9rem; }
      .entry > fieldset { border: 0; padding: 0; }
      .summary { border-left: 3px solid var(--bad); background: var(--bad-bg); padding: 0.5rem 0.75rem; border-radius: 0 6px 6px 0; }
      .summary ul { list-style: disc; padding-left: 1.1rem; }
      .summary button { display: inline; border: 0; background: none; color: inherit; padding: 0; min-height: 1.5rem; text-decoration: underline; text-align: left; overflow-wrap: anywhere; }
      .constant { overflow-wrap: anywhere; }
      .add { justify-self: start; }
    `,
  ];

  constructor() {
    super();
    /** @type {import("../lib/schema.js").Schema | boolean} */
    this.schema = true;
    /** @type {unknown} */
    this.value = undefined;
    this.label = "Send";
    this.busy = false;
    /** Errors as the summary shows them: those with a field, and those without. @type {{part: Part | null, name: string, message: string}[]} */
    this.summary = [];
    /** What a screen reader is told: what was added, moved or removed. */
    this.announced = "";
    /** @type {Part} */
    this.root = partOf(true, true);
    /** What the tree was made of: the same schema and value again do not undo what was typed. @type {{schema: unknown, value: unknown, text: string}} */
    this.made = { schema: undefined, value: undefined, text: "" };
  }

  willUpdate() {
    this.#make();
  }

  #make() {
    const { schema, value, made } = this;
    if (made.text && made.schema === schema && made.value === value) return;
    const text = canonical([schema, value === undefined ? [] : [value]]);
    this.made = { schema, value, text };
    if (text === made.text) return;
    this.root = partOf(this.schema, this.schema, this.value);
    this.summary = [];
  }

  /** The data, and why they cannot be sent yet. @returns {{value: unknown, errors: PointedError[]}} */
  read() {
    this.#make();
    /** @type {PointedError[]} */
    const errors = [];
    const value = valueOf(this.root, true, "", errors);
    return { value, errors };
  }

  /**
   * Shows errors at the fields that their pointers name, or, if there is no such field, above the form.
   * @param {PointedError[]} list
   */
  showErrors(list) {
    this.#make();
    each(this.root, (part) => (part.errors = []));
    this.summary = list.map(({ pointer, message }) => {
      const { part, isExact } = find(this.root, pointer);
      const name = pointer.slice(1).replaceAll("~1", "/").replaceAll("~0", "~");
      const text = isExact || part === this.root ? message : `${name.split("/").at(-1)}: ${message}`;
      if (part !== this.root || part.kind !== "object") part.errors.push(text);
      return { part: part === this.root && part.kind === "object" ? null : part, name, message };
    });
    this.requestUpdate();
    if (list.length > 0) {
      this.updateComplete.then(() => {
        const summary = /** @type {HTMLElement | null} */ (this.renderRoot.querySelector(".summary"));
        summary?.focus();
      });
    }
  }

  /** Puts the cursor into the first field. */
  focus() {
    this.updateComplete.then(() => {
      const first = /** @type {HTMLElement | null} */ (this.renderRoot.querySelector("input, textarea, select, button"));
      first?.focus();
    });
  }

  /** Puts the cursor into a part, after the next update. @param {Part} part */
  focusPart(part) {
    this.updateComplete.then(() => {
      const field = /** @type {HTMLElement | null} */ (this.renderRoot.querySelector(`#p${part.id}`));
      const inner = field?.matches("fieldset, .entry") ? field.querySelector("input, textarea, select, button") : field;
      /** @type {HTMLElement | null} */ (inner ?? field)?.focus();
    });
  }

  /** Something was typed, chosen, added or removed. @param {Part} [part] @param {string} [said] */
  changed(part, said = "") {
    if (part) {
      part.errors = [];
      this.summary = this.summary.filter((error) => error.part !== part);
    }
    if (said) this.announced = said;
    this.requestUpdate();
  }

  /** Begins with an example of the schema. @param {unknown} example */
  #fill(example) {
    this.root = partOf(this.schema, this.schema, example);
    this.summary = [];
    this.changed(undefined, "example filled in");
    this.focus();
  }

  /** Examples of one field are said at the field; one of all of them can be filled in. */
  #example() {
    const [example] = this.root.kind === "object" && Array.isArray(this.root.shape.schema.examples) ? this.root.shape.schema.examples : [];
    if (!isObject(example) || Object.keys(example).length === 0) return nothing;
    return html`<div><button type="button" class="plain" @click=${() => this.#fill(example)}>Fill in an example</button></div>`;
  }

  /** @param {SubmitEvent} event */
  #submit(event) {
    event.preventDefault();
    if (this.busy) return;
    const { value, errors } = this.read();
    this.showErrors(errors);
    if (errors.length > 0) return;
    this.dispatchEvent(new CustomEvent("submit", { detail: value, bubbles: true, composed: true }));
  }

  /** @param {KeyboardEvent} event */
  #keydown(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    this.renderRoot.querySelector("form")?.requestSubmit();
  }

  render() {
    const count = this.summary.length;
    return html`
      <form novalidate @submit=${this.#submit} @keydown=${this.#keydown}>
        ${count === 0
          ? nothing
          : html`<div class="summary" tabindex="-1" role="alert">
              <p><strong>${count === 1 ? "One thing is not right yet" : `${count} things are not right yet`}</strong></p>
              <ul>
                ${this.summary.map(({ part, name, message }) => {
                  const text = name ? `${name}: ${message}` : message;
                  return html`<li>
                    ${part ? html`<button type="button" @click=${() => this.focusPart(part)}>${visible(text)}</button>` : visible(text)}
                  </li>`;
                })}
              </ul>
            </div>`}
        ${this.#example()}${content(this, this.root)}
        <div class="row" part="actions">
          <button class="main" ?disabled=${this.busy}>${this.busy ? "Sending…" : visible(this.label)}</button>
          <slot name="actions"></slot>
        </div>
      </form>
      <div class="sr" role="status">${visible(this.announced)}</div>
    `;
  }
}

if (!customElements.get("charter-form")) customElements.define("charter-form", CharterForm);
