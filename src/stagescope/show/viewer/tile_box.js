/** How large maps are that share a box. */

/** @typedef {import("./tile.js").Tile} Tile */

export const GAP = 16; // px between maps
const CAPTION = 22; // px above a map
const SMALLEST_TILE = 68; // px
const SMALLEST_IN_ROW = 88; // px below which the name of a head in its layer is cut

/**
 * The size of maps that wrap inside a box: as large as can be, and then as many side by side as can be.
 * @param {Tile[]} tiles
 * @param {number} width
 * @param {number} height
 * @param {number|null} row how many belong into a row: a row then has as many, or where they do not fit, a share that is whole
 * @returns {[width: number, height: number, across: number]}
 */
export function tileBox(tiles, width, height, row) {
  /** @type {[number, number, number]} */
  let best = [width, height, 1];
  let largest = -1;
  for (let across = 1; across <= tiles.length; across++) {
    if (row && row % across) continue;
    const w = Math.floor((width - GAP * (across - 1)) / across);
    const h = Math.floor(height / Math.ceil(tiles.length / across)) - CAPTION;
    /** @type {[number, number]} */
    const box = [Math.max(SMALLEST_TILE, w), Math.max(SMALLEST_TILE, h)];
    const side = Math.min(...tiles[0].cell(...box));
    if (w >= (row ? SMALLEST_IN_ROW : SMALLEST_TILE) && (row || side >= largest)) [best, largest] = [[...box, across], side];
  }
  return best;
}
