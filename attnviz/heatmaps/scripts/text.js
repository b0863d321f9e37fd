/** The sentence, each word a button: where the word that is pointed at looks is shaded, or who looks at it. */
class TextView {
  /** @param {(place: {row: number, column: number}, pinned: boolean) => void} point tells of a word that is pointed at */
  constructor(point) {
    this.point = point;
    /** @type {any[][]} */
    this.words = [];
    /** @type {any[]} */
    this.heads = [];
    this.same = true;
    this.node = el("div", { class: "sentence" });
  }

  /** Lays out the words: once for both sides where they are the same. @param {Shown} shown @param {boolean} same */
  layOut(shown, same) {
    const sides = same ? [shown.rows] : [shown.rows, shown.columns];
    this.same = same;
    this.words = sides.map((groups, side) => groups.map((group, i) => this.word(group, i, side)));
    this.heads = sides.map((_, side) => el("h2", { class: "side" }, same ? "" : say(side ? "keys" : "queries")));
    this.node.classList.toggle("long", sides[0].length > 60);
    this.node.replaceChildren(...sides.flatMap((groups, side) => {
      const line = el("p", { class: "words" });
      groups.forEach((group, i) => {
        const between = i && (group.segment !== groups[i - 1].segment) ? [el("br")] : group.glued ? [] : [" "];
        line.append(...between, this.words[side][i]);
      });
      return same ? [line] : [this.heads[side], line];
    }));
  }

  /** @param {Group} group @param {number} i @param {number} side */
  word(group, i, side) {
    const place = (/** @type {boolean} */ pinned) =>
      this.point(side ? { row: -1, column: i } : { row: i, column: -1 }, pinned);
    const text = group.glued ? group.name.replace(/^·/, "") : group.name;
    return el("button", {
      type: "button", class: group.special ? "word special" : "word", tabindex: i ? -1 : 0,
      pointerenter: (/** @type {PointerEvent} */ event) => event.pointerType === "mouse" && place(false),
      pointerleave: () => this.point({ row: -1, column: -1 }, false),
      click: () => place(true),
      keydown: (/** @type {KeyboardEvent} */ event) => this.move(event, i, side),
    }, el("bdi", {}, clip(text, 80)));
  }

  /** @param {KeyboardEvent} event @param {number} i @param {number} side */
  move(event, i, side) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
    const next = this.words[side][i + by];
    event.stopPropagation();
    event.preventDefault();
    if (!next) return;
    this.words[side].forEach((/** @type {any} */ word) => (word.tabIndex = word === next ? 0 : -1));
    next.focus();
    next.click();
  }

  /**
   * @param {Shown} shown @param {{row: number, column: number}} chosen
   * @param {{top: number, least: number, until: number, found: (group: Group) => boolean}} look @param {Colours} colours
   */
  show(shown, chosen, look, colours) {
    const n = shown.columns.length, { row, column } = chosen;
    const weigh = row >= 0
      ? (/** @type {number} */ side, /** @type {number} */ i) => (side || this.same ? shown.values[row * n + i] : NaN)
      : column >= 0
        ? (/** @type {number} */ side, /** @type {number} */ i) => (side ? NaN : shown.values[i * n + column])
        : () => NaN;
    // The keys that the newest row of a generation may attend to.
    const newest = shown.rows.findIndex((group) => group.first <= look.until && look.until <= group.last);
    const end = newest < 0 ? Infinity : shown.masked[newest];
    this.words.forEach((/** @type {any[]} */ words, /** @type {number} */ side) => {
      const groups = side ? shown.columns : shown.rows;
      words.forEach((word, i) => {
        const weight = weigh(side, i), level = weight >= look.least ? colours.level(weight, look.top) : 0;
        const isShaded = level > 0 || (weight >= 0 && !colours.hasBlanks);
        word.style.background = isShaded ? colours.css[level] : "";
        word.style.color = isShaded ? colours.inks[level] : "";
        const self = side ? i === column : i === row || (this.same && i === column);
        word.classList.toggle("chosen", self);
        word.classList.toggle("later", side ? i >= end : groups[i].first > look.until);
        word.classList.toggle("found", look.found(groups[i]));
        word.setAttribute("aria-pressed", String(self));
      });
    });
  }
}
