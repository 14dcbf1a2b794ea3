/**
 * Attention and other matrices over time: one heat map a head, runs side by side, every frame drawn.
 *
 * The pointer or, when a map has the focus, the arrow keys choose a cell; the same cell is framed in every map of the panel.
 * Only plain arrow keys, Home, End, Enter and Escape are taken: the rest, and Shift with arrows, stay with the scrubber.
 */

import { brief, el, nameOf, setText } from "./dom.js";
import { heatLegend } from "./heat_legend.js";
import { Matrices } from "./matrix.js";
import { Tile } from "./tile.js";
import { GAP, tileBox } from "./tile_box.js";

/** @typedef {import("./types.js").Panel} Panel */
/** @typedef {import("./types.js").View} View */
/** @typedef {import("./types.js").MatricesView} MatricesView */
/** @typedef {import("./blocks.js").Store} Store */
/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./matrix.js").Reading} Reading */
/** @typedef {{run: number, matrices: Matrices, tiles: Tile[], element: HTMLElement, flow: HTMLElement, when: HTMLElement}} Group */
/** @typedef {Panel & {value: (run: number, panel: number, row: number, column: number) => Reading}} HeatPanel */

const NARROWEST = 250; // px for a run beside another
const TALLEST = 520; // px for all maps of a run, if they can be read at that size
const AROUND_ZOOMED = 290; // px that header, legend and player take from one map alone
const AROUND_GUIDED = 430; // px that title, legend, caption and player take in a lecture
const NARROW_GUIDED = { width: 1000, share: 0.27, least: 130 }; // below the curves on a narrow screen: share of its height, px
const LEAST_ZOOMED = 300;
const MOST_ZOOMED = 2; // runs whose maps are enlarged side by side: more would not be larger than before
const WIDEST_NAME = 110; // px of such a name

/** Pixels for the maps of a lecture: beside the curves, or below them. */
function guidedHeight() {
  const { width, share, least } = NARROW_GUIDED;
  return innerWidth <= width ? Math.max(least, share * innerHeight) : Math.max(LEAST_ZOOMED, innerHeight - AROUND_GUIDED);
}

class Heat {
  /** @param {Scene} scene @param {{run: number, matrices: Matrices}[]} parts */
  constructor(scene, parts) {
    this.scene = scene;
    this.groups = parts.map(({ run, matrices }) => this.group(run, matrices));
    this.tiles = this.groups.flatMap((group) => group.tiles);
    this.legend = heatLegend(parts[0].matrices);
    this.tip = el("div", { class: "tip", hidden: true });
    this.spoken = el("div", { class: "unseen", role: "status", "aria-live": "polite" });
    this.flow = el("div", { class: "heat-runs" }, this.groups.map((group) => group.element));
    this.element = el("div", { class: "heat" }, [this.legend.element, this.flow, this.tip, this.spoken]);
    /** @type {{tile: Tile, row: number, column: number}|null} */
    this.cursor = null;
    /** @type {number|null} */
    this.zoomed = null;
    this.scrolled = 0;
    this.closer = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape" || !this.element.isConnected || document.querySelector("dialog[open]")) return;
      this.enlarge(this.tiles[0]);
      event.stopPropagation();
    };
    this.tiles.forEach((tile) => this.listen(tile));
    if (this.tiles.length) this.tiles[0].canvas.tabIndex = 0;
    new ResizeObserver(() => this.layout()).observe(this.element);
    scene.settings.on((name) => name === "guided" && this.layout());
  }

  /** @param {number} run @param {Matrices} matrices @returns {Group} */
  group(run, matrices) {
    const { name } = this.scene.runs[run].data;
    const alone = this.scene.runs.length === 1;
    const tiles = matrices.view.panels.map((panel, i) => {
      const spoken = [alone ? "" : name, panel || matrices.view.title].filter(Boolean).join(", ");
      return new Tile(matrices, i, panel, spoken, (token) => this.scene.tokenColour(token));
    });
    const when = el("span", { class: "when" });
    const flow = el("div", { class: "tiles" }, tiles.map((tile) => tile.element));
    const unnamed = tiles.filter((_, i) => !matrices.view.panels[i]).map((tile) => tile.zoom);
    const head = el("div", { class: "heat-run-name" }, [alone ? null : nameOf(name, 60), when, ...unnamed]);
    return { run, matrices, tiles, when, flow, element: el("div", { class: "heat-run" }, [head, flow]) };
  }

  /** @param {Tile} tile */
  listen(tile) {
    const { canvas } = tile;
    canvas.addEventListener("mousedown", (event) => event.preventDefault()); // a click leaves the arrow keys to the scrubber
    canvas.addEventListener("pointermove", (event) => this.point(tile, tile.cellAt(event)));
    canvas.addEventListener("pointerleave", () => this.point(tile, null));
    canvas.addEventListener("dblclick", () => this.enlarge(tile));
    canvas.addEventListener("keydown", (event) => this.key(tile, event));
    canvas.addEventListener("blur", () => this.point(tile, null));
    canvas.addEventListener("focus", () => {
      if (canvas.matches(":focus-visible")) this.read(tile, this.cursor ?? { row: 0, column: 0 });
    });
    tile.zoom.addEventListener("click", () => this.enlarge(tile));
  }

  /** @param {Tile} tile @param {{row: number, column: number}|null} cell */
  point(tile, cell) {
    this.cursor = cell && { tile, ...cell };
    for (const other of this.tiles) other.point(cell);
    this.tell();
  }

  /** Points at a cell and says it aloud. @param {Tile} tile @param {{row: number, column: number}} cell */
  read(tile, cell) {
    this.point(tile, { row: cell.row, column: cell.column });
    setText(this.spoken, this.words().join(", "));
  }

  /** What is known of the chosen cell: value, row, column, mark. @returns {string[]} */
  words() {
    if (!this.cursor) return [];
    const { tile, row, column } = this.cursor;
    const { view } = tile.matrices;
    const kind = tile.matrices.kind(row, column);
    const mark = view.marks && kind >= 0 ? [view.marks.names[kind]] : [];
    const value = tile.place < 0 ? "no frame" : tile.matrices.reading(tile.place, tile.panel, row, column).text;
    return [
      value,
      `${view.row_axis} ${brief(view.rows[row], 80)}`.trim(),
      `${view.column_axis} ${brief(view.columns[column], 80)}`.trim(),
      ...mark,
    ];
  }

  /** Puts the words beside the chosen cell. */
  tell() {
    this.tip.hidden = !this.cursor;
    if (!this.cursor) return;
    const [value, ...names] = this.words();
    this.tip.replaceChildren(el("b", { text: value }), ...names.map((name) => el("bdi", { text: name })));
    const { tile, row, column } = this.cursor;
    const { left, top, cellWidth, cellHeight } = tile.grid;
    const [plot, box] = [tile.plot.getBoundingClientRect(), this.element.getBoundingClientRect()];
    const x = plot.left - box.left + left + (column + 1) * cellWidth + 8;
    const before = x + this.tip.offsetWidth > box.width ? this.tip.offsetWidth + cellWidth + 16 : 0;
    const y = plot.top - box.top + top + (row + 1) * cellHeight + 6;
    this.tip.style.transform = `translate(${Math.max(0, x - before)}px, ${y}px)`;
  }

  /** @param {Tile} tile @param {KeyboardEvent} event */
  key(tile, event) {
    if (event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
    const { columns } = tile.matrices;
    const { row, column } = this.cursor ?? { row: 0, column: 0 };
    /** @type {Object<string, [number, number]>} */
    const moves = {
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      Home: [row, 0],
      End: [row, columns - 1],
    };
    if (event.key in moves) this.step(tile, ...moves[event.key]);
    else if (event.key === "Enter") this.enlarge(tile);
    else if (event.key === "Escape" && this.zoomed === null) tile.canvas.blur();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * Moves the cursor; past the left or right edge it enters the neighbouring map.
   * @param {Tile} tile
   * @param {number} row
   * @param {number} column
   */
  step(tile, row, column) {
    const shown = this.tiles.filter((other) => !other.element.hidden);
    const beside = shown[shown.indexOf(tile) + (column < 0 ? -1 : column >= tile.matrices.columns ? 1 : 0)];
    const to = beside ?? tile;
    const { rows, columns } = to.matrices;
    const at = to !== tile && column >= 0 ? 0 : to !== tile ? columns - 1 : Math.min(columns - 1, Math.max(0, column));
    if (to !== tile) {
      for (const other of this.tiles) other.canvas.tabIndex = other === to ? 0 : -1;
      to.canvas.focus();
    }
    this.read(to, { row: Math.min(rows - 1, Math.max(0, row)), column: at });
  }

  /**
   * Shows one map alone over the page, or all again; of two runs both, so that they can be compared. The player stays below.
   * @param {Tile} tile
   */
  enlarge(tile) {
    if (this.zoomed === null) this.scrolled = scrollY;
    this.zoomed = this.zoomed === null ? tile.panel : null;
    this.element.classList.toggle("zoomed", this.zoomed !== null);
    if (this.zoomed === null) scrollTo({ top: this.scrolled, behavior: "instant" });
    const together = this.groups.length <= MOST_ZOOMED;
    for (const group of this.groups) {
      const beside = this.zoomed === null || together || group.tiles.includes(tile);
      group.element.hidden = !beside;
      for (const other of group.tiles) other.element.hidden = !beside || (this.zoomed !== null && other.panel !== this.zoomed);
    }
    // wherever the focus is: a map enlarged with the mouse has none
    if (this.zoomed === null) document.removeEventListener("keydown", this.closer, true);
    else document.addEventListener("keydown", this.closer, true);
    this.layout();
    this.tell();
  }

  /** Sizes every map to the room there is. */
  layout() {
    const width = Math.floor(this.element.getBoundingClientRect().width); // clientWidth may be rounded up
    if (!width) return;
    const shown = this.groups.filter((group) => !group.element.hidden);
    const across = Math.max(1, Math.min(shown.length, Math.floor((width + GAP) / NARROWEST)));
    const share = Math.floor((width - GAP * (across - 1)) / across);
    const large = this.zoomed !== null;
    const guided = document.body.classList.contains("guided");
    const tallest = large ? Math.max(LEAST_ZOOMED, innerHeight - AROUND_ZOOMED) : guided ? guidedHeight() : TALLEST;
    for (const group of this.groups) {
      const tiles = group.tiles.filter((tile) => !tile.element.hidden);
      if (!tiles.length) continue;
      group.element.style.width = `${share}px`;
      const row = group.matrices.view.across;
      const [w, h, columns] = tileBox(tiles, share, tallest, row);
      group.flow.style.display = row ? "grid" : "";
      group.flow.style.gridTemplateColumns = row ? `repeat(${columns}, max-content)` : "";
      for (const tile of tiles) {
        tile.resize(w, h);
        if (row) tile.element.style.width = `${Math.max(Math.min(w, WIDEST_NAME), tile.width ?? 0)}px`;
        setText(tile.zoom, large ? "close \u00d7" : "enlarge");
        tile.zoom.setAttribute("aria-label", large ? "close \u00d7: back to all maps" : "enlarge this map");
      }
    }
    this.legend.unmarked(this.tiles.some((tile) => !tile.element.hidden && tile.unmarked));
    if (this.cursor) this.point(this.cursor.tile, this.cursor);
  }

  /** Draws the frame each run has now. @param {boolean} [anew] */
  show(anew = false) {
    for (const { run, matrices, tiles, when } of this.groups) {
      const shown = this.scene.frameOf(run, matrices.view);
      setText(when, this.scene.frameText(shown, matrices.view));
      for (const tile of tiles) if (!tile.element.hidden) tile.paint(shown.place, anew);
    }
    this.legend.missing(this.tiles.some((tile) => tile.missing));
    if (this.cursor) this.tell();
  }

  recolour() {
    for (const { matrices } of this.groups) matrices.recolour();
    for (const tile of this.tiles) tile.draw();
    this.legend.recolour();
    this.show(true);
  }

  /** A row for each cell on the page. @returns {import("./types.js").Table} */
  table() {
    const rows = this.groups.flatMap(({ run, matrices, tiles }) => {
      const { view } = matrices;
      const { frame, at, place } = this.scene.frameOf(run, view);
      const head = [this.scene.runs[run].data.name, frame + 1, at];
      const shown = tiles.filter((tile) => !tile.element.hidden && place >= 0);
      return shown.flatMap(({ panel }) =>
        view.rows.flatMap((row, i) =>
          view.columns.map((column, j) => {
            const { value, precision } = matrices.reading(place, panel, i, j);
            return [...head, view.panels[panel], row, column, value, precision, view.marks?.names[matrices.kind(i, j)] ?? null];
          }),
        ),
      );
    });
    const { row_axis, column_axis } = this.groups[0].matrices.view;
    return { columns: ["run", "frame", this.scene.clock, "panel", row_axis, column_axis, "value", "precision", "mark"], rows };
  }
}

/**
 * @param {Store} store
 * @param {Scene} scene
 * @param {{run: number, view: View}[]} views of kind "matrices"
 * @returns {Promise<HeatPanel>}
 */
export async function heatPanel(store, scene, views) {
  const parts = views.map(async ({ run, view: any }) => {
    const view = /** @type {MatricesView} */ (any);
    const [numbers, kinds] = await Promise.all([store.get(view.values), view.marks ? store.get(view.marks.cells) : null]);
    return { run, matrices: new Matrices(view, numbers, kinds) };
  });
  const heat = new Heat(scene, await Promise.all(parts));
  return {
    element: heat.element,
    show: () => heat.show(),
    recolour: () => heat.recolour(),
    table: () => heat.table(),
    value: (run, panel, row, column) => {
      const group = heat.groups.find((one) => one.run === run);
      if (!group) throw new Error(`run ${run} has no such matrices`);
      const { place } = scene.frameOf(run, group.matrices.view);
      return group.matrices.reading(place, panel, row, column);
    },
  };
}
