/** Looking at a stretch of time alone: by dragging along an axis of time, by pinching, by the keyboard. */

import { el } from "./dom.js";

/** @typedef {import("./clock.js").Scene} Scene */

const SHORTEST = 6; // px: a shorter drag is a click
const KEY_STEP = 0.5; // of the window, for a press of a key
const WHEEL = 0.01; // of the window's logarithm, for a pixel of a pinch on a touch pad

/**
 * Dragging along an axis zooms to what was dragged over; a click there moves the scrubber.
 * @param {{axis: {value: (share: number) => number}, goTime: (time: number) => void, scale: {zoom: (window: [number, number]|null) => void}}} scene
 * @param {HTMLElement} axis what is dragged along
 * @param {HTMLElement} area that has the width of the axis
 */
export function zoomByAxis(scene, axis, area) {
  const band = el("i", { class: "zoom-band" });
  let from = NaN;
  const share = (/** @type {PointerEvent} */ event) => {
    const { left, width } = area.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - left) / width));
  };
  axis.classList.add("zooms");
  axis.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return;
    event.stopPropagation(); // the axis lies in the area of the plot, where the scrubber is moved
    axis.setPointerCapture(event.pointerId);
    from = share(event);
    area.append(band);
    band.style.width = "0";
  });
  axis.addEventListener("pointermove", (event) => {
    event.stopPropagation();
    if (Number.isNaN(from)) return;
    const to = share(event);
    band.style.left = `${100 * Math.min(from, to)}%`;
    band.style.width = `${100 * Math.abs(to - from)}%`;
  });
  const end = (/** @type {PointerEvent} */ event, /** @type {boolean} */ done) => {
    if (Number.isNaN(from)) return;
    const [low, high] = [Math.min(from, share(event)), Math.max(from, share(event))];
    band.remove();
    from = NaN;
    if (!done) return;
    const { axis: time } = scene;
    if ((high - low) * area.clientWidth < SHORTEST) scene.goTime(time.value(low));
    else scene.scale.zoom([time.value(low), time.value(high)]);
  };
  axis.addEventListener("pointerup", (event) => end(event, true));
  axis.addEventListener("pointercancel", (event) => end(event, false));
}

/**
 * Two fingers, or a pinch on a touch pad (which browsers tell as a wheel with Ctrl). While two fingers are down, nothing else is
 * moved by them.
 * @param {Scene} scene
 * @param {HTMLElement} touched where the fingers are
 * @param {HTMLElement} area that has the width of the axis
 */
export function zoomByPinch(scene, touched, area) {
  /** Where each finger is, as a share of the width. @type {Map<number, number>} */
  const fingers = new Map();
  /** Times under the two fingers, which stay under them. @type {number[]} */
  let held = [];
  let first = true;
  const share = (/** @type {MouseEvent} */ event) => {
    const { left, width } = area.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - left) / width));
  };
  const down = (/** @type {PointerEvent} */ event) => {
    if (event.pointerType !== "touch") return;
    fingers.set(event.pointerId, share(event));
    if (fingers.size !== 2) return;
    for (const finger of fingers.keys()) touched.setPointerCapture(finger); // what lies below may go away while time is stretched
    held = [...fingers.values()].map((at) => scene.axis.value(at));
    first = true;
  };
  const move = (/** @type {PointerEvent} */ event) => {
    if (!fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, share(event));
    if (fingers.size !== 2) return;
    scene.scale.hold(held, [...fingers.values()], first);
    first = false;
  };
  const up = (/** @type {PointerEvent} */ event) => fingers.delete(event.pointerId);
  const alone = (/** @type {(event: PointerEvent) => void} */ does) => (/** @type {Event} */ event) => {
    does(/** @type {PointerEvent} */ (event));
    if (fingers.size > 1) event.stopImmediatePropagation();
  };
  for (const [name, does] of Object.entries({ pointerdown: down, pointermove: move, pointerup: up, pointercancel: up, input: () => {} })) {
    touched.addEventListener(name, alone(does), { capture: true });
  }
  let pinched = 0;
  touched.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      scene.scale.by(Math.exp(WHEEL * event.deltaY), scene.axis.value(share(event)), event.timeStamp - pinched > 500);
      pinched = event.timeStamp;
    },
    { passive: false },
  );
}

/** Closer or farther around the present time, by the keyboard. @param {Scene} scene @param {boolean} closer */
export function zoomByKey(scene, closer) {
  scene.scale.by(closer ? KEY_STEP : 1 / KEY_STEP, scene.time);
}
