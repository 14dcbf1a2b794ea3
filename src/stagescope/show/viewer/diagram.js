/** The page of a sweep: what to draw, the diagram, and the cell that was chosen. */

import { Store } from "./blocks.js";
import { CellColours } from "./cell_colours.js";
import { cellPanel, exactPlace, placeOf, readingOf } from "./cell_panel.js";
import { themeNow } from "./colours.js";
import { curvePicture } from "./diagram_curve.js";
import { DIAGRAM_ADVICE, DIAGRAM_KEYS } from "./diagram_keys.js";
import { mapPicture } from "./diagram_map.js";
import { aboutLines, sweepHead } from "./diagram_head.js";
import { DiagramState } from "./diagram_state.js";
import { askBar } from "./diagram_asks.js";
import { brief, el, nameOf, setText, svgEl } from "./dom.js";
import { helpDialog, listenToKeys } from "./keys.js";
import { confess, setTheme } from "./page_head.js";
import { csvButton } from "./saving.js";
import { svgNode } from "./shapes.js";
import { hashWriter, readHash } from "./state.js";
import { SweepTable } from "./sweep.js";

/** @typedef {import("./types.js").SweepData} SweepData */
/** @typedef {import("./diagram_map.js").Picture} Picture */

const NARROWEST = 320;
const FIGURE = "stagescope diagram SWEEP --x NAME --y NAME --color NAME";
const SEEN = 120; // px of the panel of a cell that must be in view

class DiagramPage {
  /** @param {SweepTable} table */
  constructor(table) {
    this.table = table;
    this.state = new DiagramState(table);
    this.help = helpDialog(DIAGRAM_KEYS, DIAGRAM_ADVICE);
    this.asks = el("div", { class: "asks", role: "group", "aria-label": "what is drawn" });
    this.svg = svgEl("svg", { class: "diagram-svg", "aria-hidden": "true" });
    this.frame = svgEl("g", { class: "diagram-frame" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.said = el("p", { class: "unseen", role: "status" });
    this.plot = el("div", { class: "diagram-plot", tabindex: 0, role: "application" }, [this.svg, this.tip]);
    this.heading = el("h2");
    this.about = el("div", { class: "about" });
    this.side = el("div", { class: "panel-body" });
    /** @type {import("./sweep.js").SweepCell[]} */
    this.cells = [];
    /** @type {Picture|null} */
    this.picture = null;
    this.hovered = -1;
    this.writeHash = hashWriter(() => this.state.hash());
  }

  start() {
    document.body.append(this.help);
    const name = () => `${this.state.color}-over-${this.state.x}${this.state.y === null ? "" : `-${this.state.y}`}`;
    const main = el("section", { class: "panel most", data: { slot: "diagram" } }, [
      el("header", { class: "panel-head" }, [this.heading, el("div", { class: "panel-tools" }, csvButton(() => this.csv(), name, FIGURE))]),
      this.about,
      this.plot,
      el("p", { class: "about figures" }, ["As a figure (PDF, SVG, PNG): ", el("code", { text: FIGURE })]),
      this.said,
    ]);
    const side = el("section", { class: "panel rest", data: { slot: "cell" } }, [
      el("header", { class: "panel-head" }, el("h2", { text: "Cell" })),
      this.side,
    ]);
    document
      .getElementById("page")
      ?.replaceChildren(sweepHead(this.table, this), this.asks, el("div", { class: "panels" }, [main, side]));
    this.state.restore(readHash());
    this.listen();
    this.paint();
  }

  listen() {
    new ResizeObserver(() => this.picture && Math.abs(this.picture.width - this.room()) > 1 && this.draw()).observe(this.plot);
    this.plot.addEventListener("pointermove", (event) => this.hover(this.cellUnder(event)));
    this.plot.addEventListener("pointerleave", () => this.hover(-1));
    this.plot.addEventListener("click", (event) => this.choose(this.cellUnder(event)));
    window.addEventListener("hashchange", () => {
      this.state.restore(readHash());
      this.paint();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    listenToKeys(DIAGRAM_KEYS, {
      move: (dx, dy) => this.move(dx, dy),
      colour: (step) => this.nextColour(step),
      cut: (step) => this.turn(() => this.state.others.length && this.state.shift(this.state.others[0], step)),
      swap: () => this.turn(() => this.state.y !== null && this.state.setX(this.state.y)),
      clear: () => this.choose(-1),
      theme: () => this.turnTheme(),
      help: () => this.help.showModal(),
    });
  }

  /** @param {() => void} change to the state, after which everything is drawn again */
  turn(change) {
    change();
    this.paint();
  }

  turnTheme() {
    this.turn(() => void (this.state.theme = themeNow() === "dark" ? "light" : "dark"));
  }

  /** @param {number} step */
  nextColour(step) {
    const names = [...this.table.columns.values()].filter(({ group }) => group !== "axes").map(({ name }) => name);
    const at = names.indexOf(this.state.color);
    this.turn(() => this.state.setColor(names[(Math.max(at, 0) + step + names.length) % names.length]));
  }

  /** Draws everything that depends on the state. */
  paint() {
    setTheme(this.state.theme);
    this.asks.replaceChildren(...askBar(this.state, (change) => this.turn(change)));
    this.draw();
    this.writeHash();
  }

  room() {
    return Math.max(NARROWEST, Math.floor(this.plot.clientWidth));
  }

  draw() {
    const { table, state } = this;
    const { ask } = state;
    this.cells = table.cells(ask);
    const colours = new CellColours(table.column(ask.color), this.cells);
    const drawn = ask.y === null ? curvePicture : mapPicture;
    const picture = drawn(table, ask, this.cells, colours, this.room());
    this.picture = picture;
    this.hovered = -1;
    this.svg.setAttribute("viewBox", `0 0 ${picture.width} ${picture.height}`);
    this.svg.setAttribute("width", String(picture.width));
    this.svg.setAttribute("height", String(picture.height));
    this.svg.replaceChildren(...picture.shapes.map(svgNode), this.frame);
    this.heading.replaceChildren(nameOf(ask.color, 120));
    this.heading.title = brief(table.column(ask.color).about, 2000);
    this.about.replaceChildren(...aboutLines(table, ask, this.cells));
    this.plot.setAttribute("aria-label", `${ask.color} over ${ask.x}${ask.y === null ? "" : ` and ${ask.y}`}; arrow keys move between cells`);
    this.showCell();
  }

  /** The chosen cell, or -1. */
  get chosen() {
    const { cell } = this.state;
    return cell ? this.cells.findIndex(({ x, y }) => x === cell[0] && y === cell[1]) : -1;
  }

  showCell() {
    const { chosen, picture } = this;
    const cell = this.cells[chosen] ?? null;
    const shown = this.hovered >= 0 && this.hovered !== chosen ? [chosen, this.hovered] : [chosen];
    this.frame.replaceChildren(...shown.filter((i) => i >= 0).flatMap((i) => picture?.outline(i) ?? []).map(svgNode));
    if (this.hovered >= 0) return;
    this.side.replaceChildren(
      cellPanel(this.table, this.state.ask, cell, this.state.row, (row) => {
        this.state.row = row;
        this.showCell();
      }),
    );
    setText(this.said, cell ? [...placeOf(this.table, this.state.ask, cell).map((pair) => pair.join(" = ")), ...readingOf(this.table, this.state.ask, cell)].join(", ") : "");
  }

  /** @param {MouseEvent} event */
  cellUnder(event) {
    const box = this.svg.getBoundingClientRect();
    return this.picture?.hit(event.clientX - box.left, event.clientY - box.top) ?? -1;
  }

  /** @param {number} i */
  choose(i) {
    const cell = this.cells[i];
    this.state.cell = cell ? [cell.x, cell.y] : null;
    this.state.row = null;
    this.hovered = -1;
    this.showCell();
    this.writeHash();
    if (cell) bringIntoView(this.side);
  }

  /** @param {number} i */
  hover(i) {
    this.tip.hidden = i < 0;
    if (i === this.hovered) return;
    this.hovered = i;
    this.showCell();
    if (i < 0 || !this.picture) return;
    const { ask } = this.state;
    const cell = this.cells[i];
    const lines = readingOf(this.table, ask, cell);
    const reason = cell.failed ? this.table.reasons(cell)[0] : null;
    this.tip.replaceChildren(
      el("b", {}, nameOf(lines[0], 120)),
      ...lines.slice(1).map((line) => nameOf(line, 160)),
      ...(reason ? [nameOf(reason[0], 200)] : []),
      ...placeOf(this.table, { ...ask, at: new Map() }, cell).map(([name, value]) => nameOf(`${name} = ${value}`, 100)),
    );
    const [x, y] = this.picture.point(i);
    const left = x > this.picture.width / 2 ? x - this.tip.offsetWidth - 14 : x + 14;
    this.tip.style.transform = `translate(${Math.max(0, left)}px, ${Math.max(0, y - this.tip.offsetHeight / 2)}px)`;
  }

  /** The next cell in a direction: near along it, and nearly straight ahead. @param {number} dx @param {number} dy */
  move(dx, dy) {
    const { picture, chosen } = this;
    if (!picture || !this.cells.length) return;
    if (chosen < 0) return this.choose(0);
    const [x, y] = picture.point(chosen);
    let best = -1;
    let least = Infinity;
    this.cells.forEach((_, i) => {
      const [px, py] = picture.point(i);
      const ahead = this.state.y === null ? (px - x) * (dx - dy) : (px - x) * dx + (py - y) * dy;
      const aside = this.state.y === null ? 0 : Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      if (ahead > 0.5 && ahead + 3 * aside < least) [best, least] = [i, ahead + 3 * aside];
    });
    if (best >= 0) this.choose(best);
  }

  /** The cells that are shown. @returns {import("./types.js").Table} */
  csv() {
    const { table } = this;
    const { ask } = this.state;
    const column = table.column(ask.color);
    const rows = this.cells.map((cell) => {
      const places = exactPlace(ask, cell).map(([axis, value]) => (table.ruler(axis).named ? table.wordOf(axis, value) : value));
      const [low, high] = cell.interval ?? [null, null];
      const counts = [cell.rows.length, cell.known, cell.beyond, cell.failed];
      return [...places, table.shown(column, cell.value), low, high, cell.lack, ...counts, table.reasons(cell)[0]?.[0] ?? null];
    });
    const names = [ask.x, ...(ask.y === null ? [] : [ask.y]), ...ask.at.keys()];
    return { columns: [...names, ask.color, "low", "high", "lack", "runs", "with value", "beyond", "failed", "reason"], rows };
  }
}

/** Scrolls to the panel of the cell where it lies below the fold: a click must be seen to do something. @param {Element} panel */
function bringIntoView(panel) {
  const { top, bottom } = panel.getBoundingClientRect();
  if (top > window.innerHeight - SEEN || bottom < SEEN) panel.closest("section")?.scrollIntoView({ block: "nearest" });
}

/** @returns {Promise<DiagramPage>} */
async function openDiagram() {
  /** @type {SweepData} */
  const data = JSON.parse(document.getElementById("data")?.textContent ?? "{}");
  const shown = new DiagramPage(await SweepTable.open(new Store(), data));
  shown.start();
  document.documentElement.dataset.ready = "true";
  return shown;
}

/** For tests and for the curious: what the page shows. Nothing here changes it. */
const opened = openDiagram();
opened.catch(confess);
Object.assign(window, {
  stagescope: {
    ready: opened.then(() => {}, () => {}), // prettier-ignore
    state: async () => (await opened).state,
    cells: async () => (await opened).cells,
    table: async () => (await opened).table,
    picture: async () => (await opened).picture,
    csv: async () => (await opened).csv(),
    colours: (/** @type {import("./sweep.js").Column} */ column, /** @type {import("./sweep.js").SweepCell[]} */ cells) =>
      new CellColours(column, cells),
  },
});
