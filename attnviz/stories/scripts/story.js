/** Shades the cells of a story's tables, in light and dark; the rest of a story needs no script. */
class Shades {
  /** @param {{palette?: {light: string, dark: string}, records?: Labels[]}} labels */
  constructor(labels) {
    this.palette = /** @type {{light: string, dark: string}} */ (labels.palette ?? labels.records?.[0].palette);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.dark.addEventListener("change", () => this.show());
    this.show();
  }

  show() {
    const colours = new Colours(this.palette[this.dark.matches ? "dark" : "light"], this.dark.matches);
    for (const cell of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-shade]"))) {
      const level = colours.level(Number(cell.dataset.shade), 1);
      Object.assign(cell.style, { background: colours.css[level], color: colours.inks[level] });
    }
  }
}

new Shades(JSON.parse(document.getElementById("labels")?.textContent ?? ""));
if (document.querySelector("#page > .lesson")) document.getElementById("page")?.setAttribute("data-ready", "1");
