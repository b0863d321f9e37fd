/**
 * What is shown. It stands in the address, so that a link shows what was seen.
 * @typedef {object} State
 * @property {string} head such as "1.3"; "1.*" is the mean over the heads of a layer; "" shows all heads
 * @property {"matrix"|"lines"} view
 * @property {number} query the token of a row, -1 for none
 * @property {number} key the token of a column, -1 for none
 * @property {"from"|"to"} toward where a word looks, or who looks at it
 * @property {boolean} special whether special tokens are hidden
 * @property {boolean} words whether word pieces go together
 * @property {string} part of a sentence pair: "AB" shows queries of the first and keys of the second; "" all
 * @property {"shared"|"panel"|"log"} scale where colours end
 * @property {number} least the least weight that is shown
 * @property {string} find a word that is looked for
 * @property {string} more other heads whose lines are shown, such as "1.4,1.5"
 * @property {string} rows the rows that are seen where the matrix is enlarged, such as "10-20"; "" all
 * @property {string} keys the columns, likewise
 * @property {""|"score"|"scale"|"softmax"|"context"} step of the calculation that is open
 * @property {string} text what is typed where a model runs in the page
 * @property {number} record which of the page's records is shown
 */

/** What each part of a state may be, whoever wrote the address. @type {Record<string, RegExp>} */
const ALLOWED = {
  head: /^$|^(\d{1,4}|\*)\.(\d{1,4}|\*)$/,
  view: /^(matrix|lines)$/,
  query: /^(-1|\d{1,5})$/,
  key: /^\d{1,5}$/,
  toward: /^(from|to)$/,
  special: /^1$/,
  words: /^1$/,
  part: /^[AB]{2}$/,
  scale: /^(shared|panel|log)$/,
  least: /^(0?\.\d{1,4}|0|1)$/,
  find: /^[^\0]{1,80}$/,
  more: /^\d{1,4}\.\d{1,4}(,\d{1,4}\.\d{1,4}){0,63}$/,
  rows: /^\d{1,5}-\d{1,5}$/,
  keys: /^\d{1,5}-\d{1,5}$/,
  step: /^(score|scale|softmax|context)$/,
  text: /^[^\0]{1,1000}$/,
  record: /^\d{1,2}$/,
};

/** @param {Labels} labels @returns {State} */
function usual(labels) {
  const only = labels.tops.length === 1, long = Math.min(...labels.size) >= MOST;
  // Of a long text the largest weight of all heads is far above what most heads have.
  const scale = /** @type {State["scale"]} */ (long && labels.scale === "shared" ? "panel" : labels.scale);
  const mean = labels.steps.length ? "*.*" : "";
  return {
    head: only ? labels.names[0] : mean, view: "matrix", query: labels.steps[0] ?? -1, key: -1, toward: "from",
    special: false, words: false, part: "", scale, least: 0, find: "",
    more: "", rows: "", keys: "", step: "", text: labels.toy?.example ?? "",
    ...labels.opens, record: 0,
  };
}

/**
 * The state that an address tells; what it tells wrongly is as usual, and a head that is not there is none.
 * @param {string} fragment @param {Labels} labels @returns {State}
 */
function read(fragment, labels) {
  const state = /** @type {any} */ (usual(labels));
  for (const [name, text] of new URLSearchParams(fragment.replace(/^#/, ""))) {
    if (!Object.hasOwn(ALLOWED, name) || !ALLOWED[name].test(text)) continue;
    const before = typeof state[name];
    state[name] = before === "number" ? Number(text) : before === "boolean" ? true : text;
  }
  if (state.head && !headsOf(state.head, labels).length) state.head = usual(labels).head;
  if (state.query >= labels.size[0]) state.query = -1;
  if (state.key >= labels.size[1]) state.key = -1;
  if (state.part && !hasPair(labels)) state.part = "";
  if (!labels.toy) state.text = "";
  if (labels.signed) state.view = "matrix";
  state.record = labels.at ?? 0;
  state.more = state.more.split(",").filter((/** @type {string} */ one) => headsOf(one, labels).length === 1).join();
  return state;
}

/** The address of a state: only what is not as usual. @param {State} state @param {Labels} labels */
function written(state, labels) {
  const before = /** @type {any} */ (usual(labels));
  const told = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value !== before[name]) told.set(name, value === true ? "1" : String(value));
  }
  return `#${told.toString().replaceAll("%2C", ",").replaceAll("*", "*")}`;
}

/**
 * The places in the record of the heads that a name means: "1.3", "1.*", "*.3" or "*.*".
 * @param {string} name @param {Labels} labels @returns {number[]}
 */
function headsOf(name, { names }) {
  const wanted = name.split(".");
  const isMeant = (/** @type {string} */ one) => one.split(".").every((part, i) => wanted[i] === "*" || wanted[i] === part);
  return [...names.keys()].filter((at) => isMeant(names[at]));
}

/** The name of a head, or of a mean of heads, in words. @param {string} name */
function titleOf(name) {
  const [layer, head] = name.split(".");
  if (layer === "*") return head === "*" ? say("meanOfAll") : say("meanOfHead", head);
  return head === "*" ? say("meanOfLayer", layer) : say("head", name);
}

/** Whether the record is of two sentences that look at each other. @param {Labels} labels */
function hasPair(labels) {
  return labels.keys === null && [0, 1].every((segment) => labels.queries.segments.includes(segment));
}

/** The layers and heads to choose from, and a star for the mean where there are several. @param {Labels} labels */
function axesOf({ names }) {
  const [rows, columns] = [0, 1].map((part) => {
    const all = [...new Set(names.map((name) => name.split(".")[part]))].sort((one, other) => Number(one) - Number(other));
    return [...all, ...(all.length > 1 ? ["*"] : [])];
  });
  return { rows, columns };
}

/** Whether there is a head of this name, or a mean of several. @param {string} name @param {Labels} labels */
function isThere(name, labels) {
  return labels.names.includes(name) || headsOf(name, labels).length > 1;
}

/**
 * The head so many layers down and heads to the right of another; the means stand at the ends.
 * @param {string} name @param {number} down @param {number} right @param {Labels} labels
 */
function beside(name, down, right, labels) {
  const { rows, columns } = axesOf(labels), [layer, head] = name ? name.split(".") : [rows[0], columns[0]];
  const move = (/** @type {string[]} */ all, /** @type {string} */ one, /** @type {number} */ by) =>
    all[(all.indexOf(one) + by + all.length) % all.length];
  const next = `${move(rows, layer, down)}.${move(columns, head, right)}`;
  if (isThere(next, labels)) return next;
  // heads that are no grid are gone through one by one
  return move(rows.flatMap((row) => columns.map((column) => `${row}.${column}`)).filter((one) => isThere(one, labels)), name, down || right);
}
