/** The curves of a slot as lines to draw: whose they are, their colour and their dashes. */

import { category, colourMap, css, inks } from "./colours.js";

/** @typedef {import("./types.js").CurvesView} CurvesView */
/** @typedef {import("./types.js").Level} Level */
/** @typedef {import("./blocks.js").Store} Store */
/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {{run: number, view: CurvesView}} RunCurves */
/**
 * @typedef {{name: string, key: string, run: number, view: CurvesView, values: Float64Array, faint: boolean, dash: number[],
 *   dashed: boolean, colour: () => string, on: boolean}} Line
 *   `key` is the same for the same curve of other runs.
 *   `colour` asks for the theme each time; `on` is false while the reader hides the line.
 */

/** Dashes tell runs apart where colours tell curves apart, and where runs are more than colours. */
const DASHES = [[], [6, 4], [2, 3], [9, 3, 2, 3], [12, 4], [1, 4]];
const DASHED = [3, 3]; // what was not measured
const OWN_COLOURS = 8; // as many as the categories hold; more curves of one family share a ramp
const TINT = 0.45; // of the page's colour in the palest curve of a family
const FAINT = 0.55; // of the page's colour in the crowd
const PALEST = 0.3; // of the ramp, as a share: paler ones do not stand on the page

/** @param {string} colour #rrggbb @param {string} other #rrggbb @param {number} share of the other */
function mixed(colour, other, share) {
  const channel = (/** @type {string} */ hex, /** @type {number} */ at) => parseInt(hex.slice(at, at + 2), 16);
  return css(
    /** @type {[number, number, number]} */ (
      [1, 3, 5].map((at) => Math.round((1 - share) * channel(colour, at) + share * channel(other, at)))
    ),
  );
}

/**
 * Decodes the curves of a slot and gives each its look: colour for the curve and dashes for the run; if every run has one
 * curve, colour for the run. Curves of one of several families are tints of the family's colour.
 * @param {Store} store
 * @param {Scene} scene
 * @param {RunCurves[]} views
 * @returns {Promise<Line[]>}
 */
export async function linesOf(store, scene, views) {
  const single = onePerRun(views);
  const palette = paletteOf(views);
  const lines = await Promise.all(
    views.flatMap(({ run, view }, place) =>
      view.curves.map(async (curve, i) => ({
        name: curve.name,
        key: `${view.curves.slice(0, i).filter((other) => other.name === curve.name).length} ${curve.name}`,
        run,
        view,
        values: /** @type {Float64Array} */ (await store.get(curve.values)),
        faint: curve.faint,
        dashed: curve.dashed,
        dash: curve.dashed ? DASHED : DASHES[(single ? Math.floor(place / OWN_COLOURS) : place) % DASHES.length],
        colour: single ? () => category(place) : ((curve.faint ? null : scene.tokenColour(curve.token)) ?? palette(curve)),
        on: true,
      })),
    ),
  );
  return lines.sort((a, b) => Number(b.faint) - Number(a.faint)); // the crowd is drawn first, behind the others
}

/** @param {RunCurves[]} views Several runs with one curve each, or one and what was predicted of it. */
export function onePerRun(views) {
  return views.length > 1 && views.every(({ view }) => view.curves.filter((curve) => !curve.dashed).length === 1);
}

/**
 * Colours by the curve's name and family, the same in every run. A curve without a family is one by itself among families.
 * @param {RunCurves[]} views
 * @returns {(curve: {name: string, family: string, faint: boolean}) => () => string}
 */
function paletteOf(views) {
  const curves = views.flatMap(({ view }) => view.curves);
  const several = new Set(curves.map(({ family }) => family)).size > 1;
  const familyOf = (/** @type {{name: string, family: string}} */ { name, family }) =>
    several && family === "" ? `of ${name}` : family;
  /** @type {Map<string, string[]>} */
  const families = new Map();
  for (const curve of curves) {
    if (curve.faint && curve.family === "") continue;
    const members = families.get(familyOf(curve)) ?? [];
    if (!curve.faint && !members.includes(curve.name)) members.push(curve.name);
    families.set(familyOf(curve), members);
  }
  const names = [...families.keys()];
  return (curve) => {
    const place = names.indexOf(familyOf(curve));
    const members = families.get(familyOf(curve)) ?? [];
    const rank = members.indexOf(curve.name);
    if (curve.faint) return () => mixed(several && curve.family !== "" ? category(place) : inks().muted, inks().paper, FAINT);
    if (several) return () => mixed(category(place), inks().paper, (TINT * rank) / Math.max(1, members.length - 1));
    return members.length <= OWN_COLOURS ? () => category(rank) : () => ramped(1 - ((1 - PALEST) * rank) / (members.length - 1));
  };
}

/** @param {number} share of the way from the palest to the strongest colour of the map */
function ramped(share) {
  const map = colourMap(false);
  return css(map[Math.round(share * (map.length - 1))]);
}

/** @typedef {Level & {colour: () => string}} LevelLine */

/**
 * Computed levels of all runs, each once. Where colours stand for runs, a level of one run alone has the run's colour.
 * @param {RunCurves[]} views
 * @returns {LevelLine[]}
 */
export function levelsOf(views) {
  /** @type {Map<string, Level & {places: number[]}>} */
  const found = new Map();
  views.forEach(({ view }, place) => {
    for (const level of view.levels) {
      const key = `${level.value} ${level.name}`;
      found.set(key, { ...level, places: [...(found.get(key)?.places ?? []), place] });
    }
  });
  const own = onePerRun(views);
  return [...found.values()].map(({ name, value, places }) => ({
    name,
    value,
    colour: () => (own && places.length === 1 ? category(places[0]) : inks().muted),
  }));
}
