// What a part of a form is, from a JSON Schema (draft 2020-12): references resolved, `allOf` merged, one kind for each.
// Everything here only helps to write data; the server decides what is valid.

/** More than this is one field of JSON. */
const MAX_FIELDS = 300;
const MAX_OPTIONS = 1_000;
/** Steps from reference to reference, and into `allOf`. */
const MAX_STEPS = 64;

/** @typedef {Record<string, any>} Schema */
/** @typedef {{label: string, schema: Schema | boolean}} Option */
/** @typedef {{name: string, schema: Schema | boolean, required: boolean}} Field */
/**
 * The kind of a part and what it needs. `why` says why a part is JSON; `rest` is the schema of fields that are not
 * declared, `names` the patterns of their names, if there are any.
 * @typedef {{
 *   kind: "const" | "enum" | "choice" | "boolean" | "integer" | "number" | "string" | "null" | "object" | "array" | "json",
 *   schema: Schema,
 *   why?: string,
 *   values?: {label: string, value: unknown}[],
 *   options?: Option[],
 *   fields?: Field[],
 *   rest?: Schema | boolean,
 *   names?: string[],
 *   items?: Schema | boolean,
 * }} Shape
 */

/** Why a schema cannot be a form. */
class Unsupported extends Error {}

/** @param {unknown} value @returns {value is Schema} */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Members that are equal as JSON. @param {unknown} a @param {unknown} b */
function isSame(a, b) {
  return canonical(a) === canonical(b);
}

let lastDeep = 0;

/** A text that is the same for equal JSON; values that are nested too deeply are equal to nothing. @param {unknown} value @returns {string} */
export function canonical(value) {
  try {
    return JSON.stringify(value, (_, part) =>
      isObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
    ) ?? "undefined";
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return `deep ${(lastDeep += 1)}`;
  }
}

/** The schema that a local reference names. @param {string} reference @param {Schema | boolean} root @returns {Schema | boolean} */
function target(reference, root) {
  if (reference !== "#" && !reference.startsWith("#/")) throw new Unsupported(`it refers to \`${reference}\`, which is elsewhere`);
  /** @type {any} */
  let at = root;
  for (const part of reference.split("/").slice(1)) {
    let name = part;
    try {
      name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    } catch {
      // Not an encoded name.
    }
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) throw new Unsupported(`\`${reference}\` does not exist`);
    at = at[name];
  }
  return at;
}

/**
 * A schema without `$ref` and `allOf`.
 * @param {Schema | boolean} schema @param {Schema | boolean} root
 * @param {{left: number}} [steps]
 * @returns {Schema}
 */
export function resolve(schema, root, steps = { left: MAX_STEPS }) {
  if (schema === true || schema === undefined) return {};
  if (schema === false) throw new Unsupported("nothing is valid here");
  if (!isObject(schema)) throw new Unsupported("its schema is neither an object nor true");
  if ((steps.left -= 1) < 0) throw new Unsupported("its schema refers to itself, or to too many others");
  let { $ref, allOf, $defs, definitions, types, ...own } = schema;
  /** @type {Schema} */
  let out = own;
  if (typeof schema.$dynamicRef === "string") throw new Unsupported("it uses `$dynamicRef`");
  if (typeof $ref === "string") out = merge(resolve(target($ref, root), root, steps), out);
  for (const part of Array.isArray(allOf) ? allOf : []) out = merge(out, resolve(part, root, steps));
  return out;
}

/** @param {unknown} type @returns {string[] | null} */
function typesOf(type) {
  if (typeof type === "string") return [type];
  return Array.isArray(type) ? type.filter((one) => typeof one === "string") : null;
}

/** Both of two schemas; of notes, the second one's. @param {Schema} a @param {Schema} b @returns {Schema} */
export function merge(a, b) {
  /** @type {Schema} */
  const out = { ...a, ...b };
  const both = (/** @type {string} */ key) => Object.hasOwn(a, key) && Object.hasOwn(b, key);
  if (both("type")) {
    const [left, right] = [typesOf(a.type) ?? [], typesOf(b.type) ?? []];
    const common = left.flatMap((one) => {
      if (right.includes(one)) return [one];
      if (one === "number" && right.includes("integer")) return ["integer"];
      return one === "integer" && right.includes("number") ? ["integer"] : [];
    });
    if (common.length === 0) throw new Unsupported("its parts ask for different types");
    out.type = common.length === 1 ? common[0] : common;
  }
  if (both("properties")) {
    out.properties = Object.fromEntries(
      [...new Set([...Object.keys(a.properties), ...Object.keys(b.properties)])].map((name) => {
        const parts = [a, b].filter((s) => Object.hasOwn(s.properties, name)).map((s) => s.properties[name]);
        return [name, parts.length === 1 ? parts[0] : { allOf: parts }];
      }),
    );
  }
  if (both("required")) out.required = [...new Set([...a.required, ...b.required])];
  if (both("enum")) out.enum = a.enum.filter((/** @type {unknown} */ one) => b.enum.some((/** @type {unknown} */ two) => isSame(one, two)));
  if (both("items") && !isSame(a.items, b.items)) out.items = { allOf: [a.items, b.items] };
  for (const key of ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"]) {
    if (both(key)) out[key] = Math.max(a[key], b[key]);
  }
  for (const key of ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"]) {
    if (both(key)) out[key] = Math.min(a[key], b[key]);
  }
  for (const key of ["additionalProperties", "unevaluatedProperties"]) {
    if (both(key) && (a[key] === false || b[key] === false)) out[key] = false;
  }
  for (const key of ["oneOf", "anyOf", "patternProperties"]) {
    if (both(key) && !isSame(a[key], b[key])) throw new Unsupported(`it combines several \`${key}\``);
  }
  return out;
}

/** What any JSON can be. @type {Option[]} */
const ANYTHING = [
  { label: "text", schema: { type: "string" } },
  { label: "number", schema: { type: "number" } },
  { label: "yes or no", schema: { type: "boolean" } },
  { label: "list", schema: { type: "array" } },
  { label: "fields with names", schema: { type: "object" } },
  { label: "nothing (null)", schema: { type: "null" } },
];

/** @type {Record<string, string>} */
const TYPES = {
  string: "text", number: "number", integer: "whole number", boolean: "yes or no", array: "list", object: "fields", null: "nothing (null)",
};

/** A value in a label. @param {unknown} value @returns {string} */
export function inLabel(value) {
  const text = typeof value === "string" && value !== "" ? value : JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/** What distinguishes an alternative. @param {Schema} schema @param {number} index @param {Schema | boolean} root @returns {string} */
function labelOf(schema, index, root) {
  if (typeof schema.title === "string" && schema.title) return schema.title;
  if (Object.hasOwn(schema, "const")) return inLabel(schema.const);
  for (const [name, part] of Object.entries(isObject(schema.properties) ? schema.properties : {})) {
    try {
      const resolved = resolve(part, root);
      if (Object.hasOwn(resolved, "const")) return `${name}: ${inLabel(resolved.const)}`;
    } catch {
      // It is no label, then.
    }
  }
  if (typeof schema.description === "string" && schema.description) return inLabel(schema.description);
  if (Array.isArray(schema.enum)) return schema.enum.slice(0, 3).map(inLabel).join(", ");
  const types = typesOf(schema.type);
  if (types && !types.includes("object")) return types.map((type) => TYPES[type] ?? type).join(" or ");
  if (Array.isArray(schema.required) && schema.required.length > 0) return `with ${schema.required.slice(0, 3).join(", ")}`;
  return `alternative ${index + 1}`;
}

/** @param {Schema} schema @param {Schema[]} alternatives @param {Schema | boolean} root @returns {Shape} */
function choice(schema, alternatives, root) {
  const { oneOf, anyOf, ...base } = schema;
  if (alternatives.length === 0 || alternatives.length > MAX_OPTIONS) throw new Unsupported(`it has ${alternatives.length} alternatives`);
  const own = alternatives.map((one) => resolve(one, root));
  if (own.every((one) => Object.hasOwn(one, "const"))) {
    return { kind: "enum", schema: base, values: own.map((one, index) => ({ label: labelOf(one, index, root), value: one.const })) };
  }
  const { title, description, examples, default: preset, ...rules } = base;
  const merged = own.map((one, index) => ({ label: labelOf(one, index, root), schema: merge(rules, one) }));
  if (merged.length === 1) return shapeOf(merge(base, own[0]), root);
  return { kind: "choice", schema: base, options: merged };
}

/** The type that the keywords of a schema imply. @param {Schema} schema @returns {string | null} */
function implied(schema) {
  const has = (/** @type {string[]} */ ...keys) => keys.some((key) => Object.hasOwn(schema, key));
  if (has("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties")) return "object";
  if (has("items", "prefixItems", "minItems", "maxItems", "uniqueItems")) return "array";
  if (has("pattern", "minLength", "maxLength", "format")) return "string";
  return has("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf") ? "number" : null;
}

/** @param {Schema} schema @param {Schema | boolean} root @returns {Shape} */
function object(schema, root) {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const names = Object.keys(properties);
  const required = Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === "string") : [];
  if (names.length > MAX_FIELDS) throw new Unsupported(`it has ${names.length} fields`);
  const fields = names.map((name) => ({ name, schema: properties[name], required: required.includes(name) }));
  const isClosed = schema.additionalProperties === false || schema.unevaluatedProperties === false || schema.maxProperties === 0;
  const patterns = isObject(schema.patternProperties) ? Object.entries(schema.patternProperties) : [];
  /** @type {Schema | boolean} */
  let rest = false;
  if (!isClosed) rest = schema.additionalProperties ?? (names.length === 0 && required.length === 0);
  // What a field has to be follows from its name, which is not known yet: the server says if it is not that.
  if (patterns.length > 0) rest = patterns.length === 1 && isClosed ? patterns[0][1] : true;
  // Required, and not declared: anything.
  for (const name of required) {
    if (!Object.hasOwn(properties, name)) fields.push({ name, schema: isClosed ? false : (schema.additionalProperties ?? true), required: true });
  }
  // What has to be said comes first: the server tells the fields in the order of their names.
  fields.sort((a, b) => Number(b.required) - Number(a.required));
  return { kind: "object", schema, fields, rest, names: isClosed ? patterns.map(([pattern]) => pattern) : [] };
}

/** @param {Schema} schema @param {Schema | boolean} root @returns {Shape} */
function shapeOf(schema, root) {
  if (Object.hasOwn(schema, "const")) return { kind: "const", schema };
  if (Array.isArray(schema.enum)) {
    if (schema.enum.length === 0 || schema.enum.length > MAX_OPTIONS) throw new Unsupported(`it has ${schema.enum.length} values`);
    return { kind: "enum", schema, values: schema.enum.map((value) => ({ label: inLabel(value), value })) };
  }
  if (Array.isArray(schema.oneOf) && Array.isArray(schema.anyOf)) throw new Unsupported("it combines `oneOf` and `anyOf`");
  const alternatives = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(alternatives)) return choice(schema, alternatives, root);
  const types = typesOf(schema.type) ?? [];
  if (types.length > 1) {
    const { title, description, examples, default: preset, ...rules } = schema;
    return { kind: "choice", schema, options: types.map((type) => ({ label: TYPES[type] ?? type, schema: { ...rules, type } })) };
  }
  const type = types[0] ?? implied(schema);
  switch (type) {
    case "object":
      return object(schema, root);
    case "array":
      if (Array.isArray(schema.prefixItems)) throw new Unsupported("each item of the list has a schema of its own");
      return { kind: "array", schema, items: schema.items ?? true };
    case "string":
    case "number":
    case "integer":
    case "boolean":
    case "null":
      return { kind: type, schema };
    case null:
      return { kind: "choice", schema, options: ANYTHING };
    default:
      throw new Unsupported(`its type is \`${type}\``);
  }
}

/** The shape of a part. @param {Schema | boolean} schema @param {Schema | boolean} root @returns {Shape} */
export function shape(schema, root) {
  const notes = isObject(schema) ? schema : {};
  try {
    return shapeOf(resolve(schema, root), root);
  } catch (error) {
    if (!(error instanceof Unsupported || error instanceof RangeError)) throw error;
    const { title, description, examples } = notes;
    const why = error instanceof Unsupported ? error.message : "its schema is nested too deeply";
    return { kind: "json", schema: { title, description, examples }, why };
  }
}

/**
 * Whether a value could be what a part asks for: enough to choose between alternatives. `isWhole`: nothing is missing.
 * @param {Schema | boolean} schema @param {Schema | boolean} root @param {unknown} value
 * @param {boolean} isWhole @param {number} [depth]
 * @returns {boolean}
 */
export function fits(schema, root, value, isWhole, depth = 4) {
  const part = shape(schema, root);
  switch (part.kind) {
    case "const":
      return isSame(part.schema.const, value);
    case "enum":
      return (part.values ?? []).some((one) => isSame(one.value, value));
    case "choice":
      return depth === 0 || (part.options ?? []).some((one) => fits(one.schema, root, value, isWhole, depth - 1));
    case "integer":
      return Number.isInteger(value);
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value) && (depth === 0 || value.slice(0, 10).every((one) => fits(part.items ?? true, root, one, isWhole, depth - 1)));
    case "object":
      if (!isObject(value)) return false;
      if (part.rest === false && part.schema.additionalProperties === false) {
        if (Object.keys(value).some((name) => !part.fields?.some((field) => field.name === name))) return false;
      }
      return (part.fields ?? []).every((field) => {
        if (!Object.hasOwn(value, field.name)) return !field.required || !isWhole;
        return depth === 0 || fits(field.schema, root, value[field.name], isWhole, depth - 1);
      });
    case "json":
      return true;
    default:
      return typeof value === part.kind;
  }
}
