/**
 * What draws: on a canvas or into SVG, by the same calls, so that what is saved is what was seen.
 * @typedef {{size?: number, fill: string, anchor?: "start"|"middle"|"end", angle?: number, strong?: boolean}} Lettering
 * @typedef {CanvasPen | SvgPen} Pen
 */

class CanvasPen {
  /** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height @param {number} [dots] a pixel */
  constructor(canvas, width, height, dots = window.devicePixelRatio || 1) {
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
    this.brush = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.brush.setTransform(dots, 0, 0, dots, 0, 0);
  }

  /** @param {number} x @param {number} y @param {number} w @param {number} h @param {string} fill */
  box(x, y, w, h, fill) {
    this.brush.fillStyle = fill;
    this.brush.fillRect(x, y, w, h);
  }

  /** @param {number} x @param {number} y @param {number} w @param {number} h @param {string} stroke @param {number} width */
  frame(x, y, w, h, stroke, width) {
    this.brush.strokeStyle = stroke;
    this.brush.lineWidth = width;
    this.brush.strokeRect(x, y, w, h);
  }

  /** @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 @param {string} stroke */
  line(x0, y0, x1, y1, stroke) {
    this.brush.strokeStyle = stroke;
    this.brush.lineWidth = 1;
    this.brush.beginPath();
    this.brush.moveTo(x0, y0);
    this.brush.lineTo(x1, y1);
    this.brush.stroke();
  }

  /** @param {string} text @param {number} x @param {number} y its middle @param {Lettering} look */
  text(text, x, y, { size = 12, fill, anchor = "start", angle = 0, strong = false }) {
    const { brush } = this;
    brush.save();
    brush.translate(x, y);
    brush.rotate((angle * Math.PI) / 180);
    brush.font = font(size, strong);
    brush.fillStyle = fill;
    brush.textAlign = anchor === "middle" ? "center" : anchor === "end" ? "right" : "left";
    brush.textBaseline = "alphabetic";
    brush.fillText(text, 0, size * 0.36);
    brush.restore();
  }

  /** @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 @param {string} stroke
   * @param {number} width @param {number} opacity */
  curve(x0, y0, x1, y1, stroke, width, opacity) {
    const { brush } = this, middle = (x0 + x1) / 2;
    brush.save();
    brush.globalAlpha = opacity;
    brush.strokeStyle = stroke;
    brush.lineWidth = width;
    brush.beginPath();
    brush.moveTo(x0, y0);
    brush.bezierCurveTo(middle, y0, middle, y1, x1, y1);
    brush.stroke();
    brush.restore();
  }

  /** @param {HTMLCanvasElement} image @param {number} x @param {number} y @param {number} w @param {number} h */
  image(image, x, y, w, h) {
    this.brush.imageSmoothingEnabled = w < image.width;
    this.brush.drawImage(image, x, y, w, h);
  }
}

const SVG = "http://www.w3.org/2000/svg";

class SvgPen {
  /** @param {SVGSVGElement} drawing @param {number} width @param {number} height */
  constructor(drawing, width, height) {
    drawing.replaceChildren();
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    drawing.setAttribute("width", String(width));
    drawing.setAttribute("height", String(height));
    drawing.setAttribute("font-family", FONT);
    this.drawing = drawing;
  }

  /** An element of a drawing. @param {string} name @param {Record<string, string|number>} given */
  add(name, given) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(given)) {
      made.setAttribute(key, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
    }
    this.drawing.append(made);
    return made;
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {string} fill */
  box(x, y, width, height, fill) {
    this.add("rect", { x, y, width, height, fill });
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {string} stroke @param {number} line */
  frame(x, y, width, height, stroke, line) {
    this.add("rect", { x, y, width, height, fill: "none", stroke, "stroke-width": line });
  }

  /** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {string} stroke */
  line(x1, y1, x2, y2, stroke) {
    this.add("line", { x1, y1, x2, y2, stroke });
  }

  /** @param {string} text @param {number} x @param {number} y its middle @param {Lettering} look */
  text(text, x, y, { size = 12, fill, anchor = "start", angle = 0, strong = false }) {
    /** @type {Record<string, string|number>} */
    const given = { x, y: y + size * 0.36, "font-size": size, fill, "text-anchor": anchor };
    if (angle) given.transform = `rotate(${angle} ${Math.round(x * 100) / 100} ${Math.round(y * 100) / 100})`;
    if (strong) given["font-weight"] = 600;
    this.add("text", given).textContent = text;
  }

  /** @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 @param {string} stroke
   * @param {number} width @param {number} opacity */
  curve(x0, y0, x1, y1, stroke, width, opacity) {
    const [a, b, c, d, middle] = [x0, y0, x1, y1, (x0 + x1) / 2].map((one) => Math.round(one * 100) / 100);
    const path = `M${a} ${b}C${middle} ${b} ${middle} ${d} ${c} ${d}`;
    this.add("path", { d: path, fill: "none", stroke, "stroke-width": width, "stroke-opacity": opacity });
  }

  /** @param {HTMLCanvasElement} image @param {number} x @param {number} y @param {number} width @param {number} height */
  image(image, x, y, width, height) {
    const look = width < image.width ? "auto" : "pixelated";
    this.add("image", {
      x, y, width, height, href: image.toDataURL("image/png"), "image-rendering": look, preserveAspectRatio: "none",
    });
  }
}

/** An empty drawing. */
function drawing() {
  return /** @type {SVGSVGElement} */ (document.createElementNS(SVG, "svg"));
}
