/** All that the page says, in English and in Korean. @type {Record<string, [string, string]>} */
const WORDS = {
  heads: gettext("All heads"),
  headsHint: gettext("One row per layer, one column per head; choose a head to open it. In each pattern, rows are queries and columns are keys."),
  head: gettext("head {0}"),
  mean: gettext("mean"),
  meanOfLayer: gettext("mean over the heads of layer {0}"),
  meanOfHead: gettext("mean over layers, head {0}"),
  meanOfAll: gettext("mean over all layers and heads"),
  matrix: gettext("Matrix"),
  lines: gettext("Lines"),
  sentence: gettext("Sentence"),
  queries: gettext("Queries"),
  keys: gettext("Keys"),
  from: gettext("What it attends to"),
  to: gettext("What attends to it"),
  fromWord: gettext("“{0}” attends to"),
  toWord: gettext("“{0}” is attended to by"),
  eachToken: gettext("What each token of this group attends to most, without itself and special tokens"),
  strongest: gettext("Strongest links of this head"),
  pointHint: gettext("Point at a word, or press Tab and the arrow keys."),
  query: gettext("query"),
  key: gettext("key"),
  weight: gettext("weight"),
  sum: gettext("sum"),
  all: gettext("Show all {0}"),
  fewer: gettext("Show the strongest"),
  direction: gettext("Direction"),
  special: gettext("Hide special tokens"),
  merge: gettext("Merge word pieces"),
  part: gettext("Sentences"),
  partAll: gettext("both"),
  scale: gettext("Colour scale up to"),
  shared: gettext("largest weight of all"),
  panel: gettext("largest weight of each head"),
  log: gettext("largest weight of all, logarithmic"),
  least: gettext("Smallest weight shown"),
  find: gettext("Find a word"),
  found: gettext("{0} found"),
  options: gettext("Options"),
  save: gettext("Save"),
  help: gettext("Keyboard"),
  close: gettext("Close"),
  zoomIn: gettext("Zoom in"),
  zoomOut: gettext("Zoom out"),
  compare: gettext("Heads as lines"),
  back: gettext("All heads"),
  scaleOf: gettext("weight 0 to {0}; {1}: below {2}"),
  logScaleOf: gettext("weight {0} to {1}, logarithmic scale; {2}: below {3}"),
  blank: gettext("blank"),
  asZero: gettext("coloured as 0"),
  masked: gettext("crossed-out cells are masked"),
  over: gettext(" (strongest colour above, up to {0})"),
  axes: gettext("Rows are queries, columns are keys; layers and heads count from 0"),
  rounded: gettext("Numbers with ≈ are rounded to a 255th of the largest weight of their head; the {0} largest of each row are exact."),
  exact: gettext("Every weight is exact (float32)."),
  most: gettext("the {0} strongest of {1} links are drawn"),
  noInflater: gettext("This browser cannot unpack the numbers in this page (it has no DecompressionStream). Chromium 80, Firefox 113 and Safari 16.4 can."),
  broken: gettext("The numbers in this page are damaged."),
  aboutMatrix: gettext("Matrix of {0}. Arrow keys: another head or layer. Shift and arrow keys: another cell."),
  aboutLines: gettext("Lines of {0}: queries on the left, keys on the right"),
  signedScaleOf: gettext("difference −{0} to +{0}: + (red) is more attention, − (blue) less"),
  change: gettext("change"),
  tour: gettext("Type a sentence and see what a small model attends to"),
  guide: gettext("What to see here"),
  keyPlay: gettext("play the generation, pause"),
  keyArrows: gettext("another head, another layer"),
  keyShift: gettext("another cell of the matrix"),
  keyWords: gettext("matrix, lines"),
  keyToward: gettext("what it attends to, what attends to it"),
  keyHide: gettext("hide special tokens, merge word pieces"),
  keyFind: gettext("find a word"),
  keyZoom: gettext("zoom in, zoom out, whole matrix"),
  keyBack: gettext("release the word; back to all heads"),
  keyHelp: gettext("this list"),
};

let language = 0;

/** Chooses the language of all that is said from now on. */
function speak(/** @type {string} */ lang) {
  language = lang === "ko" ? 1 : 0;
}

/** What is chosen of a pair of texts: in English, in Korean. @template T @param {T[]} pair */
function spoken(pair) {
  return pair[language];
}

/** A text of the page, its places filled. @param {string} name @param {...(string|number)} values */
function say(name, ...values) {
  return WORDS[name][language].replace(/\{(\d)\}/g, (_, place) => String(values[Number(place)]));
}
