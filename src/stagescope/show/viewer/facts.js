/**
 * How the runs ended, what could not be computed, and where they come from.
 */

import { brief, clean, clockText, count, el, nameOf, setText } from "./dom.js";

/** @typedef {import("./types.js").Panel} Panel */
/** @typedef {import("./types.js").Facts} Facts */
/** @typedef {import("./types.js").RunData} RunData */
/** @typedef {import("./clock.js").Scene} Scene */

/** Runs that ended as they should: at the end, or by a rule that stops them. */
export const DONE = ["finished", "stopped"];
const THANKS = 1600; // ms a button says that it copied
const LONGEST_TEXT = 20_000;

/**
 * A calm but plain word on every run that did not end as it should; null if all did.
 * @param {Scene} scene
 * @returns {HTMLElement|null}
 */
export function statusBanner(scene) {
  const broken = scene.runs.filter(({ data }) => !DONE.includes(data.status));
  if (!broken.length) return null;
  return el(
    "div",
    { class: "banner", role: "note" },
    broken.map(({ data, time }) => {
      const last = time.length ? `, up to ${clockText(scene.clock, time[time.length - 1])}` : "";
      return el("p", {}, [
        el("span", { class: "symbol", "aria-hidden": "true", text: "!" }),
        el("span", {}, [
          el("b", {}, [nameOf(data.name, 80), " ", nameOf(statusText(data.status), 40)]),
          data.reason ? ": " : ". ",
          data.reason ? nameOf(data.reason) : null,
          data.reason ? (/[.!?]$/.test(data.reason) ? " " : ". ") : null,
          recordedText(data.frames, last),
        ]),
      ]);
    }),
  );
}

/** @param {number} frames @param {string} last */
function recordedText(frames, last) {
  if (!frames) return "No frame was recorded.";
  return frames === 1 ? `Only one frame was recorded${last}.` : `The ${count(frames)} frames recorded before are shown${last}.`;
}

/** @param {string} status */
function statusText(status) {
  if (status === "running") return "is still running";
  return status === "interrupted" ? "was interrupted" : status === "failed" ? "failed" : `ended as \u201c${status}\u201d`;
}

/**
 * What could not be computed or needs a word, run by run; null if there is nothing to say.
 * @param {Scene} scene
 * @returns {HTMLElement|null}
 */
export function notesOf(scene) {
  const notes = scene.runs.flatMap(({ data }) => data.notes.map((note) => ({ run: data.name, note })));
  if (!notes.length) return null;
  const items = notes.map(({ run, note }) =>
    el("li", {}, [scene.runs.length > 1 ? el("b", {}, [nameOf(run, 60), ": "]) : null, nameOf(note)]),
  );
  return el("div", { class: "notes" }, [el("h2", { text: "Notes" }), el("ul", {}, items)]);
}

/**
 * A button that copies a text; where the browser forbids it, it selects the text and says so.
 * @param {string} text
 * @param {HTMLElement} source what is selected if copying fails
 */
export function copyButton(text, source) {
  const button = el("button", { type: "button", class: "quiet copy", text: "Copy" });
  button.addEventListener("click", async () => {
    let said = "Copied";
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      getSelection()?.selectAllChildren(source); // clipboards are closed to some pages from disk: leave one key to press
      said = "Selected: press Ctrl+C";
    }
    setText(button, said);
    setTimeout(() => setText(button, "Copy"), THANKS);
  });
  return button;
}

/** @param {Facts} facts */
function factsBox({ title, rows, text }) {
  const whole =
    text === undefined ? (rows ?? []).map(([name, value]) => `${clean(name)}\t${clean(value)}`).join("\n") : clean(text);
  const content =
    text === undefined
      ? el(
          "dl",
          {},
          (rows ?? []).flatMap(([name, value]) => [el("dt", {}, nameOf(name, 80)), el("dd", {}, nameOf(value))]),
        )
      : el("pre", { tabindex: 0 }, el("code", { text: brief(text, LONGEST_TEXT) }));
  return el("section", { class: "facts-part" }, [
    el("header", {}, [el("h5", {}, nameOf(title, 80)), copyButton(whole, content)]),
    content,
  ]);
}

/** @param {RunData} data @param {boolean} alone */
function runFacts(data, alone) {
  const head = el("summary", {}, alone ? "Configuration, versions, how to reproduce, what to cite" : nameOf(data.name, 80));
  return el("details", { class: "facts-run" }, [head, el("div", { class: "facts-parts" }, data.provenance.map(factsBox))]);
}

/**
 * Where the runs come from, folded; null if nothing is known.
 * @param {Scene} scene
 * @returns {Panel|null}
 */
export function provenancePanel(scene) {
  const known = scene.runs.filter(({ data }) => data.provenance.length);
  if (!known.length) return null;
  const parts = known.map(({ data }) => runFacts(data, known.length === 1));
  return { element: el("div", { class: "facts" }, parts), show: () => {} };
}
