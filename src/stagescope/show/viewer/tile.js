/**
 * One matrix on the page: a canvas of one pixel a cell, stretched; above it a canvas with labels and marks, drawn only when
 * the size changes; and a frame around the cell being read.
 */

import { category, inkOn, inks, rgbOf } from "./colours.js";
import { brief, el, nameOf } from "./dom.js";
import { markPath } from "./shapes.js";
import { labelsOf } from "./tile_labels.js";
import { cellNumber, labelWidth } from "./tile_text.js";

/** @typedef {import("./matrix.js").Matrices} Matrices */
/** @typedef {import("./tile_labels.js").Label} Label */
/** @typedef {{left: number, top: number, width: number, height: number, cellWidth: number, cellHeight: number}} Grid */

const FEW = 10; // rows and columns up to which cells are large and have numbers
const LABELS = { least: 84, share: 0.34, most: 170 }; // px, and share of a side, that labels may take beside or below a map
const LARGEST_CELL = 56; // px
const LARGEST_OF_FEW = 104; // px a cell with a number
const LEAST_NUMBERED = 34; // px a cell below which it has no number
const ELONGATED = 3; // from this ratio of sides on cells may be stretched, and up to it
const STRETCHED = 36; // px a stretched cell takes at most
const SMALLEST_LABELLED = 110; // px a side below which a map carries no labels
const SMALLEST_MARKED = 7; // px a cell below which marks are only named on hover
const LAST_LABEL = 4; // px a label of the last column may stand beside it
const OVERHANG = 4; // px a label of the first row may stand above it
const STRIP = 11; // px of the strip of marks above the columns

/** Colours of kinds of marks: those that no map uses, the strongest first. @param {number} kind */
export function markColour(kind) {
  return kind === 1 ? inks().ink : category([1, 0, 3, 4][kind % 4]);
}

export class Tile {
  /**
   * @param {Matrices} matrices
   * @param {number} panel
   * @param {string} caption
   * @param {string} spoken what a screen reader calls it
   * @param {(token: string) => (() => string)|null} colour of a row or column that is a token
   */
  constructor(matrices, panel, caption, spoken, colour) {
    this.colour = colour;
    this.matrices = matrices;
    this.panel = panel;
    this.place = -1;
    this.missing = false;
    const { rows, columns } = matrices;
    const { row_axis, column_axis } = matrices.view;
    const size = `${rows} ${row_axis} rows, ${columns} ${column_axis} columns`;
    const label = `${brief(spoken, 80)}: ${size}. Arrow keys read cells, Enter enlarges.`;
    this.canvas = el("canvas", {
      class: "tile-cells",
      width: Math.max(1, columns),
      height: Math.max(1, rows),
      tabindex: -1,
      role: "application",
      "aria-roledescription": "heat map",
      "aria-label": label,
      data: { panel },
    });
    this.few = rows <= FEW && columns <= FEW && rows > 1 && columns > 1;
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.image = this.context.createImageData(this.canvas.width, this.canvas.height);
    this.out = new Uint32Array(this.image.data.buffer);
    this.over = el("canvas", { class: "tile-over", "aria-hidden": "true" });
    this.numbers = el("canvas", { class: "tile-numbers", "aria-hidden": "true" });
    this.frame = el("div", { class: "tile-frame", hidden: true });
    this.plot = el("div", { class: "tile-plot" }, [this.canvas, this.over, this.few ? this.numbers : null, this.frame]);
    this.zoom = el("button", { type: "button", class: "tile-zoom", tabindex: -1 });
    this.element = el("figure", { class: "tile" }, [
      caption ? el("figcaption", {}, [nameOf(caption, 60), this.zoom]) : null,
      this.plot,
    ]);
    /** @type {Grid} */
    this.grid = { left: 0, top: 0, width: 0, height: 0, cellWidth: 1, cellHeight: 1 };
    /** @type {Label[]} */
    this.labels = [];
  }

  /** How much larger everything may be: in a lecture it is read from the last row. */
  get growth() {
    return document.body.classList.contains("guided") ? 1.5 : 1;
  }

  /** Pixels of the labels: larger where there is room. */
  get font() {
    return (this.few ? 12 : 10) * this.growth;
  }

  /**
   * Room the labels take beside and below the cells.
   * @param {number} width of the box
   * @param {number} height
   */
  margins(width, height) {
    const { view } = this.matrices;
    if (Math.min(width, height) < SMALLEST_LABELLED) return { left: 0, right: 0, bottom: 0, top: this.strip() ? STRIP : 0 };
    const widest = (/** @type {string[]} */ names, /** @type {number} */ side) => {
      const room = Math.max(LABELS.least, Math.min(LABELS.most * this.growth, LABELS.share * side));
      return Math.min(room, names.reduce((most, name) => Math.max(most, labelWidth(name, this.font)), 0));
    };
    return {
      left: Math.ceil(widest(view.rows, width)) + 6,
      right: LAST_LABEL,
      bottom: Math.ceil(widest(view.columns, height)) + 6,
      top: this.strip() ? STRIP : OVERHANG,
    };
  }

  /** Kinds of whole columns, if the marks are such. */
  strip() {
    return this.matrices.rows > 1 ? this.matrices.columnKinds() : null;
  }

  /**
   * The width and height of a cell in a box: a square, but stretched where a matrix of few rows or columns leaves room.
   * @param {number} width
   * @param {number} height
   * @returns {[number, number]}
   */
  cell(width, height) {
    const { rows, columns } = this.matrices;
    const margin = this.margins(width, height);
    const largest = (this.few ? LARGEST_OF_FEW : LARGEST_CELL) * this.growth;
    const across = Math.min(largest, (width - margin.left - margin.right) / columns);
    const down = Math.min(largest, (height - margin.bottom - margin.top) / rows);
    const side = Math.min(across, down);
    const whole = (/** @type {number} */ size) => (size >= 2 ? Math.floor(size) : Math.max(0.2, size));
    if (Math.max(rows, columns) < ELONGATED * Math.min(rows, columns)) return [whole(side), whole(side)];
    const longer = Math.max(side, Math.min(STRETCHED, ELONGATED * side));
    return [whole(Math.min(across, longer)), whole(Math.min(down, longer))];
  }

  /**
   * Takes its size in a box and draws labels and marks.
   * @param {number} width
   * @param {number} height
   */
  resize(width, height) {
    const labelled = Math.min(width, height) >= SMALLEST_LABELLED;
    const { left, right, bottom, top } = this.margins(width, height);
    const [cellWidth, cellHeight] = this.cell(width, height);
    const { rows, columns } = this.matrices;
    this.grid = { left, top, width: cellWidth * columns, height: cellHeight * rows, cellWidth, cellHeight };
    this.labels = labelled ? labelsOf(this.matrices.view, this.grid, this.font, bottom) : [];
    const flat = bottom > 0 && this.labels.every((label) => !label.turned);
    this.width = left + this.grid.width + right;
    this.height = top + this.grid.height + (flat ? this.font + 5 : bottom);
    for (const [node, box] of /** @type {[HTMLElement, number[]][]} */ ([
      [this.plot, [0, 0, this.width, this.height]],
      [this.canvas, [left, top, this.grid.width, this.grid.height]],
      [this.numbers, [left, top, this.grid.width, this.grid.height]],
      [this.over, [0, 0, this.width, this.height]],
    ])) {
      [node.style.left, node.style.top, node.style.width, node.style.height] = box.map((side) => `${side}px`);
    }
    this.element.style.width = `${this.width}px`; // a long caption must not push the next map away
    this.canvas.classList.toggle("tile-dense", Math.min(cellWidth, cellHeight) < 1);
    this.draw();
  }

  /**
   * Where marks stand: above columns, in corners of cells, or nowhere at this size.
   * @returns {{kind: number, x: number, y: number, r: number}[]}
   */
  marks() {
    const { rows, columns } = this.matrices;
    const { left, top, cellWidth, cellHeight } = this.grid;
    const strip = this.strip();
    const side = Math.min(cellWidth, cellHeight);
    const r = Math.min(4, side * 0.28);
    if (strip)
      return strip
        .map((kind, i) => ({ kind, x: left + (i + 0.5) * cellWidth, y: top - 5.5, r: Math.min(4, cellWidth * 0.42) }))
        .filter(({ kind }) => kind >= 0);
    if (!this.matrices.kinds || side < SMALLEST_MARKED) return [];
    const marks = [];
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const kind = this.matrices.kind(row, column);
        if (kind >= 0) marks.push({ kind, x: left + column * cellWidth + r + 1.5, y: top + row * cellHeight + r + 1.5, r });
      }
    }
    return marks;
  }

  /** Whether marks are too small to be drawn. */
  get unmarked() {
    return this.matrices.kinds !== null && !this.strip() && Math.min(this.grid.cellWidth, this.grid.cellHeight) < SMALLEST_MARKED;
  }

  /** Draws labels and marks, in the colours of the theme. */
  draw() {
    const scale = Math.max(1, devicePixelRatio);
    const { over, labels } = this;
    over.width = Math.ceil((this.width ?? 1) * scale);
    over.height = Math.ceil((this.height ?? 1) * scale);
    const ink = inks();
    const context = /** @type {CanvasRenderingContext2D} */ (over.getContext("2d"));
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.font = `${this.font}px system-ui`; // as it was measured
    context.fillStyle = ink.muted;
    for (const { x, y, anchor, turned, text, of } of labels) {
      const own = this.matrices.view.tokens ? this.colour(of) : null;
      context.save();
      if (own) context.font = `700 ${this.font}px system-ui`;
      if (own) context.fillStyle = own();
      context.translate(x, y);
      if (turned) context.rotate(-Math.PI / 2);
      context.textAlign = anchor === "end" ? "right" : "center";
      context.fillText(text, 0, 0);
      context.restore();
    }
    context.strokeStyle = ink.paper;
    context.lineWidth = 1.5;
    for (const { kind, x, y, r } of this.marks()) {
      const path = new Path2D(markPath(kind, x, y, r));
      context.fillStyle = markColour(kind);
      context.stroke(path);
      context.fill(path);
    }
    if (this.few) this.write();
  }

  /** @param {number} place of the frame; draws its cells unless they are drawn @param {boolean} [anew] */
  paint(place, anew = false) {
    if (place === this.place && !anew) return;
    this.place = place;
    if (place < 0 || !this.matrices.cells) return;
    this.missing = this.matrices.paint(place, this.panel, this.out);
    this.context.putImageData(this.image, 0, 0);
    if (this.few) this.write();
  }

  /** Writes the numbers of a small matrix into its cells, in the ink that stands out there. */
  write() {
    const { matrices, numbers, grid } = this;
    const scale = Math.max(1, devicePixelRatio);
    const side = Math.min(grid.cellWidth, grid.cellHeight);
    const [width, height] = [Math.ceil(grid.width * scale), Math.ceil(grid.height * scale)];
    if (numbers.width !== width || numbers.height !== height) [numbers.width, numbers.height] = [width, height];
    const context = /** @type {CanvasRenderingContext2D} */ (numbers.getContext("2d"));
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, grid.width, grid.height);
    if (side < LEAST_NUMBERED || this.place < 0) return;
    context.font = `${Math.min(22 * this.growth, side * 0.3)}px system-ui`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let row = 0; row < matrices.rows; row++) {
      for (let column = 0; column < matrices.columns; column++) {
        const { value } = matrices.reading(this.place, this.panel, row, column);
        if (!Number.isFinite(value)) continue;
        context.fillStyle = inkOn(rgbOf(this.out[row * matrices.columns + column]));
        context.fillText(cellNumber(value), (column + 0.5) * grid.cellWidth, (row + 0.5) * grid.cellHeight);
      }
    }
  }

  /** @param {MouseEvent} event -> the cell under the pointer */
  cellAt(event) {
    const { rows, columns } = this.matrices;
    const row = Math.floor(event.offsetY / this.grid.cellHeight);
    const column = Math.floor(event.offsetX / this.grid.cellWidth);
    return row >= 0 && row < rows && column >= 0 && column < columns ? { row, column } : null;
  }

  /** @param {{row: number, column: number}|null} cell the cell to frame; null, or a cell outside this matrix, frames none */
  point(cell) {
    const here = cell && cell.row < this.matrices.rows && cell.column < this.matrices.columns;
    this.frame.hidden = !here;
    if (!here) return;
    const { left, top, cellWidth, cellHeight } = this.grid;
    const style = this.frame.style;
    style.transform = `translate(${left + cell.column * cellWidth - 1}px, ${top + cell.row * cellHeight - 1}px)`;
    style.width = `${Math.max(2, cellWidth) + 2}px`;
    style.height = `${Math.max(2, cellHeight) + 2}px`;
  }
}
