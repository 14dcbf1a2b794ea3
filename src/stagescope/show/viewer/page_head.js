/** The head that all pages share, and what a page says when it cannot be shown. */

import { brief, el, nameOf } from "./dom.js";

/** @param {string} title @param {string} version @param {{theme: () => void, help: () => void, guide?: () => void}} actions */
export function titleRow(title, version, { theme, help, guide }) {
  const button = (/** @type {string} */ text, /** @type {string} */ says, /** @type {() => void} */ click) =>
    el("button", { type: "button", class: "plain", text, title: says, on: { click } });
  return el("div", { class: "title-row" }, [
    el("h1", {}, nameOf(title, 160)),
    el("div", { class: "page-tools" }, [
      el("span", { class: "made-by", text: `Stagescope ${version}` }),
      guide ? button("Guided tour", "Stage by stage, full screen (G)", guide) : null,
      button("Light / dark", "Light or dark (D)", theme),
      button("Help", "Keys and how to read this page (?)", help),
    ]),
  ]);
}

/** @param {string} chosen "light", "dark", or "auto": what the system prefers */
export function setTheme(chosen) {
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

/** @param {unknown} error says in the page what went wrong: nobody reads a console */
export function confess(error) {
  const said = brief(error instanceof Error ? error.message : error);
  document
    .getElementById("page")
    ?.replaceChildren(el("p", { class: "failure", role: "alert", text: `This page cannot be shown: ${said}` }));
}
