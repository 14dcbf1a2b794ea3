/** The ribbon of stages over the slider: one strip for each run, on the scale of time that all plots share. */

import { category } from "./colours.js";
import { brief, clockText, el, nameOf } from "./dom.js";
import { lanesOf, namedLanes, ribbonsOf } from "./stages.js";
import { glossaryOf, tipOn } from "./terms.js";

/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./stages.js").Moment} Moment */

const STRIPS = 60; // pixels all lanes together may take
const LANE = [5, 15]; // pixels, least and most
const LANE_NAMES = 110; // pixels that the names of lanes take at most
const MOST_STRIPS = 6; // runs in sight; with more the strips scroll, and the page keeps its room
const NAMED_LANE = 12; // pixels below which a name cannot be read

/** @param {Scene} scene @param {Moment[]} moments @returns {{element: HTMLElement|null, gutter: number, recolour: () => void}} `gutter`: px for the names of lanes */
export function stageRibbon(scene, moments) {
  const ribbons = ribbonsOf(scene);
  const rows = lanesOf(ribbons, Math.floor(STRIPS / NAMED_LANE));
  const lanes = rows.reduce((sum, n) => sum + n, 0);
  if (scene.times.length < 2 || (!lanes && !moments.length)) return { element: null, gutter: 0, recolour: () => {} };
  const named = scene.runs.length > 1 ? [] : namedLanes(ribbons[0], rows[0]);
  const gutter = Math.min(LANE_NAMES, Math.max(0, ...named.map(({ name }) => 12 + 5.6 * name.length)));
  const height = Math.max(LANE[0], Math.min(LANE[1], Math.floor(STRIPS / Math.max(1, lanes))));
  /** @type {[HTMLElement, number][]} */
  const painted = [];
  const strips = ribbons.map((ribbon, run) => {
    const own = ribbon.names[0] ? rows[run] : (ribbon.tracks[0] ?? 0); // lanes of the run itself, which a lecture shows
    const shown = ribbon.segments.filter(({ lane }) => lane < rows[run]);
    const segments = shown.map((segment) => {
      const button = segmentButton(scene, run, segment, height >= NAMED_LANE);
      button.style.setProperty("--lane", String(segment.lane));
      button.classList.toggle("of-part", segment.lane >= own);
      painted.push([button, segment.colour]);
      return button;
    });
    const strip = el("div", { class: "strip", role: "group", "aria-label": "stages" }, [
      ...segments,
      ...ticksOf(scene, moments, run),
      ...rungMarks(scene, run),
    ]);
    strip.style.setProperty("--lanes", String(Math.max(1, rows[run])));
    strip.style.setProperty("--own-lanes", String(Math.max(1, Math.min(own, rows[run]))));
    const name = scene.runs.length > 1 ? el("span", { class: "strip-name" }, nameOf(scene.runs[run].short, 60)) : null;
    return el("div", { class: "strip-row" }, [name ?? laneNames(named, height), strip]);
  });
  const band = el("div", { class: "marked-frames" });
  band.style.visibility = "hidden";
  const mark = () => {
    band.style.visibility = scene.marked ? "visible" : "hidden";
    if (scene.marked) place(band, scene, ...scene.marked);
  };
  scene.onMark(mark);
  scene.scale.on(mark);
  const recolour = () => painted.forEach(([button, colour]) => button.style.setProperty("--stage", category(colour)));
  recolour();
  const element = el("div", { class: "ribbon" }, [el("div", { class: "ribbon-band" }, band), ...strips]);
  element.style.setProperty("--lane-height", `${height}px`);
  return { element: strips.length > MOST_STRIPS ? el("div", { class: "ribbons" }, element) : element, gutter, recolour };
}

/** What the lanes of the only run are, beside them. @param {{name: string, lane: number}[]} named @param {number} height of a lane */
function laneNames(named, height) {
  if (!named.length || height < NAMED_LANE) return null;
  const names = named.map(({ name, lane }) => {
    const element = el("span", { class: "lane-name" }, nameOf(name, 60));
    element.style.top = `${lane * (height + 1)}px`;
    element.style.lineHeight = `${height}px`;
    return element;
  });
  return el("span", { class: "lane-names" }, names);
}

/** Puts an element where a stretch of time is seen; what lies outside of the window is hidden. @param {HTMLElement} element @param {Scene} scene @param {number} start @param {number} stop */
function place(element, { scale }, start, stop) {
  const { min, max } = scale.axis;
  const left = scale.share(start);
  element.hidden = stop < min || start > max || (stop === min && start < min) || (start === max && stop > max);
  element.style.left = `${100 * left}%`;
  element.style.width = `max(2px, ${100 * (scale.share(stop) - left)}%)`;
}

/**
 * @param {Scene} scene
 * @param {number} run
 * @param {import("./stages.js").Segment} segment
 * @param {boolean} named
 */
export function segmentButton(scene, run, segment, named) {
  const when = `${clockText(scene.clock, segment.start)} to ${clockText(scene.clock, segment.stop)}`;
  const whose = scene.runs.length > 1 ? `${scene.runs[run].data.name}: ` : "";
  const go = () => {
    scene.enter(segment.start, segment.stop);
    scene.mark([segment.start, segment.stop]);
  };
  const label = `${whose}${segment.track ? `${brief(segment.track, 60)}: ` : ""}stage ${segment.name}, ${when}`;
  const button = el(
    "button",
    { type: "button", class: "segment", title: `${label}\n${segment.evidence}`, "aria-label": label, on: { click: go } },
    named ? nameOf(segment.name, 40) : null,
  );
  tipOn(button, glossaryOf(scene).meaning(segment.name));
  button.addEventListener("dblclick", () => zoomTo(scene, segment.start, segment.stop));
  const put = () => place(button, scene, segment.start, segment.stop);
  scene.scale.on(put);
  put();
  return button;
}

/** Rungs on the ribbon: a dot where the run left a critical point, a ring where it should have. @param {Scene} scene @param {number} run */
function rungMarks(scene, run) {
  return (scene.runs[run].data.ladder ?? []).flatMap((rung) =>
    [rung.predicted_escape, rung.measured_escape].flatMap((time, i) => {
      if (time === null) return [];
      const said = `rung ${brief(rung.label, 40)}, ${i ? "measured" : "predicted"} escape: ${clockText(scene.clock, time)}`;
      const mark = el("i", { class: `rung-mark ${i ? "measured" : "predicted"}`, data: { says: said } });
      const put = () => {
        mark.hidden = time < scene.axis.min || time > scene.axis.max;
        mark.style.left = `${100 * scene.scale.share(time)}%`;
      };
      scene.scale.on(put);
      put();
      return [mark];
    }),
  );
}

const AIR = 0.04; // of a stage, on both sides, when it is looked at alone

/** Shows a stage alone, with some air around it. @param {Scene} scene @param {number} start @param {number} stop */
export function zoomTo({ scale }, start, stop) {
  const whole = scale.whole(scale.kind);
  const [low, high] = [start, stop].map((t) => Math.min(1, Math.max(0, whole.at(t) || 0)));
  const air = AIR * (high - low);
  scale.zoom([whole.value(Math.max(0, low - air)), whole.value(Math.min(1, high + air))]);
}

/** @param {Scene} scene @param {Moment[]} moments @param {number} run */
function ticksOf(scene, moments, run) {
  return moments
    .filter((moment) => moment.run === run)
    .map((moment) => {
      const tick = el("i", { class: "tick", title: `${moment.name}, ${clockText(scene.clock, moment.time)}` });
      const put = () => {
        tick.hidden = moment.time < scene.axis.min || moment.time > scene.axis.max;
        tick.style.left = `${100 * scene.scale.share(moment.time)}%`;
      };
      scene.scale.on(put);
      put();
      return tick;
    });
}
