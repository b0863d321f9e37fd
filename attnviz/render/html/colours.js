/** Lines of several heads, in the colours of series of `attnviz/render/theme.py`, on a light page. */
const SEVERAL = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#4a9bc8", "#c38700"];
/** The same on a dark page. */
const LIGHTER = ["#56b4e9", "#e69f00", "#2dd4a7", "#e29cc4", "#8fb8ff", "#f0e442"];

/** A logarithmic scale begins here; 0 has no logarithm. */
const LOG_LEAST = 1e-4;

/** The colours of weights on the page as it is, from the page's own colour on. */
class Colours {
  /** @param {string} table red, green, blue of all levels, in hexadecimal @param {boolean} dark
   * @param {boolean} signed whether numbers go from `-top` to `top`, and 0 has the middle level */
  constructor(table, dark, signed = false) {
    this.dark = dark;
    this.signed = signed;
    /** Whether the scale is logarithmic, from `LOG_LEAST` on. */
    this.log = false;
    this.levels = table.length / 6;
    /** @type {string[]} */
    this.css = [];
    /** @type {string[]} */
    this.inks = [];
    this.pixels = new Uint32Array(this.levels);
    for (let level = 0; level < this.levels; level++) {
      const colour = table.slice(level * 6, level * 6 + 6), rgb = rgbOf(colour);
      this.css.push(`#${colour}`);
      this.inks.push(luminance(rgb) > 0.179 ? "#000" : "#fff");
      this.pixels[level] = (255 << 24) | (rgb[2] << 16) | (rgb[1] << 8) | rgb[0];
    }
    const zero = luminance(rgbOf(table)), page = luminance(dark ? [15, 19, 21] : [255, 255, 255]);
    /** Whether cells of nearly no weight stay blank: the palette begins near the page. Else they are as those of 0. */
    this.hasBlanks = signed || (Math.max(zero, page) + 0.05) / (Math.min(zero, page) + 0.05) < 1.5;
  }

  /** The level of a weight on a scale that ends at `top`. */
  level(/** @type {number} */ weight, /** @type {number} */ top) {
    if (this.signed) return this.levels / 2 + Math.round(Math.max(-1, Math.min(1, top && weight / top)) * (this.levels / 2 - 1));
    if (top <= (this.log ? LOG_LEAST : 0)) return 0;
    const share = this.log ? Math.log(Math.max(weight, LOG_LEAST) / LOG_LEAST) / Math.log(top / LOG_LEAST) : weight / top;
    return Math.min(this.levels - 1, Math.round(share * (this.levels - 1)));
  }

  /** The weight at a share of the scale: the reverse of `level`. */
  weightAt(/** @type {number} */ share, /** @type {number} */ top) {
    if (this.signed) return (2 * share - 1) * top;
    return this.log ? LOG_LEAST * (Math.max(top, LOG_LEAST) / LOG_LEAST) ** share : share * top;
  }

  /** A colour of the page's own style sheet, such as `--ink`. */
  named(/** @type {string} */ name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }
}

/** Red, green and blue of a colour. @param {string} colour in hexadecimal */
function rgbOf(colour) {
  return [0, 2, 4].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

/** Relative luminance, as in the Web Content Accessibility Guidelines. */
function luminance(/** @type {number[]} */ rgb) {
  const [r, g, b] = rgb.map((part) => (part <= 10.31475 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
