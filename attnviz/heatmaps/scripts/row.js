const FEW = 12; // links that are listed before all are wanted

/** The row of the chosen word as a table, the strongest first; or the strongest links of the head. */
class RowView {
  /** @param {(place: {row: number, column: number}) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.whole = false;
    this.title = el("h2", { id: "row-title" });
    this.body = el("tbody");
    this.foot = el("tfoot");
    this.head = el("thead");
    this.table = el("table", { class: "row", "aria-labelledby": "row-title" }, this.head, this.body, this.foot);
    this.more = el("button", { type: "button", class: "plain", click: () => {
      this.whole = !this.whole;
      this.again();
    } });
    this.hint = el("p", { class: "faint" });
    this.steps = el("p", { class: "faint steps" });
    this.tokens = el("table", { class: "row tokens", hidden: true });
    this.node = el("section", { class: "panel", "aria-labelledby": "row-title" },
      this.title, this.hint, el("div", { class: "scroll", tabindex: 0, role: "group", "aria-labelledby": "row-title" },
        this.table), this.more, this.tokens, this.steps);
    this.again = () => {};
  }

  /** @param {Shown} shown @param {{row: number, column: number}} chosen @param {number} top @param {Colours} colours */
  show(shown, chosen, top, colours) {
    this.again = () => this.show(shown, chosen, top, colours);
    const { row, column } = chosen, n = shown.columns.length;
    const of = row >= 0 ? shown.rows[row] : column >= 0 ? shown.columns[column] : null;
    this.title.replaceChildren(of ? say(row >= 0 ? "fromWord" : "toWord", clip(of.name, 40)) : say("strongest"));
    this.hint.textContent = of ? "" : say("pointHint");
    /** @type {[number, number][]} */
    let links;
    if (row >= 0) links = shown.columns.map((_, j) => [row, j]);
    else if (column >= 0) links = shown.rows.map((_, i) => [i, column]);
    else links = topLinks(shown.values.map(Math.abs), FEW).map((at) => [Math.floor(at / n), at % n]);
    links = links.filter(([i, j]) => j < shown.masked[i]);
    const count = links.length;
    const places = new Map(links.map((link) => [link, link[0] * n + link[1]]));
    const known = (/** @type {number} */ at) => (shown.known ? shown.known[at] : 0);
    links.sort((one, other) => {
      const [a, b] = [Number(places.get(one)), Number(places.get(other))];
      return Math.abs(shown.values[b]) - Math.abs(shown.values[a]) || known(b) - known(a);
    });
    if (!this.whole) links = links.slice(0, FEW);
    const names = of ? [row >= 0 ? "key" : "query"] : ["query", "key"];
    this.head.replaceChildren(el("tr", {}, ...[...names, colours.signed ? "change" : "weight"].map((name) => el("th", { scope: "col" }, say(name)))));
    this.body.replaceChildren(...links.map(([i, j]) => this.line(shown, i, j, of ? (row >= 0 ? [null, j] : [i, null]) : [i, j],
      top, colours)));
    const sum = row >= 0 ? shown.values.subarray(row * n, row * n + n).reduce((all, one) => all + one, 0) : null;
    const exact = !shown.known;
    this.foot.replaceChildren(...(sum === null ? [] : [el("tr", {}, el("th", { scope: "row" }, say("sum")),
      el("td", {}, percent(sum, exact)))]));
    this.more.hidden = !of || count <= FEW;
    this.more.textContent = this.whole ? say("fewer") : say("all", count);
  }

  /**
   * Tells what is known of single tokens where these are groups of tokens; and of a row where the numbers behind it
   * are: below, or why not, and the command that computes them.
   * @param {Labels} labels @param {State} state @param {Calculation|null} calculation what shows them
   * @param {Weights} weights
   */
  explain(labels, state, calculation, weights) {
    const [head, ...others] = headsOf(state.head, labels);
    const [tall] = labels.cell, links = others.length || state.query < 0 ? []
      : weights.linksOf(head, state.query * tall, (state.query + 1) * tall);
    this.tokens.hidden = !links.length;
    if (links.length) this.showTokens(labels, links);
    this.steps.replaceChildren(labels.exact && !others.length ? labels.exact[head] : "");
    if (labels.exact) return;
    if (state.query < 0 || state.head.includes("*")) return;
    if (calculation) {
      this.steps.append(el("button", { type: "button", class: "link", click: () => {
        calculation.node.scrollIntoView();
        calculation.title.focus({ preventScroll: true });
      } }, `${stepWords("look")} ↓`));
    } else this.steps.append(labels.absent);
    if (labels.command) {
      this.steps.append(" ", el("code", {}, `${labels.command} --head ${state.head} --query ${state.query}`));
    }
  }

  /** The tokens of a group and what each looks at most. @param {Labels} labels @param {[number, number, number][]} links */
  showTokens(labels, links) {
    const { queries, keys } = /** @type {NonNullable<Labels["tokens"]>} */ (labels.tokens), [row, column] = labels.first;
    const name = (/** @type {string} */ text, /** @type {number} */ at) => [el("bdi", {}, clip(text, 24)), ` (${at.toLocaleString("en")})`];
    this.tokens.replaceChildren(el("caption", {}, say("eachToken")),
      el("thead", {}, el("tr", {}, ...["query", "key", "weight"].map((one) => el("th", { scope: "col" }, say(one))))),
      el("tbody", {}, ...links.slice(0, FEW).map(([query, key, weight]) => el("tr", {},
        el("th", { scope: "row" }, ...name(queries[query], row + query)),
        el("td", {}, ...name((keys ?? queries)[key], column + key)), el("td", {}, percent(weight))))));
  }

  /** @param {Shown} shown @param {number} i @param {number} j @param {(number|null)[]} named @param {number} top
   * @param {Colours} colours */
  line(shown, i, j, named, top, colours) {
    const at = i * shown.columns.length + j, weight = shown.values[at];
    const [row, column] = named;
    const names = [row === null ? null : shown.rows[row], column === null ? null : shown.columns[column]];
    const bar = el("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${Math.min(100, (Math.abs(weight) / top) * 100)}%`;
    bar.style.background = colours.css[Math.round(colours.levels * (colours.signed ? (weight < 0 ? 0.2 : 0.8) : 0.6))];
    const choose = () => this.choose({ row: i, column: j });
    return el("tr", {},
      ...names.filter((one) => one !== null).map((one, place) => place
        ? el("td", { class: "name" }, el("bdi", {}, clip(one.name, 40)))
        : el("th", { scope: "row" }, el("button", { type: "button", class: "link", click: choose },
          el("bdi", {}, clip(one.name, 40))))),
      el("td", {}, el("span", { class: "value" }, percent(weight, !shown.known || shown.known[at] === 1)),
        el("span", { class: "track" }, bar)));
  }
}

/** The places of the largest numbers. @param {Float32Array} values @param {number} most */
function topLinks(values, most) {
  /** @type {number[]} */
  const best = [];
  for (let i = 0; i < values.length; i++) {
    if (best.length === most && values[i] <= values[best[most - 1]]) continue;
    let at = best.length;
    while (at && values[best[at - 1]] < values[i]) at--;
    best.splice(at, 0, i);
    if (best.length > most) best.pop();
  }
  return best;
}
