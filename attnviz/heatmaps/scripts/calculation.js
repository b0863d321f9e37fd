/** What the weights of every head are computed from. */
class Vectors {
  /**
   * @param {{queries: number, keys: number, d_k: number, d_v: number}} size
   * @param {number[]} scaling of each head @param {ArrayLike<number>} query head by head, token by token
   * @param {ArrayLike<number>} key @param {ArrayLike<number>} value
   */
  constructor(size, scaling, query, key, value) {
    this.size = size;
    this.scaling = scaling;
    this.numbers = { query, key, value };
  }

  /** Those of one token of a head. @param {"query"|"key"|"value"} name @param {number} head @param {number} token */
  row(name, head, token) {
    const { size } = this, d = name === "value" ? size.d_v : size.d_k;
    const from = (head * (name === "query" ? size.queries : size.keys) + token) * d;
    return Array.from({ length: d }, (_, i) => this.numbers[name][from + i]);
  }

  /** A row of a head, step by step. @param {number} head @param {number} query @param {number} n keys that are seen */
  steps(head, query, n) {
    const q = this.row("query", head, query), scale = this.scaling[head];
    const keys = Array.from({ length: n }, (_, j) => this.row("key", head, j));
    const values = keys.map((_, j) => this.row("value", head, j));
    const dots = keys.map((k) => total(q.map((one, i) => one * k[i])));
    const scores = dots.map((dot) => dot * scale);
    const top = Math.max(...scores), powers = scores.map((score) => Math.exp(score - top)), sum = total(powers);
    const weights = powers.map((power) => power / sum);
    const context = values[0].map((_, i) => total(weights.map((weight, j) => weight * values[j][i])));
    return { q, keys, values, scale, dots, scores, top, powers, sum, weights, context };
  }
}

/** What the calculation says. @type {Record<string, string>} */
const STEPS = {
  title: gettext("How “{0}” gets its weights in head {1}"),
  proof: gettext("Attention(q, K, V) = softmax(q Kᵀ {0}) V, computed in this page from the model's own q, K and V; it matches the model's weights to {1}."),
  products: gettext("q × k, number by number"),
  dot: "q · k",
  scaled: "q · k {0}",
  weight: gettext("weight"),
  key: gettext("key"),
  score: gettext("1. Score of “{0}”: q · k = {1}"),
  scale: gettext("2. Scaled: {0} {1} = {2}"),
  softmax: gettext("3. Softmax: exp({0} − {1}) / {2} = {3}"),
  context: gettext("4. Context: the sum of weights times values"),
  scoreIs: gettext("score = Σᵢ qᵢ kᵢ: large if query and key point in the same direction"),
  scaleIs: gettext("longer vectors give larger dot products; {0} keeps softmax from putting all weight on one key"),
  softmaxIs: gettext("weightⱼ = exp(scoreⱼ − largest) / Σ exp(score − largest): all positive, summing to 1"),
  contextIs: gettext("context = Σⱼ weightⱼ vⱼ: what the head passes on for “{0}”"),
  number: "i",
  sum: gettext("sum"),
  share: gettext("weight × v of “{0}”"),
  all: gettext("context"),
  look: gettext("How this row is computed"),
};

/** A text of the calculation, its places filled. @param {string} name @param {...(string|number)} values */
function stepWords(name, ...values) {
  return STEPS[name].replace(/\{(\d)\}/g, (_, place) => String(values[Number(place)]));
}

/** From q, K and V to one row and its context: every step with its formula and its numbers. */
class Calculation {
  /** @param {(change: Partial<State>) => void} set */
  constructor(set) {
    this.set = set;
    this.title = el("h2", { id: "calculation-title", tabindex: -1 });
    this.proof = el("p", { class: "faint" });
    this.table = el("table", { class: "steps-table", "aria-labelledby": "calculation-title" });
    this.steps = ["score", "scale", "softmax", "context"].map((name) => {
      const summary = el("summary"), body = el("div");
      const node = el("details", { toggle: () => this.opened(name, node.open) }, summary, body);
      return { name, summary, body, node };
    });
    this.node = el("section", { class: "calculation", "aria-labelledby": "calculation-title" }, this.title, this.proof,
      el("div", { class: "wide-table", tabindex: 0, role: "group", "aria-labelledby": "calculation-title" }, this.table),
      el("div", { class: "steps-list" }, ...this.steps.map((one) => one.node)));
    this.step = "";
    /** @type {unknown[]} */
    this.shown = []; // what the view was last made of
  }

  /** A step that the reader opened or closed is told in the address. @param {string} name @param {boolean} open */
  opened(name, open) {
    if (open !== (this.step === name)) this.set({ step: /** @type {State["step"]} */ (open ? name : "") });
  }

  /**
   * @param {Weights} weights @param {Labels} labels @param {State} state
   * @returns {boolean} whether there is something to show
   */
  show(weights, labels, state) {
    const [head] = state.head.includes("*") ? [] : headsOf(state.head, labels);
    this.node.hidden = !weights.vectors || head === undefined || state.query < 0;
    if (!weights.vectors || this.node.hidden) return false;
    const wanted = [weights, head, state.query, state.key, state.step];
    if (wanted.every((one, i) => one === this.shown[i])) return true; // a new table would take the reader's focus away
    this.shown = wanted;
    const n = labels.is === "decoder" ? state.query + 1 : weights.keys;
    const made = weights.vectors.steps(Number(head), state.query, n);
    const own = weights.of([Number(head)]).values.subarray(state.query * weights.keys, state.query * weights.keys + n);
    const best = made.weights.indexOf(Math.max(...made.weights));
    const at = state.key >= 0 && state.key < n ? state.key : best;
    const sides = labels.keys ?? labels.queries, name = clip(labels.queries.texts[state.query], 40);
    const by = Math.abs(made.scale * Math.sqrt(made.q.length) - 1) < 1e-6 ? `/ √${made.q.length}` : `× ${figure(made.scale)}`;
    const off = Math.max(...made.weights.map((weight, j) => Math.abs(weight - own[j])));
    this.title.textContent = stepWords("title", name, state.head);
    this.proof.textContent = stepWords("proof", by, off ? off.toExponential(1) : "0");
    this.list(made, sides, at, by);
    this.spell(made, clip(sides.texts[at], 40), name, at, by);
    this.step = state.step;
    for (const one of this.steps) one.node.open = one.name === state.step;
    return true;
  }

  /** A line for each key: the products, their sum, what it is scaled to, the weight. Of many keys the strongest.
   * @param {ReturnType<Vectors["steps"]>} made @param {Side} sides @param {number} at @param {string} by */
  list(made, sides, at, by) {
    const largest = Math.max(...made.keys.flatMap((k) => k.map((one, i) => Math.abs(one * made.q[i]))));
    const shown = [...made.weights.keys()].sort((a, b) => made.weights[b] - made.weights[a]).slice(0, FEW);
    if (!shown.includes(at)) shown.push(at);
    const inside = this.table.contains(document.activeElement);
    const titles = ["key", "products", "dot", "scaled", "weight"].map((one) => el("th", { scope: "col" }, stepWords(one, by)));
    this.table.replaceChildren(el("thead", {}, el("tr", {}, ...titles)),
      el("tbody", {}, ...shown.sort((a, b) => a - b).map((j) => {
        const strip = el("span", { class: "strip", "aria-hidden": "true" });
        strip.style.background = strips(made.keys[j].map((one, i) => one * made.q[i]), largest);
        return el("tr", { "aria-current": j === at ? "true" : null },
          el("th", { scope: "row" }, el("button", { type: "button", class: "link", click: () => this.set({ key: j }) },
            el("bdi", {}, clip(sides.texts[j], 40)))),
          el("td", {}, strip), ...[made.dots[j], made.scores[j], made.weights[j]].map((one) => el("td", {}, figure(one))));
      })));
    if (inside) /** @type {HTMLElement | null} */ (this.table.querySelector("[aria-current] button"))?.focus();
  }

  /** The steps of one key. @param {ReturnType<Vectors["steps"]>} made @param {string} key @param {string} name
   * @param {number} at @param {string} by */
  spell(made, key, name, at, by) {
    const { q, keys, values, dots, scores, weights, context } = made, k = keys[at], v = values[at];
    const products = q.map((one, i) => one * k[i]), shares = v.map((one) => one * weights[at]);
    const [score, scale, softmax, whole] = this.steps;
    score.summary.textContent = stepWords("score", key, figure(dots[at]));
    score.body.replaceChildren(el("p", { class: "faint" }, stepWords("scoreIs")),
      numbers([["q", q], ["k", k], ["q × k", products]], `${stepWords("sum")} ${figure(dots[at])}`));
    scale.summary.textContent = stepWords("scale", figure(dots[at]), by, figure(scores[at]));
    scale.body.replaceChildren(el("p", { class: "faint" }, stepWords("scaleIs", by)));
    softmax.summary.textContent =
      stepWords("softmax", figure(scores[at]), figure(made.top), figure(made.sum), figure(weights[at]));
    softmax.body.replaceChildren(el("p", { class: "faint" }, stepWords("softmaxIs")));
    whole.summary.textContent = stepWords("context");
    whole.body.replaceChildren(el("p", { class: "faint" }, stepWords("contextIs", name)),
      numbers([["v", v], [stepWords("share", key), shares], [stepWords("all"), context]], ""));
  }
}

/** Vectors under one another, a column for each of their numbers. @param {[string, number[]][]} vectors @param {string} end */
function numbers(vectors, end) {
  const largest = vectors.map(([, one]) => Math.max(...one.map(Math.abs)));
  return el("div", { class: "wide-table", tabindex: 0, role: "group", "aria-label": vectors.map(([name]) => name).join(", ") },
    el("table", { class: "numbers" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, stepWords("number")),
        ...vectors[0][1].map((_, i) => el("th", { scope: "col" }, String(i))))),
      el("tbody", {}, ...vectors.map(([name, one], row) => el("tr", {}, el("th", { scope: "row" }, name), ...one.map((value) => {
        const cell = el("td", {}, figure(value));
        cell.style.background = tint(value, largest[row], 55);
        return cell;
      }))))), end && el("p", {}, end));
}

/** A number as it is read: three decimals, or as many digits of one that is smaller. @param {number} value */
function figure(value) {
  const text = value !== 0 && Math.abs(value) < 0.0005 ? value.toExponential(1) : value.toFixed(3);
  return text.replaceAll("-", "−");
}

/** The colour of a signed number: red above 0, blue below, more of it the larger it is. @param {number} value
 * @param {number} largest @param {number} most percent of the colour; behind a number not all of it */
function tint(value, largest, most) {
  const part = largest ? Math.round((Math.abs(value) / largest) * most) : 0;
  return `color-mix(in srgb, var(${value < 0 ? "--below" : "--above"}) ${part}%, transparent)`;
}

/** Signed numbers as bands side by side. @param {number[]} values @param {number} largest */
function strips(values, largest) {
  const wide = 100 / values.length;
  return `linear-gradient(to right, ${values.map((value, i) => `${tint(value, largest, 100)} ${i * wide}% ${(i + 1) * wide}%`)})`;
}

/** The sum of numbers. @param {number[]} values */
function total(values) {
  return values.reduce((all, one) => all + one, 0);
}
