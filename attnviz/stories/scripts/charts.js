/**
 * The panels of a story, drawn as wide as there is room for.
 * @typedef {{name: string, values: (number|null)[], low: (number|null)[], high: (number|null)[]}} Series
 * @typedef {{is: "Matrix", title: string, values: (number|null)[][], rows: string[], columns: string[], row_title: string,
 *   column_title: string, limits: [number, number], diverging: boolean}} MatrixPanel
 * @typedef {{is: "Lines", title: string, x: number[], x_title: string, series: Series[], y_title: string, y_limits: [number, number] | null,
 *   doubling: boolean, y_doubling: boolean}} LinesPanel
 * @typedef {{is: "Bars", title: string, labels: string[], series: Series[], y_title: string}} BarsPanel
 * @typedef {MatrixPanel | LinesPanel | BarsPanel} Panel
 * @typedef {{width: number, weights: Colours, signed: Colours}} Room how a panel is drawn
 * @typedef {(value: number) => number} Scale
 */

const EACH = 40; // rows or columns that are named each
const TEXT = 12;
const DASHES = ["", "7 4", "2 3", "9 3 2 3", "4 2"];

/** A number to be read: four digits. @param {number|null} value */
function short(value) {
  return value === null ? "–" : String(Number(value.toPrecision(4))).replace("-", "−");
}

/** Shaded cells, each with its number where that fits. @param {MatrixPanel} panel @param {Room} room */
function matrixChart(panel, { width, weights, signed }) {
  const { values, limits: [low, high] } = panel, n = values.length, m = values[0].length, colours = panel.diverging ? signed : weights;
  const { rows, columns } = panel, isLarge = Math.max(n, m) > EACH;
  const widest = (/** @type {string[]} */ all) => Math.max(...all.map((one) => widthOf(one, TEXT)));
  const left = Math.min(width * 0.36, rows.length ? widest(rows) : widthOf(String(n), TEXT)) + 8;
  const edge = isLarge ? 12 : 1, cell = Math.min(44, (width - left - edge) / m), wide = cell * m;
  const tall = isLarge ? Math.max(160, Math.min(420, cell * n)) : Math.min(34, cell) * n, deep = tall / n, top = isLarge ? 7 : 1;
  const level = !columns.length || widest(columns) < cell - 4, below = level ? 20 : Math.min(140, widest(columns)) + 10;
  const made = drawing(), pen = new SvgPen(made, left + wide + edge, top + tall + below), ink = colours.named("ink");
  const shade = (/** @type {number} */ value) => colours.level(value - low, high - low);
  if (isLarge) pen.image(cellsOf(values, shade, colours), left, top, wide, tall);
  else {
    const digits = values.flat().every((one) => one === null || Number.isInteger(one)) ? 0 : 2;
    const numbers = values.flat().flatMap((one) => (one === null ? [] : [one.toFixed(digits)]));
    const size = Math.min(TEXT, 0.8 * deep, (0.84 * cell * TEXT) / widest(numbers));
    values.forEach((row, i) => row.forEach((value, j) => {
      const x = left + j * cell, y = top + i * deep;
      if (value === null) {
        pen.box(x, y, cell, deep, colours.named("soft"));
        pen.add("path", { d: `M${x} ${y + deep}L${x + cell} ${y}`, stroke: colours.named("line"), "stroke-width": 1 });
        return;
      }
      pen.box(x, y, cell, deep, colours.css[shade(value)]);
      if (size >= 7.5) pen.text(value.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−"), x + cell / 2, y + deep / 2,
        { size, anchor: "middle", fill: colours.inks[shade(value)] });
    }));
  }
  pen.frame(left, top, wide, tall, colours.named("line"), 1);
  const skip = (/** @type {number} */ count, /** @type {number} */ each, /** @type {number} */ room) => {
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
    return steps.find((step) => step * each >= room) ?? count;
  };
  const down = skip(n, deep, 13), across = skip(m, cell, columns.length ? 13 : 26);
  for (let i = 0; i < n; i += down) {
    pen.text(rows.length ? fit(rows[i], left - 8, TEXT) : String(i), left - 5, top + (i + 0.5) * deep, { fill: ink, anchor: "end" });
  }
  for (let j = 0; j < m; j += across) {
    const x = left + (j + 0.5) * cell;
    if (level) pen.text(columns.length ? columns[j] : String(j), x, top + tall + 11, { fill: ink, anchor: "middle" });
    else pen.text(fit(columns[j], 140, TEXT), x, top + tall + 5, { fill: ink, anchor: "end", angle: -90 });
  }
  return made;
}

/** Many cells as an image, a pixel each. @param {(number|null)[][]} values @param {Scale} shade @param {Colours} colours */
function cellsOf(values, shade, colours) {
  const canvas = document.createElement("canvas");
  canvas.height = values.length;
  canvas.width = values[0].length;
  const brush = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = brush.createImageData(canvas.width, canvas.height), pixels = new Uint32Array(image.data.buffer);
  values.flat().forEach((one, i) => (pixels[i] = one === null ? 0 : colours.pixels[shade(one)]));
  brush.putImageData(image, 0, 0);
  return canvas;
}

/** What the colours of a matrix mean, from its lowest number to its highest. @param {MatrixPanel} panel @param {Room} room */
function scaleBar(panel, { weights, signed }) {
  const colours = panel.diverging ? signed : weights, [low, high] = panel.limits, steps = 40, bar = 120;
  const ends = [short(low), short(high)], left = widthOf(ends[0], TEXT) + 6;
  const made = drawing(), pen = new SvgPen(made, left + bar + 8 + widthOf(ends[1], TEXT), 16);
  for (let i = 0; i < steps; i++) {
    pen.box(left + (i * bar) / steps, 3, bar / steps + 0.5, 10, colours.css[Math.round((i / (steps - 1)) * (colours.levels - 1))]);
  }
  pen.frame(left, 3, bar, 10, colours.named("line"), 1);
  pen.text(ends[0], 0, 8, { fill: colours.named("faint") });
  pen.text(ends[1], left + bar + 6, 8, { fill: colours.named("faint") });
  return made;
}

/** Round numbers from one end to the other; powers of 2 where places double. @param {number} low @param {number} high
 * @param {boolean} doubling @param {number} most */
function ticks(low, high, doubling, most) {
  /** @type {number[]} */
  const found = [];
  if (doubling) {
    const first = Math.ceil(Math.log2(low)), last = Math.floor(Math.log2(high)), step = Math.max(1, Math.ceil((last - first) / most));
    for (let power = first; power <= last; power += step) found.push(2 ** power);
    return found;
  }
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw) ?? raw;
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

/** From numbers to places. @param {[number, number]} ends @param {[number, number]} places @param {boolean} doubling @returns {Scale} */
function scaled([low, high], [from, to], doubling) {
  const turn = (/** @type {number} */ value) => (doubling ? Math.log2(value) : value);
  return (value) => from + ((turn(value) - turn(low)) / (turn(high) - turn(low) || 1)) * (to - from);
}

/** All numbers of some series, the ends of their intervals too. @param {Series[]} series @returns {number[]} */
function numbersOf(series) {
  return series.flatMap((one) => [...one.values, ...one.low, ...one.high]).filter((one) => one !== null);
}

/** The frame of a chart: a quiet grid with its numbers at the left. @param {number[]} marks @param {[number, number]} ends
 * @param {{width: number, height: number, below: number, doubling: boolean, colours: Colours}} look */
function chart(marks, ends, { width, height, below, doubling, colours }) {
  const left = Math.max(...marks.map((one) => widthOf(short(one), TEXT))) + 8;
  const made = drawing(), pen = new SvgPen(made, width, height + below), y = scaled(ends, [height - 4, 12], doubling);
  for (const mark of marks) {
    pen.box(left, y(mark), width - left, 1, colours.named("line"));
    pen.text(short(mark), left - 6, y(mark), { fill: colours.named("faint"), anchor: "end" });
  }
  return { made, pen, left, y };
}

/** Lines over numbers, with their intervals as bands. @param {LinesPanel} panel @param {Room} room */
function linesChart(panel, { width, weights: colours }) {
  const { x: places, series } = panel, all = numbersOf(series), height = 230;
  const ends = panel.y_limits ?? /** @type {[number, number]} */ ([Math.min(...all), Math.max(...all)]);
  const { made, pen, left, y } = chart(ticks(...ends, panel.y_doubling, 5), ends, { width, height, below: 22, doubling: panel.y_doubling, colours });
  const x = scaled([places[0], places[places.length - 1]], [left + 6, width - 14], panel.doubling);
  const few = places.length <= 24, paints = colours.dark ? LIGHTER : SEVERAL;
  const point = (/** @type {number} */ i, /** @type {number|null} */ value) => `${x(places[i]).toFixed(1)} ${y(/** @type {number} */ (value)).toFixed(1)}`;
  series.forEach((one, number) => {
    const paint = paints[number % paints.length];
    if (one.low.length) {
      const there = one.high.map((value, i) => point(i, value)), back = one.low.map((value, i) => point(i, value)).reverse();
      pen.add("path", { d: `M${[...there, ...back].join("L")}Z`, fill: paint, "fill-opacity": 0.18 });
    }
    let path = "";
    one.values.forEach((value, i) => (path += value === null ? "" : `${path && one.values[i - 1] !== null ? "L" : "M"}${point(i, value)}`));
    pen.add("path", { d: path, fill: "none", stroke: paint, "stroke-width": 1.8, "stroke-dasharray": DASHES[number % DASHES.length] });
    if (few) one.values.forEach((value, i) => value !== null && mark(pen, number, x(places[i]), y(value), paint));
  });
  let end = -Infinity;
  for (const one of panel.doubling || places.length <= 12 ? places : ticks(places[0], places[places.length - 1], false, 6)) {
    const label = short(one), half = widthOf(label, TEXT) / 2, at = Math.min(x(one), width - half);
    if (at - half < end + 6) continue;
    pen.text(label, at, height + 10, { fill: colours.named("faint"), anchor: "middle" });
    end = at + half;
  }
  return made;
}

/** The shape of a series, for who sees no colours. @param {SvgPen} pen @param {number} number @param {number} x @param {number} y
 * @param {string} fill */
function mark(pen, number, x, y, fill) {
  const paths = [`M${x - 3} ${y}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0`, `M${x - 3} ${y - 3}h6v6h-6z`, `M${x} ${y - 4}l4 7h-8z`, `M${x} ${y - 4}l4 4l-4 4l-4 -4z`];
  pen.add("path", { d: paths[number % paths.length], fill });
}

/** Bars over words, those of one word side by side. @param {BarsPanel} panel @param {Room} room */
function barsChart(panel, { width, weights: colours }) {
  const { series, labels } = panel, all = [0, ...numbersOf(series)], height = 230;
  const ends = /** @type {[number, number]} */ ([Math.min(...all), Math.max(...all)]);
  const marks = ticks(...ends, false, 5), widest = Math.max(...labels.map((one) => widthOf(one, TEXT)));
  const room = (width - 40) / labels.length, level = widest < room - 6, below = level ? 22 : Math.min(140, widest) + 12;
  const { made, pen, left, y } = chart(marks, ends, { width, height, below, doubling: false, colours });
  const each = (width - left - 4) / labels.length, thick = (each * 0.8) / series.length, paints = colours.dark ? LIGHTER : SEVERAL;
  const fits = widthOf("0.00", 10) < thick - 1;
  labels.forEach((label, i) => {
    const middle = left + (i + 0.5) * each;
    series.forEach((one, number) => {
      const value = one.values[i], x = middle + (number - series.length / 2) * thick;
      if (value === null) return;
      pen.box(x, Math.min(y(0), y(value)), thick * 0.94, Math.max(1, Math.abs(y(value) - y(0))), paints[number % paints.length]);
      if (fits) pen.text(value.toFixed(2), x + thick * 0.47, y(Math.max(0, value)) - 7, { size: 10, fill: colours.named("faint"), anchor: "middle" });
    });
    if (level) pen.text(label, middle, height + 10, { fill: colours.named("ink"), anchor: "middle" });
    else pen.text(fit(label, 140, TEXT), middle, height + 4, { fill: colours.named("ink"), anchor: "end", angle: -90 });
  });
  return made;
}

/** The names of series, each beside its colour and shape. @param {Panel} panel @param {Room} room */
function keyOf(panel, { weights: colours }) {
  const series = panel.is === "Matrix" ? [] : panel.series, paints = colours.dark ? LIGHTER : SEVERAL;
  if (series.length < 2) return [];
  return [el("p", { class: "series" }, ...series.map((one, number) => {
    const made = drawing(), pen = new SvgPen(made, 26, 12), paint = paints[number % paints.length];
    made.setAttribute("aria-hidden", "true");
    if (panel.is === "Bars") pen.box(7, 0, 12, 12, paint);
    else {
      pen.add("path", { d: "M0 6H26", stroke: paint, "stroke-width": 1.8, "stroke-dasharray": DASHES[number % DASHES.length] });
      mark(pen, number, 13, 6, paint);
    }
    return el("span", {}, made, ` ${one.name}`);
  }))];
}
