/**
 * Curves over time. uPlot draws axes and lines; lines are traced here from each run's own frames, so runs need no common grid.
 * Scrubbing redraws nothing: the cursor, the dots on the curves and the highlighted span are elements that move.
 */

import { brief, count, el } from "./dom.js";
import { axisTools } from "./axis_tools.js";
import { curveLegend } from "./curve_legend.js";
import { pointAt } from "./curve_pointer.js";
import { levelsOf, linesOf } from "./lines.js";
import { levelName, levelPlaces, ribbonRows } from "./plot.js";
import { plotOptions } from "./plot_options.js";
import { momentsOf, ribbonsOf } from "./stages.js";
import { zoomByAxis, zoomByPinch } from "./zoom.js";
import { extent, valueAxis } from "./traces.js";
import { timeName } from "./time_axis.js";

/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./traces.js").Axis} Axis */
/** @typedef {import("./lines.js").Line} Line */
/** @typedef {import("./lines.js").RunCurves} RunCurves */
/** @typedef {import("./types.js").Panel} Panel */

const DOTS = 16; // more dots than this hide the curves they sit on
const LEVEL_AIR = 5; // px between the name of a level and the end of the axis
const LEVEL_PLACES = [1, 0.84, 0.67, 0.5, 0.33, 0.16, 0]; // along the axis, the best first: where the name of a level may stand
const LEVEL_CLEAR = 0.07; // of the height: more room than this is no better
const LEVEL_SLACK = 0.01; // of the height: a place is not worse where it has so much less room
const LOOKS = [0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1]; // along a name, where it is looked for curves

/**
 * @param {import("./blocks.js").Store} store
 * @param {Scene} scene
 * @param {RunCurves[]} views
 * @param {boolean} crowned whether stages stand above it: once in a column of plots
 * @returns {Promise<Panel>}
 */
export async function curvesPanel(store, scene, views, crowned) {
  return new CurvesPlot(scene, views, await linesOf(store, scene, views), crowned).panel();
}

/** One plot: the curves of a slot for all runs of a scene. */
export class CurvesPlot {
  /** @param {Scene} scene @param {RunCurves[]} views @param {Line[]} lines @param {boolean} crowned */
  constructor(scene, views, lines, crowned) {
    this.scene = scene;
    this.views = views;
    this.lines = lines;
    this.slot = views[0].view.slot;
    this.levels = levelsOf(views);
    this.moments = momentsOf(scene);
    this.ribbon = ribbonRows(crowned && scene.times.length > 1 ? ribbonsOf(scene) : [], this.slot === "loss");
    this.now = el("div", { class: "now" });
    this.band = el("div", { class: "marked" });
    this.tag = el("div", { class: "tag" });
    this.dots = lines.filter((line) => !line.faint).length <= DOTS ? lines.filter((line) => !line.faint) : [];
    this.marks = this.dots.map(() => el("i", { class: "dot" }));
    this.names = new Map(
      this.levels.map((level) => [
        level,
        el("span", { class: "level-name", text: levelName(level) }),
      ]),
    );
    const curves = lines.length === 1 ? "one curve" : `${count(lines.length)} curves`;
    this.plot = el("div", {
      class: "plot",
      role: "img",
      "aria-label": `${brief(views[0].view.title, 80)}: ${curves} over ${scene.clock}; CSV saves the numbers`,
    });
    this.legend = curveLegend(scene, views, lines, this.levels, (line) =>
      this.uplot?.setSeries(lines.indexOf(line) + 1, { show: line.on }),
    );
    /** @type {uPlot|null} */
    this.uplot = null;
    this.width = 0;
    this.height = 0;
    const [x, y] = this.axes();
    this.x = x;
    this.y = y;
    new ResizeObserver(() => this.resize()).observe(this.plot);
    scene.onMark(() => this.showMark());
    scene.settings.on((name) => {
      if (name === this.slot || name === "guided") this.rebuild();
    });
    scene.scale.on(() => this.rescale());
  }

  /** @returns {Panel} */
  panel() {
    return {
      element: el("div", { class: "curves" }, [this.plot, this.legend.element]),
      tools: axisTools(this.scene, this.views),
      show: (time) => this.show(time),
      recolour: () => this.recolour(),
      table: () => this.table(),
    };
  }

  /** @returns {[Axis, Axis]} */
  axes() {
    const { scene, views, lines, levels } = this;
    const log = scene.isLog(this.slot) && views.some(({ view }) => view.log);
    const ends = extent([...lines.map((line) => line.values), levels.map((level) => level.value)], log);
    return [scene.axis, valueAxis(ends, log)];
  }

  /** What the axis of time is called. */
  get timeName() {
    return timeName(this.scene);
  }

  /** Another scale or window of time: the lines are traced again, the plot stays. */
  rescale() {
    this.x = this.scene.axis;
    if (!this.uplot) return;
    this.uplot.axes[0].label = this.timeName;
    this.uplot.redraw(true, true);
    this.settle();
  }

  rebuild() {
    [this.x, this.y] = this.axes();
    this.uplot?.destroy();
    this.uplot = null;
    this.build();
  }

  build() {
    this.measure();
    if (!this.width) return;
    const ends = [0, 1];
    const u = new uPlot(plotOptions(this), [ends, ...this.lines.map(() => ends)], this.plot);
    this.uplot = u;
    u.under.append(this.band);
    u.over.append(this.now, ...this.marks, ...this.names.values(), this.tag);
    pointAt(this, u.over);
    const strip = el("div", { class: "axis-strip" });
    u.over.append(strip);
    zoomByAxis(this.scene, strip, u.over);
    zoomByPinch(this.scene, u.over, u.over);
    this.colourMarks();
    this.settle();
  }

  /** Puts everything that moves in its place, after uPlot has laid itself out in a microtask of its own. */
  settle() {
    queueMicrotask(() => {
      this.showLevels();
      this.showMark();
      this.show(this.scene.time);
    });
  }

  measure() {
    this.width = Math.floor(this.plot.clientWidth);
    this.height = Math.floor(this.plot.clientHeight);
  }

  resize() {
    const before = [this.width, this.height];
    this.measure();
    if (!this.uplot) return this.build();
    const { width, height } = this;
    if (!width || (width === before[0] && height === before[1])) return;
    this.uplot.setSize({ width, height });
    this.settle();
  }

  recolour() {
    this.legend.recolour();
    this.colourMarks();
    this.uplot?.redraw();
  }

  colourMarks() {
    this.dots.forEach((line, i) => (this.marks[i].style.background = line.colour()));
    for (const [level, name] of this.names) name.style.color = level.colour();
  }

  /** Size of the area of the curves in CSS pixels. */
  area() {
    const box = this.uplot?.bbox ?? { width: 0, height: 0 };
    return [box.width / devicePixelRatio, box.height / devicePixelRatio];
  }

  /** @param {number} time -> pixels from the left of the area; times before the axis are at its left end */
  across(time) {
    const share = this.x.at(time);
    return this.area()[0] * (Number.isNaN(share) ? 0 : Math.min(1, Math.max(0, share)));
  }

  /** @param {number} time */
  show(time) {
    this.legend.show(time);
    if (!this.uplot) return;
    this.now.style.transform = `translateX(${this.across(time)}px)`;
    const { min, max } = this.x;
    const height = this.area()[1];
    this.dots.forEach((line, i) => {
      const { at, place } = this.scene.frameAt(line.run, line.view, time);
      const share = this.y.at(line.values[place]);
      const seen = line.on && share >= -0.01 && share <= 1.01 && !(at > max) && !(at < min && !this.x.log);
      this.marks[i].style.visibility = seen ? "visible" : "hidden";
      if (seen) this.marks[i].style.transform = `translate(${this.across(at)}px, ${height * (1 - share)}px)`;
    });
  }

  /** How far the curves are from a height along a part of the axis; both as shares. @param {number} height @param {number} from @param {number} to */
  free(height, from, to) {
    const far = LOOKS.flatMap((look) => {
      const time = this.x.value(from + look * (to - from));
      return this.lines.filter((line) => line.on).map((line) => {
        const { place } = this.scene.frameAt(line.run, line.view, time);
        return Math.abs(this.y.at(line.values[place]) - height);
      });
    });
    return Math.min(LEVEL_CLEAR, ...far.filter((one) => !Number.isNaN(one)));
  }

  /** Names of levels on their lines, where curves leave room, if possible at the right; the legend keeps those that find none. */
  showLevels() {
    const [width, height] = this.area();
    const places = levelPlaces(this.levels, this.y, { left: 0, top: 0, width, height }, 1);
    for (const [level, name] of this.names) {
      const label = places.find((place) => place.level === level)?.label ?? NaN;
      name.hidden = Number.isNaN(label);
      const entry = this.legend.levels.get(level);
      if (entry) entry.hidden = !name.hidden;
      if (name.hidden) continue;
      const room = Math.min(1, (name.offsetWidth + 2 * LEVEL_AIR) / width);
      const free = LEVEL_PLACES.map((place) => this.free(1 - (label + name.offsetHeight / 2) / height, place * (1 - room), place * (1 - room) + room));
      const most = Math.max(...free);
      const best = LEVEL_PLACES[free.findIndex((one) => one > most - LEVEL_SLACK)];
      name.style.transform = `translate(${LEVEL_AIR + best * (1 - room) * width}px, ${label}px)`;
    }
  }

  showMark() {
    const span = this.scene.marked;
    this.band.style.visibility = span ? "visible" : "hidden";
    if (!span) return;
    const left = this.across(span[0]);
    this.band.style.transform = `translateX(${left}px)`;
    this.band.style.width = `${Math.max(2, this.across(span[1]) - left)}px`;
  }

  /** Every frame of every curve: what a reader wants from a plot is its numbers. */
  table() {
    const { scene, views, lines } = this;
    const names = new Map(lines.map((line) => [line.key, line.name]));
    const rows = views.flatMap(({ run, view }) => {
      const own = [...names.keys()].map((key) => lines.find((line) => line.view === view && line.key === key));
      return Array.from(scene.timesOf(run, view), (t, place) => {
        const frame = scene.frames.get(view)?.[place] ?? place;
        return [scene.runs[run].data.name, frame + 1, t, ...own.map((line) => (line ? line.values[place] : null))];
      });
    });
    return { columns: ["run", "frame", scene.clock, ...names.values()], rows };
  }
}
