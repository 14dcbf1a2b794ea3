/** Where a guided tour stops: at the stages of a run, or at its events where it has no more than one stage. */

import { clockText } from "./dom.js";
import { momentsOf } from "./stages.js";
import { glossaryOf } from "./terms.js";

/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./types.js").Caption} Caption */

/** The run that is told, and its stops; run -1 where there is nothing to tell. @param {Scene} scene @returns {{run: number, stops: Caption[]}} */
export function stopsOf(scene) {
  const captions = (/** @type {number} */ run) => scene.runs[run].data.about?.captions ?? [];
  const most = scene.runs.findIndex((_, run) => captions(run).length > 1);
  if (most >= 0) return { run: most, stops: captions(most) };
  const run = scene.runs.findIndex(({ data }, i) => captions(i).length || Object.values(data.events).some((time) => time !== null));
  return { run, stops: run < 0 ? [] : [...captions(run), ...eventStops(scene, run)] };
}

/** A stop for each event: from halfway after the one before to halfway to the next. @param {Scene} scene @param {number} run @returns {Caption[]} */
function eventStops(scene, run) {
  const { time } = scene.runs[run];
  const glossary = glossaryOf(scene);
  const moments = momentsOf(scene).filter((moment) => moment.run === run);
  return moments.map((moment, i) => {
    const half = (/** @type {number|undefined} */ other, /** @type {number} */ end) => (other === undefined ? end : (other + moment.time) / 2);
    const said = [glossary.meaning(moment.name), moment.note].filter(Boolean).map((one) => (/[.!?]$/.test(String(one)) ? one : `${one}.`));
    return {
      title: moment.name,
      start: half(moments[i - 1]?.time, time[0]),
      stop: half(moments[i + 1]?.time, time[time.length - 1]),
      text: `At ${clockText(scene.clock, moment.time)}. ${said.join(" ")}`.trim(),
    };
  });
}
