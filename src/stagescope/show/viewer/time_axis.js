/** The axis of time below the slider, and what axes of time are called. */

import { clockText, el, short } from "./dom.js";
import { plotType } from "./plot.js";
import { axisTicks } from "./traces.js";
import { zoomByAxis } from "./zoom.js";

/** @typedef {import("./clock.js").Scene} Scene */

const APART = 6; // widths of a letter between two numbers

/** What the axis is called: its clock, its scale, and where it begins if zero has no place on it. @param {Scene} scene */
export function timeName({ clock, times, scale }) {
  if (scale.kind === "change") return `${clock}, spaced by change of ${scale.of}`;
  if (!scale.axis.log) return clock;
  const from = !scale.window && times[0] <= 0 ? `, from the first frame after 0, ${clockText(clock, scale.axis.min)}` : "";
  return `${clock} (log scale${from})`;
}

/**
 * Numbers along the slider, the name of the scale, and a way back where a window of time is seen. Dragging zooms.
 * @param {Scene} scene
 */
export function timeBar(scene) {
  const ticks = el("div", { class: "bar-times", "aria-hidden": "true", title: "Drag to look at a stretch of time alone; Esc goes back" });
  const name = el("span", { class: "bar-name" });
  const whole = el("button", { type: "button", class: "quiet", text: "Show all of it (0)", on: { click: () => scene.scale.zoom(null) } });
  const said = el("div", { class: "bar-said" }, [name, whole]);
  const element = el("div", { class: "time-bar" }, [ticks, said]);
  const draw = () => {
    const room = ticks.clientWidth || 600;
    ticks.replaceChildren(
      ...axisTicks(scene.axis, room, APART * plotType(10.5)).map((time) => {
        const tick = el("span", { text: short(time, 4) });
        tick.style.left = `${100 * scene.scale.share(time)}%`;
        return tick;
      }),
    );
    name.textContent = timeName(scene);
    whole.hidden = !scene.scale.window;
  };
  scene.scale.on(draw);
  scene.settings.on((name) => name === "guided" && draw());
  new ResizeObserver(draw).observe(ticks);
  zoomByAxis(scene, ticks, ticks);
  return { element, ticks, said };
}
