/**
 * The saddle ladder: the critical points a run passes, in order, with what grows there and when it should be and was left.
 * Times are drawn in each row on the scene's clock; a click moves the scrubber to the rung.
 */

import { category, inks } from "./colours.js";
import { brief, clockText, el, nameOf, short, svgEl } from "./dom.js";
import { axisTicks } from "./traces.js";

/** @typedef {import("./types.js").Panel} Panel */
/** @typedef {import("./types.js").Rung} Rung */
/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./traces.js").Axis} Axis */
/** @typedef {{name: string, share: number, value: number, beyond: boolean}} RungDot */

const HEADS = ["rung", "loss", "distance", "opens", "rate", "measured rate", "ratio", "predicted escape", "measured escape"];
const TICKS_ROOM = 420; // px the time column has at least; its ticks are chosen for it

/** @param {number} share of the axis -> place in the column of times, with air at both ends */
function percent(share) {
  return `${2 + 94 * share}%`;
}

const DOT_NAMES = { slowest: "where the run moves slowest", predicted: "predicted escape", measured: "measured escape" };

/** @param {Rung} rung -> measured over predicted rate */
function ratioOf({ measured_rate, rates }) {
  return measured_rate === null || !rates.length || !rates[0] ? null : measured_rate / rates[0];
}

/**
 * Moments of a rung along the axis; one that lies beyond its ends stands at the end.
 * @param {Rung} rung
 * @param {Axis} axis
 * @param {number} last frame
 * @returns {RungDot[]}
 */
function dotsOf(rung, axis, last) {
  const moments = { slowest: rung.t, predicted: rung.predicted_escape, measured: rung.measured_escape };
  return Object.entries(moments).flatMap(([name, value]) => {
    if (value === null || Number.isNaN(value)) return [];
    const share = value <= axis.min ? 0 : value >= axis.max ? 1 : axis.at(value);
    return [{ name, value, share, beyond: value > last }];
  });
}

/** The look of a moment: attributes of its circle. A prediction that holds is a ring around the dot. @param {string} name @returns {Object<string, string|number>} */
function rungLook(name) {
  if (name === "slowest") return { r: 3, fill: inks().muted, stroke: inks().muted };
  return name === "predicted"
    ? { r: 6.5, fill: "none", stroke: category(1), "stroke-width": 1.8 }
    : { r: 3.8, fill: category(1), stroke: "none" };
}

/** @param {string} clock @param {RungDot} dot */
function dotText(clock, { name, value, beyond }) {
  const what = name === "slowest" ? "moves slowest" : `${name} escape`;
  return `${what}: ${clockText(clock, value)}${beyond ? " (after the last frame)" : ""}`;
}

/** One run's rungs: a row each. */
class RunLadder {
  /** @param {Scene} scene @param {number} run @param {Rung[]} rungs */
  constructor(scene, run, rungs) {
    this.scene = scene;
    this.rungs = rungs;
    this.ticks = el("div", { class: "time-ticks", "aria-hidden": "true" });
    /** @type {SVGSVGElement[]} */
    this.charts = [];
    /** @type {SVGLineElement[]} */
    this.hands = [];
    const heads = HEADS.map((text, i) => el("th", { scope: "col", class: i === 0 || i === 3 ? "" : "number", text }));
    const times = el("th", { scope: "col", class: "time-head" }, [this.ticks, el("span", { class: "unseen", text: "times" })]);
    const body = el("tbody", {}, rungs.flatMap((rung) => this.row(rung)));
    const table = el("table", { class: "ladder-table" }, [el("thead", {}, el("tr", {}, [...heads, times])), body]);
    const name = scene.runs.length > 1 ? el("h3", {}, nameOf(scene.runs[run].data.name, 60)) : null;
    this.element = el("div", { class: "ladder-run" }, [name, el("div", { class: "scroll" }, table)]);
  }

  /** @param {Rung} rung */
  row(rung) {
    const jump = () => this.jump(rung);
    const button = el(
      "button",
      { type: "button", class: "jump", title: `go to ${clockText(this.scene.clock, rung.t)}`, on: { click: jump } },
      nameOf(rung.label, 40),
    );
    const rates = rung.rates.map((rate) => short(rate)).join(", ");
    const ratio = ratioOf(rung);
    const cells = [
      short(rung.loss),
      short(rung.distance, 2),
      rung.opening,
      rung.rates.length ? short(rung.rates[0]) : rung.law || null,
      short(rung.measured_rate),
      short(ratio, 3),
      short(rung.predicted_escape),
      short(rung.measured_escape),
    ];
    const titles = [
      "",
      `residual ${short(rung.residual, 2)}`,
      rung.cosines.length ? `cosines of the directions: ${rung.cosines.map((c) => short(c, 3)).join(", ")}` : "",
      [rates && `all growing rates: ${rates}`, rung.remainder !== null && `share of F left out: ${short(rung.remainder, 2)}`]
        .filter(Boolean)
        .join("; "),
      rung.local_rate === null ? "" : `linearised at the run itself: ${short(rung.local_rate)}`,
    ];
    const hand = svgEl("line", { class: "hand", y1: 0, y2: "100%" });
    const chart = svgEl("svg", {
      class: "times",
      role: "img",
      "aria-label": dotsOf(rung, this.axis(), this.last)
        .map((dot) => dotText(this.scene.clock, dot))
        .join(", "),
    });
    this.charts.push(chart);
    this.hands.push(hand);
    const row = el("tr", { class: "leads", data: { rung: rung.label } }, [
      el("th", { scope: "row" }, button),
      ...cells.map((text, i) =>
        el(
          "td",
          { class: i === 2 ? "" : "number", title: titles[i] || null, data: { label: HEADS[i + 1] } },
          el("bdi", { text: text === null ? "\u2013" : brief(text, 60) }),
        ),
      ),
      el("td", { class: "times-cell" }, chart),
    ]);
    row.addEventListener("click", (event) => {
      if (!(event.target instanceof Element && event.target.closest("button"))) jump();
    });
    return rung.note ? [row, el("tr", { class: "note" }, el("td", { colspan: HEADS.length + 1 }, nameOf(rung.note)))] : [row];
  }

  /** @param {Rung} rung */
  jump(rung) {
    const left = rung.measured_escape ?? rung.predicted_escape;
    this.scene.goTime(rung.t);
    this.scene.mark(left !== null && left > rung.t ? [rung.t, left] : [rung.t, rung.t]);
  }

  /** The last time of the scene. */
  get last() {
    return this.scene.times[this.scene.times.length - 1];
  }

  axis() {
    return this.scene.axis;
  }

  /** Draws the moments of all rungs along the axis the reader chose. */
  draw() {
    const axis = this.axis();
    this.rungs.forEach((rung, i) => {
      const dots = dotsOf(rung, axis, this.last);
      const [predicted, measured] = ["predicted", "measured"].map((name) => dots.find((dot) => dot.name === name));
      const line = (/** @type {number} */ from, /** @type {number} */ to, /** @type {Object<string, string|number>} */ look) =>
        svgEl("line", { x1: percent(from), x2: percent(to), y1: "50%", y2: "50%", ...look });
      const between = predicted && measured ? [line(predicted.share, measured.share, { stroke: category(1), "stroke-width": 2 })] : [];
      const circles = dots.map((dot) => {
        const title = svgEl("title", { text: dotText(this.scene.clock, dot) });
        return svgEl("circle", { cx: percent(dot.share), cy: "50%", ...rungLook(dot.name) }, title);
      });
      const base = line(0, 1, { class: "base" });
      this.charts[i].replaceChildren(base, this.hands[i], ...between, ...circles);
    });
    this.ticks.replaceChildren(
      ...axisTicks(axis, TICKS_ROOM, 90).map((value) => {
        const tick = el("span", { text: short(value, 3) });
        tick.style.left = percent(axis.at(value));
        return tick;
      }),
    );
    this.show();
  }

  /** Moves the hand to the present time. */
  show() {
    const share = this.axis().at(this.scene.time);
    for (const hand of this.hands) {
      const at = percent(Math.min(1, Math.max(0, share || 0)));
      hand.setAttribute("x1", at);
      hand.setAttribute("x2", at);
    }
  }
}

/** What the circles mean. */
function ladderLegend() {
  const entries = Object.entries(DOT_NAMES).map(([name, text]) => {
    const circle = svgEl("circle", { cx: 7, cy: 7, ...rungLook(name) });
    return el("span", { class: "legend-key" }, [svgEl("svg", { width: 14, height: 14, "aria-hidden": "true" }, circle), text]);
  });
  return el("div", { class: "ladder-legend" }, entries);
}

/**
 * The ladders of all runs of a scene; null if no run has one.
 * @param {Scene} scene
 * @returns {Panel|null}
 */
export function ladderPanel(scene) {
  const ladders = scene.runs.flatMap(({ data }, run) => (data.ladder?.length ? [new RunLadder(scene, run, data.ladder)] : []));
  if (!ladders.length) return null;
  const legend = el("div", {}, ladderLegend());
  const draw = () => {
    legend.replaceChildren(ladderLegend());
    for (const ladder of ladders) ladder.draw();
  };
  scene.scale.on(draw);
  draw();
  return {
    element: el("div", { class: "ladder" }, [legend, ...ladders.map((ladder) => ladder.element)]),
    show: () => ladders.forEach((ladder) => ladder.show()),
    recolour: draw,
  };
}
