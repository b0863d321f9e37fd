/** What the tour says beside the views. @type {Record<string, string>} */
const TOUR = {
  type: gettext("Your sentence"),
  empty: gettext("Type a word: the model reads what you type here."),
  unknown: gettext("not known, read as [UNK]."),
  like: gettext("Like it:"),
  long: gettext("The model reads {0} words at most; the rest is left out."),
  words: gettext("All {0} known words"),
  search: gettext("Search these words"),
};

/** A text of the tour, its place filled. @param {string} name @param {string|number} [value] */
function tell(name, value = "") {
  return TOUR[name].replace("{0}", String(value));
}

/** The field in which the reader types, and what the model does not know of it. */
class Tour {
  /** @param {Labels} labels @param {Uint8Array} bytes */
  constructor(labels, bytes) {
    this.labels = labels;
    this.plan = /** @type {ToyPlan} */ (labels.toy);
    this.toy = new Toy(this.plan, bytes);
    this.known = this.plan.words.slice(5).map((word) => word.replace(PIECE, "·")); // without <pad> and its like
    /** @type {(change: Partial<State>) => void} */
    this.set = () => {};
    this.field = el("input", { type: "text", id: "typed", maxlength: 1000, autocomplete: "off", spellcheck: "false",
      lang: this.plan.example.match(/[가-힣]/) ? "ko" : "en", input: () => this.set({ text: this.field.value }) });
    this.name = el("label", { for: "typed" });
    this.said = el("div", { class: "unknown", role: "status" });
    this.search = el("input", { type: "search", input: () => this.list() });
    this.listed = el("p", { class: "faint known", tabindex: 0, role: "group" });
    this.summary = el("summary");
    this.told = "";
    this.node = el("div", {}, this.name, this.field, this.said,
      el("details", {}, this.summary, this.search, this.listed));
  }

  /**
   * The model reads a sentence: labels tell of its words, and its weights come back; null where there is no word.
   * @param {string} text
   */
  read(text) {
    const all = this.toy.tokens(text.normalize("NFC")), tokens = all.slice(0, this.plan.most);
    this.cut = all.length > tokens.length;
    this.unknown = [...new Set(tokens.filter((one) => one.number === this.plan.unknown).map((one) => one.piece))];
    if (!tokens.length) return null;
    const shown = tokens.map(({ piece, number }) => number === this.plan.unknown
      ? `${plain(piece)}→[UNK]` : piece.startsWith(PIECE) ? `·${piece.slice(PIECE.length)}` : plain(piece));
    /** @type {Side} */
    const side = { texts: shown, words: tokens.map((one) => one.word), names: {}, special: [],
      segments: tokens.map(() => 0), glued: [] };
    tokens.forEach(({ start, word, piece }, i) => {
      if (i && tokens[i - 1].end === start) side.glued.push(i);
      if (i && tokens[i - 1].word === word) side.names[i - 1] = tokens[i - 1].piece + piece.slice(PIECE.length);
    });
    const { weights, vectors } = this.toy.weigh(tokens.map((one) => one.number)), cells = tokens.length ** 2;
    const tops = this.labels.tops.map((_, head) => topOf(weights.subarray(head * cells, (head + 1) * cells), false));
    Object.assign(this.labels, { sentence: text, queries: side, size: [tokens.length, tokens.length], tops,
      command: this.cut ? "" : `attnviz walkthrough -m ${this.labels.model} ${quoted(text)}` });
    return Object.assign(new Weights(this.labels, weights), { vectors });
  }

  /** @param {State} state */
  show(state) {
    this.name.textContent = tell("type");
    if (this.field.value !== state.text) this.field.value = state.text;
    this.summary.textContent = tell("words", this.known.length.toLocaleString("en"));
    this.search.placeholder = tell("search");
    this.search.setAttribute("aria-label", tell("search"));
    this.listed.setAttribute("aria-label", tell("words", this.known.length));
    /** @type {string} */
    const said = `${this.unknown}${this.cut}${!state.text.trim()}`;
    if (this.told === said) return;
    this.told = said;
    this.list();
    this.said.replaceChildren(
      ...(state.text.trim() ? [] : [tell("empty")]), ...(this.cut ? [tell("long", this.plan.most)] : []),
      ...(this.unknown ?? []).slice(0, 3).map((word) => el("p", {}, el("bdi", {}, `“${clip(plain(word), 30)}” `),
        tell("unknown"), ...this.like(word))));
  }

  /** Buttons that put a word that is known in the place of one that is not. @param {string} word */
  like(word) {
    const all = this.plan.words.slice(5).filter((one) => !one.startsWith(PIECE));
    const near = all.map((one) => ({ one, far: distance(word.toLowerCase().slice(0, 30), one) }));
    near.sort((a, b) => a.far - b.far);
    const some = near.filter(({ far }) => far <= Math.max(1, word.length / 2)).slice(0, 3);
    return some.flatMap(({ one }, i) => [i ? " " : ` ${tell("like")} `, el("button", { type: "button", class: "plain", click: () => {
      this.set({ text: this.field.value.normalize("NFC").replace(word, () => one) });
      this.field.focus();
    } }, one)]);
  }

  /** Lists the words that the model knows, and that hold what is searched. */
  list() {
    const wanted = this.search.value.toLowerCase();
    this.listed.textContent = this.known.filter((word) => word.toLowerCase().includes(wanted)).join("  ");
  }
}

/** A text in the quotation marks that a person would type in a shell. @param {string} text */
function quoted(text) {
  // Between double quotation marks a shell replaces $ and `, and an interactive one ! before a letter.
  return /["$`\\]|!(?=\S)/.test(text) ? `'${text.replaceAll("'", "'\\''")}'` : `"${text}"`;
}

/** A text without what would turn or break the line. @param {string} text */
function plain(text) {
  // eslint-disable-next-line no-control-regex -- these are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u00ad\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** How many letters must change to make one word the other (Levenshtein). @param {string} one @param {string} other */
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, j) => j);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      next.push(Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + Number(one[i - 1] !== other[j - 1])));
    }
    row = next;
  }
  return row[other.length];
}
