// How each part of a form is drawn.
import { html, nothing, repeat } from "../../lit.js";
import { inLabel, shape } from "../../lib/schema.js";
import { isCompound, isOpened, partOf, rowOf } from "../../lib/draft.js";
import { marked, visible } from "../../lib/text.js";
import { booleanField, enumField, jsonField, numberField, textField } from "./fields.js";

/** @typedef {import("../../lib/draft.js").Part} Part */
/** @typedef {import("../charter-form.js").CharterForm} Form */
/**
 * What is said about a part: its label, whether it has to be given, and whether the label is only for screen readers.
 * @typedef {{label: string, required: boolean, hidden?: boolean}} Said
 */

/** The whole form: without a frame around the fields. @param {Form} form @param {Part} part */
export function content(form, part) {
  if (part.kind === "object") return html`${description(part)}${members(form, part)}`;
  return drawn(form, part, { label: part.shape.schema.title ?? "Value", required: true });
}

/** @param {Part} part */
export function description(part) {
  const text = part.shape.schema.description;
  return typeof text === "string" && text ? html`<p class="help">${visible(text)}</p>` : nothing;
}

/** Errors of a part that is a group. @param {Part} part */
function errors(part) {
  return part.errors.map((text) => html`<p class="error" id="e${part.id}">${visible(text)}</p>`);
}

/** @param {Said} said */
export function need(said) {
  return said.required ? html` <span class="need">required</span>` : nothing;
}

/** One part, with its label, help and errors. @param {Form} form @param {Part} part @param {Said} said @returns {unknown} */
export function drawn(form, part, said) {
  switch (part.kind) {
    case "string":
      return textField(form, part, said);
    case "integer":
    case "number":
      return numberField(form, part, said);
    case "boolean":
      return booleanField(form, part, said);
    case "enum":
      return enumField(form, part, said);
    case "const":
    case "null":
      return constant(form, part, said);
    case "object":
      return group(part, said, members(form, part));
    case "array":
      return group(part, said, list(form, part, said.label));
    case "choice":
      return choice(form, part, said);
    default:
      return jsonField(form, part, said);
  }
}

/** A part with parts of its own. @param {Part} part @param {Said} said @param {unknown} inner */
function group(part, said, inner) {
  return html`<fieldset id="p${part.id}" ?data-invalid=${part.errors.length > 0} aria-describedby=${part.errors.length > 0 ? `e${part.id}` : nothing}>
    <legend class=${said.hidden ? "sr" : ""}><span class="label">${visible(said.label)}</span>${need(said)}</legend>
    <div class="fields">${description(part)}${errors(part)}${inner}</div>
  </fieldset>`;
}

/** @param {Form} form @param {Part} part */
function members(form, part) {
  const { rest } = part.shape;
  const declared = part.fields.length > 0;
  return html`<div class="fields">
    ${part.fields.map((field) => optional(form, part, field))}
    ${rest === false && part.rows.length === 0
      ? !declared
        ? html`<p class="help">No data.</p>`
        : nothing
      : html`
          ${repeat(
            part.rows,
            (row) => row.id,
            (row, index) => rowDrawn(form, part, row, index),
          )}
          <button type="button" class="add" id="a${part.id}" @click=${() => addRow(form, part)}>
            ${declared ? "Add another field" : "Add a field"}
          </button>
          ${part.shape.names?.length ? html`<p class="help">Names of other fields match ${visible(part.shape.names.join(" or "))}</p>` : nothing}
        `}
  </div>`;
}

/** A declared field; one with parts of its own is opened when it is needed. @param {Form} form @param {Part} parent @param {Part["fields"][number]} field */
function optional(form, parent, field) {
  const found = shape(field.schema, form.schema);
  const label = typeof found.schema.title === "string" && found.schema.title ? found.schema.title : field.name;
  if (!field.part) {
    const open = () => {
      field.part = partOf(field.schema, form.schema, undefined, true, 0);
      if (field.part.kind === "array" && field.part.items.length === 0) addItem(form, field.part, label);
      else form.focusPart(field.part);
      form.changed(parent, `${label} added`);
    };
    return html`<div class="field">
      <button type="button" class="add" id="o${parent.id}-${field.name}" @click=${open}>Add ${visible(label)}</button>
      ${typeof found.schema.description === "string" ? html`<p class="help">${visible(found.schema.description)}</p>` : nothing}
    </div>`;
  }
  const body = drawn(form, field.part, { label, required: field.required });
  if (field.required || !isOpened(field.part.kind)) return body;
  const remove = () => {
    field.part = null;
    form.changed(parent, `${label} removed`);
    form.updateComplete.then(() => /** @type {HTMLElement | null} */ (form.renderRoot.querySelector(`[id="o${parent.id}-${CSS.escape(field.name)}"]`))?.focus());
  };
  return html`<div class="field">
    ${body}
    <div><button type="button" class="plain" @click=${remove}>Remove ${visible(label)}</button></div>
  </div>`;
}

/** @param {Form} form @param {Part} part */
function addRow(form, part) {
  const row = rowOf(part, form.schema);
  part.rows.push(row);
  form.changed(part, "field added");
  form.updateComplete.then(() => /** @type {HTMLElement | null} */ (form.renderRoot.querySelector(`#k${row.id}`))?.focus());
}

/** A field with a name of one's own. @param {Form} form @param {Part} part @param {Part["rows"][number]} row @param {number} index */
function rowDrawn(form, part, row, index) {
  const named = row.key === "" ? `field ${index + 1}` : row.key;
  const remove = () => {
    part.rows = part.rows.filter((one) => one !== row);
    form.changed(part, `${named} removed`);
    form.updateComplete.then(() => /** @type {HTMLElement | null} */ (form.renderRoot.querySelector(`#a${part.id}`))?.focus());
  };
  return html`<div class="entry">
    <div class="field">
      <label for="k${row.id}">Name of the field</label>
      <input
        id="k${row.id}"
        .value=${row.key}
        autocomplete="off"
        spellcheck="false"
        @input=${(/** @type {any} */ event) => {
          row.key = event.target.value;
          form.changed(part);
        }}
      >
    </div>
    ${drawn(form, row.part, { label: `Value of ${named}`, required: true })}
    <div><button type="button" class="plain" @click=${remove}>Remove ${visible(named)}</button></div>
  </div>`;
}

/** @param {Form} form @param {Part} part @param {string} label */
function addItem(form, part, label) {
  const item = partOf(part.shape.items ?? true, form.schema);
  part.items.push(item);
  form.changed(part, `${label}: item ${part.items.length} added`);
  form.focusPart(item);
}

/** @param {Form} form @param {Part} part @param {string} label */
function list(form, part, label) {
  const last = part.items.length - 1;
  const full = part.items.length >= (part.shape.schema.maxItems ?? Infinity);
  return html`
    ${part.items.length === 0 ? html`<p class="help">No items.</p>` : nothing}
    <div class="items" ?hidden=${part.items.length === 0}>
      ${repeat(
        part.items,
        (item) => item.id,
        (item, index) => {
          const name = `${marked(label)}, item ${index + 1}`;
          const move = (/** @type {number} */ by) => {
            part.items.splice(index, 1);
            part.items.splice(index + by, 0, item);
            form.changed(part, `item ${index + 1} is now item ${index + by + 1}`);
            // At the end of the list the other button is the one that is left.
            form.updateComplete.then(() => {
              const place = index + by;
              const wanted = place === 0 ? "d" : place === last ? "u" : by < 0 ? "u" : "d";
              /** @type {HTMLElement | null} */ (form.renderRoot.querySelector(`#${wanted}${item.id}`))?.focus();
            });
          };
          const remove = () => {
            part.items.splice(index, 1);
            form.changed(part, `item ${index + 1} removed`);
            form.updateComplete.then(() => {
              const next = part.items[Math.min(index, part.items.length - 1)];
              const target = next ? `#r${next.id}` : `#a${part.id}`;
              /** @type {HTMLElement | null} */ (form.renderRoot.querySelector(target))?.focus();
            });
          };
          const wide = isCompound(item.kind);
          return html`<div class="item ${wide ? "wide" : ""}">
            ${drawn(form, item, { label: wide ? `Item ${index + 1}` : name, required: false, hidden: !wide })}
            <div class="tools">
              <button type="button" id="u${item.id}" ?hidden=${index === 0} aria-label="Move ${name} up" @click=${() => move(-1)}>↑</button>
              <button type="button" id="d${item.id}" ?hidden=${index === last} aria-label="Move ${name} down" @click=${() => move(1)}>↓</button>
              <button type="button" id="r${item.id}" aria-label="Remove ${name}" @click=${remove}>Remove</button>
            </div>
          </div>`;
        },
      )}
    </div>
    <button type="button" class="add" id="a${part.id}" ?disabled=${full} @click=${() => addItem(form, part, label)}>
      ${full ? `At most ${part.shape.schema.maxItems}` : "Add an item"}
    </button>
  `;
}

/** @param {Form} form @param {Part} part @param {Said} said */
function choice(form, part, said) {
  const options = part.shape.options ?? [];
  const choose = (/** @type {any} */ event) => {
    part.index = Number(event.target.value);
    part.part = part.index < 0 ? null : partOf(options[part.index].schema, form.schema, undefined, true, 1);
    form.changed(part);
  };
  const chosen = part.part;
  return html`<div class="field ${chosen && isCompound(chosen.kind) ? "entry" : ""}">
    <div class="field">
      <label for="p${part.id}" class=${said.hidden ? "sr" : ""}><span class="label">${visible(said.label)}</span>${need(said)}</label>
      ${description(part)}
      <select id="p${part.id}" @change=${choose} aria-invalid=${part.errors.length > 0} aria-describedby=${part.errors.length > 0 ? `e${part.id}` : nothing}>
        <option value="-1" ?selected=${part.index < 0}>${said.required ? "Choose…" : "Not given"}</option>
        ${options.map((option, index) => html`<option value=${index} ?selected=${part.index === index}>${marked(option.label)}</option>`)}
      </select>
      ${errors(part)}
    </div>
    ${chosen && !(chosen.kind === "null" || chosen.kind === "const")
      ? drawn(form, chosen, { label: `${said.label}: ${options[part.index].label}`, required: false, hidden: true })
      : nothing}
  </div>`;
}

/** A value that is given, or can only be given or not. @param {Form} form @param {Part} part @param {Said} said */
function constant(form, part, said) {
  const value = part.kind === "null" ? null : part.shape.schema.const;
  if (said.required) {
    return html`<div class="field" id="p${part.id}" tabindex="-1">
      <span class="label ${said.hidden ? "sr" : ""}">${visible(said.label)}</span>
      ${description(part)}
      <span class="constant">${visible(inLabel(value))} <span class="need">always this</span></span>
      ${errors(part)}
    </div>`;
  }
  const toggle = () => {
    part.index = part.index < 0 ? 0 : -1;
    form.changed(part);
  };
  return html`<div class="field">
    <div class="options">
      <label><input type="checkbox" id="p${part.id}" .checked=${part.index >= 0} @change=${toggle}> ${visible(said.label)}: ${visible(inLabel(value))}</label>
    </div>
    ${description(part)}${errors(part)}
  </div>`;
}
