/**
 * What two models' heads do otherwise: the same map, table and details, of what changed.
 * @typedef {{rule: string, score: number, sure: boolean}} WasRole
 * @typedef {{name: string, roles: (WasRole|null)[], moved: boolean, sure: boolean, text: string, size: number|null,
 *   change: (number|null)[], beyond: boolean, share: number|null, values: (number|null)[][]}} Moved
 * @typedef {{name: string, n: string, values: (number|null)[], heads: string, sure: boolean}} Relation
 */

/** @type {Record<string, [string, string]>} */
const CHANGE_WORDS = {
  change: ["change", "변화"], before: ["before", "이전"], after: ["after", "이후"], same: ["the same role", "같은 역할"],
  changed: ["another role, established", "역할이 바뀜(확인됨)"], doubtful: ["another role, not established", "역할이 바뀜(확인되지 않음)"],
  moved: ["Its pattern changed by {0} nats ({1})", "패턴 변화 {0} nat ({1})"],
  others: [", {0} of how far another head is in the mean", ", 다른 헤드까지 평균 거리의 {0}"],
  beyond: ["; beyond the head most like it", "; 가장 비슷한 헤드와의 거리보다 더 많이 바뀜"],
  difference: ["after less before", "이후 - 이전"],
};

/** The page of two models. */
class Changes extends Heads {
  show() {
    super.show();
    const [caption, ...titles] = this.in(/** @type {any} */ (this.labels.titles)), { relations = [] } = this.labels;
    if (!relations.length) return;
    /** @param {Relation} one */
    const cells = ({ n, values: [before, after, by, low, high], heads }) => [n, before?.toFixed(2), after?.toFixed(2),
      by === null ? "" : differing(by), low === null || high === null ? "" : `${differing(low)} … ${differing(high)}`, heads];
    this.notes.prepend(el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": caption },
      el("table", { class: "measures both" }, el("caption", {}, caption),
        el("thead", {}, el("tr", {}, ...titles.map((title) => el("th", { scope: "col" }, title)))),
        el("tbody", {}, ...relations.map((one) => el("tr", { class: one.sure ? null : "faint" },
          el("th", { scope: "row" }, one.name), ...cells(one).map((text) => el("td", {}, text ?? ""))))))));
  }

  /** @param {string} name @param {...string} values */
  tell(name, ...values) {
    return CHANGE_WORDS[name][this.ko ? 1 : 0].replace(/\{(\d)\}/g, (_, at) => values[Number(at)]);
  }

  get caption() {
    return this.in(this.labels.caption ?? ["", ""]);
  }

  get titles() {
    const pattern = this.labels.pattern ? [["score", this.tell("change")]] : [];
    return [["head", this.say("head")], ...pattern, ["role", `${this.say("role")}: ${this.tell("before")} → ${this.tell("after")}`]];
  }

  /** The role looked for, after or else before; the clearest after. @param {any} profile @returns {any} */
  role(profile) {
    const [before, after] = /** @type {Moved} */ (profile).roles, wanted = this.state.role;
    return wanted ? [after, before].find((one) => one?.rule === wanted) : after ?? before ?? undefined;
  }

  /** @param {any} profile */
  score(profile) {
    return /** @type {Moved} */ (profile).change[0];
  }

  /** @param {any} profile */
  words(profile) {
    const { text, moved, sure, roles } = /** @type {Moved} */ (profile);
    const names = roles.map((role) => (role ? /** @type {Rule} */ (this.rules.get(role.rule)).short : this.say("none")));
    return `${text}; ${moved ? `${names.join(" → ")}, ${this.tell(sure ? "changed" : "doubtful")}` : names[0]}`;
  }

  /** The size of the change; in a frame where the role is another. @param {any} profile */
  cell(profile) {
    const { text, size, moved, sure } = /** @type {Moved} */ (profile);
    return this.coloured(el("span", { class: `sign${moved ? (sure ? " moved" : " moved doubtful") : ""}` }, text), size);
  }

  /** A node in the colour of a change: of a pattern as weights are, of a measure red above 0 and blue below.
   * @param {HTMLElement} node @param {number|null} size */
  coloured(node, size) {
    if (this.labels.pattern) return this.shaded(node, size);
    const part = Math.round(Math.min(1, Math.abs(size ?? 0)) * 55);
    if (part) node.style.background = `color-mix(in srgb, var(${(size ?? 0) < 0 ? "--below" : "--above"}) ${part}%, transparent)`;
    return node;
  }

  /** Its roles, from which to which. @param {Moved} profile */
  roles({ roles, moved, sure }) {
    const [before, after] = roles.map((role) => [this.sign(/** @type {any} */ (role ?? undefined)),
      ` ${role ? /** @type {Rule} */ (this.rules.get(role.rule)).short : this.say("none")}`]);
    return moved ? [...before, " → ", ...after, sure ? "" : " ?"] : before;
  }

  /** @param {any} profile */
  cells(profile) {
    const { change: [value, low, high], beyond, values } = /** @type {Moved} */ (profile);
    const pattern = el("td", {}, el(beyond ? "strong" : "span", {}, value === null ? "" : value.toFixed(3)),
      el("span", { class: "faint" }, ` ${ends(low, high, false, 3)}`));
    return [...(this.labels.pattern ? [pattern] : []), el("td", { class: "name" }, ...this.roles(profile)), ...values.map(([by, from, to]) => {
      const isSure = from !== null && to !== null && (from > 0 || to < 0);
      return el("td", { class: isSure ? null : "faint" }, by === null ? "" : differing(by));
    })];
  }

  showDetail() {
    const { labels, state } = this;
    const profile = /** @type {Moved|undefined} */ (/** @type {unknown} */ (labels.profiles.find((one) => one.name === state.head)));
    this.detail.hidden = !profile;
    if (!profile) return;
    const [value, low, high] = profile.change, share = profile.share;
    const moved = value === null ? [] : [el("p", {}, this.tell("moved", value.toFixed(3), ends(low, high, false, 3)),
      share === null ? "" : this.tell("others", `${Math.round(share * 100)}%`), profile.beyond ? this.tell("beyond") : "")];
    const titles = [this.say("measure"), this.tell("before"), this.tell("after"), this.tell("difference"), this.say("interval")];
    this.detail.replaceChildren(el("h2", {}, `${this.say("head")} ${profile.name}`),
      el("h3", {}, ...this.roles(profile)),
      el("p", {}, this.tell(profile.moved ? (profile.sure ? "changed" : "doubtful") : "same")), ...moved,
      el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": this.say("measure") }, el("table", { class: "measures both" }, el("thead", {}, el("tr", {}, ...titles.map((text) => el("th", { scope: "col" }, text)))),
        el("tbody", {}, ...profile.values.map(([by, from, to, before, after], at) => by === null ? "" : el("tr", {},
          el("th", { scope: "row", title: `${this.in(labels.measures[at].words)} (${labels.measures[at].unit})` }, labels.measures[at].name),
          ...[before, after].map((one) => el("td", {}, one === null ? "" : one.toFixed(2))), el("td", {}, differing(by)),
          el("td", {}, from === null || to === null ? "" : `${labels.measures[at].narrow ? "~" : ""}${differing(from)} … ${differing(to)}`)))))));
  }

  /** The table as CSV, in the order seen. */
  csv() {
    const { measures } = this.labels, ends = ["", "_low", "_high", "_before", "_after"];
    saveTable("attnviz-changes", [["head", "change", "change_low", "change_high", "role_before", "role_after", "role_established",
      ...measures.flatMap((one) => ends.map((end) => `${one.name}${end}`))],
    ...this.rows.map((/** @type {any} */ profile) => {
      const { change, roles, moved, sure, values } = /** @type {Moved} */ (profile);
      return [profile.name, ...change.map((one) => one ?? ""), ...roles.map((role) => role?.rule ?? ""), Number(moved && sure),
        ...values.flat().map((one) => one ?? "")];
    })]);
  }
}

/** A difference with its sign. @param {number} value */
function differing(value) {
  const text = Math.abs(value).toFixed(2);
  return Number(text) ? `${value < 0 ? "−" : "+"}${text}` : text;
}

const told = JSON.parse(document.getElementById("labels")?.textContent ?? "");
new (told.caption ? Changes : Heads)(told);
