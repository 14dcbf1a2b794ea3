/**
 * The page on paper: every panel, everything that is folded, and light colours.
 *
 * A browser does not wait for panels that are still to be built. Small ones are built in idle time (`Panels.rest`); with
 * Ctrl+P the page builds the others first and prints then.
 */

/** @typedef {import("./panels.js").Panels} Panels */
/** @typedef {{panels: () => Panels, recolour: () => void}} Paper */

/** @param {Paper} paper */
export function listenToPrinting({ panels, recolour }) {
  /** @type {Sheet|null} */
  let sheet = null;
  addEventListener("beforeprint", async () => {
    sheet ??= new Sheet();
    sheet.unfold();
    recolour();
    await panels().all();
    sheet?.unfold(); // panels built just now have folds, too
  });
  addEventListener("afterprint", () => {
    sheet?.undo();
    sheet = null;
    recolour();
  });
  document.addEventListener("keydown", async (event) => {
    if (event.key.toLowerCase() !== "p" || event.shiftKey || event.altKey || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    await panels().all();
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))); // new panels take their size
    print();
  });
}

/** The page made light and unfolded, for as long as it is printed. */
class Sheet {
  constructor() {
    this.root = document.documentElement;
    this.theme = this.root.dataset.theme;
    this.root.dataset.theme = "light";
    /** @type {HTMLDetailsElement[]} */
    this.unfolded = [];
  }

  unfold() {
    /** @type {NodeListOf<HTMLDetailsElement>} */
    const folded = document.querySelectorAll("#page details:not([open], .export)");
    for (const fold of folded) fold.open = true;
    this.unfolded.push(...folded);
  }

  undo() {
    for (const fold of this.unfolded) fold.open = false;
    if (this.theme === undefined) delete this.root.dataset.theme;
    else this.root.dataset.theme = this.theme;
  }
}
