/** The matrix or the lines of the chosen head, with the name above it. @param {App} app */
function patternOf(app) {
  const title = el("h2", { "aria-live": "polite" });
  const canvas = el("canvas", { tabindex: 0, role: "img" });
  const lines = /** @type {any} */ (drawing());
  lines.setAttribute("role", "img");
  lines.setAttribute("class", "lines");
  const said = el("p", { class: "value-here", role: "status" });
  const legend = el("p", { class: "faint legend" });
  const chips = el("div", { class: "chips", role: "group" });
  const before = el("button", { type: "button", class: "round", click: () => step(app, 0, -1) }, "‹");
  const after = el("button", { type: "button", class: "round", click: () => step(app, 0, 1) }, "›");
  const back = el("button", { type: "button", class: "plain", click: () => app.set({ head: "" }) });
  const holder = el("div", { class: "drawing" }, canvas, lines);
  const node = el("section", { class: "panel pattern" },
    el("div", { class: "title" }, before, title, after, back), said, chips, holder, legend);
  /** @type {any} */
  let layout = null;
  /** @type {any} */
  let joinedUp = null;

  const cellAt = (/** @type {PointerEvent|WheelEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    const column = layout.keys[0] + Math.floor((event.clientX - box.left - layout.left) / layout.cell);
    const row = layout.rows[0] + Math.floor((event.clientY - box.top - layout.above) / layout.cell);
    return {
      row: row >= layout.rows[0] && row < layout.rows[1] ? row : -1,
      column: column >= layout.keys[0] && column < layout.keys[1] ? column : -1,
    };
  };
  /** @type {{x: number, y: number, rows: [number, number], keys: [number, number]} | null} */
  let dragged = null;
  let moved = false;
  canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    moved = false;
    if (zoomed(app)) dragged = { x: event.clientX, y: event.clientY, rows: layout.rows, keys: layout.keys };
    if (dragged) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
    if (!dragged) {
      app.point(cellAt(event), false);
      return;
    }
    const by = [(dragged.y - event.clientY) / layout.cell, (dragged.x - event.clientX) / layout.cell].map(Math.round);
    moved ||= by[0] !== 0 || by[1] !== 0;
    if (moved) look(app, slid(dragged.rows, by[0], app.shown.rows.length), slid(dragged.keys, by[1], app.shown.columns.length));
  });
  canvas.addEventListener("pointerup", () => (dragged = null));
  canvas.addEventListener("pointerleave", () => app.point({ row: -1, column: -1 }, false));
  canvas.addEventListener("click", (/** @type {PointerEvent} */ event) => moved || app.point(cellAt(event), true));
  canvas.addEventListener("wheel", (/** @type {WheelEvent} */ event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(app, event.deltaY < 0 ? 0.8 : 1.25, cellAt(event));
  }, { passive: false });
  const wordAt = (/** @type {PointerEvent} */ event) => {
    const box = lines.getBoundingClientRect();
    return joinedUp.at(event.clientX - box.left, event.clientY - box.top);
  };
  lines.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => app.point(wordAt(event), false));
  lines.addEventListener("pointerleave", () => app.point({ row: -1, column: -1 }, false));
  lines.addEventListener("click", (/** @type {PointerEvent} */ event) => app.point(wordAt(event), true));

  const show = () => {
    const { state, labels, shown, look: at } = app, colours = /** @type {Colours} */ (app.colours);
    const name = titleOf(state.head), isMatrix = state.view === "matrix";
    if (title.textContent !== name) title.textContent = name;
    back.textContent = say("back");
    back.hidden = labels.tops.length === 1;
    [before, after].forEach((one, i) => {
      const next = titleOf(beside(state.head, 0, i ? 1 : -1, labels));
      one.setAttribute("aria-label", next);
      one.title = next;
    });
    canvas.hidden = !isMatrix;
    lines.style.display = isMatrix ? "none" : "";
    chips.hidden = isMatrix;
    const room = Math.max(240, holder.clientWidth), { rows, keys } = windowOf(app);
    const cell = at.row >= 0 && at.column >= 0 ? at.row * shown.columns.length + at.column : -1;
    said.textContent = cell < 0 ? "" : `${clip(shown.rows[at.row].name, 30)} → ${clip(shown.columns[at.column].name, 30)}: ${
      percent(shown.values[cell], !shown.known || shown.known[cell] === 1)}`;
    if (isMatrix) {
      // The whole matrix is on the first screen, if it can be read there.
      const below = innerHeight - (canvas.getBoundingClientRect().top + scrollY) - 12;
      layout = layOut(shown, rows, keys, room, Math.max(280, Math.min(below, 900)));
      canvas.style.width = `${layout.width}px`;
      canvas.style.height = `${layout.height}px`;
      canvas.style.touchAction = zoomed(app) ? "none" : "manipulation";
      canvas.setAttribute("aria-label", say("aboutMatrix", name));
      drawMatrix(new CanvasPen(canvas, layout.width, layout.height), shown, layout, cut(app, rows, keys), at, colours);
      const over = shown.top > at.top * 1.001 ? say("over", percent(shown.top)) : "";
      const masked = shown.masked.some((/** @type {number} */ end) => end < shown.columns.length) ? `; ${say("masked")}` : "";
      legend.textContent = `${scaleOf(at.top, at.least, colours)}${over}${masked} · ${say("axes")}. ${app.weights.links ? say("rounded", app.weights.links) : say("exact")}`;
    } else {
      chipsOf(app, chips);
      joinedUp = linesOf(several(app), room, at, colours);
      lines.setAttribute("aria-label", say("aboutLines", name));
      joinedUp.draw(new SvgPen(lines, joinedUp.width, joinedUp.height));
      legend.textContent = joinedUp.drawn < joinedUp.total ? say("most", joinedUp.drawn, joinedUp.total) : "";
    }
  };

  /** The picture as it is saved, with its name, what its colours mean, and the receipt. */
  const picture = () => {
    const { state, labels, look: at } = app, colours = /** @type {Colours} */ (app.colours);
    const { width, height, draw } = state.view === "lines" ? joinedUp : {
      ...layout,
      draw: (/** @type {Pen} */ pen) => drawMatrix(pen, app.shown, layout, cut(app, layout.rows, layout.keys), at, colours),
    };
    const told = `${labels.model} · ${titleOf(state.head)} · ${labels.proof}`;
    const wide = Math.max(width, widthOf(told, 12) + 8);
    return { width: wide, height: height + 62, draw: (/** @type {Pen} */ pen) => {
      draw(pen);
      if (state.view === "matrix") drawScale(pen, at.top, at.least, 4, height + 12, colours);
      const faint = { size: 12, fill: colours.named("faint") };
      pen.text(told, 4, height + 42, faint);
    } };
  };
  return { node, show, picture, canvas };
}

/** Another head or layer. @param {App} app @param {number} down @param {number} right */
function step(app, down, right) {
  app.set({ head: beside(app.state.head, down, right, app.labels) });
}

/** The heads whose lines are drawn, each in its colour. @param {App} app */
function several(app) {
  const { state } = app, colours = /** @type {Colours} */ (app.colours);
  const more = state.more ? state.more.split(",").filter((one) => one !== state.head) : [];
  if (!more.length) return [{ shown: app.shown, colour: colours.named("lines") }];
  return [state.head, ...more].map((head, i) => ({
    shown: i ? app.shownOf(head) : app.shown, colour: colours.dark ? LIGHTER[i % LIGHTER.length] : SEVERAL[i % SEVERAL.length],
  }));
}

/** The heads of the layer, to choose several whose lines are drawn. @param {App} app @param {any} chips */
function chipsOf(app, chips) {
  const { state, labels } = app;
  const layer = state.head.split(".")[0], more = state.more ? state.more.split(",") : [];
  const drawn = several(app), order = [state.head, ...more.filter((one) => one !== state.head)];
  chips.setAttribute("aria-label", say("compare"));
  const focused = [...chips.children].indexOf(document.activeElement);
  chips.replaceChildren(...(layer === "*" ? [] : labels.names.filter((one) => one.startsWith(`${layer}.`)).map((head) => {
    const at = order.indexOf(head);
    const toggle = () => app.set({
      more: (more.includes(head) ? more.filter((one) => one !== head) : [...more, head]).join(),
    });
    const chip = el("button", {
      type: "button", class: "chip", "aria-pressed": String(at >= 0), disabled: head === state.head, click: toggle,
    }, head);
    if (at >= 0) chip.style.borderColor = drawn[at].colour;
    return chip;
  })));
  if (focused >= 0) chips.children[focused]?.focus();
}

/** The rows and columns that are seen. @param {App} app @returns {{rows: [number, number], keys: [number, number]}} */
function windowOf(app) {
  const part = (/** @type {string} */ text, /** @type {number} */ n) => {
    const [first, last] = text.split("-").map(Number);
    return /** @type {[number, number]} */ (text && first <= last && last < n ? [first, last + 1] : [0, n]);
  };
  return { rows: part(app.state.rows, app.shown.rows.length), keys: part(app.state.keys, app.shown.columns.length) };
}

/** The cells that are seen, as an image. @param {App} app @param {[number, number]} rows @param {[number, number]} keys */
function cut(app, rows, keys) {
  if (!zoomed(app)) return app.image;
  const canvas = document.createElement("canvas");
  canvas.width = keys[1] - keys[0];
  canvas.height = rows[1] - rows[0];
  canvas.getContext("2d")?.drawImage(app.image, -keys[0], -rows[0]);
  return canvas;
}

/** Whether the matrix is enlarged. */
function zoomed(/** @type {App} */ app) {
  return app.state.rows !== "" || app.state.keys !== "";
}

/** Shows these rows and columns. @param {App} app @param {[number, number]} rows @param {[number, number]} keys */
function look(app, rows, keys) {
  const text = (/** @type {[number, number]} */ part, /** @type {number} */ n) =>
    part[0] <= 0 && part[1] >= n ? "" : `${part[0]}-${part[1] - 1}`;
  app.hover = { row: -1, column: -1 };
  app.set({ rows: text(rows, app.shown.rows.length), keys: text(keys, app.shown.columns.length) });
}

/** A part moved along its side. @param {[number, number]} part @param {number} by @param {number} n @returns {[number, number]} */
function slid(part, by, n) {
  const size = part[1] - part[0], first = Math.max(0, Math.min(n - size, part[0] + by));
  return [first, first + size];
}

/** Enlarges the matrix around a cell. @param {App} app @param {number} by @param {{row: number, column: number}} [around] */
function zoom(app, by, around = app.chosen) {
  const { rows, keys } = windowOf(app);
  const part = (/** @type {[number, number]} */ [first, end], /** @type {number} */ at, /** @type {number} */ n) => {
    const size = Math.max(Math.min(4, n), Math.min(n, Math.round((end - first) * by)));
    const middle = at >= 0 ? at + 0.5 : (first + end) / 2, share = (middle - first) / (end - first);
    return slid([0, size], Math.round(middle - size * share), n);
  };
  look(app, part(rows, around.row, app.shown.rows.length), part(keys, around.column, app.shown.columns.length));
}
