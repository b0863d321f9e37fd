/** Of the number that is chosen the arithmetic, and all cells that it is made of lit up. */

const WALK_WORDS = {
  hint: gettext("Point at a number, or tap it: here is how it is worked out, and what it is made of. A click or Enter keeps it, arrows move on, Esc lets go."),
  made: gettext("Made of"), out: gettext("(not in its table here)"), free: gettext("Let go"),
  panel: gettext("Where the number comes from"),
};

/** The page. */
class Origins {
  /** @param {WalkLabels} labels @param {OriginData} data */
  constructor(labels, { numbers, tables }) {
    this.labels = labels;
    /** @type {Origin[]} */
    this.numbers = (numbers[0] ?? []).map((_, at) => /** @type {any} */ (numbers.map((one) => one[at])));
    this.seen = -1;
    this.kept = false;
    /** What was kept before a link was followed. @type {number[]} */
    this.trail = [];
    /** Which number stands in a cell. @type {Map<HTMLTableCellElement, number>} */
    this.cells = new Map();
    /** Where the number that is seen was pointed at: in the diagram or in the steps. @type {Element|null} */
    this.place = null;
    const page = this.page = /** @type {HTMLElement} */ (document.getElementById("page"));
    this.panel = el("section", { id: "origin", "aria-live": "polite" });
    for (const [at, table] of page.querySelectorAll("table").entries()) this.enliven(table, tables[at] ?? []);
    if (this.cells.size) page.append(this.panel);  // an exercise has no number that tells anything
    for (const kind of ["pointerover", "focusin"]) page.addEventListener(kind, (event) => this.point(event.target));
    page.addEventListener("click", ({ target }) => {
      const cell = /** @type {HTMLTableCellElement} */ (target), number = this.cells.get(cell);
      if (number === undefined) return;
      this.place = this.placeOf(cell);
      this.choose(this.kept && number === this.seen ? -1 : number);
    });
    for (const fold of page.querySelectorAll("details")) {
      let open = fold.open;  // what is folded is printed all the same
      addEventListener("beforeprint", () => { [open, fold.open] = [fold.open, true]; });
      addEventListener("afterprint", () => { fold.open = open; });
    }
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("hashchange", () => this.read());
    page.dataset.ready = "1";
    this.read();
  }

  /** Makes the numbers of a table known, and one of them reached by Tab. @param {HTMLTableElement} table @param {number[]} numbers */
  enliven(table, numbers) {
    for (const [at, cell] of table.querySelectorAll("td").entries()) {
      if (!(numbers[at] >= 0)) continue;
      this.cells.set(cell, numbers[at]);
      cell.tabIndex = -1;
    }
    const first = table.querySelector("td[tabindex]");
    if (!first) return;
    table.setAttribute("role", "grid");
    table.parentElement?.removeAttribute("tabindex");
    first.setAttribute("tabindex", "0");
  }

  /** What the address tells; what is not there is as usual. */
  read() {
    const number = numberOf(location.hash, this.numbers, this.labels.grids);
    Object.assign(this, { seen: number, kept: number >= 0, trail: [] });
    this.place = this.page.querySelector("#diagram");
    const cell = this.home(number);
    if (cell) this.place = this.placeOf(cell);
    this.show();
    this.reveal(cell);
  }

  /** Writes the address, and shows what it tells. */
  tell() {
    const [grid, row, column] = this.numbers[this.seen] ?? [], told = new URLSearchParams();
    if (this.kept && grid !== undefined) told.set("cell", `${this.labels.grids[grid]}.${row}.${column}`);
    try {
      history.replaceState(null, "", `#${told}`);
    } catch { /* in a frame */ }
    this.show();
  }

  /** Keeps a number; -1 lets go. @param {number} number @param {number[]} trail */
  choose(number, trail = []) {
    Object.assign(this, { seen: number, kept: number >= 0, trail });
    this.tell();
  }

  /** What the mouse or the keyboard points at. @param {EventTarget|null} target */
  point(target) {
    const cell = /** @type {HTMLTableCellElement} */ (target), number = this.cells.get(cell);
    if (number === undefined) return;
    if (document.activeElement === cell) {
      cell.closest("table")?.querySelector("td[tabindex='0']")?.setAttribute("tabindex", "-1");
      cell.tabIndex = 0;
    }
    const place = this.placeOf(cell);
    if (this.kept || (number === this.seen && place === this.place)) return;
    [this.seen, this.place] = [number, place];
    this.show();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const active = /** @type {HTMLTableCellElement} */ (document.activeElement), home = this.home(this.seen);
    const cell = this.cells.has(active) ? active : active === document.body && this.kept ? home : undefined;
    const number = cell && this.cells.get(cell);
    if (event.key === "Escape" && this.seen >= 0) this.free();
    else if (number === undefined || !(by || event.key === "Enter" || event.key === " ")) return;
    else if (by) {
      const next = this.beside(/** @type {HTMLTableCellElement} */ (cell), by[0], by[1]);
      next?.focus();
      if (next && this.kept) {
        this.place = this.placeOf(next);
        this.choose(this.cells.get(next) ?? -1);
      }
    } else if (this.kept && number === this.seen) this.panel.querySelector("li button")?.focus();
    else {
      this.place = this.placeOf(/** @type {HTMLTableCellElement} */ (cell));
      this.choose(number);
    }
    event.preventDefault();
  }

  /** Lets go; who was in the panel is at the number again. */
  free() {
    if (this.panel.contains(document.activeElement)) this.home(this.seen)?.focus();
    this.choose(-1);
  }

  /** The next number in a row or column of a table. @param {HTMLTableCellElement} cell @param {number} down @param {number} right */
  beside(cell, down, right) {
    const rows = [...(cell.closest("table")?.rows ?? [])];
    for (let row = rows.indexOf(/** @type {any} */ (cell.parentElement)) + down, at = cell.cellIndex + right; ; row += down, at += right) {
      const next = rows[row]?.cells[at];
      if (next && this.cells.has(next)) return next;
      if (!rows[row] || (right && !next)) return undefined;
    }
  }

  /** The diagram, or the steps, in which a cell stands. @param {Element} cell */
  placeOf(cell) {
    return cell.closest("#diagram, .steps");
  }

  /** The cell in which a number stands, in the place that is looked at if it is there. @param {number} number */
  home(number) {
    const cells = [...this.cells].filter(([, one]) => one === number).map(([cell]) => cell);
    return cells.find((cell) => this.placeOf(cell) === this.place) ?? cells[0];
  }

  /** Unfolds a cell and brings it into view. @param {Element|undefined} cell */
  reveal(cell) {
    const fold = cell?.closest("details");
    if (fold) fold.open = true;
    cell?.scrollIntoView({ block: "center" });
  }

  /** Goes on to a number, and remembers where from; or back. @param {number} number @param {number[]} trail */
  follow(number, trail) {
    this.choose(number, trail);
    const cell = this.home(number);
    if (cell) this.place = this.placeOf(cell);
    this.show();
    this.reveal(cell);
    cell?.focus({ preventScroll: true });
  }

  show() {
    const here = this.numbers[this.seen], is = this.kept ? "kept" : "seen";
    for (const [cell, number] of this.cells) {
      const mark = number === this.seen ? is : here?.[5].some((part) => isIn(this.numbers[number], part)) ? "made" : "";
      if ((cell.dataset.is ?? "") === mark) continue;
      if (mark) cell.dataset.is = mark;
      else delete cell.dataset.is;
      if (mark === is) cell.ariaSelected = "true";
      else cell.removeAttribute("aria-selected");
    }
    this.panel.setAttribute("aria-label", WALK_WORDS.panel);
    this.panel.className = here ? "" : "empty";
    this.page.dataset.at = this.place?.id ?? "steps";
    this.panel.replaceChildren(...(here ? this.write(here) : [el("p", { class: "faint" }, WALK_WORDS.hint)]));
  }

  /** A number's arithmetic, and what it is made of. @param {Origin} here */
  write([, , , name, arithmetic, parts]) {
    // The steps have all digits, and the formula.
    const cells = [...this.cells].filter(([, number]) => number === this.seen).map(([cell]) => cell);
    const cell = cells.find((one) => !one.closest("#diagram")) ?? cells[0], section = cell.closest("section");
    const clone = (/** @type {string} */ what) => section?.querySelector(what)?.cloneNode(true);
    const last = this.trail.at(-1), formula = clone(".formula"), free = WALK_WORDS.free;
    return [
      el("h2", {}, `${name}: ${cell.textContent}`,
        el("button", { type: "button", class: "round", "aria-label": free, title: free, click: () => this.free() }, "×")),
      el("p", { class: "faint" }, ...(clone("h2")?.childNodes ?? [])),
      el("p", {}, formula ?? ""),
      el("p", { class: "hand" }, arithmetic),
      ...(parts.length ? [el("h3", {}, WALK_WORDS.made), el("ul", {}, ...parts.map((part) => el("li", {}, this.link(part))))] : []),
      ...(last === undefined ? [] : [el("button", { type: "button", class: "plain back", click: () => this.follow(last, this.trail.slice(0, -1)) },
        `← ${this.numbers[last][3]}`)]),
    ];
  }

  /** The way to a part, where it stands on the page. @param {Part} part */
  link(part) {
    const number = [...this.cells.values()].find((one) => isIn(this.numbers[one], part)), name = part[3];
    if (number === undefined) return `${name} ${WALK_WORDS.out}`;
    return el("button", { type: "button", class: "plain", click: () => this.follow(number, [...this.trail, this.seen]) }, name);
  }
}

inflate(document.getElementById("data")?.textContent ?? "").then((bytes) => {
  const labels = JSON.parse(document.getElementById("labels")?.textContent ?? "");
  return new Origins(labels, JSON.parse(new TextDecoder().decode(bytes)));
});
