/**
 * @typedef {{words: string[], sizes: [string, number][], d_model: number, n_heads: number, n_layers: number, unknown: number,
 *   most: number, example: string}} ToyPlan
 * @typedef {{piece: string, number: number, start: number, end: number, word: number}} ToyToken
 */

const PIECE = "##"; // begins a piece that continues a word, such as the particle of a Korean noun
/** The words of a text, as the Unicode Standard has them (UAX #29): "didn't" and "3.14" are one, each mark and emoji is one. */
const WORD = new RegExp([
  "(?:(?![\\p{sc=Han}\\p{sc=Hira}])[\\p{L}\\p{M}\\p{N}_]",
  "(?<=\\p{L}\\p{M}*)[:·.'\u2019](?=\\p{L})|(?<=\\p{N})[,;.'\u2019](?=\\p{N}))+", "\\p{RI}{2}",
  "\\S(?:[\\p{M}\\p{Cf}\\p{EMod}]|(?<=\\u200d)\\p{ExtPict})*",
].join("|"), "gu");

/** The small encoder of attnviz, to be read aloud: numbers of words in, the weights of all heads out. */
class Toy {
  /** @param {ToyPlan} plan @param {Uint8Array} bytes all its weights, one after the other */
  constructor(plan, bytes) {
    this.plan = plan;
    const numbers = new Float32Array(joined(bytes, 4));
    let at = 0;
    /** @type {Map<string, Float32Array>} */
    this.weights = new Map(plan.sizes.map(([name, size]) => [name, numbers.subarray(at, (at += size))]));
    this.numbers = new Map(plan.words.map((word, number) => [word, number]));
  }

  /** The number of a word, whatever its capitals; undefined where the model does not know it. @param {string} word */
  numberOf(word) {
    return this.numbers.get(word) ?? this.numbers.get(word.toLowerCase());
  }

  /** A sentence as the model reads it: words, and particles of their own. @param {string} text @returns {ToyToken[]} */
  tokens(text) {
    const words = Array.from(text.matchAll(WORD), (found) => ({ typed: found[0], start: found.index }));
    return words.flatMap(({ typed, start }, word) => this.pieces(typed).map((piece) => {
      const end = start + (piece.startsWith(PIECE) && piece !== typed ? piece.length - PIECE.length : piece.length);
      const token = { piece, number: this.numberOf(piece) ?? this.plan.unknown, start, end, word };
      start = end;
      return token;
    }));
  }

  /** A word, or the noun and the particle that are both known, the longest particle first. @param {string} word */
  pieces(word) {
    for (let at = 1; this.numberOf(word) === undefined && at < word.length; at++) {
      const [noun, particle] = [word.slice(0, at), PIECE + word.slice(at)];
      if (this.numberOf(noun) !== undefined && this.numberOf(particle) !== undefined) return [noun, particle];
    }
    return [word];
  }

  /** The weights of every head, layer by layer, head by head, a row for each query; and what they come from.
   * @param {number[]} words */
  weigh(words) {
    const { n_heads, n_layers } = this.plan, cells = words.length ** 2;
    const all = new Float32Array(n_layers * n_heads * cells), d = this.plan.d_model / n_heads;
    const made = ["query", "key", "value"].map(() => new Float64Array(all.length / words.length * d));
    let x = this.embed(words);
    for (let layer = 0; layer < n_layers; layer++) {
      const name = `encoder.layers.${layer}`;
      const { context, weights, vectors } = this.attend(x, `${name}.attention`);
      vectors.forEach((rows, which) => rows.forEach((row, token) => row.forEach((one, i) => {
        made[which][((layer * n_heads + Math.floor(i / d)) * words.length + token) * d + (i % d)] = one;
      })));
      weights.forEach((one, head) => all.set(one, (layer * n_heads + head) * cells));
      // y = LayerNorm(x + MultiHead(x)), then LayerNorm(y + FFN(y))
      x = this.norm(sum(x, this.project(context, `${name}.attention.output_projection`)), `${name}.attention_norm`);
      // FFN(x) = max(0, x W_1 + b_1) W_2 + b_2
      const wide = this.project(x, `${name}.feed_forward.widen`).map((row) => row.map((one) => Math.max(0, one)));
      x = this.norm(sum(x, this.project(wide, `${name}.feed_forward.narrow`)), `${name}.feed_forward_norm`);
    }
    const [query, key, value] = made, size = { queries: words.length, keys: words.length, d_k: d, d_v: d };
    return { weights: all, vectors: new Vectors(size, Array(n_layers * n_heads).fill(1 / Math.sqrt(d)), query, key, value) };
  }

  /** x = sqrt(d) E[word] + PE; PE(pos, 2i) = sin(pos / 10000^(2i / d)), PE(pos, 2i + 1) = cos(the same).
   * @param {number[]} words */
  embed(words) {
    const d = this.plan.d_model, table = this.part("embedding.table.weight");
    return words.map((word, place) => Float64Array.from({ length: d }, (_, i) => {
      const angle = place / 10000 ** ((i - (i % 2)) / d);
      return table[word * d + i] * Math.sqrt(d) + (i % 2 ? Math.cos(angle) : Math.sin(angle));
    }));
  }

  /** Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, in each head; their contexts side by side.
   * @param {Float64Array[]} x @param {string} name */
  attend(x, name) {
    const { d_model, n_heads } = this.plan, d = d_model / n_heads, n = x.length;
    const [query, key, value] = ["query", "key", "value"].map((one) => this.project(x, `${name}.${one}_projection`));
    const context = x.map(() => new Float64Array(d_model));
    const weights = Array.from({ length: n_heads }, (_, head) => {
      const rows = new Float64Array(n * n), from = head * d;
      for (let i = 0; i < n; i++) {
        const row = rows.subarray(i * n, i * n + n);
        for (let j = 0; j < n; j++) {
          for (let k = from; k < from + d; k++) row[j] += (query[i][k] * key[j][k]) / Math.sqrt(d);
        }
        softmax(row);
        for (let j = 0; j < n; j++) {
          for (let k = from; k < from + d; k++) context[i][k] += row[j] * value[j][k];
        }
      }
      return rows;
    });
    return { context, weights, vectors: [query, key, value] };
  }

  /** y = x W^T + b, for each token. @param {Float64Array[]} x @param {string} name */
  project(x, name) {
    const weight = this.part(`${name}.weight`), bias = this.part(`${name}.bias`);
    return x.map((row) => {
      const made = Float64Array.from(bias);
      for (let to = 0, at = 0; to < made.length; to++) {
        for (let from = 0; from < row.length; from++, at++) made[to] += row[from] * weight[at];
      }
      return made;
    });
  }

  /** LayerNorm(x) = (x - mean) / sqrt(variance + 1e-5) * g + b. @param {Float64Array[]} x @param {string} name */
  norm(x, name) {
    const scale = this.part(`${name}.weight`), shift = this.part(`${name}.bias`);
    return x.map((row) => {
      const mean = row.reduce((all, one) => all + one, 0) / row.length;
      const variance = row.reduce((all, one) => all + (one - mean) ** 2, 0) / row.length;
      return row.map((one, i) => ((one - mean) / Math.sqrt(variance + 1e-5)) * scale[i] + shift[i]);
    });
  }

  /** Some of the model's weights. @param {string} name */
  part(name) {
    return /** @type {Float32Array} */ (this.weights.get(name));
  }
}

/** softmax(s)_j = exp(s_j) / sum_k exp(s_k), in place. @param {Float64Array} row */
function softmax(row) {
  const top = row.reduce((most, one) => Math.max(most, one), -Infinity);
  let all = 0;
  for (let j = 0; j < row.length; j++) all += row[j] = Math.exp(row[j] - top);
  for (let j = 0; j < row.length; j++) row[j] /= all;
}

/** x + y, token by token. @param {Float64Array[]} x @param {Float64Array[]} y */
function sum(x, y) {
  return x.map((row, i) => row.map((one, k) => one + y[i][k]));
}
