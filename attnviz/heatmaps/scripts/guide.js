/**
 * @typedef {{told: string[], steps: {text: string, state: Partial<State>}[]}} GuidePlan a title and
 *   what comes first, where a story is told; and sentences
 */

/** Sentences beside the views, each of which sets the one that it speaks of. */
class Guide {
  /** @param {GuidePlan} plan @param {Tour | null} tour */
  constructor(plan, tour) {
    this.plan = plan;
    this.tour = tour;
    /** @type {(change: Partial<State>) => void} */
    this.set = () => {};
    this.steps = plan.steps.map(({ state }) => el("button", { type: "button", class: "link",
      click: () => this.set({ query: -1, key: -1, step: "", ...state }) }));
    this.first = el("p", { class: "told", hidden: !plan.told.length });
    this.title = el("h2", { id: "guide" });
    const header = document.querySelector("header");
    if (plan.told.length) header?.classList.add("story");
    header?.append(el("section", { class: "tour", "aria-labelledby": "guide" }, this.first, ...(tour ? [tour.node] : []),
      el("div", {}, this.title, el("ol", {}, ...this.steps.map((step) => el("li", {}, step))))));
  }

  /** @param {State} state */
  show(state) {
    const [name, first] = this.plan.told, title = document.querySelector("h1");
    if (name || this.tour) {
      document.title = name ? name : say("tour");
      if (title) title.textContent = document.title;
    }
    if (first) this.first.textContent = first;
    this.title.textContent = say("guide");
    this.steps.forEach((step, i) => {
      const { text, state: shown } = this.plan.steps[i];
      step.textContent = text;
      const isShown = Object.entries(shown).every(([part, value]) => state[/** @type {keyof State} */ (part)] === value);
      if (isShown) step.setAttribute("aria-current", "step");
      else step.removeAttribute("aria-current");
    });
  }
}
