/** Heat maps as files: the numbers shown, and the drawing as it stands on the page. */

import { inks } from "./colours.js";
import { brief } from "./dom.js";
import { LEGEND_HEIGHT, heatLegendShapes } from "./heat_legend.js";
import { markPath, round, svgFile, textShape } from "./shapes.js";
import { FONT_SIZE, markColour } from "./tile.js";

/** @typedef {import("./types.js").Table} Table */
/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./heat.js").Group} Group */
/** @typedef {import("./shapes.js").Shape} Shape */
/** @typedef {import("./tile.js").Tile} Tile */

const FILE_EDGE = 12; // px around the drawing

/** @param {Group} group the maps that are shown */
function shownTiles(group) {
  return group.tiles.filter((tile) => !tile.element.hidden && tile.place >= 0);
}

/**
 * A row for each cell on the page.
 * @param {Scene} scene
 * @param {Group[]} groups
 * @returns {Table}
 */
export function heatTable(scene, groups) {
  /** @type {(string|number|null)[][]} */
  const rows = [];
  for (const group of groups) {
    const { view } = group.matrices;
    const { frame, at } = scene.frameOf(group.run, view);
    const { name } = scene.runs[group.run].data;
    for (const { panel, place, matrices } of shownTiles(group)) {
      view.rows.forEach((row, i) => {
        view.columns.forEach((column, j) => {
          const { value, precision } = matrices.reading(place, panel, i, j);
          const mark = view.marks?.names[matrices.kind(i, j)] ?? null;
          rows.push([name, frame + 1, at, view.panels[panel], row, column, value, precision, mark]);
        });
      });
    }
  }
  const { row_axis, column_axis } = groups[0].matrices.view;
  return { columns: ["run", "frame", scene.clock, "panel", row_axis, column_axis, "value", "precision", "mark"], rows };
}

/**
 * @param {Scene} scene
 * @param {Group[]} groups
 * @param {HTMLElement} element that holds them on the page
 */
export function heatSvg(scene, groups, element) {
  const box = element.getBoundingClientRect();
  const top = LEGEND_HEIGHT + FILE_EDGE - Math.min(...groups.map((group) => group.element.offsetTop));
  const shapes = heatLegendShapes(groups[0].matrices, 0);
  for (const group of groups) {
    const name = scene.runs.length > 1 ? `${brief(scene.runs[group.run].data.name, 60)}: ` : "";
    const { offsetLeft, offsetTop } = group.element;
    shapes.push(textShape(offsetLeft, offsetTop + top + 12, `${name}${group.when.textContent}`, { "font-weight": 600 }));
    for (const tile of shownTiles(group)) {
      const place = tile.plot.getBoundingClientRect();
      const [x, y] = [place.left - box.left, place.top - box.top + top];
      const caption = brief(tile.matrices.view.panels[tile.panel], 60);
      shapes.push(textShape(x + tile.grid.left, y - 6, caption), [
        "g",
        { transform: `translate(${round(x)} ${round(y)})` },
        tileShapes(tile),
      ]);
    }
  }
  const inside = /** @type {Shape} */ (["g", { transform: `translate(${FILE_EDGE} ${FILE_EDGE})` }, shapes]);
  return svgFile({ width: box.width + 2 * FILE_EDGE, height: box.height + top + 2 * FILE_EDGE, shapes: [inside] });
}

/** Cells, outline, labels and marks of one map. @param {Tile} tile @returns {Shape[]} */
function tileShapes(tile) {
  const { left, top, width, height } = tile.grid;
  const ink = inks();
  const cells = [...cellPaths(tile)].map(([fill, d]) => /** @type {Shape} */ (["path", { fill, d }]));
  const labels = tile.labels.map(({ x, y, anchor, turned, text }) => {
    const look = { fill: ink.muted, "font-size": FONT_SIZE, "text-anchor": anchor };
    return turned
      ? textShape(0, 0, text, { ...look, transform: `translate(${round(x)} ${round(y)}) rotate(-90)` })
      : textShape(x, y, text, look);
  });
  const marks = tile.marks().map(({ kind, x, y, r }) => {
    const outline = { stroke: ink.paper, "stroke-width": 1, "paint-order": "stroke" };
    return /** @type {Shape} */ ([
      "path",
      { d: markPath(kind, round(x), round(y), round(r)), fill: markColour(kind), ...outline },
    ]);
  });
  return [
    ["g", { "shape-rendering": "crispEdges" }, cells],
    ["rect", { x: left, y: top, width, height, fill: "none", stroke: ink.line }],
    ...labels,
    ...marks,
  ];
}

/**
 * Cells of one colour in one path, neighbours along a row joined: a map of 100 x 100 stays below 300 kB.
 * @param {Tile} tile
 * @returns {Map<string, string>}
 */
function cellPaths({ matrices, place, panel, grid }) {
  const { rows, columns } = matrices;
  const { left, top, cellWidth, cellHeight } = grid;
  /** @type {Map<string, string>} */
  const paths = new Map();
  for (let row = 0; row < rows; row++) {
    for (let from = 0, to; from < columns; from = to) {
      const colour = matrices.colour(place, panel, row, from);
      for (to = from + 1; to < columns && matrices.colour(place, panel, row, to) === colour;) to++;
      const run = round((to - from) * cellWidth);
      const d = `M${round(left + from * cellWidth)} ${round(top + row * cellHeight)}h${run}v${round(cellHeight)}h${-run}z`;
      if (colour) paths.set(colour, (paths.get(colour) ?? "") + d);
    }
  }
  return paths;
}
