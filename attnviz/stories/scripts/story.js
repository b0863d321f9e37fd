/**
 * @typedef {{title: Pair, columns: Pair[], rows: Pair[][], numbers: boolean[], shades: (number|null)[][]}} StoryTable
 * @typedef {{title: Pair, receipt: Pair, parts: (Pair | StoryTable)[], picture: Panel[], live: boolean,
 *   signed: {light: string, dark: string}}} StoryPlan
 */

/** What the page says of itself. @type {Record<string, Pair>} */
const STORY = {
  numbers: gettext("The numbers"),
  axes: gettext("rows: {0}, columns: {1}"),
  masked: gettext("crossed-out cells are masked"),
  intervals: gettext("bands are 95% intervals"),
  whole: gettext("The whole story"),
};

/** The text, the tables and the panels of a story, in the language that the page has. */
class Story {
  /** @param {{lang: string, palette?: {light: string, dark: string}, records?: Labels[], story: StoryPlan}} labels */
  constructor(labels) {
    this.plan = labels.story;
    this.palette = /** @type {{light: string, dark: string}} */ (labels.palette ?? labels.records?.[0].palette);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.node = el("section", { class: "lesson", "aria-labelledby": "whole" });
    this.drawn = "";
    const page = document.getElementById("page"), root = document.documentElement;
    if (this.plan.live) page?.after(this.node);
    else {
      const told = new URLSearchParams(location.hash.slice(1)).get("lang");
      root.lang = told === "ko" || told === "en" ? told : labels.lang;
      this.other = el("button", { type: "button", class: "plain lang", click: () => this.turn() });
      document.querySelector("header")?.prepend(this.other);
      page?.replaceChildren(this.node);
      page?.setAttribute("data-ready", "1");
    }
    new MutationObserver(() => this.show()).observe(root, { attributeFilter: ["lang"] });
    this.dark.addEventListener("change", () => this.show());
    addEventListener("resize", () => this.show());
    this.show();
  }

  /** The other language, which the address keeps. */
  turn() {
    document.documentElement.lang = this.ko ? "en" : "ko";
    try {
      history.replaceState(null, "", `#lang=${document.documentElement.lang}`);
    } catch { /* a page in a frame may have no address of its own */ }
  }

  get ko() {
    return document.documentElement.lang === "ko";
  }

  /** @param {Pair} pair */
  text(pair) {
    return pair[this.ko ? 1 : 0];
  }

  /** @param {string} name @param {...string} values */
  say(name, ...values) {
    return this.text(STORY[name]).replace(/\{(\d)\}/g, (_, at) => values[Number(at)]);
  }

  show() {
    const { plan, node } = this, dark = this.dark.matches, look = `${this.ko} ${dark} ${node.clientWidth}`;
    if (look === this.drawn || !node.clientWidth) return;
    const opened = Array.from(node.querySelectorAll("details"), (one) => one.open);
    const colours = (/** @type {{light: string, dark: string}} */ palette) => new Colours(palette[dark ? "dark" : "light"], dark);
    this.colours = { weights: colours(this.palette), signed: colours(plan.signed) };
    const [first, ...rest] = plan.live ? [null, ...plan.parts] : plan.parts;
    const panels = el("div", { class: "panels" });
    node.replaceChildren(el("h2", { id: "whole", hidden: !plan.live }, this.say("whole")), ...(first ? [this.part(first)] : []), panels,
      ...rest.map((part) => this.part(/** @type {Pair | StoryTable} */ (part))),
      ...(plan.live ? [el("p", { class: "faint" }, this.text(plan.receipt))] : []));
    panels.append(...plan.picture.map((panel) => this.figure(panel)));
    panels.querySelectorAll("figure").forEach((/** @type {HTMLElement} */ figure, /** @type {number} */ at) => this.draw(figure, plan.picture[at]));
    node.querySelectorAll("details").forEach((/** @type {HTMLDetailsElement} */ one, /** @type {number} */ i) => (one.open = opened[i] ?? false));
    this.drawn = `${this.ko} ${dark} ${node.clientWidth}`;
    if (plan.live) return;
    const title = document.querySelector("h1"), proof = document.querySelector("header .proof");
    document.title = this.text(plan.title);
    if (title) title.textContent = document.title;
    if (proof) proof.textContent = this.text(plan.receipt);
    this.other.textContent = this.ko ? "English" : "한국어";
    this.other.lang = this.ko ? "en" : "ko";
  }

  /** A paragraph or a table. @param {Pair | StoryTable} part */
  part(part) {
    return Array.isArray(part) ? el("p", {}, ...withCommands(this.text(part))) : this.table(part);
  }

  /** @param {StoryTable} table */
  table({ title, columns, rows, numbers, shades }) {
    const { weights } = /** @type {{weights: Colours}} */ (this.colours);
    const cells = (/** @type {Pair[]} */ row, /** @type {number} */ i) => row.map((cell, j) => {
      const made = el(j ? "td" : "th", { scope: j ? null : "row", class: numbers[j] && "number" }, this.text(cell)), shade = shades[i]?.[j];
      if (typeof shade === "number") {
        const level = weights.level(shade, 1);
        Object.assign(made.style, { background: weights.css[level], color: weights.inks[level] });
      }
      return made;
    });
    return el("div", { class: "wide-table", tabindex: 0, role: "group", "aria-label": this.text(title) }, el("table", {},
      el("caption", {}, this.text(title)),
      el("thead", {}, el("tr", {}, ...columns.map((name, j) => el("th", { scope: "col", class: numbers[j] && "number" }, this.text(name))))),
      el("tbody", {}, ...rows.map((row, i) => el("tr", {}, ...cells(row, i))))));
  }

  /** A panel's title and what its colours mean; its drawing comes when its width is known. @param {Panel} panel */
  figure(panel) {
    const notes = [];
    if (panel.is === "Matrix") {
      notes.push(this.say("axes", this.text(panel.row_title), this.text(panel.column_title)));
      if (panel.values.flat().includes(null)) notes.push(this.say("masked"));
    } else if (panel.series.some((one) => one.low.length)) notes.push(this.say("intervals"));
    return el("figure", {}, el("figcaption", {}, this.text(panel.title)), el("p", { class: "faint" }, notes.join("; ")));
  }

  /** @param {HTMLElement} figure @param {Panel} panel */
  draw(figure, panel) {
    const room = { width: figure.clientWidth, text: (/** @type {Pair} */ pair) => this.text(pair), .../** @type {any} */ (this.colours) };
    const made = panel.is === "Matrix" ? matrixChart(panel, room) : panel.is === "Lines" ? linesChart(panel, room) : barsChart(panel, room);
    made.setAttribute("role", "img");
    made.setAttribute("aria-label", this.text(panel.title));
    const caption = /** @type {HTMLElement} */ (figure.firstElementChild), parts = [...keyOf(panel, room)];
    if (panel.is !== "Matrix") parts.push(el("p", { class: "axis" }, this.text(panel.y_title)));
    parts.push(made);
    if (panel.is === "Matrix") {
      const bar = scaleBar(panel, room);
      bar.setAttribute("aria-hidden", "true");
      parts.push(bar);
    }
    if (panel.is === "Lines") parts.push(el("p", { class: "axis end" }, this.text(panel.x_title)));
    caption.after(...parts);
    if (panel.is === "Matrix" && Math.max(panel.values.length, panel.values[0].length) > EACH) return;
    figure.append(el("details", {}, el("summary", {}, this.say("numbers")), this.table(this.numbers(panel))));
  }

  /** The numbers of a panel as a table. @param {Panel} panel @returns {StoryTable} */
  numbers(panel) {
    const cell = (/** @type {number|null} */ value) => /** @type {Pair} */ ([short(value), short(value)]);
    const range = (/** @type {Series} */ one, /** @type {number} */ i) => {
      const value = short(one.values[i]);
      if (!one.low.length) return cell(one.values[i]);
      const [low, high] = [one.low[i], one.high[i]].map(short);
      return /** @type {Pair} */ ([`${value} (${low} to ${high})`, `${value} (${low}~${high})`]);
    };
    /** @type {Pair} */
    const none = ["", ""];
    if (panel.is === "Matrix") {
      const count = (/** @type {Pair[]} */ names, /** @type {number} */ n) => names.length ? names : Array.from({ length: n }, (_, i) => cell(i));
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
