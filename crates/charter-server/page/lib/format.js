// Times, names and numbers as people read them.

/** @param {string | null | undefined} at RFC 3339 @returns {number} */
export function millis(at) {
  return at ? Date.parse(at) : NaN;
}

/** `3 min`, `2 h 5 min`, `4 d`. @param {number} ms @returns {string} */
export function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  const min = Math.floor(s / 60);
  if (min < 60) return min < 5 ? `${min} min ${s % 60} s` : `${min} min`;
  const h = Math.floor(min / 60);
  if (h < 48) return min % 60 && h < 10 ? `${h} h ${min % 60} min` : `${h} h`;
  const d = Math.floor(h / 24);
  return h % 24 && d < 10 ? `${d} d ${h % 24} h` : `${d} d`;
}

/** `5 min ago`. @param {string | null | undefined} at @param {number} now @returns {string} */
export function ago(at, now) {
  const ms = now - millis(at);
  if (Number.isNaN(ms)) return "";
  return ms < 5_000 ? "just now" : `${span(ms)} ago`;
}

/** `in 5 min`, or `overdue by 5 min`. @param {string} at @param {number} now @returns {string} */
export function until(at, now) {
  const ms = millis(at) - now;
  return ms >= 0 ? `in ${span(ms)}` : `overdue by ${span(-ms)}`;
}

const SAME_DAY = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const OTHER_DAY = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

/** A time in the reader's zone, without the date if it is today's. @param {string | Date} at @returns {string} */
export function clock(at) {
  const date = new Date(at);
  if (Number.isNaN(date.valueOf())) return String(at);
  return (date.toDateString() === new Date().toDateString() ? SAME_DAY : OTHER_DAY).format(date);
}

/** `HUMAN_APPROVED` as `Human approved`. @param {string} name @returns {string} */
export function words(name) {
  const spaced = name.replace(/[_.\-]+/g, " ").replace(/([a-z])([A-Z])/g, "$1 $2").trim();
  const lower = spaced === spaced.toUpperCase() ? spaced.toLowerCase() : spaced.charAt(0).toLowerCase() + spaced.slice(1);
  return lower.charAt(0).toUpperCase() + lower.slice(1);
}

/** The first digits of a digest. @param {string} digest @returns {string} */
export function short(digest) {
  return digest.replace(/^sha256:/, "").slice(0, 12);
}

/** @param {number} count @param {string} one @param {string} [many] @returns {string} */
export function count(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** A size in bytes. @param {number} bytes @returns {string} */
export function bytes(bytes) {
  const units = ["KiB", "MiB", "GiB", "TiB"];
  if (bytes < 1_024) return count(bytes, "byte");
  let size = bytes / 1_024;
  while (size >= 1_024 && units.length > 1) {
    size /= 1_024;
    units.shift();
  }
  return `${size.toLocaleString("en", { maximumFractionDigits: size < 10 ? 1 : 0 })} ${units[0]}`;
}

/** JSON for people: text without quotes, everything else indented. @param {any} value @returns {string} */
export function pretty(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
