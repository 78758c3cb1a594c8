// What all components of the page have: a client, and rendering again as time passes.
import { LitElement } from "../lit.js";
import { clientOf } from "./api.js";

/** A component that asks a server: its property `client`, the one that `server` and `key` name, or the page's own. */
export class Component extends LitElement {
  /** @type {import("../lit.js").PropertyDeclarations} */
  static properties = {
    server: { type: String },
    key: { type: String },
    client: { attribute: false },
    now: { state: true },
  };

  constructor() {
    super();
    /** @type {string | null} */
    this.server = null;
    /** @type {string | null} */
    this.key = null;
    /** @type {import("./api.js").Client | null} */
    this.client = null;
    /** The time that countdowns are shown for. */
    this.now = Date.now();
    /** @type {(() => void)[]} */
    this.ends = [];
  }

  get api() {
    return clientOf(this);
  }

  connectedCallback() {
    super.connectedCallback();
    this.api.known();
    const timer = setInterval(() => {
      if (!document.hidden) this.now = Date.now();
    }, 1_000);
    this.ends.push(() => clearInterval(timer));
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    for (const end of this.ends.splice(0)) end();
  }

  /** Listens as long as the component is on a page. @param {EventTarget} target @param {string} name @param {(event: any) => void} handler */
  listen(target, name, handler) {
    target.addEventListener(name, handler);
    this.ends.push(() => target.removeEventListener(name, handler));
  }
}

/** Whether keys are typed into a field. @param {Event} event @returns {boolean} */
export function isTyping(event) {
  const target = event.composedPath()[0];
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}
