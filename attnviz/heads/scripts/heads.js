/**
 * What each head does: a map of roles, a table to sort, and of the chosen head how sure its roles are.
 * @typedef {{words: string, value: number, low: number|null, high: number|null, out: boolean}} Held
 * @typedef {{rule: string, score: number, low: number|null, high: number|null, narrow: boolean, least: number, sure: boolean, why: string,
 *   controls: Held[], example: {text: string, score: number}|null}} HeadRole
 * @typedef {{divergence: (number|null)[], role: {rule: string, sure: boolean}|null}} HeadChange
 * @typedef {{name: string, roles: HeadRole[], word: {text: string, share: number}|null, change: HeadChange|null, values: (number|null)[][]}} Profile
 * @typedef {{name: string, code: string, short: string, colour: string, words: string}} Rule
 * @typedef {{layers: number, heads: number, notes: string[], measures: {name: string, unit: string, narrow: boolean, words: string}[], rules: Rule[],
 *   profiles: Profile[], sentence: boolean, second: boolean, palette: {light: string, dark: string}}} HeadLabels
 */

const HEAD_WORDS = {
  map: gettext("Map of roles: a filled sign is established"),
  receives: gettext("The word that receives most of each head's attention"), word: gettext("word"),
  most: gettext("The word that receives most of its attention: {0} ({1})"),
  head: gettext("head"), role: gettext("role"), score: pgettext("heads", "score"), interval: gettext("95% interval"),
  none: gettext("no clear role"), sure: gettext("established"), unsure: gettext("not established"),
  all: gettext("All roles"), choose: gettext("Role"), example: gettext("Example"),
  threshold: gettext("asked for: {0}"), held: gettext("held against"), measure: gettext("measure"),
  divergence: "JSD", before: gettext("role before"), nats: gettext("JSD {0} nats ({1}); role before: "),
  value: pgettext("heads", "value"), csv: gettext("Save CSV"), table: gettext("All heads; a click on a title sorts"),
};

/** The page. */
class Heads {
  /** @param {HeadLabels} labels */
  constructor(labels) {
    this.labels = labels;
    this.rules = new Map(labels.rules.map((rule) => [rule.name, rule]));
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.state = this.read();
    this.map = el("table", { class: "map" });
    this.legend = el("p", { class: "legend" });
    this.table = el("table", { class: "all-heads" });
    this.detail = el("section", { class: "detail", "aria-live": "polite" });
    this.choice = el("select", { change: () => this.set({ role: this.choice.value }) });
    this.label = el("span");
    this.save = el("button", { type: "button", class: "plain", click: () => this.csv() });
    this.notes = el("footer");
    this.scroll = el("div", { class: "wide", tabindex: 0, role: "group" }, this.table);
    document.getElementById("page")?.replaceChildren(
      el("div", { class: "controls" }, ...(labels.sentence ? [] : [el("label", {}, this.label, this.choice)]), this.save),
      el("div", {}, this.map, this.legend), this.detail, this.scroll, this.notes);
    document.getElementById("page")?.setAttribute("data-ready", "1");
    addEventListener("hashchange", () => {
      this.state = this.read();
      this.show();
    });
    addEventListener("keydown", (event) => this.key(event));
    this.dark.addEventListener("change", () => this.show());
    this.show();
  }

  /** @param {keyof typeof HEAD_WORDS} name @param {...string} values */
  say(name, ...values) {
    return HEAD_WORDS[name].replace(/\{(\d)\}/g, (_, at) => values[Number(at)]);
  }

  /** What the address tells; what is not there is as usual. */
  read() {
    const told = new URLSearchParams(location.hash.slice(1)), { labels } = this;
    const known = (/** @type {string} */ name, /** @type {(text: string) => boolean} */ fits, /** @type {string} */ usual) => {
      const text = told.get(name);
      return text !== null && fits(text) ? text : usual;
    };
    return {
      head: known("head", (text) => labels.profiles.some((one) => one.name === text), ""),
      role: known("role", (text) => this.rules.has(text), ""),
      sort: known("sort", (text) => /^-?(head|word|role|score|divergence|before|\d{1,3})$/.test(text), "head"),
    };
  }

  /** @param {Partial<Heads["state"]>} change */
  set(change) {
    this.state = { ...this.state, ...change };
    const usual = { head: "", role: "", sort: "head" };
    const told = Object.entries(this.state).filter(([name, text]) => text !== usual[/** @type {"head"} */ (name)]);
    try {
      history.replaceState(null, "", `#${new URLSearchParams(told)}`);
    } catch { /* in a frame */ }
    this.show();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const target = /** @type {HTMLElement} */ (event.target);
    if (!by || event.ctrlKey || event.altKey || event.metaKey || target.matches("select, .wide")) return;
    const [layer, head] = (this.state.head || "0.0").split(".").map(Number), { layers, heads } = this.labels;
    const next = [(layer + by[0] + layers) % layers, (head + by[1] + heads) % heads].join(".");
    event.preventDefault();
    this.set({ head: this.state.head ? next : "0.0" });
    if (this.map.contains(target)) this.map.querySelector("[aria-pressed=true]").focus();
  }

  show() {
    const { labels, state } = this;
    this.colours = new Colours(labels.palette[this.dark.matches ? "dark" : "light"], this.dark.matches);
    this.label.textContent = this.say("choose");
    this.choice.replaceChildren(el("option", { value: "" }, this.say("all")),
      ...labels.rules.map((rule) => el("option", { value: rule.name }, `${rule.short}: ${rule.words}`)));
    this.choice.value = state.role;
    this.save.textContent = this.say("csv");
    this.scroll.setAttribute("aria-label", this.say("table"));
    this.notes.replaceChildren(...labels.notes.map((text) => el("p", { class: "faint" }, text)));
    this.showMap();
    this.showTable();
    this.showDetail();
  }

  /** The clearest role of a head that is looked for. @param {Profile} profile */
  role(profile) {
    return profile.roles.find((one) => !this.state.role || one.rule === this.state.role);
  }

  /** A role as its name or its code, filled where it is established.
   * @param {{rule: string, sure: boolean}|undefined} role @param {"short"|"code"} [name] */
  sign(role, name = "short") {
    const rule = role && this.rules.get(role.rule);
    const made = el("span", { class: "sign" }, rule ? rule[name] : "·");
    if (rule && role?.sure) {
      made.style.background = rule.colour;
      made.style.color = luminance(rgbOf(rule.colour.slice(1))) > 0.179 ? "#000" : "#fff";
    } else if (rule) made.style.boxShadow = `inset 0 0 0 2px ${rule.colour}`;
    return made;
  }

  /** The sign of a head: its role, or of one sentence the word that receives most.
   * @param {Profile} profile @param {"short"|"code"} [name] */
  mark(profile, name) {
    const { word } = profile;
    return word ? this.shaded(el("span", { class: "sign" }, word.text), word.share) : this.sign(this.role(profile), name);
  }

  /** What a head does, in words. @param {Profile} profile */
  words(profile) {
    if (profile.word) return `${profile.word.text} ${profile.word.share.toFixed(2)}`;
    const role = this.role(profile);
    if (!role) return this.say("none");
    return `${/** @type {Rule} */ (this.rules.get(role.rule)).words}, ${this.say(role.sure ? "sure" : "unsure")}`;
  }

  showMap() {
    const { labels, state } = this, across = [...Array(labels.heads).keys()];
    const focused = this.map.contains(document.activeElement);
    this.map.replaceChildren(el("caption", {}, this.say(labels.sentence ? "receives" : "map")),
      el("thead", {}, el("tr", {}, el("td"), ...across.map((head) => el("th", { scope: "col" }, String(head))))),
      el("tbody", {}, ...[...Array(labels.layers).keys()].map((layer) => el("tr", {}, el("th", { scope: "row" }, String(layer)),
        ...across.map((head) => {
          const profile = labels.profiles[layer * labels.heads + head], words = `${profile.name}: ${this.words(profile)}`;
          const isHere = profile.name === state.head;
          return el("td", {}, el("button", {
            type: "button", "aria-pressed": String(isHere), tabindex: isHere || (!state.head && !layer && !head) ? 0 : -1,
            "aria-label": words, title: words, click: () => this.set({ head: isHere ? "" : profile.name }),
          }, this.mark(profile, "code")));
        })))));
    const roles = labels.sentence ? [] : labels.profiles.map((profile) => this.role(profile));
    this.legend.replaceChildren(...labels.rules.filter((rule) => roles.some((role) => role?.rule === rule.name)).flatMap((rule) =>
      [el("span", {}, this.sign({ rule: rule.name, sure: roles.some((role) => role?.rule === rule.name && role.sure) }, "code"), ` ${rule.short}`), " "]));
    if (focused) this.map.querySelector("[tabindex='0']")?.focus();
  }

  /** A role of the second model. @param {HeadChange} change */
  before({ role }) {
    return role ? [this.sign(role)] : [this.say("none")];
  }

  /** The rows of the table in their order. */
  get rows() {
    const { labels, state, rules } = this, down = state.sort.startsWith("-"), by = state.sort.replace("-", "");
    const place = (/** @type {Profile} */ one) => labels.profiles.indexOf(one);
    const short = (/** @type {{rule: string}|null|undefined} */ role) => rules.get(role?.rule ?? "")?.short ?? "\uffff";
    /** @type {Record<string, (one: Profile) => number|string>} */
    const values = {
      head: place, word: (one) => one.word?.text ?? "", role: (one) => short(this.role(one)), score: (one) => this.role(one)?.score ?? -Infinity,
      divergence: (one) => one.change?.divergence[0] ?? -Infinity, before: (one) => short(one.change?.role),
    };
    const value = values[by] ?? ((/** @type {Profile} */ one) => one.values[Number(by)]?.[0] ?? -Infinity);
    const shown = labels.profiles.filter((one) => !state.role || this.role(one));
    return shown.sort((a, b) => {
      const [x, y] = [value(a), value(b)], order = x < y ? -1 : x > y ? 1 : 0;
      return (down ? -order : order) || place(a) - place(b);
    });
  }

  showTable() {
    const { labels, state } = this;
    const columns = [
      ...this.titles.map(([name, text]) => ({ name, text, title: "" })),
      ...labels.measures.map((one, at) => ({ name: String(at), text: one.name, title: `${one.words} (${one.unit})` })),
    ];
    const titles = columns.map(({ name, text, title }) => {
      const down = state.sort === `-${name}`, up = state.sort === name;
      const isName = ["head", "word", "role", "before"].includes(name), first = isName ? name : `-${name}`;
      const sort = () => this.set({ sort: up ? `-${name}` : down ? name : first });
      return el("th", { scope: "col", class: isName ? "name" : null, "aria-sort": down ? "descending" : up ? "ascending" : null },
        el("button", { type: "button", class: "link", title, click: sort }, `${text}${down ? " ▾" : up ? " ▴" : ""}`));
    });
    const focused = [...this.table.querySelectorAll("thead button")].indexOf(document.activeElement);
    this.table.replaceChildren(el("thead", {}, el("tr", {}, ...titles)), el("tbody", {}, ...this.rows.map((profile) =>
      el("tr", { "aria-current": profile.name === state.head },
        el("th", { scope: "row" }, el("button", { type: "button", class: "link", click: () => this.set({ head: profile.name }) },
          profile.name)),
        ...this.cells(profile)))));
    const letters = parseFloat(getComputedStyle(this.table).fontSize);
    this.table.style.setProperty("--ems", String(Math.ceil(this.table.offsetWidth / letters)));  // its width on paper
    if (focused >= 0) this.table.querySelectorAll("thead button")[focused]?.focus();
  }

  /** The first columns: what sorts by each, and its title. */
  get titles() {
    const names = this.labels.sentence ? ["head", "word"] : ["head", "role", "score", ...(this.labels.second ? ["divergence", "before"] : [])];
    return names.map((name) => [name, this.say(/** @type {"head"} */ (name))]);
  }

  /** What a line of the table has: the word, or role and score, measures. @param {Profile} profile */
  cells(profile) {
    const role = this.role(profile), { change } = profile;
    return [el("td", { class: "name" }, this.mark(profile)),
      ...(profile.word ? [] : [el("td", {}, role ? role.score.toFixed(2) : "")]),
      ...(change ? [el("td", {}, change.divergence[0]?.toFixed(2) ?? ""), el("td", { class: "name" }, ...this.before(change))] : []),
      ...profile.values.map(([value], at) => {
        const isShown = this.labels.measures[at].unit === "share" && value !== null && value >= 0.005;
        return this.shaded(el("td", {}, value === null ? "" : value.toFixed(2)), isShown ? value : 0);
      })];
  }

  /** A node in the colour of a number from 0 to 1. @template {HTMLElement} T @param {T} node @param {number|null} value */
  shaded(node, value) {
    const colours = /** @type {Colours} */ (this.colours), level = value ? colours.level(value, 1) : 0;
    if (level) Object.assign(node.style, { background: colours.css[level], color: colours.inks[level] });
    return node;
  }

  showDetail() {
    const { labels, state } = this, profile = labels.profiles.find((one) => one.name === state.head);
    this.detail.hidden = !profile;
    if (!profile) return;
    this.detail.replaceChildren(el("h2", {}, `${this.say("head")} ${profile.name}`),
      ...(profile.roles.length ? profile.roles.map((role) => this.card(role))
        : [el("p", {}, profile.word ? this.say("most", profile.word.text, profile.word.share.toFixed(2)) : this.say("none"))]),
      ...(profile.change ? [this.changed(profile.change)] : []),
      el("table", { class: "measures" },
        el("thead", {}, el("tr", {}, ...["measure", "value", "interval"].map((name) =>
          el("th", { scope: "col" }, this.say(/** @type {"measure"} */ (name)))))),
        el("tbody", {}, ...profile.values.map(([value, low, high], at) => value === null ? "" : el("tr", {},
          el("th", { scope: "row", title: labels.measures[at].unit }, labels.measures[at].words),
          el("td", {}, value.toFixed(2)), el("td", {}, ends(low, high, labels.measures[at].narrow)))))));
  }

  /** How far the head is from that of the second model, and its role there. @param {HeadChange} change */
  changed(change) {
    const [value, low, high] = change.divergence;
    return el("p", {}, value === null ? "" : this.say("nats", value.toFixed(3), ends(low, high, false, 3)), ...this.before(change));
  }

  /** A role with its interval, what it is held against, why it is established or not, and sentences. @param {HeadRole} role */
  card(role) {
    const rule = /** @type {Rule} */ (this.rules.get(role.rule)), plot = drawing(), held = role.controls.filter((one) => one.out);
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", `${role.score.toFixed(2)} (${ends(role.low, role.high, role.narrow)})`);
    this.plot(plot, role, held);
    return el("article", {}, el("h3", {}, this.sign(role), ` ${rule.words}`), plot,
      el("p", {}, role.why),
      ...(role.example ? [el("p", { class: "faint" }, `${this.say("example")}: `, el("bdi", {}, clip(role.example.text, 240)),
        ` ${role.example.score.toFixed(2)}`)] : []));
  }

  /** The score with its interval above those of the controls, from 0 to 1; a line where the threshold is.
   * @param {SVGSVGElement} plot @param {HeadRole} role @param {Held[]} held */
  plot(plot, role, held) {
    const colours = /** @type {Colours} */ (this.colours), left = 6, high = 34;
    const wide = Math.max(180, Math.min(420, this.detail.clientWidth - 2 * left)), bottom = (held.length + 1) * high + 6;
    const pen = new SvgPen(plot, wide + 2 * left, bottom + 18);
    const x = (/** @type {number} */ value) => left + Math.min(1, Math.max(0, value)) * wide;
    const faint = colours.named("faint");
    for (let y = 16; y < bottom; y += 6) pen.box(x(role.least), y, 1, 3, faint);
    /** @param {number} at @param {{low: number|null, high: number|null}} one @param {number} value @param {string} words */
    const line = (at, one, value, words) => {
      const y = at * high + 24, colour = at ? faint : colours.named("lines");
      if (one.low !== null && one.high !== null) pen.box(x(one.low), y - 2, Math.max(1, x(one.high) - x(one.low)), 4, colour);
      pen.box(x(value) - 2, y - 6, 4, 12, colour);
      pen.text(fit(`${value.toFixed(2)}  ${words}`, wide, 12), left, y - 15, { size: 12, fill: at ? faint : colours.named("ink") });
    };
    line(0, role, role.score, /** @type {Rule} */ (this.rules.get(role.rule)).short);
    held.forEach((one, at) => line(at + 1, one, one.value, one.words));
    pen.box(left, bottom, wide, 1, colours.named("line"));
    pen.text("0", left, bottom + 9, { size: 11, fill: faint, anchor: "middle" });
    pen.text(this.say("threshold", String(role.least)), x(role.least), bottom + 9, { size: 11, fill: faint, anchor: "middle" });
    pen.text("1", left + wide, bottom + 9, { size: 11, fill: faint, anchor: "middle" });
  }

  /** The table as CSV, in the order seen. */
  csv() {
    const { measures, second, sentence } = this.labels;
    if (sentence) {
      saveTable("attnviz-heads", [["head", "word", "share", ...measures.map((one) => one.name)],
        ...this.rows.map(({ name, word, values }) => [name, word?.text ?? "", word?.share ?? "", ...values.map(([value]) => value ?? "")])]);
      return;
    }
    saveTable("attnviz-heads", [["head", "role", "established", "score", "low", "high",
      ...(second ? ["divergence", "role_before", "established_before"] : []), ...measures.map((one) => one.name)],
      ...this.rows.map((profile) => {
        const role = this.role(profile), before = profile.change?.role;
        return [profile.name, role?.rule ?? "", role ? Number(role.sure) : "", role?.score ?? "", role?.low ?? "", role?.high ?? "",
          ...(second ? [profile.change?.divergence[0] ?? "", before?.rule ?? "", before ? Number(before.sure) : ""] : []), ...profile.values.map(([value]) => value ?? "")];
      })]);
  }
}

/** An interval as a text, marked where it is not to be trusted.
 * @param {number|null} low @param {number|null} high @param {boolean} narrow @param {number} [digits] */
function ends(low, high, narrow, digits = 2) {
  return low === null || high === null ? "" : `${narrow ? "~" : ""}${low.toFixed(digits)}–${high.toFixed(digits)}`;
}

new Heads(JSON.parse(document.getElementById("labels")?.textContent ?? ""));
