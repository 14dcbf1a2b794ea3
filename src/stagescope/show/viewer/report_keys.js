/** What keys do on the page of runs. */

import { ribbonsOf } from "./stages.js";
import { zoomTo } from "./track.js";
import { zoomByKey } from "./zoom.js";

/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./scrubber.js").Scrubber} Scrubber */
/**
 * @typedef {{scene: () => Scene, scrubber: () => Scrubber, theme: () => void, help: () => void, guide: () => void,
 *   scenes: (step: number) => void}} Actions
 *   What keys can do to the page.
 */

/** @type {import("./keys.js").Binding<Actions>[]} */
export const BINDINGS = [
  { keys: ["ArrowRight"], shown: "\u2192", says: "next frame; with Shift ten frames", does: ({ scene }, event) => move(scene(), event.shiftKey ? 10 : 1) },
  { keys: ["ArrowLeft"], shown: "\u2190", says: "previous frame; with Shift ten frames", does: ({ scene }, event) => move(scene(), event.shiftKey ? -10 : -1) },
  { keys: ["PageDown"], shown: "Page Down", says: "5 % of the frames forward", does: ({ scene }) => move(scene(), twentieth(scene())) },
  { keys: ["PageUp"], shown: "Page Up", says: "5 % of the frames back", does: ({ scene }) => move(scene(), -twentieth(scene())) },
  { keys: ["Home"], shown: "Home", says: "first frame", does: ({ scene }) => scene().go(0) },
  { keys: ["End"], shown: "End", says: "last frame", does: ({ scene }) => scene().go(scene().times.length - 1) },
  { keys: [" "], shown: "Space", says: "play or pause", does: ({ scrubber }) => scrubber().toggle() },
  { keys: ["["], shown: "[", says: "slower", does: ({ scrubber }) => scrubber().speed(false) },
  { keys: ["]"], shown: "]", says: "faster", does: ({ scrubber }) => scrubber().speed(true) },
  { keys: ["e", "E"], shown: "E", says: "next event; with Shift the one before", does: ({ scrubber }, event) => scrubber().event(!event.shiftKey) },
  { keys: ["l", "L"], shown: "L", says: "loss on a linear or a logarithmic axis", does: ({ scene }) => scene().settings.setLog("loss", !scene().isLog("loss")) },
  { keys: ["x", "X"], shown: "X", says: "time, logarithm of time, or time by change across", does: ({ scene }) => nextScale(scene()) },
  { keys: ["+", "="], shown: "+", says: "closer: half as much time around the present frame", does: ({ scene }) => zoomByKey(scene(), true) },
  { keys: ["-"], shown: "\u2212", says: "farther: twice as much time", does: ({ scene }) => zoomByKey(scene(), false) },
  { keys: ["z", "Z"], shown: "Z", says: "the present stage alone", does: ({ scene }) => zoomToStage(scene()) },
  { keys: ["0"], shown: "0", says: "all of the time", does: ({ scene }) => scene().scale.zoom(null) },
  { keys: ["s", "S"], shown: "S", says: "next scene; with Shift the one before", does: ({ scenes }, event) => scenes(event.shiftKey ? -1 : 1) },
  { keys: ["g", "G"], shown: "G", says: "guided tour: stage by stage, full screen, with arrow keys", does: ({ guide }) => guide() },
  { keys: ["d", "D"], shown: "D", says: "light or dark", does: ({ theme }) => theme() },
  { keys: ["Escape"], shown: "Esc", says: "back: close an enlarged map, leave a stretch of time, clear the highlighted span", does: ({ scene }) => void (scene().scale.back() || scene().mark(null)) },
  { keys: ["?"], shown: "?", says: "this help", does: ({ help }) => help() },
];

/** @param {Scene} scene @param {number} frames */
function move(scene, frames) {
  scene.go(scene.position + frames);
}

/** @param {Scene} scene */
function nextScale({ scale, settings }) {
  settings.set("axis", scale.kinds[(scale.kinds.indexOf(scale.kind) + 1) % scale.kinds.length]);
}

/** @param {Scene} scene */
function zoomToStage(scene) {
  const stages = ribbonsOf(scene).flatMap(({ segments }) => segments);
  const stage = stages.find(({ start, stop }) => start <= scene.time && scene.time < stop) ?? stages.find(({ stop }) => stop === scene.time);
  if (stage) zoomTo(scene, stage.start, stage.stop);
}

/** @param {Scene} scene */
function twentieth(scene) {
  return Math.max(1, Math.round(scene.times.length / 20));
}

export const ADVICE = [
  "One scrubber moves everything. Drag the slider, click or drag in a plot, click a stage, an event or a row of the ledger. " +
    "Drag along an axis of time, pinch, or double-click a stage to look at it alone; Esc goes back. Hover over a cell or a curve for its value. Entries of a legend hide and show curves.",
  "Frames are counted from 1 on the page. The address of the page holds scene, frame (its index, counted from 0 as in " +
    "Python), axes, the stretch of time that is seen, theme and speed: copy it to send somebody this frame. Hidden curves, enlarged maps, highlighted spans and " +
    "filters of the ledger are not in it.",
];
