const STEP = 26; // pixels of a word
const MOST_LINES = 600;
const NAME = 14;

/**
 * Words on the left and on the right, joined by lines that are as wide as the weight.
 * @param {{shown: Shown, colour: string}[]} all the heads, the first of which is the chosen one
 * @param {number} room pixels across
 * @param {{row: number, column: number, found: (group: Group) => boolean, top: number, least: number}} look
 * @param {Colours} colours
 */
function linesOf(all, room, look, colours) {
  const { rows, columns } = all[0].shown;
  const side = Math.min(180, room * 0.3), from = side + 8, to = Math.max(from + 60, Math.min(room, 640) - side - 8);
  const links = all.flatMap(({ shown, colour }) => strongest(shown, look.least, MOST_LINES / all.length, colour));
  links.sort((a, b) => a.weight - b.weight);
  const shift = (/** @type {number} */ n) => ((Math.max(rows.length, columns.length) - n) * STEP) / 2 + STEP / 2;
  const left = shift(rows.length), right = shift(columns.length);
  const chosen = look.row >= 0 || look.column >= 0;
  const draw = (/** @type {Pen} */ pen) => {
    for (const { row, column, weight, colour } of links) {
      const lit = (look.row < 0 || row === look.row) && (look.column < 0 || column === look.column);
      const share = Math.min(1, weight / look.top);
      pen.curve(from, left + row * STEP, to, right + column * STEP, colour,
        0.75 + 5.25 * share, chosen && !lit ? 0.06 : 0.2 + 0.8 * share);
    }
    const name = (/** @type {Group} */ group, /** @type {boolean} */ lit) => ({
      size: NAME, strong: lit || look.found(group),
      fill: colours.named(lit || look.found(group) ? "accent" : group.special ? "faint" : "ink"),
    });
    rows.forEach((group, i) => pen.text(fit(group.name, side, NAME), from - 8, left + i * STEP,
      { ...name(group, i === look.row), anchor: "end" }));
    columns.forEach((group, j) => pen.text(fit(group.name, side, NAME), to + 8, right + j * STEP,
      name(group, j === look.column)));
  };
  const height = Math.max(rows.length, columns.length) * STEP;
  /** The row or column at a place. */
  const at = (/** @type {number} */ x, /** @type {number} */ y) => {
    const middle = (from + to) / 2, row = Math.floor((y - left) / STEP + 0.5), key = Math.floor((y - right) / STEP + 0.5);
    return x < middle
      ? { row: row >= 0 && row < rows.length ? row : -1, column: -1 }
      : { row: -1, column: key >= 0 && key < columns.length ? key : -1 };
  };
  const total = all.reduce((sum, { shown }) => sum + shown.values.reduce((n, one) => n + Number(one >= look.least), 0), 0);
  return { width: to + side + 8, height, draw, at, drawn: links.length, total };
}

/** The strongest links of a head. @param {Shown} shown @param {number} least @param {number} most @param {string} colour */
function strongest({ values, columns }, least, most, colour) {
  const n = columns.length;
  let found = [];
  for (let i = 0; i < values.length; i++) if (values[i] >= least && values[i] > 0) found.push(i);
  if (found.length > most) found = found.sort((a, b) => values[b] - values[a]).slice(0, most);
  return found.map((i) => ({ row: Math.floor(i / n), column: i % n, weight: values[i], colour }));
}
