// Why a record has its verdict, in words.
import { html, nothing } from "../lit.js";
import { visible as show } from "./text.js";

/** @param {any} reason The answer of `explain`, or `{problem}`. @param {any} record @param {string} [base] @returns {any} */
export function explained(reason, record, base = "") {
  if (reason.problem) return html`<p class="note bad">${show(reason.problem.detail)}</p>`;
  const { refusal, transitions, notes } = reason;
  const more = (refusal?.candidates ?? []).filter((/** @type {any} */ candidate) => candidate.message !== refusal.message);
  return html`
    ${refusal
      ? html`<div class="note bad wrap">
          <p><strong>Refused</strong> (<a href=${`${base}/codes/${refusal.code}`} target="_blank" rel="noreferrer">${refusal.code}</a>): ${show(refusal.message)}</p>
          ${refusal.misfits?.length
            ? html`<ul>${refusal.misfits.map((/** @type {any} */ misfit) => html`<li><code>${show(misfit.at || "/")}</code> ${show(misfit.message)}</li>`)}</ul>`
            : nothing}
          ${more.length
            ? html`<ul>${more.map((/** @type {any} */ candidate) => html`<li><code>${show(candidate.transition)}</code>: ${show(candidate.message)}</li>`)}</ul>`
            : nothing}
          ${refusal.legal?.length && !refusal.message.includes("legal now") ? html`<p class="small">Legal for the sender then: ${show(refusal.legal.join(", "))}.</p>` : nothing}
        </div>`
      : html`<p>
          ${record.verdict === "vote" ? "A vote was counted. " : record.verdict === "ignored" ? "Ignored: nothing takes it in this state. " : nothing}
          ${transitions.length
            ? html`Taken: ${transitions.map((/** @type {string} */ name, /** @type {number} */ i) => html`${i ? ", " : ""}<code>${show(name)}</code>`)}.`
            : record.event.type === "charter.start"
              ? "The run began."
              : record.verdict === "accepted"
                ? "Accepted without a transition."
                : nothing}
        </p>`}
    ${notes?.length ? html`<ul>${notes.map((/** @type {string} */ note) => html`<li>${show(note)}</li>`)}</ul>` : nothing}
  `;
}
