// What the scripts of pages compute, without a browser: `npm run check`, or `node --test` with this file.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const NAMES = ["words", "weights", "state", "calculation", "toy", "tour"].map((name) => `heatmaps/scripts/${name}`);
const context = vm.createContext({ URLSearchParams, MOST: 64 });
for (const name of ["render/html/messages", "render/html/binary", "walkthroughs/scripts/origins", ...NAMES]) {
  vm.runInContext(readFileSync(new URL(`../../attnviz/${name}.js`, import.meta.url), "utf8"), context);
}
/** What a name means in the scripts, as plain data. */
const of = (/** @type {string} */ code) => vm.runInContext(code, context);
const plain = (/** @type {unknown} */ value) => JSON.parse(JSON.stringify(value));

const side = (/** @type {string[]} */ texts, /** @type {object} */ more = {}) => ({
  texts, words: texts.map((_, i) => i), names: {}, special: [], segments: texts.map(() => 0), glued: [], ...more,
});
const labels = {
  names: ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"], size: [4, 4], tops: [1, 1, 1, 1, 1, 1], links: 0, scale: "shared",
  queries: side(["a", "b", "c", "d"]), keys: null, steps: [],
};

test("numbers whose first bytes stand first are put together again", () => {
  const numbers = Float32Array.from([1.5, -2, 3e-7]), bytes = new Uint8Array(numbers.buffer);
  const apart = Uint8Array.from({ length: 12 }, (_, at) => bytes[(at % 3) * 4 + Math.floor(at / 3)]);
  assert.deepEqual([...new Float32Array(of("joined")(apart, 4))], [...numbers]);
});

test("an address tells the state, and the state its address", () => {
  const [read, written, usual] = ["read", "written", "usual"].map(of);
  const state = { ...usual(labels), head: "1.2", query: 3, words: true, least: 0.25, find: "a b&c", more: "0.1,1.0" };
  const address = written(state, labels);
  assert.deepEqual(plain(read(address, labels)), plain(state));
  assert.equal(written(usual(labels), labels), "#");
});

test("an address by somebody else changes nothing that is not there", () => {
  const [read, usual] = ["read", "usual"].map(of);
  const hostile = "#head=9.9&query=400&key=-7&view=<img>&__proto__=1&constructor=2&text=x&least=7&part=AB&more=9.9";
  assert.deepEqual(plain(read(hostile, labels)), plain(usual(labels)));
  assert.equal({}.polluted, undefined);
});

test("the head beside another; the means stand at the ends", () => {
  const beside = of("beside");
  assert.equal(beside("0.0", 0, 1, labels), "0.1");
  assert.equal(beside("0.2", 0, 1, labels), "0.*");
  assert.equal(beside("0.*", 0, 1, labels), "0.0");
  assert.equal(beside("0.1", -1, 0, labels), "*.1");
  assert.deepEqual(plain(of("headsOf")("1.*", labels)), [3, 4, 5]);
});

test("heads that are no grid are gone through one by one", () => {
  const chosen = { ...labels, names: ["0.1", "1.2"] }, beside = of("beside");
  assert.equal(beside("0.1", 0, 1, chosen), "1.2");
  assert.notEqual(beside("1.2", 0, 1, chosen), "1.1");
  assert.deepEqual(plain(of("headsOf")("1.*", chosen)), [1]);
});

test("to a word the sum over its pieces, from it the mean", () => {
  const pieces = side(["[CLS]", "un", "happy", "cat"], { words: [0, 1, 1, 2], names: { 1: "unhappy" }, special: [0] });
  const rows = of("groupsOf")(pieces, true, true, "");
  assert.deepEqual(plain(rows.map((/** @type {any} */ one) => [one.name, one.first, one.last])), [["unhappy", 1, 2], ["cat", 3, 3]]);
  const values = Float32Array.from([1, 0, 0, 0, 0.1, 0.2, 0.3, 0.4, 0, 0.5, 0.25, 0.25, 0, 0.5, 0.25, 0.25]);
  const { values: made } = of("reduce")({ values, known: null }, 4, rows, rows);
  [(0.5 + 0.75) / 2, (0.4 + 0.25) / 2, 0.75, 0.25].forEach((one, i) => assert.ok(Math.abs(made[i] - one) < 1e-6));
});

test("a row from q, K and V", () => {
  const size = { queries: 1, keys: 2, d_k: 2, d_v: 1 };
  const vectors = new (of("Vectors"))(size, [0.5], [1, 2], [2, 0, 0, 2], [10, 20]);
  const made = plain(vectors.steps(0, 0, 2));
  assert.deepEqual([made.dots, made.scores, made.keys, made.values], [[2, 4], [1, 2], [[2, 0], [0, 2]], [[10], [20]]]);
  const share = 1 / (1 + Math.exp(-1));
  assert.ok(Math.abs(made.weights[1] - share) < 1e-12);
  assert.ok(Math.abs(made.context[0] - (10 * (1 - share) + 20 * share)) < 1e-12);
  assert.deepEqual([1, -0.25, -2.2e-4, 0].map(of("figure")), ["1.000", "−0.250", "−2.2e−4", "0.000"]);
});

test("a sentence as the model of the page reads it", () => {
  const plan = { words: ["<unk>", "the", "cat", "didn't", "동물", "##은"], sizes: [], unknown: 0 };
  const toy = new (of("Toy"))(plan, new Uint8Array());
  const read = (/** @type {string} */ text) => toy.tokens(text).map((/** @type {any} */ one) => [one.piece, one.number]);
  assert.deepEqual(plain(read("The cat didn't.")), [["The", 1], ["cat", 2], ["didn't", 3], [".", 0]]);
  assert.deepEqual(plain(read("동물은")), [["동물", 4], ["##은", 5]]);
  assert.equal(of("distance")("kitten", "sitting"), 3);
});

test("a part of a number, and the number that an address names", () => {
  const [isIn, numberOf] = ["isIn", "numberOf"].map(of);
  const numbers = [[0, 0, 0], [0, 1, 2], [1, 0, 12], [2, 3, 3]], grids = ["q", "a.b &=", "</script>"];
  const inside = (/** @type {any[]} */ part) => numbers.filter((one) => isIn(one, part));
  assert.deepEqual(inside([0, 0, 0]), [[0, 0, 0], [0, 1, 2]]);
  assert.deepEqual(inside([0, [1], 0]), [[0, 1, 2]]);
  assert.deepEqual(inside([0, 0, [0, 1]]), [[0, 0, 0]]);
  assert.deepEqual(inside([1, [1], [12]]), []);
  const at = (/** @type {string} */ cell) => numberOf(`#${new URLSearchParams({ cell })}`, numbers, grids);
  assert.deepEqual(["q.0.0", "q.1.2", "a.b &=.0.12", "</script>.3.3"].map(at), [0, 1, 2, 3]);
  assert.deepEqual(["", "q", "q.0", "q.0.1", ".0.0", "Q.0.0", "constructor.0.0", "q.0.-0", "q.0.0 "].map(at), Array(9).fill(-1));
  assert.equal(numberOf("", numbers, grids), -1);
});
