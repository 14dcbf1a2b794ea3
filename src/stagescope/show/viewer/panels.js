/**
 * The panels of a scene: a frame around each view, built when it comes near the screen, drawn only while it is on it.
 */

import { arrange, crownedOf, slotsOf } from "./arrange.js";
import { sizeOf } from "./blocks.js";
import { brief, count, el, nameOf } from "./dom.js";
import { curvesPanel } from "./curves.js";
import { heatPanel } from "./heat.js";
import { ladderPanel } from "./ladder.js";
import { ledgerPanel } from "./ledger.js";
import { pointsPanel } from "./points.js";
import { predictionPanel } from "./prediction.js";
import { csvButton } from "./saving.js";
import { glossaryOf } from "./terms.js";
import { timelinePanel } from "./timeline.js";
import { notesOf, provenancePanel } from "./facts.js";

/** @typedef {import("./types.js").Panel} Panel */
/** @typedef {import("./types.js").View} View */
/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {import("./blocks.js").Store} Store */
/** @typedef {{value: number, precision: number, text: string}} Reading */
/** @typedef {Panel & {value?: (run: number, panel: number, row: number, column: number) => Reading}} AnyPanel */
/** @typedef {import("./arrange.js").Views} Views */

const NEAR_SCREEN = "400px"; // from here on a panel is built
const BEHIND_PLAYER = "0px 0px -70px"; // what only the player covers is not seen
const ABOUT = 900; // characters: runs that differ have a sentence each
const CHEAP = 4e6; // numbers of a panel that is built before anybody scrolls to it
const FIGURES = "stagescope figures RUN --out figures";
const LADDER_ABOUT =
  "Critical points the runs pass, their rates of escape, and when they were left: predicted (ring) and measured (dot), also on the ribbon of the loss.";
const TIMELINE_ABOUT = "Every part of the run and the stages it goes through, on the scale of the slider below. A click goes to a stage.";

/** @param {Store} store @param {Scene} scene @param {Views} views @param {boolean} crowned @returns {Promise<AnyPanel>} */
function panelOf(store, scene, views, crowned) {
  switch (views[0].view.kind) {
    case "curves":
      return curvesPanel(store, scene, /** @type {import("./lines.js").RunCurves[]} */ (views), crowned);
    case "matrices":
      return heatPanel(store, scene, views);
    case "points":
      return pointsPanel(store, scene, views);
  }
}

/** Numbers that must be decoded before a slot can be drawn. @param {Views} views */
function costOf(views) {
  return views.reduce((sum, { view }) => {
    const blocks = view.kind === "curves" ? view.curves.map((curve) => curve.values) : [view.values];
    return sum + blocks.reduce((size, block) => size + sizeOf(block), 0);
  }, 0);
}

/** What is left out of a panel, said for each run: "1,200 of 100,000 frames shown". @param {Scene} scene @param {Views} views */
function thinned(scene, views) {
  const said = views.filter(({ view }) => view.shown < view.of);
  return said.map(({ run, view }) => {
    const whose = views.length > 1 ? `${brief(scene.runs[run].data.name, 40)}: ` : "";
    return el("p", { class: "thinned", text: `${whose}${count(view.shown)} of ${count(view.of)} frames shown` });
  });
}

/** One panel with its frame. */
class Framed {
  /**
   * @param {Scene} scene
   * @param {string} slot
   * @param {string} title
   * @param {string} about
   * @param {string} width
   * @param {() => Promise<AnyPanel>} make
   * @param {number} cost numbers to decode before it can be drawn
   */
  constructor(scene, slot, title, about, width, make, cost = 0) {
    this.scene = scene;
    this.glossary = glossaryOf(scene);
    this.slot = slot;
    this.make = make;
    this.cost = cost;
    /** @type {AnyPanel|null} */
    this.panel = null;
    /** @type {Promise<void>|null} */
    this.loading = null;
    this.visible = false;
    this.tools = el("div", { class: "panel-tools" });
    this.body = el("div", { class: "panel-body", "aria-busy": "true" });
    this.head = el("header", { class: "panel-head" }, [el("h2", {}, nameOf(title, 120)), this.tools]);
    const said = about ? el("p", { class: "about" }, nameOf(about, ABOUT)) : null;
    this.element = el("section", { class: `panel ${width}`, data: { slot } }, [this.head, said, this.body]);
  }

  /** Builds the panel, once. What goes wrong is said in its place; the rest of the page stays. */
  load() {
    this.loading ??= this.make().then(
      (panel) => {
        this.panel = panel;
        if (panel.tools) this.tools.append(panel.tools);
        if (panel.table) this.tools.append(csvButton(panel.table, () => `${this.slot}-frame-${this.scene.position + 1}`, FIGURES));
        this.body.replaceChildren(panel.element);
        this.body.setAttribute("aria-busy", "false");
        this.glossary.mark(this.element);
        panel.show(this.scene.time);
      },
      (error) => {
        this.body.setAttribute("aria-busy", "false");
        this.body.replaceChildren(
          el("p", { class: "failure", role: "alert", text: `Not shown: ${brief(error?.message ?? error)}` }),
        );
      },
    );
    return this.loading;
  }

  /** Draws the present frame if anybody can see it. */
  show() {
    if (this.visible) this.panel?.show(this.scene.time);
  }
}

/** @returns {Promise<unknown>} until the browser has nothing else to do */
function idle() {
  return new Promise((done) => ("requestIdleCallback" in window ? requestIdleCallback(done) : setTimeout(done, 50)));
}

/** All panels of a scene in their grid. */
export class Panels {
  /** @param {Store} store @param {Scene} scene */
  constructor(store, scene) {
    const arranged = arrange(slotsOf(scene));
    const crowned = crownedOf(arranged);
    this.framed = arranged.map(({ views, width }) => {
      const { view } = views[0];
      const make = () => panelOf(store, scene, views, crowned.has(views));
      const framed = new Framed(scene, view.slot, view.title, view.about, width, make, costOf(views));
      framed.element.dataset.kind = view.kind;
      framed.body.before(...thinned(scene, views));
      return framed;
    });
    const timeline = timelinePanel(scene);
    if (timeline) this.framed.splice(2, 0, new Framed(scene, "timeline", "Timeline", TIMELINE_ABOUT, "whole", async () => timeline));
    const ladder = ladderPanel(scene); // below the loss, whose plateaus it explains: beside it stands attention, and the table is wide
    if (ladder) this.framed.splice(Math.min(2, this.framed.length), 0, new Framed(scene, "ladder", "Saddle ladder", LADDER_ABOUT, "whole", async () => ladder));
    this.notes = notesOf(scene);
    this.element = el("div", { class: "panels" }, [...this.framed.map(({ element }) => element), this.notes]);
    for (const [slot, title, about, panel] of closing(scene)) {
      if (!panel) continue;
      const framed = new Framed(scene, slot, title, about, "whole", async () => panel);
      this.framed.push(framed);
      this.element.append(framed.element);
    }
    this.element.append(el("p", { class: "about figures" }, ["Figures of all panels as PDF, SVG and PNG: ", el("code", { text: FIGURES })]));
    this.near = new IntersectionObserver((entries) => this.came(entries), { rootMargin: NEAR_SCREEN });
    this.seen = new IntersectionObserver((entries) => this.moved(entries), { rootMargin: BEHIND_PLAYER });
    for (const { element } of this.framed) {
      this.near.observe(element);
      this.seen.observe(element);
    }
  }

  /** @param {Element} element */
  of(element) {
    return /** @type {Framed} */ (this.framed.find((framed) => framed.element === element));
  }

  /** @param {IntersectionObserverEntry[]} entries */
  came(entries) {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      this.near.unobserve(target);
      this.of(target).load();
    }
  }

  /** @param {IntersectionObserverEntry[]} entries */
  moved(entries) {
    for (const { target, isIntersecting } of entries) {
      const framed = this.of(target);
      framed.visible = isIntersecting;
      framed.show();
    }
  }

  show() {
    for (const framed of this.framed) framed.show();
  }

  recolour() {
    for (const { panel } of this.framed) panel?.recolour?.();
  }

  /** What a guided tour shows: the curves of a slot and the first maps; null ends it. @param {string|null} lead */
  choose(lead) {
    const curves = this.framed.find(({ slot }) => slot === lead) ?? this.framed[0];
    const maps = this.framed.find(({ element }) => element.dataset.kind === "matrices");
    for (const framed of this.framed) {
      framed.element.toggleAttribute("data-guided", lead !== null && (framed === curves || framed === maps));
      if (framed.element.hasAttribute("data-guided")) void framed.load();
    }
  }

  toNotes() {
    this.notes?.scrollIntoView({ block: "center" });
  }

  /** What stands at the top: decoded before the page says that it is ready. */
  async first() {
    await Promise.all(this.framed.slice(0, 2).map((framed) => framed.load()));
  }

  /** The others, one by one whenever the browser has nothing to do, so that they can be searched and printed. */
  async rest() {
    for (const framed of this.framed) {
      if (framed.panel || framed.cost > CHEAP) continue;
      await idle();
      await framed.load();
    }
  }

  /**
   * What a heat map shows at the present frame; a promise of it if the panel was not near the screen yet.
   * @param {string} slot
   * @param {number} run
   * @param {number} panel
   * @param {number} row
   * @param {number} column
   * @returns {Reading|Promise<Reading>}
   */
  value(slot, run, panel, row, column) {
    const framed = this.framed.find((one) => one.slot === slot);
    if (!framed) throw new Error(`no panel ${slot}; there are: ${this.framed.map((one) => one.slot).join(", ")}`);
    const read = () => {
      if (!framed.panel?.value) throw new Error(`${slot} is no heat map`);
      return framed.panel.value(run, panel, row, column);
    };
    return framed.panel ? read() : framed.load().then(read);
  }
}

/**
 * What every scene ends with.
 * @param {Scene} scene
 * @returns {[slot: string, title: string, about: string, panel: AnyPanel|null][]}
 */
function closing(scene) {
  return [
    [
      "ledger",
      "Ledger",
      "Claims put to these runs, and their verdicts. A click on a row goes to the frames that show it.",
      ledgerPanel(scene),
    ],
    [
      "prediction",
      "Predicted from the start",
      "The saddle path from the first frame, computed without the run: when each event should come, and when it came.",
      predictionPanel(scene),
    ],
    ["provenance", "Provenance", "", provenancePanel(scene)],
  ];
}
