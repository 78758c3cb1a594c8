// What a person has written into a form so far: a tree of parts, which becomes JSON when it is sent.
import { numberOf } from "./number.js";
import { below } from "./pointer.js";
import { canonical, fits, inLabel, isObject, shape } from "./schema.js";

/** Required parts are opened by themselves to this depth; more of them when the person asks for them. */
const MAX_DEPTH = 6;
/** More items than this are one field of JSON. */
const MAX_ITEMS = 300;

let lastId = 0;

/**
 * A part of a form. `raw` is what was typed, `bad` if the browser cannot read it; `given` for an empty text that is not
 * left out; `index` the chosen value or alternative, -1 for none.
 * @typedef {{
 *   id: number,
 *   kind: import("./schema.js").Shape["kind"],
 *   shape: import("./schema.js").Shape,
 *   errors: string[],
 *   raw: string,
 *   bad: boolean,
 *   given: boolean,
 *   index: number,
 *   fields: {name: string, schema: import("./schema.js").Schema | boolean, required: boolean, part: Part | null}[],
 *   rows: {id: number, key: string, part: Part}[],
 *   items: Part[],
 *   part: Part | null,
 * }} Part
 */
/** @typedef {import("./pointer.js").PointedError} PointedError */

/** @param {import("./schema.js").Shape} shape @returns {Part} */
function empty(shape) {
  return {
    id: (lastId += 1), kind: shape.kind, shape, errors: [], raw: "", bad: false, given: false, index: -1, fields: [], rows: [], items: [], part: null,
  };
}

/** Whether a part is made when it is needed, and can be removed. @param {import("./schema.js").Shape["kind"]} kind */
export function isOpened(kind) {
  return kind === "object" || kind === "array";
}

/** Whether a part takes more than a line. @param {import("./schema.js").Shape["kind"]} kind */
export function isCompound(kind) {
  return kind === "object" || kind === "array" || kind === "choice" || kind === "json";
}

/** A part of JSON for a value that does not fit, or for a schema that is no form. @param {Part} part @param {unknown} value */
function asJson(part, value, why = "") {
  part.kind = "json";
  if (why) part.shape = { ...part.shape, why };
  try {
    part.raw = value === undefined ? "" : JSON.stringify(value, null, 2);
  } catch {
    part.shape = { ...part.shape, why: "the value that is there is nested too deeply to be shown" };
  }
  return part;
}

/**
 * The part of a schema, with a value if there is one.
 * @param {import("./schema.js").Schema | boolean} schema
 * @param {import("./schema.js").Schema | boolean} root
 * @param {unknown} [value]
 * @param {boolean} [required]
 * @param {number} [depth]
 * @returns {Part}
 */
export function partOf(schema, root, value, required = true, depth = 0) {
  const found = shape(schema, root);
  const part = empty(found);
  const has = value !== undefined;
  const given = has || !required ? value : found.schema.default;
  const misfit = "the value that is there does not fit the fields";
  switch (part.kind) {
    case "const":
      if (has && canonical(value) !== canonical(found.schema.const)) return asJson(part, value, misfit);
      part.index = required || has ? 0 : -1;
      return part;
    case "enum":
      part.index = given === undefined ? -1 : (found.values ?? []).findIndex((one) => canonical(one.value) === canonical(given));
      return has && part.index < 0 ? asJson(part, value, misfit) : part;
    case "boolean":
      if (has && typeof value !== "boolean") return asJson(part, value, misfit);
      part.index = typeof given === "boolean" ? Number(given) : -1;
      return part;
    case "null":
      if (has && value !== null) return asJson(part, value, misfit);
      part.index = required || has ? 0 : -1;
      return part;
    case "integer":
    case "number":
      if (has && typeof value !== "number") return asJson(part, value, misfit);
      part.raw = typeof given === "number" ? String(given) : "";
      return part;
    case "string":
      if (has && typeof value !== "string") return asJson(part, value, misfit);
      part.raw = typeof given === "string" ? given : "";
      part.given = value === "";
      return part;
    case "choice": {
      const options = found.options ?? [];
      for (const isWhole of [true, false]) {
        if (given !== undefined && part.index < 0) part.index = options.findIndex((one) => fits(one.schema, root, given, isWhole));
      }
      if (has && part.index < 0) return asJson(part, value, misfit);
      if (part.index >= 0) part.part = partOf(options[part.index].schema, root, given, true, depth + 1);
      return part;
    }
    case "array":
      if (has && !Array.isArray(value)) return asJson(part, value, misfit);
      if (Array.isArray(given)) {
        if (given.length > MAX_ITEMS || depth > MAX_DEPTH) return asJson(part, given, "the list is long or nested deeply");
        part.items = given.map((item) => partOf(found.items ?? true, root, item, true, depth + 1));
      } else if (depth < MAX_DEPTH) {
        const least = Math.min(Number(found.schema.minItems) || 0, 10);
        part.items = Array.from({ length: least }, () => partOf(found.items ?? true, root, undefined, true, depth + 1));
      }
      return part;
    case "object":
      return objectOf(part, root, given, has, depth);
    default:
      return asJson(part, value);
  }
}

/** @param {Part} part @param {import("./schema.js").Schema | boolean} root @param {unknown} given @param {boolean} has @param {number} depth */
function objectOf(part, root, given, has, depth) {
  if (has && !isObject(given)) return asJson(part, given, "the value that is there does not fit the fields");
  const value = isObject(given) ? given : {};
  const declared = part.shape.fields ?? [];
  const others = Object.keys(value).filter((name) => !declared.some((field) => field.name === name));
  if (depth > MAX_DEPTH && Object.keys(value).length > 0) return asJson(part, given, "it is nested deeply");
  if (others.length > MAX_ITEMS) return asJson(part, given, `it has ${others.length} more fields`);
  part.fields = declared.map((field) => {
    const inner = Object.hasOwn(value, field.name) ? value[field.name] : undefined;
    const lazy = inner === undefined && isOpened(shape(field.schema, root).kind) && (!field.required || depth >= MAX_DEPTH);
    return { ...field, part: lazy ? null : partOf(field.schema, root, inner, field.required, depth + 1) };
  });
  part.rows = others.map((key) => rowOf(part, root, key, value[key]));
  return part;
}

/** Another field of an object that takes any. @param {Part} part @param {import("./schema.js").Schema | boolean} root @param {string} key @param {unknown} [value] */
export function rowOf(part, root, key = "", value) {
  const rest = part.shape.rest === false ? true : (part.shape.rest ?? true);
  return { id: (lastId += 1), key, part: partOf(rest, root, value, true) };
}

/** Letters as people count them in schemas: code points. @param {string} text */
function length(text) {
  return Array.from(text).length;
}

/** Whether a field may have a name. @param {string[]} patterns @param {string} name */
function isName(patterns, name) {
  if (patterns.length === 0) return true;
  return patterns.some((pattern) => {
    try {
      return new RegExp(pattern, "u").test(name);
    } catch {
      return true;
    }
  });
}

/** @param {import("./schema.js").Schema} schema @param {string} text @returns {string | null} */
function textError(schema, text) {
  if (schema.minLength > length(text)) return schema.minLength === 1 ? "required" : `at least ${schema.minLength} characters`;
  if (schema.maxLength < length(text)) return `at most ${schema.maxLength} characters; this has ${length(text)}`;
  if (typeof schema.pattern === "string") {
    try {
      if (!new RegExp(schema.pattern, "u").test(text)) {
        return schema.pattern === "\\S" ? "more than blanks" : `does not match the pattern ${inLabel(schema.pattern)}`;
      }
    } catch {
      // Another dialect of patterns: for the server.
    }
  }
  if (schema.format === "email" && !/^[^@\s]+@[^@\s]+$/.test(text)) return "an email address, such as ana@example.org";
  if (schema.format === "date" && !/^\d{4}-\d\d-\d\d$/.test(text)) return "a date, such as 2026-03-31";
  if (schema.format === "uri" && !/^[a-z][a-z\d+.-]*:\S+$/i.test(text)) return "an address with a scheme, such as https://example.org/";
  return null;
}

/** @param {import("./schema.js").Schema} schema @param {number} value @returns {string | null} */
function boundError(schema, value) {
  if (value < schema.minimum) return `${schema.minimum} or more`;
  if (value > schema.maximum) return `${schema.maximum} or less`;
  if (value <= schema.exclusiveMinimum) return `more than ${schema.exclusiveMinimum}`;
  if (value >= schema.exclusiveMaximum) return `less than ${schema.exclusiveMaximum}`;
  return null;
}

/**
 * The value of a part; `undefined` if it is not given. Errors are added to `errors`.
 * @param {Part} part @param {boolean} required @param {string} pointer @param {PointedError[]} errors
 * @returns {unknown}
 */
export function valueOf(part, required, pointer, errors) {
  const wrong = (/** @type {string} */ message) => void errors.push({ pointer, message });
  switch (part.kind) {
    case "const":
      return part.index < 0 ? undefined : part.shape.schema.const;
    case "null":
      return part.index < 0 ? undefined : null;
    case "enum":
      if (part.index < 0) return required ? wrong("choose one") : undefined;
      return (part.shape.values ?? [])[part.index]?.value;
    case "boolean":
      if (part.index < 0) return required ? wrong("choose yes or no") : undefined;
      return part.index === 1;
    case "integer":
    case "number": {
      if (part.raw.trim() === "" && !part.bad) return required ? wrong("required") : undefined;
      const number = numberOf(part.raw, part.kind === "integer");
      if ("error" in number) return wrong(number.error);
      const error = boundError(part.shape.schema, number.value);
      return error ? wrong(error) : number.value;
    }
    case "string": {
      if (part.bad) return wrong("incomplete");
      const { schema } = part.shape;
      if (part.raw === "" && !required && !part.given) return undefined;
      const isStrict = schema.format !== undefined || schema.pattern !== undefined;
      if (part.raw === "" && isStrict) return wrong("required");
      const error = textError(schema, part.raw);
      return error ? wrong(error) : part.raw;
    }
    case "choice":
      if (!part.part) return required ? wrong("choose one") : undefined;
      return valueOf(part.part, true, pointer, errors);
    case "array":
      return listOf(part, pointer, errors);
    case "object":
      return membersOf(part, pointer, errors);
    default:
      return jsonOf(part, required, wrong);
  }
}

/** @param {Part} part @param {string} pointer @param {PointedError[]} errors */
function listOf(part, pointer, errors) {
  const { minItems, maxItems, uniqueItems } = part.shape.schema;
  const found = errors.length;
  const list = part.items.map((item, index) => valueOf(item, true, below(pointer, index), errors));
  if (list.length < minItems) errors.push({ pointer, message: `at least ${minItems} ${minItems === 1 ? "item" : "items"}` });
  if (list.length > maxItems) errors.push({ pointer, message: `at most ${maxItems} ${maxItems === 1 ? "item" : "items"}` });
  if (uniqueItems === true && errors.length === found) {
    const seen = new Map();
    list.forEach((value, index) => {
      const key = canonical(value);
      if (seen.has(key)) errors.push({ pointer: below(pointer, index), message: `the same as item ${seen.get(key) + 1}` });
      else seen.set(key, index);
    });
  }
  return list;
}

/** @param {Part} part @param {string} pointer @param {PointedError[]} errors */
function membersOf(part, pointer, errors) {
  /** @type {[string, unknown][]} */
  const members = [];
  for (const field of part.fields) {
    const at = below(pointer, field.name);
    if (!field.part) {
      if (field.required) errors.push({ pointer: at, message: "required" });
      continue;
    }
    const value = valueOf(field.part, field.required, at, errors);
    if (value !== undefined) members.push([field.name, value]);
  }
  for (const row of part.rows) {
    const at = below(pointer, row.key);
    if (members.some(([name]) => name === row.key)) errors.push({ pointer: at, message: "there is a field of this name already" });
    if (!isName(part.shape.names ?? [], row.key)) errors.push({ pointer: at, message: `its name has to match ${part.shape.names?.join(" or ")}` });
    const value = valueOf(row.part, true, at, errors);
    if (value !== undefined) members.push([row.key, value]);
  }
  // Not by assignment: a field may be called `__proto__`.
  return Object.fromEntries(members);
}

/** @param {Part} part @param {boolean} required @param {(message: string) => undefined} wrong */
function jsonOf(part, required, wrong) {
  if (part.raw.trim() === "") return required ? wrong("required") : undefined;
  // Numbers that JavaScript would change.
  for (const [, number] of part.raw.replace(/"(?:[^"\\]|\\.)*"/g, '""').matchAll(/(-?\d[\d.eE+-]*)/g)) {
    const read = numberOf(number, false);
    if ("error" in read && !read.error.startsWith("a number")) return wrong(`${number.slice(0, 40)}: ${read.error}`);
  }
  try {
    return JSON.parse(part.raw);
  } catch (error) {
    return wrong(`this is not JSON: ${error instanceof Error ? error.message : error}`);
  }
}

/**
 * The part that a pointer names, or the nearest one above it that is there.
 * @param {Part} part @param {string} pointer
 * @returns {{part: Part, isExact: boolean}}
 */
export function find(part, pointer) {
  const names = pointer.split("/").slice(1).map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  let at = part;
  for (const name of names) {
    while (at.kind === "choice" && at.part) at = at.part;
    /** @type {Part | null | undefined} */
    let next = null;
    if (at.kind === "object") {
      next = at.fields.find((field) => field.name === name)?.part ?? at.rows.find((row) => row.key === name)?.part;
    }
    if (at.kind === "array") next = at.items[Number(name)];
    if (!next) return { part: at, isExact: false };
    at = next;
  }
  return { part: at, isExact: true };
}

/** Every part of a tree. @param {Part} part @param {(part: Part) => void} visit */
export function each(part, visit) {
  visit(part);
  for (const field of part.fields) if (field.part) each(field.part, visit);
  for (const row of part.rows) each(row.part, visit);
  for (const item of part.items) each(item, visit);
  if (part.part) each(part.part, visit);
}
