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
    this.cuts = new Map(this.axes.map((name) => [name, table.ruler(name).at[0]]));
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
    const value = this.axes.includes(name) ? this.valueOf(name, word) : undefined;
    if (value !== undefined) this.cuts.set(name, value);
  }

  /** @param {string} name of an axis @param {string|undefined} word @returns {number|undefined} the value that rows have, to the last digits or nearly */
  valueOf(name, word) {
    const values = this.table.ruler(name).at;
    const found = values.find((each) => this.table.wordOf(name, each) === word);
    if (found !== undefined || word === undefined || word.trim() === "" || this.table.ruler(name).named) return found;
    return values.find((each) => Math.abs(each - Number(word)) <= 1e-9 * Math.abs(Number(word)));
  }

  /** @param {string} name @param {number} step moves a cut to a neighbouring value */
  shift(name, step) {
    const values = this.table.ruler(name).at;
    const at = values.indexOf(this.cuts.get(name) ?? values[0]) + step;
    this.cuts.set(name, values[Math.min(values.length - 1, Math.max(0, at))]);
  }

  /** @param {string} name draws an axis across; if it was upwards, the two change places */
  setX(name) {
    if (!this.axes.includes(name)) return;
    const turned = name === this.y;
    if (turned) this.y = this.x;
    this.x = name;
    this.cell = turned && this.cell ? [this.cell[1], this.cell[0]] : null;
  }

  /** @param {string|null} name */
  setY(name) {
    if (name !== null && !this.axes.includes(name)) return;
    if (name === this.x && this.y === null) return;
    const turned = name !== null && name === this.x;
    if (turned) this.x = /** @type {string} */ (this.y);
    this.y = name;
    this.cell = turned && this.cell ? [this.cell[1], this.cell[0]] : null;
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
    const words = hash.getAll("cell");
    const across = this.valueOf(this.x, words[0]);
    const up = this.y === null ? 0 : this.valueOf(this.y, words[1]);
    this.cell = across === undefined || up === undefined ? null : [across, up];
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
    const drawn = this.y === null ? [this.x] : [this.x, this.y];
    if (this.cell) for (const [i, name] of drawn.entries()) hash.append("cell", this.table.wordOf(name, this.cell[i]));
    if (this.theme !== THEMES[0]) hash.set("theme", this.theme);
    return hash;
  }
}
