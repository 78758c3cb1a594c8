// What a charter says about the states and transitions of a run.

/** @type {WeakMap<import("./api.js").Client, Map<string, Promise<any>>>} */
const known = new WeakMap();

/**
 * A charter with its core form as `definition`. A charter never changes, so it is asked for once.
 * @param {import("./api.js").Client} client
 * @param {string} digest
 * @returns {Promise<any>}
 */
export function charterOf(client, digest) {
  const own = known.get(client) ?? new Map();
  known.set(client, own);
  if (!own.has(digest)) {
    const asked = client.get(`/v1/charters/${encodeURIComponent(digest)}`).then((charter) => {
      return { ...charter, definition: JSON.parse(charter.core) };
    });
    own.set(digest, asked);
    asked.catch(() => own.delete(digest));
  }
  return /** @type {Promise<any>} */ (own.get(digest));
}

/** The root state of the statechart of an actor. @param {any} definition @param {string} machine */
function rootOf(definition, machine) {
  const chart = machine === "root" ? definition?.root : definition?.machines?.[machine];
  return chart?.state ?? null;
}

/** A state by its path, such as `work.draft`. @param {any} definition @param {string} path @param {string} [machine] @returns {any} */
export function stateAt(definition, path, machine = "root") {
  return path.split(".").reduce((state, key) => state?.states?.[key] ?? null, rootOf(definition, machine));
}

/**
 * The transition of a name such as `review/on/APPROVE/0` or `review/after/72h`.
 * @param {any} definition @param {string} name @param {string} [machine] @returns {any}
 */
export function transitionOf(definition, name, machine = "root") {
  const [path = "", kind, key = "", index] = name.split("/");
  const state = path ? stateAt(definition, path, machine) : rootOf(definition, machine);
  const at = Number(index ?? 0);
  if (kind === "on") {
    const all = (state?.on ?? []).filter((/** @type {any} */ on) => on.events.includes(key));
    return all.flatMap((/** @type {any} */ on) => on.transitions)[at] ?? null;
  }
  if (kind === "after") return state?.after?.find((/** @type {any} */ after) => after.key === key)?.transitions[at] ?? null;
  return null;
}

/** Where a transition leads, in words; empty if that is not known. @param {any} definition @param {string} name @param {string} [machine] @returns {string} */
export function leadsTo(definition, name, machine = "root") {
  const transition = transitionOf(definition, name, machine);
  if (!transition) return "";
  return transition.target?.length ? transition.target.join(", ") : "the same state";
}
