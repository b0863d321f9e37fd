/**
 * @typedef {{all: Labels[], weightsOf: (at: number) => Weights, tour: Tour | null, guide: Guide | null}} Records what a page
 *   has to show
 */

/** The page of one record: its state, its views, and what the reader does. */
class App {
  /** @param {Records} records @param {number} at which of them @param {State} [state] else what the address tells */
  constructor(records, at, state) {
    const labels = records.all[at], { tour, guide } = records;
    this.records = records;
    this.labels = labels;
    this.weights = records.weightsOf(at);
    this.tour = tour;
    this.guide = guide;
    this.state = state ?? read(location.hash, labels);
    this.hover = { row: -1, column: -1 };
    /** @type {{look: string, rows: Group[], columns: Group[]} | null} */
    this.grouped = null;
    /** @type {Colours | null} */
    this.colours = null;
    this.laid = "";
    this.painted = "";
    /** @type {any} what is shown of the chosen head, as long as it is shown */
    this.held = null;
    /** @type {any} */
    this.shown = null;
    /** @type {any} */
    this.look = null;
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.image = document.createElement("canvas");
    this.frame = 0;
    this.overview = new Overview(labels, this.weights, (head) => this.set({ head }));
    this.text = new TextView((place, pinned) => this.point(this.turned(place), pinned));
    this.row = new RowView((place) => this.pin(place));
    this.calculation = new Calculation((change) => this.set(change));
    this.generation = new Generation(labels, (change) => this.set(change));
    this.controls = controlsOf(this);
    this.pattern = patternOf(this);
    this.node = document.getElementById("page");
    this.closing = new AbortController();
    const { signal } = this.closing;
    addEventListener("hashchange", () => this.set(read(location.hash, records.all[recordOf(records.all)])), { signal });
    addEventListener("resize", () => this.draw(), { signal });
    addEventListener("keydown", (event) => onKey(this, event), { signal });
    this.dark.addEventListener("change", () => this.draw(), { signal });
    this.node?.replaceChildren(el("div", { class: "reading" }, this.text.node, this.generation.node), this.controls.node, this.pattern.node, this.row.node,
      el("nav", { class: "heads", hidden: labels.tops.length === 1 }, this.overview.node), this.calculation.node,
      this.controls.help);
    for (const one of [tour, guide]) if (one) one.set = (change) => this.set(change);
    this.node?.setAttribute("data-ready", "1");
    if (state) this.set({});
    else this.draw();
  }

  /** Another record takes the place of this one. @param {Partial<State>} change */
  turnTo(change) {
    const at = /** @type {number} */ (change.record);
    this.closing.abort();
    this.generation.play(false);
    cancelAnimationFrame(this.frame);
    new App(this.records, at, { ...usual(this.records.all[at]), ...change });
  }

  /** Changes what is shown. @param {Partial<State>} change */
  set(change) {
    const before = this.state;
    if (change.record !== undefined && change.record !== before.record) {
      this.turnTo(change);
      return;
    }
    this.state = { ...before, ...change };
    if (this.labels.signed) this.state.view = "matrix"; // lines have no sign
    if (this.state.text !== before.text) this.reread(change);
    if (change.toward && change.toward !== before.toward && this.same && before.query < 0 !== before.key < 0) {
      Object.assign(this.state, { query: before.key, key: before.query });
    }
    try {
      history.replaceState(null, "", written(this.state, this.labels));
    } catch { /* a page in a frame may have no address of its own */ }
    this.draw();
    if (change.head !== undefined && change.head !== before.head && this.overview.node.contains(document.activeElement)) {
      this.overview.places.get(this.state.head)?.button.focus();
    }
  }

  /** The model of the page reads what was typed; a word that is still there stays chosen. @param {Partial<State>} change */
  reread(change) {
    const { labels, state, tour } = this, before = labels.queries.texts;
    const weights = tour?.read(state.text);
    if (!weights) return;
    this.weights = weights;
    this.overview.renew(weights);
    this.grouped = this.held = null;
    this.laid = this.painted = "";
    this.hover = { row: -1, column: -1 };
    const kept = (/** @type {"query"|"key"} */ name) => {
      const token = state[name], now = labels.queries.texts[token];
      return now !== undefined && (Object.hasOwn(change, name) || now === before[token]) ? token : -1;
    };
    Object.assign(state, { query: kept("query"), key: kept("key"), rows: "", keys: "" });
  }

  /** A word or a cell that is pointed at; pinned, it stays. @param {{row: number, column: number}} place
   * @param {boolean} pinned */
  point({ row, column }, pinned) {
    if (pinned) {
      const again = this.pinned.row === row && this.pinned.column === column;
      this.hover = { row: -1, column: -1 };
      this.pin(again ? { row: -1, column: -1 } : { row, column });
      return;
    }
    if (row === this.hover.row && column === this.hover.column) return;
    this.hover = { row, column };
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  /** @param {{row: number, column: number}} place */
  pin({ row, column }) {
    const { rows, columns } = this.shown;
    this.set({ query: row < 0 ? -1 : rows[row].first, key: column < 0 ? -1 : columns[column].first });
  }

  /** A word of one text that is both row and column is the one that is wanted. @param {{row: number, column: number}} place */
  turned({ row, column }) {
    const turn = this.same && this.state.toward === "to" && row >= 0 && column < 0;
    return turn ? { row: -1, column: row } : { row, column };
  }

  /** Where the pinned tokens stand among what is shown. */
  get pinned() {
    const place = (/** @type {Group[]} */ groups, /** @type {number} */ token) =>
      token < 0 ? -1 : groups.findIndex((one) => one.first <= token && token <= one.last);
    const { query, key } = this.state;
    return { row: place(this.shown.rows, query), column: place(this.shown.columns, key) };
  }

  /** The row and column that are lit: those pointed at, else those pinned. */
  get chosen() {
    const { row, column } = this.hover;
    return row >= 0 || column >= 0 ? this.hover : this.pinned;
  }

  /** Whether both sides are the same words. */
  get same() {
    return this.labels.keys === null && (this.state.part === "" || this.state.part[0] === this.state.part[1]);
  }

  /** What is shown of a head, or of a mean of heads. @param {string} head @returns {Shown} */
  shownOf(head) {
    const { labels, weights } = this, { rows, columns } = this.groups;
    const matrix = weights.of(headsOf(head, labels));
    const whole = rows.length === weights.queries && columns.length === weights.keys;
    const masked = maskedFrom(labels.masked, rows, columns);
    if (!whole) return { ...reduce(matrix, weights.keys, rows, columns), masked };
    return { ...matrix, rows, columns, top: topOf(matrix.values, false), masked }; // the largest
  }

  /** The rows and columns that are shown. */
  get groups() {
    const { labels, state } = this, look = `${state.words}${state.special}${state.part}`;
    if (this.grouped?.look !== look) {
      const keys = labels.keys ?? labels.queries;
      this.grouped = {
        look,
        rows: groupsOf(labels.queries, state.words, state.special, state.part.slice(0, 1)),
        columns: groupsOf(keys, state.words, state.special, state.part.slice(1)),
      };
    }
    return this.grouped;
  }

  /** Where colours end. */
  get top() {
    const { state, labels, held, shown } = this;
    if (["shared", "log"].includes(state.scale) && Math.max(...labels.cell) === 1) return Math.max(shown.top, ...labels.tops);
    held.own ??= topOf(shown.values, Math.min(shown.rows.length, shown.columns.length) >= MOST);
    return held.own;
  }

  /** Draws everything anew that has changed. */
  draw() {
    const { labels, state, node } = this;
    if (!node) return;
    performance.mark("draw");
    const dark = this.dark.matches;
    if (this.colours?.dark !== dark) this.colours = new Colours(labels.palette[dark ? "dark" : "light"], dark, labels.signed);
    this.colours.log = state.scale === "log";
    document.body.className = state.head ? "one" : "all";
    if (state.head) this.drawHead();
    this.overview.show(state, this.colours);
    this.controls.show();
    this.tour?.show(state);
    this.guide?.show(state);
    node.querySelector("nav")?.setAttribute("aria-label", say("heads"));
    headings(labels);
    performance.measure("drawn", "draw");
  }

  drawHead() {
    const { labels, state } = this, colours = /** @type {Colours} */ (this.colours);
    const key = `${state.head} ${state.words} ${state.special} ${state.part}`;
    if (this.held?.key !== key) {
      this.held = { key, shown: this.shownOf(state.head), own: undefined };
      this.shown = this.held.shown;
    }
    const laid = this.groups.look;
    if (this.laid !== laid) this.text.layOut(this.shown, this.same);
    this.laid = laid;
    const top = this.top, least = Math.max(blankBelow(top, colours), labels.signed ? -Infinity : state.least), wanted = state.find.toLocaleLowerCase();
    const found = (/** @type {Group} */ group) => wanted !== "" && group.name.toLocaleLowerCase().includes(wanted);
    this.look = { ...this.chosen, found, top, least };
    const painted = `${key} ${top} ${least} ${colours.dark} ${colours.log}`;
    if (this.painted !== painted) {
      paint(this.shown.values, this.shown.columns.length, top, least, colours, this.image);
      this.painted = painted;
    }
    this.pattern.show();
    const { row, column } = this.chosen, isTo = column >= 0 && (row < 0 || state.toward === "to");
    const aimed = isTo ? { row: -1, column } : { row, column: -1 };
    this.generation.show(state);
    this.text.show(this.shown, aimed, { ...this.look, until: this.generation.until(state) }, colours);
    this.row.show(this.shown, aimed, top, colours);
    const has = this.calculation.show(this.weights, labels, state);
    this.row.explain(labels, state, has ? this.calculation : null, this.weights);
  }
}

/** What stands above the page. @param {Labels} labels */
function headings(labels) {
  const text = (/** @type {string} */ name, /** @type {string} */ value) => {
    const found = document.querySelector(`header .${name}`);
    if (found) found.textContent = value;
  };
  if (labels.finding) text("finding", labels.finding);
  text("model", `${labels.model} · ${labels.kind} · ${labels.about}`);
  text("proof", labels.proof);
  const proof = document.querySelector("header .proof");
  proof?.classList.toggle("proved", labels.proved);
  document.querySelectorAll("header .note").forEach((note) => note.remove());
  proof?.after(...labels.notes.map((note) => el("p", { class: "note" }, note)));
}

/** The number of the record that the address names. @param {Labels[]} all */
function recordOf(all) {
  const named = new URLSearchParams(location.hash.slice(1)).get("record") ?? "";
  return ALLOWED.record.test(named) && Number(named) < all.length ? Number(named) : 0;
}

/** Opens the page. */
async function openPage() {
  const part = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
  /** @type {Labels & {records?: Labels[], bytes?: number[], guide?: GuidePlan}} */
  const page = JSON.parse(part("labels").textContent ?? "");
  const all = page.records ?? [page], [labels] = all, at = recordOf(all);
  const wait = part("wait");
  if (!("DecompressionStream" in window)) {
    wait.textContent = say("noInflater");
    return;
  }
  wait.textContent = "";
  try {
    const bytes = await inflate(part("data").textContent ?? "");
    part("data").remove();
    const tour = labels.toy ? new Tour(labels, bytes) : null, ends = page.bytes?.map((_, i, sizes) => total(sizes.slice(0, i + 1)));
    const weightsOf = (/** @type {number} */ one) => tour
      ? /** @type {Weights} */ (tour.read(read(location.hash, labels).text) ?? tour.read(usual(labels).text))
      : new Weights(all[one], ends ? bytes.subarray(ends[one - 1] ?? 0, ends[one]) : bytes);
    new App({ all, weightsOf, tour, guide: page.guide ? new Guide(page.guide, tour) : null }, at);
    performance.mark("shown");
  } catch (error) {
    wait.textContent = say("broken");
    throw error;
  }
}

openPage();
