/** One plot of a playground on a canvas: curves over time, levels, events, guides of theory, and where the reader looks. */

import { category } from "./colours.js";
import { el, setText, short } from "./dom.js";
import { frameAt } from "./play_flow.js";
import { drawPlayLevels } from "./play_levels.js";
import { axisTicks, extent, polylines, valueAxis } from "./traces.js";
import { zoomByAxis } from "./zoom.js";

/** @typedef {import("./play_types.js").PlayPanel} PlayPanel */
/** @typedef {import("./play_types.js").Form} Form */
/** @typedef {import("./play_flow.js").Played} Played */
/** @typedef {import("./play_axis.js").PlayAxis} PlayAxis */
/** @typedef {{ink: string, muted: string, line: string, accent: string, paper: string, dark: boolean}} Palette */
/** @typedef {{played: Played, before: Played|null, preset: string, axis: PlayAxis, panels: PlayPanel[], forms: Form[], at: number}} Scenery
 *   `before`: the flow of the preset, drawn faintly; `at`: the time looked at. */

const PLOT_LEFT = 46;
const PLOT_RIGHT = 10;
const PLOT_TOP = 18;
const PLOT_BOTTOM = 22;
const NAMED_CURVES = 8; // curves that have a name and a colour
const MOST_DECADES = 6; // of a logarithmic axis that are shown

/** Where the curves of a panel are among those that are observed; the loss is apart. @param {PlayPanel[]} panels @param {string} slot */
function curvePlaces(panels, slot) {
  let first = 0;
  for (const panel of panels.slice(1)) {
    if (panel.slot === slot) return { first, count: panel.curves.length };
    first += panel.curves.length;
  }
  return { first: -1, count: 1 };
}

/** @param {Played} played @param {{first: number, count: number}} places */
function curvesAt(played, { first, count }) {
  return first < 0 ? [played.loss] : played.curves.slice(first, first + count);
}

export class PlayPlot {
  /** @param {(share: number) => void} look called with the share of the width at which a pointer is @param {Parameters<typeof zoomByAxis>[0]} zoomed what a drag along the axis does */
  constructor(look, zoomed) {
    this.canvas = el("canvas", { role: "img" });
    const strip = el("div", { class: "play-axis", title: "Drag to look at a stretch of time alone; Esc or a double click goes back" });
    const area = el("div", { class: "play-area" }, strip);
    zoomByAxis(zoomed, strip, area);
    this.frame = el("div", { class: "play-canvas" }, [this.canvas, area]);
    this.title = el("h2");
    this.unit = el("span", { class: "play-unit" });
    this.legend = el("ul", { class: "play-legend" });
    this.element = el("section", { class: "play-panel" }, [el("div", { class: "play-panel-head" }, [this.title, this.unit]), this.frame, this.legend]);
    /** @type {{name: string, value: HTMLElement}[]} */
    this.entries = [];
    this.layout = "";
    this.box = { left: PLOT_LEFT, top: PLOT_TOP, width: 0, height: 0 };
    const seen = (/** @type {PointerEvent} */ event) => {
      if (event.pointerType !== "mouse" && event.type === "pointermove" && !event.buttons) return;
      look(Math.min(1, Math.max(0, (event.offsetX - PLOT_LEFT) / (this.canvas.clientWidth - PLOT_LEFT - PLOT_RIGHT))));
    };
    this.canvas.addEventListener("pointermove", seen);
    this.canvas.addEventListener("pointerdown", seen);
    this.frame.addEventListener("dblclick", () => zoomed.scale.zoom(null));
  }

  /** @param {PlayPanel} panel @param {Scenery} scenery @param {Palette} palette */
  draw(panel, scenery, palette) {
    this.panel = panel;
    this.element.dataset.slot = panel.slot;
    setText(this.title, panel.title);
    setText(this.unit, panel.axis);
    const places = curvePlaces(scenery.panels, panel.slot);
    const curves = curvesAt(scenery.played, places);
    const pen = this.pen();
    if (!pen) return;
    const y = this.valueAxis(panel, curves);
    this.drawGrid(pen, scenery.axis, y, palette);
    this.drawEvents(pen, panel, scenery, palette);
    pen.save();
    pen.beginPath();
    pen.rect(this.box.left, this.box.top - 1, this.box.width, this.box.height + 2);
    pen.clip();
    if (scenery.before) {
      pen.globalAlpha = 0.28;
      this.drawCurves(pen, scenery.before.time, curvesAt(scenery.before, places), scenery.axis, y, palette, 1);
      pen.globalAlpha = 1;
    }
    this.drawCurves(pen, scenery.played.time, curves, scenery.axis, y, palette, 1.75);
    this.drawGuides(pen, panel, scenery, y, palette);
    pen.restore();
    drawPlayLevels(pen, panel.levels, this.box, y, palette, (share) => heightsAt(scenery, curves, y, share));
    this.drawLook(pen, scenery, palette);
    this.tell(panel, curves, scenery, palette);
  }

  /** The canvas, cleared and as large as its place; null where it has none. */
  pen() {
    const { clientWidth: width, clientHeight: height } = this.frame;
    const unit = globalThis.devicePixelRatio || 1;
    if (!width || !height) return null;
    if (this.canvas.width !== Math.round(width * unit)) this.canvas.width = Math.round(width * unit);
    if (this.canvas.height !== Math.round(height * unit)) this.canvas.height = Math.round(height * unit);
    this.box = { left: PLOT_LEFT, top: PLOT_TOP, width: width - PLOT_LEFT - PLOT_RIGHT, height: height - PLOT_TOP - PLOT_BOTTOM };
    const pen = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    pen.setTransform(unit, 0, 0, unit, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    return pen;
  }

  /** Its ends are those of curves and levels; a logarithmic one has a floor. @param {PlayPanel} panel @param {Float64Array[]} curves */
  valueAxis(panel, curves) {
    const levels = panel.levels.map(({ value }) => value);
    const ends = extent([...curves, levels], panel.log);
    if (ends && panel.log) ends[0] = Math.max(ends[0], ends[1] / 10 ** MOST_DECADES);
    return valueAxis(ends, panel.log);
  }

  /** @param {CanvasRenderingContext2D} pen @param {PlayAxis} x @param {import("./traces.js").Axis} y @param {Palette} palette */
  drawGrid(pen, x, y, palette) {
    const { left, top, width, height } = this.box;
    pen.strokeStyle = palette.line;
    pen.fillStyle = palette.muted;
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of axisTicks(y, height, 36)) {
      const at = Math.round(top + height * (1 - y.at(value))) + 0.5;
      strokeOn(pen, left, at, left + width, at);
      pen.fillText(short(value, 3), left - 6, at);
    }
    pen.textBaseline = "top";
    for (const t of x.ticks(width, 64)) {
      const at = left + width * x.at(t);
      strokeOn(pen, Math.round(at) + 0.5, top + height, Math.round(at) + 0.5, top + height + 4);
      pen.textAlign = at > left + width - 16 ? "right" : at < left + 8 ? "left" : "center";
      pen.fillText(short(t, 4), at, top + height + 6);
    }
  }

  /** Events as hairlines, with their names above; those of this panel are strong. @param {CanvasRenderingContext2D} pen
   * @param {PlayPanel} panel @param {Scenery} scenery @param {Palette} palette */
  drawEvents(pen, panel, { played, axis }, palette) {
    const { left, top, width, height } = this.box;
    let free = -Infinity;
    pen.textAlign = "center";
    pen.textBaseline = "alphabetic";
    const came = played.events.filter(({ time }) => time !== null).sort((a, b) => Number(a.time) - Number(b.time));
    for (const { name, time, slot } of came) {
      const at = left + width * axis.at(Number(time));
      if (at < left - 0.5 || at > left + width + 0.5) continue;
      pen.strokeStyle = slot === panel.slot ? palette.muted : palette.line;
      pen.setLineDash([2, 3]);
      strokeOn(pen, Math.round(at) + 0.5, top, Math.round(at) + 0.5, top + height);
      pen.setLineDash([]);
      const half = pen.measureText(name).width / 2;
      const place = Math.min(Math.max(at, left + half), left + width - half);
      if (place - half < free) continue;
      pen.fillStyle = slot === panel.slot ? palette.ink : palette.muted;
      pen.fillText(name, place, top - 5);
      free = place + half + 5;
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {Float64Array} time @param {Float64Array[]} curves @param {PlayAxis} x
   * @param {import("./traces.js").Axis} y @param {Palette} palette @param {number} width */
  drawCurves(pen, time, curves, x, y, palette, width) {
    const { left, top, width: across, height } = this.box;
    const xs = time.map((t) => left + across * x.at(t));
    pen.lineWidth = width;
    pen.lineJoin = "round";
    for (const [i, curve] of [...curves.entries()].reverse()) {
      pen.strokeStyle = inkOf(i, palette);
      pen.beginPath();
      for (const points of polylines(xs, curve, y, top, height)) {
        pen.moveTo(points[0], points[1]);
        for (let k = 2; k < points.length; k += 2) pen.lineTo(points[k], points[k + 1]);
      }
      pen.stroke();
    }
  }

  /** Rates of theory: a straight line in the logarithm that ends where the curve's event is. @param {CanvasRenderingContext2D} pen
   * @param {PlayPanel} panel @param {Scenery} scenery @param {import("./traces.js").Axis} y @param {Palette} palette */
  drawGuides(pen, panel, { played, axis, forms }, y, palette) {
    const { left, top, width, height } = this.box;
    for (const { guide } of forms) {
      const end = played.events.find(({ slot }) => slot === panel.slot)?.time;
      if (!guide || guide.slot !== panel.slot || !end || !(guide.rate > 0)) continue;
      const level = panel.levels[0].value;
      const begin = Math.max(0, end - 7 / guide.rate);
      pen.strokeStyle = palette.ink;
      pen.lineWidth = 1.25;
      pen.setLineDash([7, 4]);
      pen.beginPath();
      for (let i = 0; i <= 60; i++) {
        const t = begin + (i / 60) * (end + 1 / guide.rate - begin);
        const [px, py] = [left + width * axis.at(t), top + height * (1 - y.at(level * Math.exp(guide.rate * (t - end))))];
        if (i) pen.lineTo(px, py);
        else pen.moveTo(px, py);
      }
      pen.stroke();
      pen.setLineDash([]);
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {Scenery} scenery @param {Palette} palette */
  drawLook(pen, { axis, at }, palette) {
    const { left, top, width, height } = this.box;
    const place = Math.round(left + width * axis.at(at)) + 0.5;
    pen.strokeStyle = palette.accent;
    pen.lineWidth = 1;
    strokeOn(pen, place, top, place, top + height);
  }

  /** Names and values where the reader looks, and the whole in words. @param {PlayPanel} panel @param {Float64Array[]} curves
   * @param {Scenery} scenery @param {Palette} palette */
  tell(panel, curves, { played, before, preset, at }, palette) {
    const frame = frameAt(played.time, at);
    const names = panel.curves.slice(0, NAMED_CURVES);
    const layout = JSON.stringify([names, palette.dark, before && preset]);
    if (layout !== this.layout) {
      this.layout = layout;
      this.entries = names.map((name) => ({ name, value: el("b") }));
      const faint = before ? [el("li", { class: "play-faint" }, [el("span", { class: "play-swatch" }), `faint: preset ${preset}`])] : [];
      this.legend.replaceChildren(...this.entries.map(({ name, value }, i) => playEntry(name, value, inkOf(i, palette))), ...faint);
    }
    this.entries.forEach(({ value }, i) => setText(value, short(curves[i][frame], 3)));
    const last = curves[0].length - 1;
    this.canvas.setAttribute("aria-label", `${panel.title}: ${panel.curves[0]} goes from ${short(curves[0][0], 3)} to ${short(curves[0][last], 3)}`);
  }
}

/** Heights of curves at a share of the width, 0 to 1. @param {Scenery} scenery @param {Float64Array[]} curves @param {import("./traces.js").Axis} y @param {number} share */
function heightsAt({ played, axis }, curves, y, share) {
  const frame = frameAt(played.time, axis.value(share));
  return curves.map((curve) => y.at(curve[frame]));
}

/** @param {string} name @param {Element} value @param {string} colour */
function playEntry(name, value, colour) {
  const swatch = el("span", { class: "play-swatch" });
  swatch.style.background = colour;
  return el("li", {}, [swatch, el("span", { text: name }), value]);
}

/** @param {number} i @param {Palette} palette */
function inkOf(i, palette) {
  return i < NAMED_CURVES ? category(i, palette.dark ? "dark" : "light") : palette.muted;
}

/** @param {CanvasRenderingContext2D} pen @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
function strokeOn(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}
