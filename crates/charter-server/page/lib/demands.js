// What an event needs besides a role and data: votes.
import { words } from "./format.js";

/** The votes of a quorum in a line: `1 of 2 votes (bob), from director`. @param {any} quorum @returns {string} */
function tally(quorum) {
  const given = quorum.votes.filter((/** @type {string[]} */ by) => by.length).sort((/** @type {string[]} */ a, /** @type {string[]} */ b) => b.length - a.length);
  const by = given.length ? ` (${given.map((/** @type {string[]} */ ids) => ids.join(", ")).join("; with other data: ")})` : "";
  const from = quorum.of.length ? `, from ${quorum.of.join(" or ")}` : "";
  return `${given[0]?.length ?? 0} of ${quorum.count} votes${by}${from}`;
}

/** The votes for an event, a line for each transition for which it is a vote. @param {any} event @returns {string[]} */
export function votesOf(event) {
  const { quorum, also = [] } = event.demands ?? {};
  const name = words(event.type);
  const others = also.map(
    (/** @type {any} */ other) => `${name}, for ${other.transition}${other.condition ? `, if ${other.condition}` : ""}: ${tally(other.quorum)}`,
  );
  return quorum ? [`${name}: ${tally(quorum)}`, ...others] : others;
}
