/** The head of a scene: the paper, the model and its process in words and as a small table, and what differs between the runs. */

import { el, nameOf, short } from "./dom.js";

/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./types.js").SmallTable} SmallTable */

const ARXIV = "https://arxiv.org/abs/";

/** @param {SmallTable} table */
function figure({ title, rows, columns, values }) {
  const most = Math.max(...values.flat().map((value) => Math.abs(value ?? 0)), 1e-300);
  const cell = (/** @type {number|null} */ value) => {
    const one = el("td", { text: short(value, 2) });
    one.style.setProperty("--share", String(Math.abs(value ?? 0) / most));
    return one;
  };
  const head = el("tr", {}, [el("td"), ...columns.map((name) => el("th", { scope: "col" }, nameOf(name, 12)))]);
  const body = rows.map((name, i) => el("tr", {}, [el("th", { scope: "row" }, nameOf(name, 16)), ...values[i].map(cell)]));
  return el("table", { class: "small-table" }, [el("caption", {}, nameOf(title, 120)), el("thead", {}, head), el("tbody", {}, body)]);
}

/** @param {{text: string, arxiv: string}} paper */
function citation({ text, arxiv }) {
  const known = /^[\w./-]+$/.test(arxiv); // the address of a stranger's paper may be anything: only numbers of arXiv lead away
  const name = nameOf(text, 300);
  return el("p", { class: "cited" }, ["Paper: ", known ? el("a", { href: ARXIV + arxiv, target: "_blank", rel: "noopener noreferrer" }, name) : name]);
}

/** @param {Scene} scene @returns {HTMLElement|null} */
export function aboutOf(scene) {
  const known = scene.runs.flatMap(({ data }) => (data.about?.sentence ? [{ name: data.name, about: data.about }] : []));
  if (!known.length) return null;
  const papers = [...new Map(known.flatMap(({ about }) => (about.paper ? [[about.paper.text, about.paper]] : []))).values()];
  const sentences = [...new Set(known.map(({ about }) => about.sentence))].map((sentence) => {
    const whose = known.filter(({ about }) => about.sentence === sentence);
    const named = whose.length < known.length ? el("b", {}, [nameOf(whose.map(({ name }) => name).join(", "), 80), ": "]) : null;
    return el("p", {}, [named, nameOf(sentence, 900)]);
  });
  const tables = [...new Map(known.flatMap(({ about }) => (about.table ? [[JSON.stringify(about.table), about.table]] : []))).values()];
  const said = el("div", { class: "about-words" }, [...sentences, differs(scene), ...papers.map(citation)]);
  return el("section", { class: "about-runs", "aria-label": "what is shown" }, [said, ...tables.slice(0, 2).map(figure)]);
}

/** Options in which the runs differ. @param {Scene} scene */
function differs({ data, runs }) {
  if (!data.differs?.length) return null;
  const items = data.differs.map(([name, values]) =>
    el("li", {}, [el("b", {}, nameOf(name, 60)), ": ", ...values.flatMap((value, i) => [i ? ", " : "", nameOf(value, 60), " (", nameOf(runs[i].short, 30), ")"])]),
  );
  return el("div", { class: "differs" }, [el("span", { text: "The runs differ in: " }), el("ul", {}, items)]);
}
