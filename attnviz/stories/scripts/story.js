/**
 * @typedef {{title: string, columns: string[], rows: string[][], numbers: boolean[], shades: (number|null)[][]}} StoryTable
 * @typedef {{title: string, receipt: string, parts: (string | StoryTable)[], picture: Panel[], live: boolean,
 *   signed: {light: string, dark: string}}} StoryPlan
 */

/** What the page says of itself. @type {Record<string, string>} */
const STORY = {
  numbers: gettext("The numbers"),
  axes: gettext("rows: {0}, columns: {1}"),
  masked: gettext("crossed-out cells are masked"),
  intervals: gettext("bands are 95% intervals"),
  whole: gettext("The whole story"),
  range: gettext("{value} ({low} to {high})"),
};

/** The text, the tables and the panels of a story. */
class Story {
  /** @param {{palette?: {light: string, dark: string}, records?: Labels[], story: StoryPlan}} labels */
  constructor(labels) {
    this.plan = labels.story;
    this.palette = /** @type {{light: string, dark: string}} */ (labels.palette ?? labels.records?.[0].palette);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.node = el("section", { class: "lesson", "aria-labelledby": "whole" });
    this.drawn = "";
    const page = document.getElementById("page");
    if (this.plan.live) page?.after(this.node);
    else {
      page?.replaceChildren(this.node);
      page?.setAttribute("data-ready", "1");
    }
    this.dark.addEventListener("change", () => this.show());
    addEventListener("resize", () => this.show());
    this.show();
  }

  /** @param {string} name @param {...string} values */
  say(name, ...values) {
    return STORY[name].replace(/\{(\d)\}/g, (_, at) => values[Number(at)]);
  }

  show() {
    const { plan, node } = this, dark = this.dark.matches, look = `${dark} ${node.clientWidth}`;
    if (look === this.drawn || !node.clientWidth) return;
    const opened = Array.from(node.querySelectorAll("details"), (one) => one.open);
    const colours = (/** @type {{light: string, dark: string}} */ palette) => new Colours(palette[dark ? "dark" : "light"], dark);
    this.colours = { weights: colours(this.palette), signed: colours(plan.signed) };
    const [first, ...rest] = plan.live ? [null, ...plan.parts] : plan.parts;
    const panels = el("div", { class: "panels" });
    node.replaceChildren(el("h2", { id: "whole", hidden: !plan.live }, this.say("whole")), ...(first ? [this.part(first)] : []), panels,
      ...rest.map((part) => this.part(/** @type {string | StoryTable} */ (part))),
      ...(plan.live ? [el("p", { class: "faint" }, plan.receipt)] : []));
    panels.append(...plan.picture.map((panel) => this.figure(panel)));
    panels.querySelectorAll("figure").forEach((/** @type {HTMLElement} */ figure, /** @type {number} */ at) => this.draw(figure, plan.picture[at]));
    node.querySelectorAll("details").forEach((/** @type {HTMLDetailsElement} */ one, /** @type {number} */ i) => (one.open = opened[i] ?? false));
    this.drawn = `${dark} ${node.clientWidth}`;
  }

  /** A paragraph or a table. @param {string | StoryTable} part */
  part(part) {
    return typeof part === "string" ? el("p", {}, ...withCommands(part)) : this.table(part);
  }

  /** @param {StoryTable} table */
  table({ title, columns, rows, numbers, shades }) {
    const { weights } = /** @type {{weights: Colours}} */ (this.colours);
    const cells = (/** @type {string[]} */ row, /** @type {number} */ i) => row.map((cell, j) => {
      const made = el(j ? "td" : "th", { scope: j ? null : "row", class: numbers[j] && "number" }, cell), shade = shades[i]?.[j];
      if (typeof shade === "number") {
        const level = weights.level(shade, 1);
        Object.assign(made.style, { background: weights.css[level], color: weights.inks[level] });
      }
      return made;
    });
    return el("div", { class: "wide-table", tabindex: 0, role: "group", "aria-label": title }, el("table", {},
      el("caption", {}, title),
      el("thead", {}, el("tr", {}, ...columns.map((name, j) => el("th", { scope: "col", class: numbers[j] && "number" }, name)))),
      el("tbody", {}, ...rows.map((row, i) => el("tr", {}, ...cells(row, i))))));
  }

  /** A panel's title and what its colours mean; its drawing comes when its width is known. @param {Panel} panel */
  figure(panel) {
    const notes = [];
    if (panel.is === "Matrix") {
      notes.push(this.say("axes", panel.row_title, panel.column_title));
      if (panel.values.flat().includes(null)) notes.push(this.say("masked"));
    } else if (panel.series.some((one) => one.low.length)) notes.push(this.say("intervals"));
    return el("figure", {}, el("figcaption", {}, panel.title), el("p", { class: "faint" }, notes.join("; ")));
  }

  /** @param {HTMLElement} figure @param {Panel} panel */
  draw(figure, panel) {
    const room = { width: figure.clientWidth, .../** @type {any} */ (this.colours) };
    const made = panel.is === "Matrix" ? matrixChart(panel, room) : panel.is === "Lines" ? linesChart(panel, room) : barsChart(panel, room);
    made.setAttribute("role", "img");
    made.setAttribute("aria-label", panel.title);
    const caption = /** @type {HTMLElement} */ (figure.firstElementChild), parts = [...keyOf(panel, room)];
    if (panel.is !== "Matrix") parts.push(el("p", { class: "axis" }, panel.y_title));
    parts.push(made);
    if (panel.is === "Matrix") {
      const bar = scaleBar(panel, room);
      bar.setAttribute("aria-hidden", "true");
      parts.push(bar);
    }
    if (panel.is === "Lines") parts.push(el("p", { class: "axis end" }, panel.x_title));
    caption.after(...parts);
    if (panel.is === "Matrix" && Math.max(panel.values.length, panel.values[0].length) > EACH) return;
    figure.append(el("details", {}, el("summary", {}, this.say("numbers")), this.table(this.numbers(panel))));
  }

  /** The numbers of a panel as a table. @param {Panel} panel @returns {StoryTable} */
  numbers(panel) {
    const cell = (/** @type {number|null} */ value) => short(value);
    const range = (/** @type {Series} */ one, /** @type {number} */ i) => {
      const value = short(one.values[i]);
      if (!one.low.length) return cell(one.values[i]);
      const [low, high] = [one.low[i], one.high[i]].map(short);
      return STORY.range.replace("{value}", value).replace("{low}", low).replace("{high}", high);
    };
    const none = "";
    if (panel.is === "Matrix") {
      const count = (/** @type {string[]} */ names, /** @type {number} */ n) => names.length ? names : Array.from({ length: n }, (_, i) => cell(i));
      const columns = count(panel.columns, panel.values[0].length), names = count(panel.rows, panel.values.length);
      return { title: panel.title, columns: [none, ...columns], rows: panel.values.map((row, i) => [names[i], ...row.map(cell)]),
        numbers: [false, ...columns.map(() => true)], shades: [] };
    }
    const names = panel.is === "Lines" ? panel.x.map(cell) : panel.labels, first = panel.is === "Lines" ? panel.x_title : none;
    return { title: panel.y_title, columns: [first, ...panel.series.map((one) => one.name)],
      rows: names.map((name, i) => [name, ...panel.series.map((one) => range(one, i))]),
      numbers: [panel.is === "Lines", ...panel.series.map(() => true)], shades: [] };
  }
}

/** A text whose commands, between backticks, are set as such. @param {string} text */
function withCommands(text) {
  return text.split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));
}

new Story(JSON.parse(document.getElementById("labels")?.textContent ?? ""));
