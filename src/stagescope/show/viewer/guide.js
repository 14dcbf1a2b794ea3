/**
 * The guided tour, for a lecture: one stop after the other, full screen, with its caption in large type. Arrow keys go from
 * stop to stop; each is played once from its start to its end.
 */

import { brief, el, setText } from "./dom.js";
import { stopsOf } from "./guide_stops.js";
import { LONGEST_CAPTION, rungText } from "./present.js";

/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./scrubber.js").Scrubber} Scrubber */
/** @typedef {import("./panels.js").Panels} Panels */

const SECONDS = 6; // that a stop is played at speed 1

export class Guide {
  /** @param {Scene} scene @param {Scrubber} scrubber @param {Panels} panels */
  constructor(scene, scrubber, panels) {
    this.scene = scene;
    this.scrubber = scrubber;
    this.panels = panels;
    const { run, stops } = stopsOf(scene);
    this.run = run;
    this.steps = stops;
    this.step = 0;
    this.on = false;
    this.place = el("span", { class: "guide-place" });
    this.title = el("bdi");
    this.text = el("bdi");
    this.rung = el("bdi");
    const button = (/** @type {string} */ text, /** @type {string} */ name, /** @type {() => void} */ click) =>
      el("button", { type: "button", class: "plain", text, "aria-label": name, title: name, on: { click } });
    this.element = el("section", { class: "guide", "aria-label": "guided tour", "aria-live": "polite", hidden: true }, [
      el("div", { class: "guide-head" }, [
        el("h2", { class: "guide-title" }, this.title),
        this.place,
        button("\u2190", "previous stop", () => this.go(this.step - 1)),
        button("\u2192", "next stop", () => this.go(this.step + 1)),
        button("\u2715", "end the tour (Esc)", () => this.stop()),
      ]),
      el("p", { class: "guide-text" }, this.text),
      el("p", { class: "guide-rung" }, this.rung),
    ]);
    this.keys = (/** @type {KeyboardEvent} */ event) => this.key(event);
    this.left = () => !document.fullscreenElement && this.stop();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    /** @type {Object<string, () => void>} */
    const does = {
      ArrowRight: () => this.go(this.step + 1),
      ArrowDown: () => this.go(this.step + 1),
      PageDown: () => this.go(this.step + 1), // what a presenter's remote control sends
      ArrowLeft: () => this.go(this.step - 1),
      ArrowUp: () => this.go(this.step - 1),
      PageUp: () => this.go(this.step - 1),
      Home: () => this.go(0),
      End: () => this.go(this.steps.length - 1),
      Escape: () => this.stop(),
    };
    if (!Object.hasOwn(does, event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    does[event.key]();
  }

  toggle() {
    if (this.on) this.stop();
    else this.start();
  }

  start() {
    if (!this.steps.length) return;
    this.on = true;
    this.element.hidden = false;
    this.panels.choose(this.scene.runs[this.run].data.about?.lead ?? "loss");
    this.scene.scale.zoom(null);
    this.changed();
    document.addEventListener("keydown", this.keys, true);
    document.documentElement.requestFullscreen?.().then(
      () => document.addEventListener("fullscreenchange", this.left),
      () => {}, // a browser may refuse; the tour goes on in the window
    );
    const now = this.steps.findIndex(({ start, stop }) => start <= this.scene.time && (stop === null || this.scene.time < stop));
    this.go(this.scene.position === 0 ? 0 : Math.max(0, now));
  }

  stop() {
    if (!this.on) return;
    this.on = false;
    this.element.hidden = true;
    this.scrubber.stop();
    this.panels.choose(null);
    document.removeEventListener("keydown", this.keys, true);
    document.removeEventListener("fullscreenchange", this.left);
    if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
    this.scene.mark(null);
    this.changed();
  }

  /** The page takes another shape: fonts of plots and sizes of maps follow. */
  changed() {
    document.body.classList.toggle("guided", this.on);
    this.scene.settings.tell("guided");
    scrollTo({ top: 0, behavior: "instant" });
  }

  /** Goes to a stop and plays it; beyond the last one there is nothing to play again. @param {number} step */
  go(step) {
    const last = this.steps.length - 1;
    this.place.classList.toggle("beyond", step > last);
    if (step > last && this.step === last) return;
    this.step = Math.max(0, Math.min(last, step));
    const { scene } = this;
    const caption = this.steps[this.step];
    const stop = caption.stop ?? scene.times[scene.times.length - 1];
    setText(this.title, brief(caption.title, 60));
    setText(this.place, `${this.step + 1} of ${this.steps.length}${this.step === last ? ", last stop" : ""}`);
    setText(this.text, brief(caption.text, LONGEST_CAPTION));
    setText(this.rung, rungText(scene.runs[this.run].data, caption.start, scene.clock));
    scene.mark([caption.start, stop]);
    this.scrubber.playFrom(caption.start, stop, SECONDS);
  }
}
