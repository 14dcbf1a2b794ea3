/**
 * What a reader of a diagram chose: axes, colour, cuts, cell, seed, theme. It lives in the URL hash, so that a link opens at the
 * same place. The hash is text of a stranger: what the sweep does not have falls back to what the page opens with.
 */

/** @typedef {import("./sweep.js").SweepTable} SweepTable */
/** @typedef {import("./sweep.js").Ask} Ask */

const THEMES = ["auto", "light", "dark"];
const NO_AXIS = "-"; // in the hash: no axis upwards

export class DiagramState {
  /** @param {SweepTable} table */
  constructor(table) {
    this.table = table;
    this.axes = table.data.axes.map(({ name }) => name);
    const { x, y, color, at } = table.data.start;
    this.x = x;
    this.y = y;
    this.color = color;
    this.theme = THEMES[0];
    /** The place on every axis where the diagram cuts it if it is not drawn. @type {Map<string, number>} */
    this.cuts = new Map(this.axes.map((name) => [name, table.valuesOf(name)[0]]));
    for (const [name, word] of at) this.cut(name, word);
    /** Values of the chosen cell on the axes that are drawn. @type {[number, number]|null} */
    this.cell = null;
    /** @type {number|null} row whose run is shown; null: the first of the cell */
    this.row = null;
  }

  /** @returns {Ask} */
  get ask() {
    return { x: this.x, y: this.y, color: this.color, at: new Map(this.others.map((name) => [name, this.cuts.get(name) ?? 0])) };
  }

  /** Axes that are not drawn. */
  get others() {
    return this.axes.filter((name) => name !== this.x && name !== this.y);
  }

  /** @param {string} name @param {string} word cuts an axis at a value that rows have; others are ignored */
  cut(name, word) {
    if (!this.axes.includes(name)) return;
    const value = this.table.valuesOf(name).find((each) => this.table.wordOf(name, each) === word || String(each) === word);
    const near = this.table.ruler(name).named ? undefined : this.near(name, Number(word));
    if (value !== undefined || near !== undefined) this.cuts.set(name, /** @type {number} */ (value ?? near));
  }

  /** @param {string} name @param {number} wanted @returns {number|undefined} a value that differs in its last digits only */
  near(name, wanted) {
    return this.table.valuesOf(name).find((each) => Math.abs(each - wanted) <= 1e-9 * Math.abs(wanted));
  }

  /** @param {string} name @param {number} step moves a cut to a neighbouring value */
  shift(name, step) {
    const values = this.table.valuesOf(name);
    const at = values.indexOf(this.cuts.get(name) ?? values[0]) + step;
    this.cuts.set(name, values[Math.min(values.length - 1, Math.max(0, at))]);
  }

  /** @param {string} name draws an axis across; if it was upwards, the two change places */
  setX(name) {
    if (!this.axes.includes(name)) return;
    if (name === this.y) this.y = this.x;
    this.x = name;
    this.cell = null;
  }

  /** @param {string|null} name */
  setY(name) {
    if (name !== null && !this.axes.includes(name)) return;
    if (name === this.x && this.y === null) return;
    if (name === this.x) this.x = /** @type {string} */ (this.y);
    this.y = name;
    this.cell = null;
  }

  /** @param {string} name of a column */
  setColor(name) {
    if (this.table.columns.has(name)) this.color = name;
  }

  /** @param {URLSearchParams} hash */
  restore(hash) {
    const { start } = this.table.data;
    const known = (/** @type {string|null} */ name) => name !== null && this.axes.includes(name);
    const x = hash.get("x");
    const y = hash.get("y");
    this.x = known(x) ? /** @type {string} */ (x) : start.x;
    this.y = y === NO_AXIS ? null : known(y) ? y : start.y;
    if (this.x === this.y) this.y = this.axes.find((name) => name !== this.x) ?? null;
    this.color = start.color;
    this.setColor(hash.get("color") ?? "");
    for (const text of hash.getAll("at")) this.cut(text.slice(0, text.lastIndexOf("=")), text.slice(text.lastIndexOf("=") + 1));
    const cell = (hash.get("cell") ?? "").split(" ").map(Number);
    this.cell = cell.length === 2 && cell.every(Number.isFinite) ? [cell[0], cell[1]] : null;
    this.row = null;
    const theme = hash.get("theme") ?? "";
    this.theme = THEMES.includes(theme) ? theme : THEMES[0];
  }

  /** @returns {URLSearchParams} */
  hash() {
    const hash = new URLSearchParams();
    hash.set("x", this.x);
    hash.set("y", this.y ?? NO_AXIS);
    hash.set("color", this.color);
    for (const name of this.others) hash.append("at", `${name}=${this.table.wordOf(name, this.cuts.get(name) ?? 0)}`);
    if (this.cell) hash.set("cell", this.cell.join(" "));
    if (this.theme !== THEMES[0]) hash.set("theme", this.theme);
    return hash;
  }
}
