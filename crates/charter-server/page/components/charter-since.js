// `<charter-since>`: what changed in a value that is to be approved since the one that was shown before.
import { LitElement, html, nothing } from "../lit.js";
import { isChangeset } from "../lib/contents.js";
import { count } from "../lib/format.js";
import { shared } from "../lib/style.js";
import { visible as show } from "../lib/text.js";
import "./charter-diff.js";

/**
 * The paths of a changeset that are new, other than before, and gone.
 * @param {import("../lib/contents.js").Changeset} before @param {import("../lib/contents.js").Changeset} after
 */
export function filesSince(before, after) {
  const old = new Map(before.changes.map((change) => [change.file_path, JSON.stringify(change)]));
  const now = new Map(after.changes.map((change) => [change.file_path, JSON.stringify(change)]));
  const paths = [...now.keys()];
  return {
    added: paths.filter((path) => !old.has(path)),
    changed: paths.filter((path) => old.has(path) && old.get(path) !== now.get(path)),
    gone: [...old.keys()].filter((path) => !now.has(path)),
    same: paths.filter((path) => old.get(path) === now.get(path)).length,
  };
}

class CharterSince extends LitElement {
  static properties = { earlier: { attribute: false }, value: { attribute: false } };
  static styles = [shared];

  constructor() {
    super();
    /** @type {any} */
    this.earlier = null;
    /** @type {any} */
    this.value = null;
  }

  render() {
    if (!isChangeset(this.earlier) || !isChangeset(this.value)) {
      return html`<charter-diff mode="json" label="Since you saw it last" .before=${this.earlier} .after=${this.value}></charter-diff>`;
    }
    const { added, changed, gone, same } = filesSince(this.earlier, this.value);
    const row = (/** @type {string} */ name, /** @type {string[]} */ paths) =>
      paths.length ? html`<dt>${name}</dt><dd>${paths.map((path) => html`<div><code>${show(path)}</code></div>`)}</dd>` : nothing;
    return html`<div class="note">
      <p><strong>Since you saw it last</strong>: ${count(same, "file")} as before.</p>
      <dl class="facts">${row("Other content", changed)}${row("New", added)}${row("Not changed any more", gone)}</dl>
    </div>`;
  }
}

customElements.define("charter-since", CharterSince);
