/** The pointer on a plot: a click or a drag moves the scrubber, hovering names the nearest curve. */

import { brief, setText, short } from "./dom.js";
import { ribbonsOf } from "./stages.js";
import { zoomTo } from "./track.js";

/** @typedef {import("./curves.js").CurvesPlot} CurvesPlot */

const NEAR = 24; // pixels within which the pointer names a curve

/** @param {CurvesPlot} plot @param {HTMLElement} over the area of the curves */
export function pointAt(plot, over) {
  const timeAt = (/** @type {PointerEvent} */ event) => {
    const share = (event.clientX - over.getBoundingClientRect().left) / plot.area()[0];
    return plot.x.value(Math.min(1, Math.max(0, share)));
  };
  over.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    over.setPointerCapture(event.pointerId);
    plot.scene.goTime(timeAt(event));
  });
  over.addEventListener("pointermove", (event) => {
    if (event.buttons & 1 && event.isPrimary) plot.scene.goTime(timeAt(event));
    nameNearest(plot, over, event, timeAt(event));
  });
  over.addEventListener("dblclick", (event) => {
    const time = timeAt(/** @type {PointerEvent} */ (event));
    const stage = ribbonsOf(plot.scene).flatMap(({ segments }) => segments).find(({ start, stop }) => start <= time && time < stop);
    if (stage) zoomTo(plot.scene, stage.start, stage.stop);
  });
  over.addEventListener("pointerleave", () => (plot.tag.style.visibility = "hidden"));
}

/** @param {CurvesPlot} plot @param {HTMLElement} over @param {PointerEvent} event @param {number} time */
function nameNearest(plot, over, event, time) {
  const [width] = plot.area();
  const box = over.getBoundingClientRect();
  const [left, down] = [event.clientX - box.left, event.clientY - box.top];
  const text = nearestText(plot, time, down);
  setText(plot.tag, text);
  plot.tag.style.visibility = text ? "visible" : "hidden";
  const aside = left > width / 2 ? "calc(-100% - 12px)" : "12px";
  plot.tag.style.transform = `translate(${left}px, ${down}px) translate(${aside}, -50%)`;
}

/** @param {CurvesPlot} plot @param {number} time @param {number} down pixels */
function nearestText(plot, time, down) {
  const { scene, lines, y } = plot;
  const height = plot.area()[1];
  let least = NEAR;
  let text = "";
  for (const line of lines) {
    if (!line.on) continue;
    const shown = scene.frameAt(line.run, line.view, time);
    const value = line.values[shown.place];
    const far = Math.abs(height * (1 - y.at(value)) - down);
    if (!(far < least)) continue;
    const run = scene.runs.length > 1 ? `${brief(scene.runs[line.run].short, 30)}: ` : "";
    least = far;
    text = `${run}${brief(line.name, 40)}  ${short(value, 6)}\n${scene.frameText(shown)}`;
  }
  return text;
}
