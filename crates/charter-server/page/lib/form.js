// Forms from the schemas of events: what a page needs to show one, and to show what the server answers.
import "../components/charter-form.js";

export { errorsOf } from "./pointer.js";

/** @typedef {import("./pointer.js").PointedError} PointedError */

/**
 * A form for data of a schema. It sends `submit` with the data as `detail`, when they can be sent.
 * @param {import("./schema.js").Schema | boolean} schema
 * @param {{value?: unknown, errors?: PointedError[], label?: string}} [options] `value`: what it begins with;
 *   `label`: of the button.
 * @returns {import("../components/charter-form.js").CharterForm}
 */
export function formFor(schema, { value, errors, label } = {}) {
  const form = /** @type {import("../components/charter-form.js").CharterForm} */ (document.createElement("charter-form"));
  form.schema = schema;
  form.value = value;
  if (label) form.label = label;
  if (errors?.length) form.showErrors(errors);
  return form;
}
