/** Every track of every run with its name, and the stages it goes through: which head became what, and when. */

import { category } from "./colours.js";
import { el, nameOf } from "./dom.js";
import { ribbonsOf } from "./stages.js";
import { segmentButton } from "./track.js";

/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./types.js").Panel} Panel */

const TIMELINE_LANE = 17; // pixels of a stage

/**
 * The timeline of a scene; null where no run has stages that are aside, so that the strips above the slider show everything.
 * @param {Scene} scene
 * @returns {Panel|null}
 */
export function timelinePanel(scene) {
  if (scene.times.length < 2 || !scene.runs.some(({ data }) => data.stages.some(({ aside }) => aside))) return null;
  /** @type {[HTMLElement, number][]} */
  const painted = [];
  const parts = ribbonsOf(scene, true).map((ribbon, run) => {
    const rows = ribbon.names.map((name, track) => {
      const first = ribbon.tracks[track - 1] ?? 0;
      const inside = ribbon.segments.filter(({ lane }) => lane >= first && lane < ribbon.tracks[track]);
      const strip = el("div", { class: "timeline-strip", role: "group", "aria-label": name || "the run" });
      strip.style.height = `${(ribbon.tracks[track] - first) * (TIMELINE_LANE + 1)}px`;
      for (const segment of inside) {
        const button = segmentButton(scene, run, segment, true);
        button.style.top = `${(segment.lane - first) * (TIMELINE_LANE + 1)}px`;
        button.style.height = `${TIMELINE_LANE}px`;
        painted.push([button, segment.colour]);
        strip.append(button);
      }
      return el("div", { class: "timeline-row" }, [el("span", { class: "timeline-name" }, nameOf(name || "the run", 40)), strip]);
    });
    const now = el("i", { class: "timeline-now" });
    const over = el("div", { class: "timeline-over" }, now);
    const name = scene.runs.length > 1 ? el("h3", {}, nameOf(scene.runs[run].data.name, 60)) : null;
    const all = el("div", { class: "timeline-scroll" }, el("div", { class: "timeline-rows" }, [...rows, over]));
    return { now, element: el("div", { class: "timeline-run" }, [name, all]) };
  });
  const recolour = () => painted.forEach(([button, colour]) => button.style.setProperty("--stage", category(colour)));
  recolour();
  return {
    element: el("div", { class: "timeline" }, parts.map(({ element }) => element)),
    show: (time) => parts.forEach(({ now }) => (now.style.left = `${100 * scene.scale.share(time)}%`)),
    recolour,
    table: () => ({
      columns: ["run", "track", "stage", "from", "to", "evidence"],
      rows: scene.runs.flatMap(({ data }) => data.stages.map((s) => [data.name, s.track, s.name, s.start, s.stop, s.evidence])),
    }),
  };
}
