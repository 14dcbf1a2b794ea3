/** The legend of a plot of curves: every curve with its value at the present frame. Its entries show and hide curves. */

import { count, el, full, nameOf, setText, short, svgEl } from "./dom.js";
import { onePerRun } from "./lines.js";
import { levelName } from "./plot.js";

/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./lines.js").Line} Line */
/** @typedef {import("./lines.js").RunCurves} RunCurves */
/** @typedef {import("./types.js").Level} Level */
/** @typedef {{element: HTMLElement, show: (time: number) => void, recolour: () => void,
 *   levels: Map<Level, HTMLElement>}} CurveLegend `levels`: entries for those that find no room beside the plot */

const NAMED = 40; // characters of a name in a legend

/**
 * @param {Scene} scene
 * @param {RunCurves[]} views
 * @param {Line[]} lines
 * @param {Level[]} levels
 * @param {(line: Line) => void} toggle
 * @returns {CurveLegend}
 */
export function curveLegend(scene, views, lines, levels, toggle) {
  const table = views.length > 1 && !onePerRun(views);
  const entries = lines.map((line) => entryOf(scene, line, onePerRun(views), toggle));
  const main = entries.filter(({ line }) => !line.faint);
  const crowd = entries.filter(({ line }) => line.faint);
  const heads = views.map(({ run, view }) => headOf(scene, run, view, views.length > 1));
  const folded = crowdOf(crowd, () => show(scene.time));
  const body = table ? tableOf(heads, main, views) : listOf(main);
  const alike = el("span", { class: "frame-said" });
  const items = new Map(levels.map((level) => [level, levelItem(level)]));
  const said = table ? null : el("p", { class: "legend-frames" }, [alike, ...heads.map((head) => head.element)]);
  const element = el("div", { class: "legend" }, [body, el("ul", { class: "legend-list" }, [...items.values()]), folded, said]);

  /** @param {number} time */
  function show(time) {
    const frames = new Set(heads.map((head) => head.show(time)));
    const same = !table && heads.length > 1 && frames.size === 1; // said once for all runs
    setText(alike, same ? `all runs: ${[...frames][0]}` : "");
    if (!table) for (const head of heads) head.element.hidden = same;
    for (const entry of main) entry.show(time);
    if (folded?.open) for (const entry of crowd) entry.show(time);
  }
  const recolour = () => entries.forEach((entry) => entry.recolour());
  recolour();
  return { element, show, recolour, levels: items };
}

/**
 * Which frame of a run the values belong to.
 * @param {Scene} scene
 * @param {number} run
 * @param {import("./types.js").View} view
 * @param {boolean} named
 */
function headOf(scene, run, view, named) {
  const frame = el("span", { class: "frame-said" });
  const element = el("span", { class: "legend-head" }, [named ? nameOf(scene.runs[run].short, NAMED) : null, frame]);
  const show = (/** @type {number} */ time) => {
    const text = scene.frameText(scene.frameAt(run, view, time));
    setText(frame, text);
    return text;
  };
  return { run, element, show };
}

/** @param {Scene} scene @param {Line} line @param {boolean} byRun @param {(line: Line) => void} toggle */
function entryOf(scene, line, byRun, toggle) {
  const look = { "stroke-width": line.faint ? 1 : 2, "stroke-dasharray": line.dash.join(" ") || null };
  const stroke = svgEl("line", { x1: 1, y1: 5, x2: 23, y2: 5, ...look });
  const value = el("span", { class: "value" });
  const whose = scene.runs[line.run].short;
  const name = !byRun ? line.name : line.dashed ? `${whose}, ${line.name}` : whose;
  const press = () => {
    line.on = !line.on;
    element.setAttribute("aria-pressed", String(line.on));
    toggle(line);
  };
  const swatch = svgEl("svg", { class: "swatch", viewBox: "0 0 24 10", "aria-hidden": "true" }, stroke);
  const element = el("button", { type: "button", class: "entry", "aria-pressed": "true", on: { click: press } }, [
    swatch,
    nameOf(name, NAMED),
    value,
  ]);
  const show = (/** @type {number} */ time) => {
    const number = line.values[scene.frameAt(line.run, line.view, time).place];
    setText(value, short(number));
    value.title = full(number);
  };
  const recolour = () => (stroke.style.stroke = line.colour());
  return { line, element, show, recolour };
}

/**
 * Curves down, runs across.
 * @param {{run: number, element: HTMLElement}[]} heads
 * @param {{line: Line, element: HTMLElement}[]} entries
 * @param {RunCurves[]} views
 */
function tableOf(heads, entries, views) {
  const keys = [...new Set(entries.map(({ line }) => line.key))];
  const rows = keys.map((key) => {
    const cells = views.map(({ view }) =>
      el("td", {}, entries.find(({ line }) => line.view === view && line.key === key)?.element),
    );
    return el("tr", {}, cells);
  });
  const head = el("tr", {}, heads.map(({ element }) => el("th", { scope: "col" }, element)));
  return el("table", { class: "legend-table" }, [el("thead", {}, head), el("tbody", {}, rows)]);
}

/** @param {{element: HTMLElement}[]} entries */
function listOf(entries) {
  return el("ul", { class: "legend-list" }, entries.map(({ element }) => el("li", {}, element)));
}

/** @param {Level} level */
function levelItem(level) {
  return el("li", { class: "level" }, [
    el("span", { class: "level-swatch", "aria-hidden": "true" }),
    el("bdi", { text: levelName(level, NAMED), title: `${level.name}: ${full(level.value)}` }),
  ]);
}

/**
 * The faint curves, folded away.
 * @param {{element: HTMLElement}[]} crowd
 * @param {() => void} opened
 */
function crowdOf(crowd, opened) {
  if (!crowd.length) return null;
  const said = `${count(crowd.length)} faint ${crowd.length === 1 ? "curve" : "curves"}`;
  return el("details", { class: "crowd", on: { toggle: opened } }, [el("summary", { text: said }), listOf(crowd)]);
}
