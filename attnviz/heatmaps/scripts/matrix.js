const LABEL = 13; // pixels of a name
const WIDEST = 132; // pixels that names take at most
const LARGEST = 58; // pixels of a cell

/**
 * Where everything of a matrix stands.
 * @typedef {object} Layout
 * @property {number} left @property {number} above @property {number} cell pixels of one
 * @property {number} width of all @property {number} height of all
 * @property {[number, number]} rows the first row seen, and the one after the last @property {[number, number]} keys
 * @property {number} step every so many have a name @property {number} angle of the names above
 */

/** @param {Shown} shown @param {[number, number]} rows @param {[number, number]} keys @param {number} room pixels across
 * @param {number} tall pixels down @returns {Layout} */
function layOut(shown, rows, keys, room, tall) {
  const across = keys[1] - keys[0], down = rows[1] - rows[0];
  const widest = (/** @type {Group[]} */ groups) => {
    const names = groups.length > 300 ? groups.filter((_, i) => i % 8 === 0) : groups;
    return Math.min(WIDEST, Math.max(...names.map((one) => widthOf(clip(one.name, 24), LABEL, true))));
  };
  const left = Math.min(widest(shown.rows.slice(...rows)), room * 0.3) + 10, name = widest(shown.columns.slice(...keys));
  const even = Math.min((room - left - 2) / across, LARGEST), flat = even >= name + 6;
  const angle = flat ? 0 : even < 20 ? -90 : -45;
  const above = angle === 0 ? 26 : angle === -90 ? name + 12 : name * 0.71 + 20;
  const over = angle === -45 ? name * 0.71 - even / 2 + 6 : 2;
  const cell = Math.min((room - left - Math.max(2, over)) / across, Math.max(2, (tall - above) / down), LARGEST);
  const step = Math.max(1, Math.ceil((LABEL + 1) / cell));
  return {
    left, above, cell, step, angle, rows, keys,
    width: left + cell * across + Math.max(2, over), height: above + cell * down + 2,
  };
}

/**
 * Draws a matrix with its names.
 * @param {Pen} pen @param {Shown} shown @param {Layout} layout @param {HTMLCanvasElement} image of all its cells
 * @param {{row: number, column: number, found: (group: Group) => boolean, top: number, least: number}} look
 * @param {Colours} colours
 */
function drawMatrix(pen, shown, layout, image, look, colours) {
  const { left, above, cell, rows, keys, step } = layout;
  const wide = cell * (keys[1] - keys[0]), high = cell * (rows[1] - rows[0]);
  const ink = colours.named("ink"), faint = colours.named("faint"), accent = colours.named("accent");
  pen.image(image, left, above, wide, high);
  hatchMasked(pen, shown, layout, colours);
  drawNumbers(pen, shown, layout, look, colours);
  pen.frame(left, above, wide, high, colours.named("line"), 1);
  const named = (/** @type {Group} */ group, /** @type {boolean} */ lit) => ({
    size: LABEL, strong: lit || look.found(group), fill: lit ? accent : look.found(group) ? accent : group.special ? faint : ink,
  });
  for (let i = rows[0]; i < rows[1]; i++) {
    if ((i - rows[0]) % step && i !== look.row && !look.found(shown.rows[i])) continue;
    if (step > 1 && look.row >= 0 && i !== look.row && Math.abs(i - look.row) < step) continue;
    const y = above + (i - rows[0] + 0.5) * cell, group = shown.rows[i];
    pen.text(fit(group.name, left - 10, LABEL), left - 7, y, { ...named(group, i === look.row), anchor: "end" });
  }
  for (let j = keys[0]; j < keys[1]; j++) {
    if ((j - keys[0]) % step && j !== look.column && !look.found(shown.columns[j])) continue;
    if (step > 1 && look.column >= 0 && j !== look.column && Math.abs(j - look.column) < step) continue;
    const x = left + (j - keys[0] + 0.5) * cell, group = shown.columns[j];
    const text = fit(group.name, layout.angle ? WIDEST : cell - 4, LABEL);
    const given = { ...named(group, j === look.column), angle: layout.angle };
    pen.text(text, x, above - (layout.angle ? 7 : 12), { ...given, anchor: layout.angle ? "start" : "middle" });
  }
  if (look.row >= rows[0] && look.row < rows[1]) {
    pen.frame(left, above + (look.row - rows[0]) * cell, wide, cell, accent, 1.5);
  }
  if (look.column >= keys[0] && look.column < keys[1]) {
    pen.frame(left + (look.column - keys[0]) * cell, above, cell, high, accent, 1.5);
  }
}

/** A stroke through each cell that the mask hides, or through squares of small cells. @param {Pen} pen @param {Shown} shown
 * @param {Layout} layout @param {Colours} colours */
function hatchMasked(pen, { masked }, { left, above, cell, rows, keys }, colours) {
  const stroke = colours.named("line"), step = Math.max(1, Math.ceil(8 / cell)), side = step * cell;
  for (let i = rows[0]; i + step <= rows[1]; i += step) {
    const first = Math.max(keys[0], ...masked.slice(i, i + step)), odd = (first - keys[0]) % step;
    for (let j = odd ? first + step - odd : first; j + step <= keys[1]; j += step) {
      const x = left + (j - keys[0]) * cell, y = above + (i - rows[0]) * cell;
      pen.line(x, y + side, x + side, y, stroke);
    }
  }
}

/** The percent in each cell, where there is room. @type {typeof drawMatrix extends (a: infer A, b: infer B, c: infer C,
 * d: any, e: infer E, f: infer F) => void ? (pen: A, shown: B, layout: C, look: E, colours: F) => void : never} */
function drawNumbers(pen, shown, { left, above, cell, rows, keys }, { top, least }, colours) {
  if (cell < 22) return;
  const size = Math.min(13, Math.max(9, cell * 0.36)), n = shown.columns.length;
  for (let i = rows[0]; i < rows[1]; i++) {
    for (let j = keys[0]; j < keys[1]; j++) {
      const weight = shown.values[i * n + j];
      if (Math.abs(weight) < Math.max(least, 0.005)) continue; // it would be printed as 0
      const x = left + (j - keys[0] + 0.5) * cell, y = above + (i - rows[0] + 0.5) * cell;
      const fill = colours.inks[colours.level(weight, top)];
      const sign = weight < 0 ? "−" : colours.signed ? "+" : "";
      pen.text(`${sign}${Math.floor(100 * Math.abs(weight) + 0.5)}`, x, y, { size, fill, anchor: "middle" });
    }
  }
}

/** What the colours mean. @param {number} top @param {number} least @param {Colours} colours */
function scaleOf(top, least, { hasBlanks, log, signed }) {
  if (signed) return say("signedScaleOf", percent(top));
  const said = [percent(top), say(hasBlanks ? "blank" : "asZero"), percent(least)];
  return log ? say("logScaleOf", percent(LOG_LEAST), ...said) : say("scaleOf", ...said);
}

/** A colour bar with what it means, `above` pixels from the top. @param {Pen} pen @param {number} top @param {number} least
 * @param {number} x @param {number} y @param {Colours} colours */
function drawScale(pen, top, least, x, y, colours) {
  const wide = 120, parts = 60;
  for (let i = 0; i < parts; i++) {
    const weight = colours.weightAt((i + 0.5) / parts, top), level = weight >= least ? colours.level(weight, top) : 0;
    if (level || !colours.hasBlanks) pen.box(x + (i * wide) / parts, y, wide / parts + 0.5, 10, colours.css[level]);
  }
  pen.frame(x, y, wide, 10, colours.named("line"), 1);
  pen.text(scaleOf(top, least, colours), x + wide + 10, y + 5, { size: 12, fill: colours.named("faint") });
}
