/**
 * Points in the plane over time, such as the first two principal components of embeddings; runs side by side.
 */

import { brief, count, el, nameOf, setText, short } from "./dom.js";
import { Plane } from "./plane.js";
import { drawShapes } from "./shapes.js";

/** @typedef {import("./types.js").Panel} Panel */
/** @typedef {import("./types.js").View} View */
/** @typedef {import("./types.js").PointsView} PointsView */
/** @typedef {import("./blocks.js").Store} Store */
/** @typedef {import("./clock.js").Scene} Scene */

const REACH = 14; // px from a point within which the pointer means it
const LARGEST = 460; // px a side
const NARROWEST_PLANE = 240;
const PLANE_GAP = 20;

/** The points of one run, with what pointer and keys choose among them. */
class RunPoints {
  /**
   * @param {Scene} scene
   * @param {number} run
   * @param {PointsView} view
   * @param {Float64Array} values (frames, n, 2)
   * @param {Float64Array} explained (frames, 2)
   */
  constructor(scene, run, view, values, explained) {
    this.scene = scene;
    this.run = run;
    this.view = view;
    this.explained = explained;
    this.plane = new Plane(view.labels, values, view.tokens ? view.labels.map((label) => scene.tokenColour(label)) : []);
    /** @type {number|null} */
    this.chosen = null;
    const label = `${brief(view.title, 80)}: ${count(view.labels.length)} points. Arrow keys read them.`;
    this.canvas = el("canvas", {
      class: "plane",
      tabindex: 0,
      role: "application",
      "aria-roledescription": "scatter plot",
      "aria-label": label,
    });
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.when = el("span", { class: "when" });
    this.shares = el("p", { class: "shares" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.spoken = el("div", { class: "unseen", role: "status", "aria-live": "polite" });
    const name = scene.runs.length > 1 ? nameOf(scene.runs[run].data.name, 60) : null;
    const head = el("div", { class: "heat-run-name" }, [name, this.when]);
    this.element = el("div", { class: "plane-run" }, [
      head,
      el("div", { class: "plane-box" }, [this.canvas, this.tip]),
      this.shares,
      this.spoken,
    ]);
    this.listen();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("mousedown", (event) => event.preventDefault()); // a click leaves the arrow keys to the scrubber
    canvas.addEventListener("pointermove", (event) =>
      this.choose(this.plane.near(this.place, event.offsetX, event.offsetY, REACH)),
    );
    canvas.addEventListener("pointerleave", () => this.choose(null));
    canvas.addEventListener("blur", () => this.choose(null));
    canvas.addEventListener("keydown", (event) => {
      const n = this.view.labels.length;
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!step || !n || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
      this.choose(((this.chosen ?? (step > 0 ? -1 : 0)) + step + n) % n);
      setText(this.spoken, this.tip.textContent ?? "");
      event.preventDefault();
      event.stopPropagation();
    });
  }

  get place() {
    return this.scene.frameOf(this.run, this.view).place;
  }

  /** @param {number|null} i */
  choose(i) {
    if (i === this.chosen) return;
    this.chosen = i;
    this.show();
  }

  /** @param {number} width px */
  resize(width) {
    this.plane.resize(width);
    const scale = Math.max(1, devicePixelRatio);
    const { height } = this.plane;
    [this.canvas.width, this.canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
    [this.canvas.style.width, this.canvas.style.height] = [`${width}px`, `${height}px`];
    this.element.style.width = `${width}px`;
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.show();
  }

  /** Draws the frame the run has now. */
  show() {
    const shown = this.scene.frameOf(this.run, this.view);
    const { place } = shown;
    setText(this.when, this.scene.frameText(shown, this.view));
    setText(this.shares, place < 0 ? "" : this.variance(place));
    if (!this.plane.width) return;
    this.context.clearRect(0, 0, this.plane.width, this.plane.height);
    drawShapes(this.context, this.plane.shapes(place, this.chosen));
    this.tell(place);
  }

  /** @param {number} place */
  variance(place) {
    const [first, second] = this.explained.subarray(2 * place, 2 * place + 2);
    const percent = (/** @type {number} */ share) => `${(100 * share).toFixed(1)} %`;
    if (!Number.isFinite(first + second)) return "Variance explained: not defined at this frame.";
    return `Variance explained at this frame: first ${percent(first)}, second ${percent(second)}, together ${percent(first + second)}.`;
  }

  /** Names the chosen point. @param {number} place */
  tell(place) {
    this.tip.hidden = this.chosen === null || place < 0;
    if (this.chosen === null || place < 0) return;
    const [x, y] = this.plane.at(place, this.chosen);
    const numbers = this.plane
      .value(place, this.chosen)
      .map((value) => short(value, 3))
      .join(", ");
    this.tip.replaceChildren(el("b", {}, nameOf(this.view.labels[this.chosen], 80)), el("span", { text: `(${numbers})` }));
    const left = x + 12 + this.tip.offsetWidth > this.plane.width ? x - 12 - this.tip.offsetWidth : x + 12;
    this.tip.style.transform = `translate(${Math.max(0, left)}px, ${y + 8}px)`;
  }

  /** @returns {(string|number|null)[][]} */
  rows() {
    const { frame, at, place } = this.scene.frameOf(this.run, this.view);
    const { name } = this.scene.runs[this.run].data;
    return place < 0 ? [] : this.view.labels.map((label, i) => [name, frame + 1, at, label, ...this.plane.value(place, i)]);
  }
}

/**
 * @param {Store} store
 * @param {Scene} scene
 * @param {{run: number, view: View}[]} views of kind "points"
 * @returns {Promise<Panel>}
 */
export async function pointsPanel(store, scene, views) {
  const parts = await Promise.all(
    views.map(async ({ run, view: any }) => {
      const view = /** @type {PointsView} */ (any);
      const [values, explained] = await Promise.all([store.get(view.values), store.get(view.explained)]);
      return new RunPoints(scene, run, view, Float64Array.from(values), Float64Array.from(explained));
    }),
  );
  const element = el("div", { class: "planes" }, parts.map((part) => part.element));
  const resize = () => {
    const room = Math.floor(element.getBoundingClientRect().width); // clientWidth may be rounded up, and then two do not fit
    if (!room) return;
    const across = Math.max(1, Math.min(parts.length, Math.floor(room / NARROWEST_PLANE)));
    const width = Math.min(LARGEST, Math.floor((room - PLANE_GAP * (across - 1)) / across));
    for (const part of parts) part.resize(width);
  };
  const show = () => parts.forEach((part) => part.show());
  new ResizeObserver(resize).observe(element);
  return {
    element,
    show,
    recolour: show,
    table: () => ({
      columns: ["run", "frame", scene.clock, "label", "first", "second"],
      rows: parts.flatMap((part) => part.rows()),
    }),
  };
}
