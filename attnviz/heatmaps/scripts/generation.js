/** What the view of a generation says. @type {Record<string, string>} */
const GENERATED = {
  play: gettext("Play"),
  pause: gettext("Pause"),
  step: gettext("Generated token"),
  at: gettext("{0} of {1}: “{2}”"),
};
const PACE = 900; // milliseconds that a step is seen

/** Through a generation token by token: the text as far as it was, and what the new token attends to. */
class Generation {
  /** @param {Labels} labels @param {(change: Partial<State>) => void} set */
  constructor(labels, set) {
    this.labels = labels;
    this.set = set;
    this.timer = 0;
    this.at = 0;
    this.slide = el("input", { type: "range", min: 0, max: Math.max(0, labels.steps.length - 1), step: 1,
      input: () => this.go(Number(this.slide.value)) });
    this.said = el("output", { "aria-live": "off" });
    this.button = el("button", { type: "button", class: "plain", click: () => this.play(!this.timer) });
    this.node = el("section", { class: "generation", hidden: !labels.steps.length }, this.button, this.slide, this.said);
  }

  /** Shows a step. @param {number} at */
  go(at) {
    this.set({ query: this.labels.steps[at], key: -1, toward: "from" });
  }

  /** Goes on by itself, from the start where it is at the end; or stops. @param {boolean} on */
  play(on) {
    const last = this.labels.steps.length - 1;
    clearInterval(this.timer);
    this.timer = on ? setInterval(() => (this.at < last ? this.go(this.at + 1) : this.play(false)), PACE) : 0;
    if (on) this.go(this.at < last ? this.at : 0);
    else this.set({});
  }

  /** The last token that is there; none is hidden where no step is chosen. @param {State} state */
  until(state) {
    return this.labels.steps.length && state.query >= 0 ? Math.max(state.query, this.labels.steps[0] - 1) : Infinity;
  }

  /** @param {State} state */
  show(state) {
    const { steps, queries } = this.labels;
    if (!steps.length) return;
    this.at = Math.max(0, state.query < 0 ? steps.length - 1 : steps.filter((place) => place <= state.query).length - 1);
    this.slide.value = String(this.at);
    const told = [this.at + 1, steps.length, clip(queries.texts[steps[this.at]], 40)]
      .reduce((/** @type {string} */ made, one, i) => made.replace(`{${i}}`, () => String(one)), GENERATED.at);
    this.said.textContent = told;
    this.slide.setAttribute("aria-label", GENERATED.step);
    this.slide.setAttribute("aria-valuetext", told);
    this.button.textContent = `${this.timer ? "❚❚" : "▶"} ${this.timer ? GENERATED.pause : GENERATED.play}`;
  }
}
