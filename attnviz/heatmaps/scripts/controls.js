/** What the reader can choose. @param {App} app */
function controlsOf(app) {
  const { labels } = app;
  /** @type {(() => void)[]} */
  const shows = [];

  /** One of several. @param {string} label @param {keyof State} name @param {[string, () => string][]} values */
  const choice = (label, name, values) => {
    const select = el("select", { change: () => app.set({ [name]: select.value }) },
      ...values.map(([value]) => el("option", { value })));
    const text = el("span");
    shows.push(() => {
      text.textContent = say(label);
      values.forEach(([, words], i) => (select.options[i].textContent = words()));
      select.value = String(app.state[name]);
    });
    return el("label", { class: name }, text, select);
  };
  /** Yes or no. @param {string} label @param {"special"|"words"} name */
  const check = (label, name) => {
    const box = el("input", { type: "checkbox", change: () => app.set({ [name]: box.checked }) }), text = el("span");
    shows.push(() => {
      text.textContent = say(label);
      box.checked = app.state[name];
    });
    return el("label", { class: "check" }, box, text);
  };
  /** A row of buttons, one of which is pressed. @param {keyof State} name @param {[string, () => string][]} values */
  const tabs = (name, values) => {
    const buttons = values.map(([value]) => el("button", { type: "button", click: () => app.set({ [name]: value }) }));
    shows.push(() => values.forEach(([value, words], i) => {
      buttons[i].textContent = words();
      buttons[i].setAttribute("aria-pressed", String(app.state[name] === value));
    }));
    return el("div", { class: `tabs ${name}`, role: "group" }, ...buttons);
  };
  const { find, findNode } = finder(app, shows);
  const least = el("input", { type: "range", min: 0, max: 0.5, step: 0.005, input: () => app.set({ least: Number(least.value) }) });
  const leastText = el("span"), leastValue = el("output");
  shows.push(() => {
    leastText.textContent = say("least");
    least.value = String(app.state.least);
    leastValue.textContent = percent(app.state.least);
  });
  const { help, helpNode } = helpOf(shows, labels.steps.length > 0);
  const sides = [labels.queries, labels.keys ?? labels.queries];
  const pair = (/** @type {string} */ one) => /** @type {[string, () => string]} */ ([one, () => one.split("").join(" → ")]);
  const save = el("span", { class: "saves" });
  shows.push(() => save.replaceChildren(say("save")));
  const question = el("button", { type: "button", class: "round", click: help }, "?");
  shows.push(() => question.setAttribute("aria-label", say("help")));
  const options = el("summary");
  shows.push(() => (options.textContent = say("options")));
  const zoomBy = (/** @type {string} */ label, /** @type {string} */ sign, /** @type {number} */ by) => {
    const made = el("button", { type: "button", class: "round", click: () => zoom(app, by) }, sign);
    shows.push(() => made.setAttribute("aria-label", say(label)));
    return made;
  };
  const node = el("div", { class: "controls" },
    ...(labels.signed ? [] : [tabs("view", [["matrix", () => say("matrix")], ["lines", () => say("lines")]])]),
    tabs("toward", [["from", () => say("from")], ["to", () => say("to")]]),
    findNode,
    el("details", { class: "options" }, options, el("div", { class: "choices" },
      ...(sides.some((one) => one.special.length) ? [check("special", "special")] : []),
      ...(sides.some((one) => Object.keys(one.names).length) || labels.toy?.words.some((one) => one.startsWith(PIECE))
        ? [check("merge", "words")] : []),
      ...(hasPair(labels)
        ? [choice("part", "part", [["", () => say("partAll")], ...["AA", "AB", "BA", "BB"].map(pair)])]
        : []),
      choice("scale", "scale", ["shared", "panel", ...(labels.signed ? [] : ["log"])].map((one) => [one, () => say(one)])),
      ...(labels.signed ? [] : [el("label", { class: "least" }, leastText, least, leastValue)]))),
    el("div", { class: "group zoom" }, zoomBy("zoomOut", "−", 1.5), zoomBy("zoomIn", "+", 1 / 1.5)),
    el("div", { class: "group end" }, save,
      ...["SVG", "PNG", "CSV"].map((kind) => el("button", { type: "button", class: "plain", click: () => saveAs(app, kind) }, kind)),
      question));
  shows.push(() => node.querySelector(".toward").setAttribute("aria-label", say("direction")));
  return { node, help: helpNode, openHelp: help, find, show: () => shows.forEach((show) => show()) };
}

/** The field in which a word is looked for. @param {App} app @param {(() => void)[]} shows */
function finder(app, shows) {
  const find = el("input", { type: "search", maxlength: 80, autocomplete: "off", spellcheck: "false",
    input: () => app.set({ find: find.value }),
    keydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter" && app.state.head) next();
      if (event.key === "Escape") find.blur();
    } });
  const count = el("output");
  /** The next word that is found becomes the chosen one. */
  const next = () => {
    const hits = app.shown.rows.flatMap((/** @type {Group} */ group, /** @type {number} */ i) => (app.look.found(group) ? [i] : []));
    const after = hits.find((/** @type {number} */ i) => i > app.pinned.row) ?? hits[0];
    if (after !== undefined) app.pin({ row: after, column: -1 });
  };
  shows.push(() => {
    find.placeholder = `${say("find")}  /`;
    find.setAttribute("aria-label", say("find"));
    if (find.value !== app.state.find) find.value = app.state.find;
    const hits = app.state.find && app.state.head ? app.shown.rows.filter(app.look.found).length : null;
    count.textContent = hits === null ? "" : say("found", hits);
  });
  return { find, findNode: el("div", { class: "find" }, find, count) };
}

/** The list of keys. @param {(() => void)[]} shows @param {boolean} steps whether there is something to play */
function helpOf(shows, steps) {
  const keys = [
    ...(steps ? [["p", "keyPlay"]] : []), ["← → ↑ ↓", "keyArrows"], ["Shift ← → ↑ ↓", "keyShift"], ["m  l", "keyWords"], ["d", "keyToward"], ["s  w", "keyHide"],
    ["/", "keyFind"], ["+ − 0", "keyZoom"], ["Esc", "keyBack"], ["?", "keyHelp"],
  ];
  const title = el("h2", { id: "help-title" }), table = el("table", {});
  const close = el("button", { type: "button", class: "plain", click: () => helpNode.close() });
  const helpNode = el("dialog", { "aria-labelledby": "help-title" }, title, table, el("p", { class: "about faint" }), close);
  shows.push(() => {
    title.textContent = say("help");
    close.textContent = say("close");
    table.replaceChildren(...keys.map(([key, words]) => el("tr", {},
      el("th", { scope: "row" }, el("kbd", {}, key)), el("td", {}, say(words)))));
  });
  return { help: () => helpNode.showModal(), helpNode };
}

/** Saves what is seen. @param {App} app @param {string} kind */
function saveAs(app, kind) {
  const { state, labels, shown } = app;
  const name = `attnviz-${state.head ? `${state.head.replaceAll("*", "mean")}-${state.view}` : "heads"}`;
  if (kind === "CSV") {
    saveTable(name, state.head ? matrixRows(state.head, shown) : labels.tops.flatMap((_, at) => {
      const head = labels.names[at];
      return matrixRows(head, app.shownOf(head)).slice(at ? 1 : 0);
    }));
    return;
  }
  const picture = state.head ? app.pattern.picture() : app.overview.picture(state, /** @type {Colours} */ (app.colours));
  const draw = (/** @type {Pen} */ pen) => {
    pen.box(0, 0, picture.width, picture.height, /** @type {Colours} */ (app.colours).named("paper"));
    picture.draw(pen);
  };
  savePicture(name, kind === "SVG" ? "svg" : "png", { ...picture, draw });
}

/** A matrix as a table: a line for each link. @param {string} head @param {Shown} shown */
function matrixRows(head, shown) {
  /** @type {(string|number)[][]} */
  const rows = [["head", "query", "key", "query_token", "key_token", "weight", "exact"]];
  shown.rows.forEach((row, i) => shown.columns.forEach((column, j) => {
    const at = i * shown.columns.length + j;
    rows.push([head, row.first, column.first, row.name, column.name, shown.values[at],
      Number(!shown.known || shown.known[at] === 1)]);
  }));
  return rows;
}

/** What keys do. @param {App} app @param {KeyboardEvent} event */
function onKey(app, event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || app.controls.help.open) return;
  if (target.matches("input:not([type=checkbox]), select, textarea")) return;
  const { state } = app, arrow = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  /** @type {Record<string, () => void>} */
  const keys = {
    "/": () => app.controls.find.focus(),
    "?": app.controls.openHelp,
    m: () => app.set({ view: "matrix" }),
    l: () => app.set({ view: "lines" }),
    p: () => app.labels.steps.length && app.generation.play(!app.generation.timer),
    d: () => app.set({ toward: state.toward === "from" ? "to" : "from" }),
    s: () => app.set({ special: !state.special }),
    w: () => app.set({ words: !state.words }),
    Escape: () => app.set(state.query >= 0 || state.key >= 0 ? { query: -1, key: -1 } : { head: usual(app.labels).head }),
    ...(state.head && {
      "+": () => zoom(app, 1 / 1.5), "=": () => zoom(app, 1 / 1.5), "-": () => zoom(app, 1.5),
      "0": () => app.set({ rows: "", keys: "" }),
    }),
  };
  if (arrow && event.shiftKey && state.head) {
    const { row, column } = app.pinned, { rows, columns } = app.shown;
    const move = (/** @type {number} */ at, /** @type {number} */ by, /** @type {number} */ n) =>
      Math.max(0, Math.min(n - 1, at < 0 ? 0 : at + by));
    app.hover = { row: -1, column: -1 };
    app.pin({ row: move(row, arrow[0], rows.length), column: move(column, arrow[1], columns.length) });
  } else if (arrow && !event.shiftKey) step(app, arrow[0], arrow[1]);
  else if (Object.hasOwn(keys, event.key)) keys[event.key]();
  else return;
  event.preventDefault();
}
