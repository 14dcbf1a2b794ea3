/**
 * Symbols and words that explain themselves: where the pointer rests, the focus is or a finger taps, a tip says what they mean.
 * There is one glossary for a scene; papers add to it. In a symbol `#` stands for a number.
 */

import { brief, el } from "./dom.js";

/** @typedef {import("./clock.js").Scene} Scene */

const SKIP = "button, a, summary, select, svg, code, pre, script, b, h2, h3, .term, .plot, .tile, .heat-run-name"; // names and controls
const LONGEST_TIP = 2000; // characters
const EDGE = 8; // px between the tip and the edge of the window

/** @param {string} symbol as a pattern */
function patternOf(symbol) {
  return symbol.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/#/g, "\\d+");
}

/** What words of a scene mean. */
export class Glossary {
  /** @param {[string, string][]} entries */
  constructor(entries) {
    this.entries = entries.map(([symbol, says]) => ({ whole: new RegExp(`^${patternOf(symbol)}$`), symbol, says }));
    const longest = entries.map(([symbol]) => symbol).sort((a, b) => b.length - a.length);
    const any = longest.map(patternOf).join("|");
    this.any = entries.length ? new RegExp(`(?<![\\p{L}\\p{N}_])(?:${any})(?![\\p{L}\\p{N}_])`, "gu") : null;
  }

  /** @param {string} text -> what its first symbol means; null if it has none */
  meaning(text) {
    if (!this.any) return null;
    const [found] = text.match(this.any) ?? [];
    return found === undefined ? null : this.says(found);
  }

  /** @param {string} symbol */
  says(symbol) {
    return this.entries.find(({ whole }) => whole.test(symbol))?.says ?? null;
  }

  /**
   * Makes the first place of each symbol inside an element a button that explains it.
   * @param {Element} root
   */
  mark(root) {
    if (!this.any) return;
    /** @type {Set<string|null>} */
    const told = new Set();
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walk.nextNode()) texts.push(/** @type {Text} */ (walk.currentNode));
    for (const text of texts) {
      if (text.parentElement?.closest(SKIP)) continue;
      this.split(text, told);
    }
  }

  /** @param {Text} text @param {Set<string|null>} told meanings that were explained already */
  split(text, told) {
    const parts = [];
    let last = 0;
    for (const found of text.data.matchAll(/** @type {RegExp} */ (this.any))) {
      const says = this.says(found[0]);
      if (!says || told.has(says)) continue;
      told.add(says);
      parts.push(text.data.slice(last, found.index), termOf(found[0], says));
      last = found.index + found[0].length;
    }
    if (parts.length) text.replaceWith(...parts, text.data.slice(last));
  }
}

/** @param {string} symbol @param {string} says */
function termOf(symbol, says) {
  return el("button", { type: "button", class: "term", text: symbol, data: { says: brief(says, LONGEST_TIP) } });
}

/**
 * Gives a control a tip: what its symbol means, then what else there is to say. It replaces the title.
 * @param {HTMLElement} control
 * @param {string|null} meaning
 */
export function tipOn(control, meaning) {
  if (!meaning) return;
  control.dataset.says = brief([brief(meaning, 600), control.title].filter(Boolean).join("\n"), LONGEST_TIP);
  control.removeAttribute("title");
}

/** The glossary of a scene. @param {Scene} scene */
export function glossaryOf({ data }) {
  return new Glossary(Object.entries(data.glossary));
}

/** One tip for the whole page: shown where a thing with `data-says` is pointed at, focused or tapped. */
export function listenForTerms() {
  const tip = el("div", { class: "tip term-tip", role: "tooltip", id: "term-tip", hidden: true });
  document.body.append(tip);
  /** @type {HTMLElement|null} */
  let shown = null;
  let pinned = false;
  const of = (/** @type {EventTarget|null} */ target) =>
    target instanceof Element ? /** @type {HTMLElement|null} */ (target.closest("[data-says]")) : null;
  const hide = () => {
    shown?.removeAttribute("aria-describedby");
    shown = null;
    pinned = false;
    tip.hidden = true;
  };
  const show = (/** @type {HTMLElement|null} */ one) => {
    if (!one || one === shown) return;
    hide();
    shown = one;
    tip.textContent = one.dataset.says ?? "";
    tip.hidden = false;
    one.setAttribute("aria-describedby", tip.id);
    place();
  };
  const place = () => {
    if (!shown) return;
    const box = shown.getBoundingClientRect();
    const left = Math.min(Math.max(EDGE, box.left), innerWidth - tip.offsetWidth - EDGE);
    const above = box.top - tip.offsetHeight - 6;
    tip.style.transform = `translate(${Math.max(EDGE, left)}px, ${above < EDGE ? box.bottom + 6 : above}px)`;
  };
  document.addEventListener("pointerover", (event) => show(of(event.target)));
  document.addEventListener("pointerout", (event) => !pinned && of(event.target) === shown && hide());
  document.addEventListener("focusin", (event) => {
    if (event.target instanceof Element && event.target.matches(":focus-visible")) show(of(event.target));
  });
  document.addEventListener("focusout", () => !pinned && hide());
  document.addEventListener("pointerdown", (event) => of(event.target) !== shown && hide());
  document.addEventListener("click", (event) => {
    const one = of(event.target);
    if (!one?.matches(".term")) return;
    show(one);
    pinned = true;
  });
  document.addEventListener("scroll", place, { passive: true, capture: true });
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !shown) return;
      hide();
      event.stopPropagation();
    },
    true,
  );
}
