// What all components of one run have.
import { Component } from "./base.js";
import { runOf } from "./run.js";

/** A component of the run that its attribute `run` names. */
export class OfRun extends Component {
  /** @type {import("../lit.js").PropertyDeclarations} */
  static properties = { run: { type: String } };

  constructor() {
    super();
    this.run = "";
    /** @type {import("./run.js").Run | null} */
    this.store = null;
    /** @type {(() => void) | null} */
    this.release = null;
  }

  /** @param {Map<string, any>} changed */
  willUpdate(changed) {
    if (["run", "client", "server", "key"].some((name) => changed.has(name)) || !this.store) this.#follow();
  }

  #follow() {
    this.release?.();
    this.release = null;
    this.store = null;
    if (!this.run || !this.isConnected) return;
    const store = runOf(this.api, this.run);
    const change = () => this.changed();
    store.addEventListener("change", change);
    const release = store.use();
    this.release = () => {
      store.removeEventListener("change", change);
      release();
    };
    this.store = store;
  }

  /** Called when the run has changed. */
  changed() {
    this.requestUpdate();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.release?.();
    this.release = null;
    this.store = null;
  }

  connectedCallback() {
    super.connectedCallback();
    this.requestUpdate();
  }
}
