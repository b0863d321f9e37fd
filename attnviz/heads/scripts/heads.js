/**
 * The page of all heads: a head that is chosen shows its card, a role shows the heads that have it, a title sorts the table.
 * @typedef {{name: string, roles: string[], cells: (string|number|null)[]}} Head
 * @typedef {{columns: {name: string, share: boolean}[], heads: Head[], layers: number, palette: {light: string, dark: string}}} HeadLabels
 */

/** The page. Its state stands in the address: a head, a role, and what sorts the table. */
class Heads {
  /** @param {HeadLabels} labels */
  constructor(labels) {
    this.labels = labels;
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.map = /** @type {HTMLElement} */ (document.querySelector(".map"));
    this.table = /** @type {HTMLTableElement} */ (document.querySelector(".all-heads"));
    this.detail = /** @type {HTMLElement} */ (document.querySelector(".detail"));
    this.state = this.read();
    for (const button of document.querySelectorAll("button")) button.addEventListener("click", () => this.press(button));
    addEventListener("hashchange", () => {
      this.state = this.read();
      this.show();
    });
    addEventListener("keydown", (event) => this.key(event));
    this.dark.addEventListener("change", () => this.show());
    this.show();
    document.getElementById("page")?.setAttribute("data-ready", "1");
  }

  /** The state that the address tells; what is not there is as usual. */
  read() {
    const told = new URLSearchParams(location.hash.slice(1)), { heads, columns } = this.labels;
    const known = (/** @type {string} */ name, /** @type {string[]} */ values) => values.find((value) => value === told.get(name)) ?? "";
    return {
      head: known("head", heads.map((head) => head.name)),
      role: known("role", heads.flatMap((head) => head.roles)),
      sort: known("sort", columns.flatMap(({ name }) => [name, `-${name}`])) || "head",
    };
  }

  /** @param {Partial<Heads["state"]>} change */
  set(change) {
    this.state = { ...this.state, ...change };
    const told = Object.entries(this.state).filter(([name, text]) => text !== (name === "sort" ? "head" : ""));
    try {
      history.replaceState(null, "", `#${new URLSearchParams(told)}`);
    } catch { /* in a frame */ }
    this.show();
  }

  /** @param {HTMLButtonElement} button */
  press(button) {
    const { head, role, sort } = button.dataset, { state } = this;
    if (head) this.set({ head: state.head === head ? "" : head });
    else if (role) this.set({ role: state.role === role ? "" : role });
    else if (sort) {
      const isName = button.closest("th")?.classList.contains("name"), first = isName ? sort : `-${sort}`;
      this.set({ sort: state.sort !== first ? first : isName ? `-${sort}` : sort });
    } else this.csv();
  }

  /** Arrows move among the heads. @param {KeyboardEvent} event */
  key(event) {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const target = /** @type {HTMLElement} */ (event.target);
    if (!by || event.ctrlKey || event.altKey || event.metaKey || target.matches(".wide")) return;
    event.preventDefault();
    const [layer, head] = (this.state.head || "0.0").split(".").map(Number), { heads, layers } = this.labels;
    const across = heads.length / layers;
    const next = [(layer + by[0] + layers) % layers, (head + by[1] + across) % across].join(".");
    this.set({ head: this.state.head ? next : "0.0" });
    if (this.map.contains(target)) this.buttons.find((button) => button.tabIndex === 0)?.focus();
  }

  /** The heads of the map. */
  get buttons() {
    return /** @type {HTMLButtonElement[]} */ ([...this.map.querySelectorAll("button")]);
  }

  show() {
    const { labels, state, dark } = this;
    this.colours = new Colours(labels.palette[dark.matches ? "dark" : "light"], dark.matches);
    const share = labels.columns.findIndex(({ name }) => name === "share");
    this.buttons.forEach((button, at) => {
      const { name, roles, cells } = labels.heads[at];
      button.setAttribute("aria-pressed", String(name === state.head));
      button.tabIndex = name === (state.head || "0.0") ? 0 : -1;
      button.classList.toggle("without", state.role !== "" && !roles.includes(state.role));
      if (share > 0) this.shade(/** @type {HTMLElement} */ (button.firstElementChild), cells[share]);
    });
    for (const button of document.querySelectorAll("[data-role]")) {
      button.setAttribute("aria-pressed", String(/** @type {HTMLElement} */ (button).dataset.role === state.role));
    }
    this.detail.hidden = !state.head;
    for (const card of this.detail.querySelectorAll("article")) card.hidden = card.dataset.head !== state.head;
    this.showTable();
  }

  /** The heads with the chosen role, in the order of the chosen column; a cell without a value comes last. */
  get rows() {
    const { labels: { heads, columns }, state } = this, isDown = state.sort.startsWith("-");
    const column = columns.findIndex(({ name }) => name === state.sort.replace("-", ""));
    const shown = heads.filter(({ roles }) => !state.role || roles.includes(state.role));
    if (column < 1) return isDown ? shown.reverse() : shown;
    return shown.sort((one, other) => {
      const [a, b] = [one.cells[column] ?? "", other.cells[column] ?? ""];
      if (a === "" || b === "") return Number(a === "") - Number(b === "");
      return (a < b ? -1 : Number(a > b)) * (isDown ? -1 : 1);
    });
  }

  showTable() {
    const { columns } = this.labels, { sort, head } = this.state;
    this.table.querySelectorAll("thead th").forEach((title, at) => {
      title.removeAttribute("aria-sort");
      if (sort.replace("-", "") === columns[at].name) {
        title.setAttribute("aria-sort", sort.startsWith("-") ? "descending" : "ascending");
      }
    });
    this.table.tBodies[0].replaceChildren(...this.rows.map(({ name, cells }) => {
      const choose = el("button", { type: "button", class: "link", "data-head": name }, name);
      choose.addEventListener("click", () => this.press(choose));
      return el("tr", { "aria-current": name === head }, el("th", { scope: "row" }, choose), ...cells.slice(1).map((cell, at) => {
        if (typeof cell !== "number") return el("td", { class: "name" }, cell ?? "");
        const made = el("td", {}, cell.toFixed(2));
        return columns[at + 1].share && cell >= 0.005 ? this.shade(made, cell) : made;
      }));
    }));
    const letters = parseFloat(getComputedStyle(this.table).fontSize);
    this.table.style.setProperty("--ems", String(Math.ceil(this.table.offsetWidth / letters)));  // its width on paper
  }

  /** A node in the colour of a share. @template {HTMLElement} T @param {T} node @param {string|number|null} share */
  shade(node, share) {
    const colours = /** @type {Colours} */ (this.colours), level = colours.level(Number(share), 1);
    Object.assign(node.style, { background: colours.css[level], color: colours.inks[level] });
    return node;
  }

  /** Save the table as CSV, in the order seen. */
  csv() {
    const titles = this.labels.columns.map(({ name }) => name);
    saveTable("attnviz-heads", [titles, ...this.rows.map(({ cells }) => cells.map((cell) => cell ?? ""))]);
  }
}

new Heads(JSON.parse(document.getElementById("labels")?.textContent ?? ""));
