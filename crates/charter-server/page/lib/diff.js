// Differences of sequences, lines, words and JSON values. All of it is limited: what would take too long to compare is
// shown as removed and added.
import { canonical, isObject } from "./schema.js";

/** Steps of one comparison, after which the rest counts as replaced. */
const MAX_STEPS = 2_000_000;
/** Elements of two ranges that are compared without looking for anchors first. */
const MAX_SMALL = 400;
/** Words of a line that are compared, and characters of a line in which words are looked for. */
const MAX_WORDS = 400;
const MAX_WORD_LINE = 2_000;
/** Depth of JSON that is compared part by part. */
const MAX_DEPTH = 60;

/** A range of two sequences that is the same in both, or differs. @typedef {{same: boolean, a: number, b: number, aEnd: number, bEnd: number}} Block */

/**
 * The blocks of two sequences, in order: what they share, and what differs between.
 * @param {string[]} before @param {string[]} after
 * @returns {Block[]}
 */
export function blocks(before, after) {
  /** @type {Map<string, number>} */
  const numbers = new Map();
  const number = (/** @type {string} */ text) => {
    const known = numbers.get(text) ?? numbers.size;
    numbers.set(text, known);
    return known;
  };
  const a = Int32Array.from(before, number);
  const b = Int32Array.from(after, number);
  /** Pairs of equal places. @type {[number, number][]} */
  const pairs = [];
  const budget = { steps: MAX_STEPS };
  /** @type {[number, number, number, number][]} */
  const open = [[0, a.length, 0, b.length]];
  while (open.length > 0) {
    let [a0, a1, b0, b1] = /** @type {[number, number, number, number]} */ (open.pop());
    while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) pairs.push([a0++, b0++]);
    while (a0 < a1 && b0 < b1 && a[a1 - 1] === b[b1 - 1]) pairs.push([--a1, --b1]);
    if (a0 === a1 || b0 === b1) continue;
    const isSmall = a1 - a0 + (b1 - b0) <= MAX_SMALL;
    const anchors = isSmall ? [] : unique(a, b, a0, a1, b0, b1);
    if (anchors.length === 0) {
      pairs.push(...shortest(a, b, a0, a1, b0, b1, budget));
      continue;
    }
    let [lastA, lastB] = [a0, b0];
    for (const [atA, atB] of anchors) {
      open.push([lastA, atA, lastB, atB]);
      pairs.push([atA, atB]);
      [lastA, lastB] = [atA + 1, atB + 1];
    }
    open.push([lastA, a1, lastB, b1]);
  }
  pairs.sort((one, two) => one[0] - two[0]);
  return joined(pairs, a.length, b.length);
}

/** @param {[number, number][]} pairs @param {number} aEnd @param {number} bEnd @returns {Block[]} */
function joined(pairs, aEnd, bEnd) {
  /** @type {Block[]} */
  const out = [];
  let [a, b] = [0, 0];
  for (const [atA, atB] of [...pairs, /** @type {[number, number]} */ ([aEnd, bEnd])]) {
    if (atA > a || atB > b) out.push({ same: false, a, b, aEnd: atA, bEnd: atB });
    if (atA === aEnd && atB === bEnd) break;
    const last = out.at(-1);
    if (last?.same) [last.aEnd, last.bEnd] = [atA + 1, atB + 1];
    else out.push({ same: true, a: atA, b: atB, aEnd: atA + 1, bEnd: atB + 1 });
    [a, b] = [atA + 1, atB + 1];
  }
  return out;
}

/**
 * The longest increasing series of elements that both ranges have exactly once ("patience").
 * @param {Int32Array} a @param {Int32Array} b @param {number} a0 @param {number} a1 @param {number} b0 @param {number} b1
 * @returns {[number, number][]}
 */
function unique(a, b, a0, a1, b0, b1) {
  /** @type {Map<number, {inA: number, inB: number, a: number, b: number}>} */
  const found = new Map();
  for (let at = a0; at < a1; at += 1) {
    const entry = found.get(a[at]);
    if (entry) entry.inA += 1;
    else found.set(a[at], { inA: 1, inB: 0, a: at, b: -1 });
  }
  for (let at = b0; at < b1; at += 1) {
    const entry = found.get(b[at]);
    if (entry) [entry.inB, entry.b] = [entry.inB + 1, at];
  }
  const common = [...found.values()].filter((entry) => entry.inA === 1 && entry.inB === 1).sort((one, two) => one.a - two.a);
  /** The last element of the best series of each length. @type {number[]} */
  const tails = [];
  const previous = new Int32Array(common.length).fill(-1);
  common.forEach((entry, index) => {
    let [low, high] = [0, tails.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (common[tails[middle]].b < entry.b) low = middle + 1;
      else high = middle;
    }
    if (low > 0) previous[index] = tails[low - 1];
    tails[low] = index;
  });
  /** @type {[number, number][]} */
  const series = [];
  for (let at = tails.at(-1) ?? -1; at >= 0; at = previous[at]) series.push([common[at].a, common[at].b]);
  return series.reverse();
}

/**
 * The equal places of a shortest edit (Myers), as long as the budget lasts.
 * @param {Int32Array} a @param {Int32Array} b @param {number} a0 @param {number} a1 @param {number} b0 @param {number} b1
 * @param {{steps: number}} budget
 * @returns {[number, number][]}
 */
function shortest(a, b, a0, a1, b0, b1, budget) {
  const [n, m] = [a1 - a0, b1 - b0];
  const most = n + m;
  const width = 2 * most + 1;
  if (width > MAX_STEPS) return [];
  const reach = new Int32Array(width + 1);
  /** The part of `reach` that each number of edits used. @type {Int32Array[]} */
  const trace = [];
  for (let edits = 0; edits <= most; edits += 1) {
    budget.steps -= 2 * edits + 1;
    if (budget.steps < 0) return [];
    trace.push(reach.slice(most - edits, most + edits + 1));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && reach[most + k - 1] < reach[most + k + 1]);
      let x = down ? reach[most + k + 1] : reach[most + k - 1] + 1;
      let y = x - k;
      while (x < n && y < m && a[a0 + x] === b[b0 + y]) [x, y] = [x + 1, y + 1];
      reach[most + k] = x;
      if (x >= n && y >= m) return back(trace, n, m, a0, b0);
    }
  }
  return [];
}

/** @param {Int32Array[]} trace @param {number} n @param {number} m @param {number} a0 @param {number} b0 @returns {[number, number][]} */
function back(trace, n, m, a0, b0) {
  /** @type {[number, number][]} */
  const pairs = [];
  let [x, y] = [n, m];
  for (let edits = trace.length - 1; edits > 0; edits -= 1) {
    const k = x - y;
    const at = (/** @type {number} */ diagonal) => trace[edits][diagonal + edits] ?? -1;
    const down = k === -edits || (k !== edits && at(k - 1) < at(k + 1));
    const from = down ? k + 1 : k - 1;
    const [fromX, fromY] = [at(from), at(from) - from];
    while (x > fromX && y > fromY && x > 0 && y > 0) pairs.push([a0 + --x, b0 + --y]);
    [x, y] = [fromX, fromY];
  }
  while (x > 0 && y > 0) pairs.push([a0 + --x, b0 + --y]);
  return pairs;
}

/** Words, blanks, and other characters with what is joined to them. */
const WORDS = /[\p{L}\p{N}_][\p{L}\p{N}\p{M}_\u200c\u200d]*|\s+|.[\p{M}\ufe0f]*(?:\u200d.[\p{M}\ufe0f]*)*/gsu;

/**
 * The parts of two similar lines, with what changed between them; `null` if they have little in common.
 * @param {string} before @param {string} after
 * @returns {[{text: string, changed: boolean}[], {text: string, changed: boolean}[]] | null}
 */
export function words(before, after) {
  if (before.length > MAX_WORD_LINE || after.length > MAX_WORD_LINE) return null;
  const [a, b] = [before.match(WORDS) ?? [], after.match(WORDS) ?? []];
  if (a.length > MAX_WORDS || b.length > MAX_WORDS) return null;
  const all = blocks(a, b);
  const same = all.filter((block) => block.same).reduce((sum, block) => sum + a.slice(block.a, block.aEnd).join("").trim().length, 0);
  if (same * 4 < Math.max(before.trim().length, after.trim().length)) return null;
  const side = (/** @type {string[]} */ list, /** @type {"a" | "b"} */ from, /** @type {"aEnd" | "bEnd"} */ to) =>
    all.map((block) => ({ text: list.slice(block[from], block[to]).join(""), changed: !block.same })).filter((part) => part.text !== "");
  return [side(a, "a", "aEnd"), side(b, "b", "bEnd")];
}

/** One difference of two values; what was not there is `undefined`. @typedef {{pointer: string, before: unknown, after: unknown}} Change */

/** Whether two values are equal JSON, at any depth. @param {unknown} a @param {unknown} b @returns {boolean} */
function isEqual(a, b) {
  /** @type {[unknown, unknown][]} */
  const open = [[a, b]];
  while (open.length > 0) {
    const [one, two] = /** @type {[unknown, unknown]} */ (open.pop());
    if (Object.is(one, two)) continue;
    if (Array.isArray(one) && Array.isArray(two) && one.length === two.length) one.forEach((item, index) => open.push([item, two[index]]));
    else if (isObject(one) && isObject(two) && Object.keys(one).length === Object.keys(two).length) {
      for (const [key, value] of Object.entries(one)) {
        if (!Object.hasOwn(two, key)) return false;
        open.push([value, two[key]]);
      }
    } else return false;
  }
  return true;
}

/**
 * What changed between two values, by the pointers of the parts.
 * @param {unknown} before @param {unknown} after
 * @returns {Change[]}
 */
export function jsonChanges(before, after) {
  /** @type {Change[]} */
  const out = [];
  compare("", before, after, 0, out);
  return out;
}

/** @param {string} pointer @param {unknown} before @param {unknown} after @param {number} depth @param {Change[]} out */
function compare(pointer, before, after, depth, out) {
  const name = (/** @type {string | number} */ part) => `${pointer}/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`;
  if (isEqual(before, after)) return;
  if (depth < MAX_DEPTH && isObject(before) && isObject(after)) {
    const keys = [...Object.keys(before), ...Object.keys(after).filter((one) => !Object.hasOwn(before, one))];
    for (const one of keys) {
      const [left, right] = [before, after].map((value) => (Object.hasOwn(value, one) ? value[one] : undefined));
      compare(name(one), left, right, depth + 1, out);
    }
    return;
  }
  if (depth < MAX_DEPTH && Array.isArray(before) && Array.isArray(after)) {
    for (const block of blocks(before.map(canonical), after.map(canonical))) {
      if (block.same) continue;
      const common = Math.min(block.aEnd - block.a, block.bEnd - block.b);
      for (let at = 0; at < common; at += 1) compare(name(block.b + at), before[block.a + at], after[block.b + at], depth + 1, out);
      for (let at = block.a + common; at < block.aEnd; at += 1) out.push({ pointer: name(at), before: before[at], after: undefined });
      for (let at = block.b + common; at < block.bEnd; at += 1) out.push({ pointer: name(at), before: undefined, after: after[at] });
    }
    return;
  }
  out.push({ pointer, before, after });
}
