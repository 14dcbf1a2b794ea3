/** Which panels a scene has, in which order, and how wide each is. */

/** @typedef {import("./types.js").View} View */
/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {{run: number, view: View}[]} Views what runs show in one slot */

const SIDE_BY_SIDE = 4; // maps that fit beside the loss

/**
 * Views of all runs by slot, in the order in which runs name them. Views of different kinds never share a panel.
 * @param {Scene} scene
 * @returns {Views[]}
 */
export function slotsOf(scene) {
  /** @type {Map<string, Views>} */
  const slots = new Map();
  scene.runs.forEach(({ data }, run) => {
    for (const view of data.views) {
      const key = `${view.kind} ${view.slot}`;
      const views = slots.get(key) ?? [];
      views.push({ run, view });
      slots.set(key, views);
    }
  });
  return [...slots.values()];
}

/** @typedef {"most"|"rest"|"half"|"whole"} Width of the page a panel takes */

/** How many maps a slot shows. @param {Views} views */
function mapsIn(views) {
  return views.reduce((sum, { view }) => sum + (view.kind === "matrices" ? view.panels.length : 0), 0);
}

/**
 * Slots in the order and width in which they are shown: the loss first, beside it the first maps if they are few; many maps
 * take a row of their own; the others go in pairs. Plots of curves can be wide: if one is left over, it is the last of these.
 * @param {Views[]} slots
 * @returns {{views: Views, width: Width}[]}
 */
export function arrange(slots) {
  const loss = slots.find(([{ view }]) => view.slot === "loss" && view.kind === "curves");
  const maps = slots.find(([{ view }]) => view.kind === "matrices");
  const beside = loss && maps && mapsIn(maps) <= SIDE_BY_SIDE;
  /** @type {{views: Views, width: Width}[]} */
  const top = [];
  if (loss) top.push({ views: loss, width: beside ? "most" : "whole" });
  if (maps) top.push({ views: maps, width: beside ? "rest" : "whole" });
  const others = slots.filter((views) => views !== loss && views !== maps);
  /** @type {{views: Views, width: Width}[]} */
  const rest = others.map((views) => {
    const wide = mapsIn(views) > SIDE_BY_SIDE || (views[0].view.kind === "points" && views.length > 2);
    return { views, width: wide ? "whole" : "half" };
  });
  const halves = rest.filter(({ width }) => width === "half");
  const spare = halves.filter(({ views }) => views[0].view.kind === "curves").pop();
  const paired = halves.filter((one) => halves.length % 2 === 0 || one !== spare);
  return [
    ...top,
    ...rest.filter(({ width }) => width === "whole"),
    ...paired,
    ...(halves.length % 2 && spare ? [{ views: spare.views, width: /** @type {Width} */ ("whole") }] : []),
  ];
}

/**
 * Which plots have the stages above them: the first in each column; below it they would only be repeated.
 * @param {{views: Views, width: Width}[]} arranged
 * @returns {Set<Views>}
 */
export function crownedOf(arranged) {
  /** @type {Set<Views>} */
  const crowned = new Set();
  const done = [false, false];
  let column = 0;
  for (const { views, width } of arranged) {
    const columns = width === "whole" ? [0, 1] : width === "most" ? [0] : width === "rest" ? [1] : [column];
    if (width === "half") column = 1 - column;
    if (views[0].view.kind !== "curves" || columns.every((one) => done[one])) continue;
    crowned.add(views);
    for (const one of columns) done[one] = true;
  }
  return crowned;
}
