/** What is happening now, in words: the caption of the present stretch of time, and the critical point that comes next. */

import { brief, clockText, el, setText, short } from "./dom.js";

/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./types.js").Caption} Caption */
/** @typedef {import("./types.js").RunData} RunData */

export const LONGEST_CAPTION = 600; // characters
const MOST_RUNS = 2; // runs that have words of their own beside the slider

/** @param {RunData} data @param {number} time @returns {Caption|null} */
function captionAt(data, time) {
  const inside = (data.about?.captions ?? []).filter(({ start, stop }) => start <= time && (stop === null || time < stop));
  return inside[inside.length - 1] ?? data.about?.captions[data.about.captions.length - 1] ?? null;
}

/** The critical point that the run is near or comes to. @param {RunData} data @param {number} time @param {string} clock */
export function rungText(data, time, clock) {
  const left = (/** @type {import("./types.js").Rung} */ rung) =>
    rung.measured_escape ?? rung.predicted_escape ?? (rung.opening && rung.rates.length ? Infinity : -Infinity);
  const rung = (data.ladder ?? []).find((one) => left(one) > time);
  if (!rung) return "";
  const opens = rung.opening && rung.rates.length ? `, where ${brief(rung.opening, 40)} opens at rate ${short(rung.rates[0], 3)}` : "";
  const said = rung.predicted_escape === null ? "" : ` (predicted ${short(rung.predicted_escape)})`;
  const when = rung.measured_escape === null ? "" : `; it is left at ${clockText(clock, rung.measured_escape)}${said}`;
  return opens || when ? `Rung ${brief(rung.label, 40)}${opens}${when}.` : "";
}

/** Words beside the slider. @param {Scene} scene */
export function presentWords(scene) {
  const told = scene.runs.filter(({ data }) => data.about?.captions.length).slice(0, MOST_RUNS);
  if (!told.length || scene.times.length < 2) return null;
  const several = scene.runs.length > 1;
  const lines = told.map(({ data, short: name }) => {
    const [title, text, rung] = [el("bdi", { class: "present-title" }), el("bdi"), el("bdi", { class: "present-rung" })];
    const whose = several ? el("bdi", { class: "present-run", text: brief(name, 40) }) : null;
    const element = el("p", { class: several ? "one-line" : null }, [whose, title, " ", text, " ", rung]);
    return { data, title, text, rung, element };
  });
  const more = el("button", { type: "button", class: "quiet present-more", "aria-expanded": "false", text: "more" });
  const words = el("div", { class: "present-words" }, lines.map(({ element }) => element));
  const element = el("div", { class: "present", "aria-label": "what is happening now", role: "group" }, [words, more]);
  const open = (/** @type {boolean} */ all) => {
    element.classList.toggle("whole", all);
    more.setAttribute("aria-expanded", String(all));
    setText(more, all ? "less" : "more");
    fit();
  };
  const fit = () => (more.hidden = !element.classList.contains("whole") && words.scrollHeight <= words.clientHeight + 2);
  element.addEventListener("click", () => {
    if (!more.hidden && getSelection()?.isCollapsed !== false) open(!element.classList.contains("whole"));
  });
  new ResizeObserver(fit).observe(words);
  const show = () => {
    for (const { data, title, text, rung } of lines) {
      const caption = captionAt(data, scene.time);
      setText(title, caption ? `${brief(caption.title, 40)}:` : "");
      setText(text, brief(caption?.text ?? "", LONGEST_CAPTION));
      setText(rung, rungText(data, scene.time, scene.clock));
    }
    fit();
  };
  return { element, show };
}
