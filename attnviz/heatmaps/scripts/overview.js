const MOST = 64; // a pattern with as many rows and columns is large
const SAVED = 72; // pixels of a head in a saved picture

/**
 * A matrix with few rows and columns: of neighbours, the largest weight or change, so that no strong link is lost.
 * @param {Float32Array} values @param {number} rows @param {number} columns @param {number} step
 */
function shrunk(values, rows, columns, step) {
  if (step === 1) return values;
  const wide = Math.ceil(columns / step), small = new Float32Array(Math.ceil(rows / step) * wide);
  for (let row = 0, at = 0; row < rows; row++) {
    for (let column = 0, line = Math.floor(row / step) * wide; column < columns; column++, at++) {
      const to = line + Math.floor(column / step);
      if (Math.abs(values[at]) > Math.abs(small[to])) small[to] = values[at];
    }
  }
  return small;
}

/** Where the scale of a pattern ends: its largest weight or change; less where a few links are far above all others. */
function topOf(/** @type {Float32Array} */ values, /** @type {boolean} */ pooled) {
  let top = 0;
  for (const one of values) if (Math.abs(one) > top) top = Math.abs(one);
  if (!pooled || !top || values.length < (MOST * MOST) / 2) return top;
  const bins = new Uint32Array(4096);
  for (const one of values) bins[Math.min(bins.length - 1, Math.floor((one / top) * bins.length))]++;
  let bin = bins.length, above = 0;
  while (bin > bins.length / 20 && above <= values.length * 0.005) above += bins[--bin];
  return (top * (bin + 1)) / bins.length;
}

/** Weights as an image, a pixel each; blank, or as 0, where they are below the least. @param {Float32Array} values
 * @param {number} wide @param {number} top @param {number} least @param {Colours} colours @param {HTMLCanvasElement} canvas */
function paint(values, wide, top, least, colours, canvas) {
  const tall = values.length / wide;
  canvas.width = wide;
  canvas.height = tall;
  const brush = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = brush.createImageData(wide, tall), pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < values.length; i++) {
    const weight = values[i];
    if (weight >= least) pixels[i] = colours.pixels[colours.level(weight, top)];
    else if (!colours.hasBlanks) pixels[i] = colours.pixels[0];
  }
  brush.putImageData(image, 0, 0);
  return canvas;
}

/** The weight below which a cell stays blank; no change does. @param {number} top @param {Colours} colours */
function blankBelow(top, { log, signed }) {
  if (signed) return -Infinity;
  return log ? LOG_LEAST : Math.min(0.005, top / 50);
}

/** All heads as thumbnails: layers downward, heads across, and the means at the ends. */
class Overview {
  /** @param {Labels} labels @param {Weights} weights @param {(head: string) => void} choose */
  constructor(labels, weights, choose) {
    this.labels = labels;
    this.weights = weights;
    const { rows, columns } = axesOf(labels);
    /** @type {Map<string, {button: any, canvas: HTMLCanvasElement}>} */
    this.places = new Map();
    /** @type {{step: number, of: Map<string, {values: Float32Array, top: number}>, shared: number} | null} */
    this.made = null;
    this.corner = el("td");
    this.across = columns.map((head) => el("th", { scope: "col" }, head));
    this.down = rows.map((layer) => el("th", { scope: "row" }, layer));
    const lines = rows.map((layer, i) => el("tr", {}, this.down[i], ...columns.map((head) => {
      const name = `${layer}.${head}`, canvas = document.createElement("canvas");
      if (!isThere(name, labels)) return el("td");
      const button = el("button", { type: "button", class: name.includes("*") ? "thumb mean" : "thumb", tabindex: -1, click: () => choose(name) }, canvas);
      this.places.set(name, { button, canvas });
      return el("td", {}, button);
    })));
    this.hint = el("caption");
    this.table = el("table", { class: "thumbs" }, this.hint,
      el("thead", {}, el("tr", {}, this.corner, ...this.across)), el("tbody", {}, ...lines));
    this.node = el("div", { class: "overview" }, this.table);
    this.node.style.setProperty("--across", String(columns.length));
  }

  /** Shows other weights of the same heads. @param {Weights} weights */
  renew(weights) {
    this.weights = weights;
    this.made = null;
    this.look = "";
  }

  /** So many rows and columns are one cell of a picture that is so many pixels wide: a cell has at least 1.5 of them.
   * @param {number} pixels */
  stepFor(pixels) {
    return Math.max(1, Math.ceil(Math.max(...this.labels.size) / Math.max(8, pixels / 1.5)));
  }

  /** The small matrix of each head, and of means (of shrunk ones, where they are shrunk).
   * @param {number} step @returns {NonNullable<Overview["made"]>} */
  smalls(step) {
    if (this.made?.step !== step) {
      const of = new Map(), { labels } = this;
      const all = labels.tops.map((_, head) => shrunk(this.weights.one(head).values, ...labels.size, step));
      for (const name of this.places.keys()) {
        const heads = headsOf(name, labels);
        const mean = heads.length === 1 ? all[heads[0]] : new Float32Array(all[0].length);
        if (heads.length > 1) {
          for (const head of heads) for (let i = 0; i < mean.length; i++) mean[i] += all[head][i] / heads.length;
        }
        of.set(name, { values: mean, top: topOf(mean, false) });
      }
      this.made = { step, of, shared: Math.max(...[...of.values()].map((one) => one.top)) };
    }
    return this.made;
  }

  /** Paints a head or a mean. @param {string} name @param {number} step @param {State} state @param {Colours} colours
   * @param {HTMLCanvasElement} canvas */
  paint(name, step, state, colours, canvas) {
    const { of, shared } = this.smalls(step), { values, top } = /** @type {{values: Float32Array, top: number}} */ (of.get(name));
    const end = ["shared", "log"].includes(state.scale) ? shared : top;
    return paint(values, Math.ceil(this.labels.size[1] / step), end, blankBelow(end, colours), colours, canvas);
  }

  /** @param {State} state @param {Colours} colours */
  show(state, colours) {
    const [first] = this.places.keys(), holder = this.places.has(state.head) ? state.head : first;
    const step = this.stepFor(this.places.get(first)?.canvas.clientWidth ?? 0);
    const look = `${state.scale} ${colours.dark} ${step}`;
    for (const [name, { button, canvas }] of this.places) {
      if (this.look !== look) this.paint(name, step, state, colours, canvas);
      button.title = titleOf(name);
      button.setAttribute("aria-label", button.title);
      if (name === state.head) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
      button.tabIndex = name === holder ? 0 : -1;
    }
    this.look = look;
    const { rows, columns } = axesOf(this.labels);
    for (const [titles, names] of [[this.across, columns], [this.down, rows]]) {
      titles.forEach((title, i) => (title.textContent = names[i] === "*" ? say("mean") : names[i]));
    }
    this.hint.textContent = say("headsHint");
  }

  /** The picture of all heads as it is saved. @param {State} state @param {Colours} colours */
  picture(state, colours) {
    const { size } = this.labels, axes = axesOf(this.labels);
    const [layers, heads] = [axes.rows, axes.columns].map((all) => (all.length > 1 ? all.slice(0, -1) : all));
    const side = SAVED, step = this.stepFor(side), high = Math.max(8, Math.round(side * Math.min(2, size[0] / size[1]))), gap = 6, left = 34, above = 22;
    const width = left + heads.length * (side + gap), height = above + layers.length * (high + gap);
    const draw = (/** @type {Pen} */ pen) => {
      heads.forEach((head, j) => pen.text(head, left + j * (side + gap) + side / 2, 10,
        { fill: colours.named("faint"), anchor: "middle" }));
      layers.forEach((layer, i) => {
        const y = above + i * (high + gap);
        pen.text(layer, left - 10, y + high / 2, { fill: colours.named("faint"), anchor: "end" });
        heads.forEach((head, j) => {
          if (!isThere(`${layer}.${head}`, this.labels)) return;
          const x = left + j * (side + gap);
          const canvas = this.paint(`${layer}.${head}`, step, state, colours, document.createElement("canvas"));
          pen.image(canvas, x, y, side, high);
          pen.frame(x, y, side, high, colours.named("line"), 1);
        });
      });
    };
    return { width, height, draw };
  }
}
