/**
 * Makes an element. Texts become text, never markup.
 * @param {string} name of the element
 * @param {Record<string, any>} [given] attributes; a function is a listener; null and false leave one out
 * @param {...(Node|string)} children
 * @returns {any} the element; its kind follows from its name
 */
function el(name, given = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== null && value !== false) made.setAttribute(key, String(value));
  }
  made.append(...children);
  return made;
}

const segmenter = "Segmenter" in Intl ? new Intl.Segmenter() : null;

/**
 * The characters of a text as a person counts them, at most so many.
 * @param {string} text
 * @param {number} most
 * @returns {string[]}
 */
function characters(text, most) {
  const some = text.slice(0, most * 4);
  const parts = segmenter ? Array.from(segmenter.segment(some), (one) => one.segment) : Array.from(some);
  return parts.slice(0, most);
}

/**
 * A text of at most so many characters, the last an ellipsis where some are left out.
 * @param {string} text
 * @param {number} most
 */
function clip(text, most) {
  if (text.length <= most) return text;
  const parts = characters(text, most + 1);
  return parts.length <= most && parts.join("") === text ? text : `${parts.slice(0, most - 1).join("")}…`;
}

const FONT = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans KR", "Apple SD Gothic Neo", "Malgun Gothic", '
  + '"Hiragino Sans", "Yu Gothic", "PingFang SC", "Microsoft YaHei", sans-serif';
const ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));

/** The font of drawn texts. */
function font(/** @type {number} */ size, /** @type {boolean} */ strong = false) {
  return `${strong ? "600 " : ""}${size}px ${FONT}`;
}

/** How wide a drawn text is, in pixels. */
function widthOf(/** @type {string} */ text, /** @type {number} */ size, /** @type {boolean} */ strong = false) {
  ruler.font = font(size, strong);
  return ruler.measureText(text).width;
}

/** A text cut to so many pixels. */
function fit(/** @type {string} */ text, /** @type {number} */ width, /** @type {number} */ size) {
  let shown = clip(text, 60);
  for (let most = 59; most > 1 && widthOf(shown, size) > width; most -= most > 20 ? 4 : 1) shown = clip(text, most);
  return shown;
}
