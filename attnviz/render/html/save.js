/** Hands a file to the reader. @param {string} name @param {Blob} blob */
function hand(name, blob) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/**
 * Saves a picture, drawn anew, as SVG or PNG.
 * @param {string} name without its ending
 * @param {"svg"|"png"} kind
 * @param {{width: number, height: number, draw: (pen: Pen) => void}} picture
 */
function savePicture(name, kind, { width, height, draw }) {
  if (kind === "svg") {
    const made = drawing();
    draw(new SvgPen(made, width, height));
    hand(`${name}.svg`, new Blob([new XMLSerializer().serializeToString(made)], { type: "image/svg+xml" }));
    return;
  }
  const canvas = document.createElement("canvas");
  draw(new CanvasPen(canvas, width, height, 2));
  canvas.toBlob((blob) => blob && hand(`${name}.png`, blob), "image/png");
}

/**
 * Saves a table as CSV (RFC 4180), marked as UTF-8 for spreadsheets, which must not run a word as a formula.
 * @param {string} name without its ending
 * @param {(string|number)[][]} rows
 */
function saveTable(name, rows) {
  const quoted = (/** @type {string|number} */ cell) => {
    if (typeof cell === "number") return String(cell);
    const inert = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
    return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
  };
  const text = rows.map((row) => row.map(quoted).join(",")).join("\r\n");
  hand(`${name}.csv`, new Blob(["\ufeff", text, "\r\n"], { type: "text/csv" }));
}
