/**
 * @typedef {{texts: string[], words: number[], names: Record<string, string>, special: number[], segments: number[],
 *   glued: number[]}} Side the tokens of the rows, or of the columns
 * @typedef {{scale: string, model: string, kind: string, about: string, is: string, sentence: string,
 *   masked: number[], names: string[], size: [number, number], tops: number[], links: number, queries: Side,
 *   keys: Side | null, first: [number, number], cell: [number, number], proof: string, proved: boolean,
 *   command: string, absent: string, steps: number[], exact?: string[], tokens?: {queries: string[], keys: string[] | null},
 *   vectors?: {d_k: number, d_v: number, scaling: number[]},
 *   notes: string[], palette: {light: string, dark: string}, toy?: ToyPlan,
 *   at?: number, opens?: Partial<State>,
 *   signed?: boolean, finding?: string}} Labels of one record; `names` are those of its heads, `at` is its number, `opens` the view it opens on, `finding` what it begins with;
 *   `signed`: its numbers are differences
 */

/** The weights of all heads, each a matrix of queries and keys. */
class Weights {
  /** @param {Labels} labels @param {Uint8Array|Float32Array} bytes packed, or the weights themselves */
  constructor(labels, bytes) {
    this.queries = labels.size[0];
    this.keys = labels.size[1];
    this.cells = this.queries * this.keys;
    this.heads = labels.tops.length;
    this.tops = labels.tops;
    this.links = labels.links;
    const n = this.heads * this.links * this.queries;
    /** @type {Map<string, Matrix>} */
    this.kept = new Map();
    /** @type {Vectors | null} */
    this.vectors = null;
    /** @type {{keys: Uint32Array, weights: Float32Array, n: number} | null} */
    this.tokens = null; // of groups of tokens, the strongest link of each token
    if (bytes instanceof Float32Array) {
      this.exact = bytes;
      return;
    }
    if (labels.tokens) bytes = this.unpackLinks(labels.tokens.queries.length, bytes);
    if (labels.vectors) bytes = this.unpack(labels, bytes);
    if (bytes.length !== (n ? n * 6 + this.heads * this.cells : this.heads * this.cells * 4)) throw new RangeError();
    if (this.links) {
      this.places = new Uint16Array(joined(bytes.subarray(0, n * 2), 2));
      this.exact = new Float32Array(joined(bytes.subarray(n * 2, n * 6), 4));
      this.codes = bytes.subarray(n * 6);
    } else {
      this.exact = new Float32Array(joined(bytes, 4));
    }
  }

  /** Takes queries, keys and values from behind the weights. @param {Labels} labels @param {Uint8Array} bytes */
  unpack(labels, bytes) {
    const { d_k, d_v, scaling } = /** @type {NonNullable<Labels["vectors"]>} */ (labels.vectors);
    const sizes = [this.queries * d_k, this.keys * d_k, this.keys * d_v].map((one) => one * this.heads);
    const from = bytes.length - 4 * total(sizes);
    if (from < 0) throw new RangeError();
    const numbers = new Float32Array(joined(bytes.subarray(from), 4)), [query, key] = sizes;
    this.vectors = new Vectors({ queries: this.queries, keys: this.keys, d_k, d_v },
      scaling, numbers.subarray(0, query),
      numbers.subarray(query, query + key), numbers.subarray(query + key));
    return bytes.subarray(0, from);
  }

  /** Takes the links of single tokens from behind the weights. @param {number} n @param {Uint8Array} bytes */
  unpackLinks(n, bytes) {
    const size = 4 * this.heads * n, from = bytes.length - 2 * size;
    if (from < 0) throw new RangeError();
    this.tokens = { n, keys: new Uint32Array(joined(bytes.subarray(from, from + size), 4)),
      weights: new Float32Array(joined(bytes.subarray(from + size), 4)) };
    return bytes.subarray(0, from);
  }

  /** Of the tokens from one to another the strongest link each, the strongest first: query, key, weight.
   * @param {number} head @param {number} first @param {number} last @returns {[number, number, number][]} */
  linksOf(head, first, last) {
    if (!this.tokens) return [];
    const { n, keys, weights } = this.tokens, from = head * n;
    /** @type {[number, number, number][]} */
    const links = [];
    for (let at = first; at < Math.min(last, n); at++) links.push([at, keys[from + at], weights[from + at]]);
    return links.filter((link) => link[2] > 0).sort((a, b) => b[2] - a[2]);
  }

  /** One head, or the mean of several. @param {number[]} heads by their place in the record @returns {Matrix} */
  of(heads) {
    const name = heads.join();
    let made = this.kept.get(name);
    if (!made) {
      made = heads.length === 1 ? this.one(heads[0]) : this.mean(heads);
      if (this.kept.size > 8) this.kept.delete(/** @type {string} */ (this.kept.keys().next().value));
      this.kept.set(name, made);
    }
    return made;
  }

  /** @param {number} head @returns {Matrix} */
  one(head) {
    const { cells, queries, keys, links } = this;
    if (!links) return { values: this.exact.subarray(head * cells, (head + 1) * cells), known: null };
    const values = new Float32Array(cells), known = new Uint8Array(cells);
    const codes = /** @type {Uint8Array} */ (this.codes).subarray(head * cells, (head + 1) * cells);
    const unit = this.tops[head] / 255, last = ((head + 1) * links - 1) * queries;
    const most = this.exact.subarray(last, last + queries); // no rounded weight of a row is above its exact ones
    for (let query = 0, to = 0; query < queries; query++) {
      const cap = most[query];
      for (let at = query; at < codes.length; at += queries, to++) {
        const weight = codes[at] * unit;
        values[to] = weight < cap ? weight : cap;
      }
    }
    for (let rank = 0, at = head * links * queries; rank < links; rank++) {
      for (let query = 0; query < queries; query++, at++) {
        const to = query * keys + /** @type {Uint16Array} */ (this.places)[at];
        values[to] = this.exact[at];
        known[to] = 1;
      }
    }
    return { values, known };
  }

  /** @param {number[]} heads @returns {Matrix} */
  mean(heads) {
    const values = new Float32Array(this.cells);
    for (const head of heads) {
      const one = this.one(head).values;
      for (let i = 0; i < values.length; i++) values[i] += one[i] / heads.length;
    }
    return { values, known: this.links ? new Uint8Array(this.cells) : null };
  }
}

/**
 * Weights row by row; `known` says which of them are exact, null that all are.
 * @typedef {{values: Float32Array, known: Uint8Array | null}} Matrix
 * @typedef {{name: string, first: number, last: number, special: boolean, segment: number, glued: boolean}} Group
 * @typedef {{rows: Group[], columns: Group[], values: Float32Array, known: Uint8Array | null, top: number, masked: number[]}} Shown
 */

/**
 * What is shown of one side: its tokens, or its words, without those that are hidden.
 * @param {Side} side
 * @param {boolean} words whether the pieces of a word go together
 * @param {boolean} hide whether special tokens are left out
 * @param {string} segment the sentence to show: "A", "B", or "" for both
 * @returns {Group[]}
 */
function groupsOf(side, words, hide, segment) {
  const special = new Set(side.special), glued = new Set(side.glued);
  /** @type {Group[]} */
  const groups = [];
  side.texts.forEach((text, i) => {
    const last = groups[groups.length - 1];
    if (words && i && side.words[i] === side.words[i - 1]) last.last = i;
    else {
      const name = (words && side.names[i]) || text;
      groups.push({
        name, first: i, last: i, special: special.has(i), segment: side.segments[i], glued: glued.has(i),
      });
    }
  });
  const shown = groups.filter((one) => !(hide && one.special) && (!segment || one.segment === "AB".indexOf(segment)));
  return shown.length ? shown : groups;
}

/**
 * A matrix of what is shown: to a word the sum over its pieces, from it the mean.
 * @param {Matrix} matrix @param {number} keys of the whole matrix @param {Group[]} rows @param {Group[]} columns
 * @returns {Omit<Shown, "masked">}
 */
function reduce({ values, known }, keys, rows, columns) {
  const n = columns.length;
  const reduced = new Float32Array(rows.length * n), exact = known && new Uint8Array(rows.length * n);
  let top = 0;
  rows.forEach((row, i) => {
    const tall = row.last - row.first + 1;
    columns.forEach((column, j) => {
      let sum = 0, all = 1;
      for (let query = row.first; query <= row.last; query++) {
        for (let at = query * keys + column.first; at <= query * keys + column.last; at++) {
          sum += values[at];
          if (known) all &= known[at];
        }
      }
      reduced[i * n + j] = sum / tall;
      if (exact) exact[i * n + j] = all;
      top = Math.max(top, Math.abs(reduced[i * n + j]));
    });
  });
  return { rows, columns, values: reduced, known: exact, top };
}

/**
 * The first column of each row that the mask hides, with all after it: its keys are masked for the last query of the row.
 * @param {number[]} masked the first masked key of each query; empty if no key is masked
 * @param {Group[]} rows @param {Group[]} columns
 */
function maskedFrom(masked, rows, columns) {
  return rows.map((row) => {
    const first = masked.length ? columns.findIndex((column) => column.first >= masked[row.last]) : -1;
    return first < 0 ? columns.length : first;
  });
}

/** A weight or a change in percent; where it is rounded, it says so. */
function percent(/** @type {number} */ weight, /** @type {boolean} */ exact = true) {
  const share = 100 * Math.abs(weight), text = share >= 9.95 ? share.toFixed(1) : share.toPrecision(2);
  return `${exact ? "" : "≈"}${weight < 0 ? "−" : ""}${Number(text)}%`;
}
