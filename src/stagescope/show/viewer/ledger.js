/**
 * The ledger: the claims, their verdicts on the runs, and a way to the frames that show them.
 *
 * One row a claim and run. With several runs the rows of a claim stand below each other, so that numbers compare down a column.
 */

import { brief, clockText, count, el, nameOf, setText } from "./dom.js";
import { overRunsFigure } from "./over_runs.js";
import { KINDS, badge, cellText, kindText } from "./verdicts.js";

/** @typedef {import("./types.js").Panel} Panel */
/** @typedef {import("./types.js").Verdict} Verdict */
/** @typedef {import("./clock.js").Scene} Scene */
/** @typedef {{run: number, verdict: Verdict}} Entry */
/** @typedef {{tag: string, statement: string, place: string, entries: Entry[]}} Claim */

/** @param {Scene} scene -> the claims by their place in the theory, each with the verdicts of all runs */
function claimsOf(scene) {
  /** @type {Map<string, Claim>} */
  const claims = new Map();
  scene.runs.forEach(({ data }, run) => {
    for (const verdict of data.ledger ?? []) {
      const key = `${verdict.tag}\n${verdict.statement}`;
      const claim = claims.get(key) ?? { tag: verdict.tag, statement: verdict.statement, place: verdict.place, entries: [] };
      claim.entries.push({ run, verdict });
      claims.set(key, claim);
    }
  });
  const { places } = scene.data;
  return [...claims.values()].sort((a, b) => places.indexOf(a.place) - places.indexOf(b.place));
}

/**
 * The frames of a run from one time to another: "frames 12\u201340".
 * @param {Scene} scene
 * @param {number} run
 * @param {[number, number]} span
 */
function framesText(scene, run, span) {
  const [first, last] = span.map((time) => count(scene.frameAt(run, null, time).frame + 1));
  return first === last ? `frame ${first}` : `frames ${first}\u2013${last}`;
}

/** The regime, unless the reason already says it. @param {Verdict} verdict */
function regimeOf({ regime, reason }) {
  return !regime || reason.includes(regime) ? null : el("span", { class: "regime" }, ["regime: ", nameOf(regime)]);
}

/** Where a run shows a claim; nowhere if the claim is not about it. @param {Verdict} verdict */
function spanOf({ verdict, span }) {
  return verdict === "not applicable" ? null : span;
}

/** Why no button leads to frames. @param {Verdict} verdict */
function nowhere({ verdict }) {
  return verdict === "not applicable" ? "does not apply" : "no single moment";
}

/** @param {string} place */
function placeHead(place) {
  return el("tbody", { class: "place-head" }, el("tr", {}, el("th", { colspan: 6, scope: "rowgroup" }, nameOf(place || "claims", 80))));
}

const GROUP = "Claims that rest on one measurement are a group, and count as one: it is violated where one of them is.";

class LedgerTable {
  /** @param {Scene} scene @param {Claim[]} claims */
  constructor(scene, claims) {
    this.scene = scene;
    this.claims = claims;
    this.several = scene.runs.length > 1;
    /** Kinds of verdicts that are hidden. @type {Set<string>} */
    this.hidden = new Set();
    /** @type {{entry: Entry, row: HTMLTableRowElement, body: HTMLElement}[]} */
    this.rows = [];
    this.said = el("span", { class: "ledger-said" });
    this.now = el("div", { class: "ledger-now", role: "status", hidden: true }, [this.said, ...this.ways()]);
    const heads = ["verdict", this.several ? "claim and run" : "claim", "predicted", "measured", "tolerance", "seen in"];
    const head = el(
      "thead",
      {},
      el("tr", {}, heads.map((text, i) => el("th", { scope: "col", class: i > 1 && i < 5 ? "number" : "", text }))),
    );
    const bodies = claims.flatMap((claim, i) => [claim.place === claims[i - 1]?.place ? null : placeHead(claim.place), this.body(claim)]);
    this.table = el("table", { class: "ledger-table" }, [head, ...bodies]);
    const table = el("div", { class: "scroll" }, this.table);
    this.element = el("div", { class: "ledger" }, [this.chips(), this.summaries(), this.missing(), table, this.uncalibrated()]);
    scene.onMark((span) => span ?? this.choose(null));
  }

  /** What one can do after a jump. */
  ways() {
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    const up = () =>
      document.querySelector(".panel")?.scrollIntoView({ behavior: still.matches ? "instant" : "smooth", block: "start" });
    return [
      el("button", { type: "button", class: "quiet", text: "To the figures \u2191", on: { click: up } }),
      el("button", { type: "button", class: "quiet", text: "Clear the mark", on: { click: () => this.scene.mark(null) } }),
    ];
  }

  /** Groups by verdict, as the terminal counts them; each is a switch that shows or hides its rows. */
  chips() {
    const all = this.claims.flatMap((claim) => claim.entries);
    return el(
      "div",
      { class: "verdict-chips", role: "group", "aria-label": "verdicts shown" },
      KINDS.map((kind) => {
        const number = this.scene.runs.reduce((sum, { data }) => sum + (data.ledger_counts[kind.name] ?? 0), 0);
        const any = all.some(({ verdict }) => verdict.verdict === kind.name);
        const chip = el(
          "button",
          {
            type: "button",
            class: `verdict-chip ${kind.style}`,
            "aria-pressed": "true",
            disabled: !any,
            title: `show or hide the rows that are ${kind.name}`,
          },
          [
            el("span", { class: "symbol", "aria-hidden": "true", text: kind.symbol }),
            el("b", { text: count(number) }),
            kind.name,
          ],
        );
        chip.addEventListener("click", () => {
          if (!this.hidden.delete(kind.name)) this.hidden.add(kind.name);
          chip.setAttribute("aria-pressed", String(!this.hidden.has(kind.name)));
          this.filter();
        });
        return chip;
      }),
    );
  }

  /** The count of each run in the words of the terminal, and what it counts. */
  summaries() {
    const told = this.scene.runs.filter(({ data }) => data.ledger_summary);
    const lines = told.map(({ data }) => el("span", {}, [...(this.several ? [nameOf(data.name, 60), ": "] : []), `${data.ledger_summary}. `]));
    return el("p", { class: "aside ledger-summary" }, [...lines, GROUP]);
  }

  /** Runs without a ledger, named. */
  missing() {
    const without = this.scene.runs.filter(({ data }) => !data.ledger);
    if (!without.length) return null;
    return el("p", { class: "aside" }, [
      "No ledger for ",
      ...without.flatMap(({ data }, i) => [i ? ", " : "", nameOf(data.name, 60)]),
      ": see its notes.",
    ]);
  }

  /** How many claims have no null. */
  uncalibrated() {
    const without = this.claims.filter(({ entries }) => !entries.some(({ verdict }) => verdict.calibrated)).length;
    if (!without) return null;
    const are = without === 1 ? "claim is" : "claims are";
    const text = `${count(without)} ${are} uncalibrated: no null (an input on which the claim is false) is known yet.`;
    return el("p", { class: "aside", text });
  }

  filter() {
    for (const { entry, row } of this.rows) row.hidden = this.hidden.has(entry.verdict.verdict);
    /** @type {HTMLElement|null} */
    let head = null;
    for (const body of this.table.tBodies) {
      if (body.classList.contains("place-head")) {
        head = body;
        head.hidden = true;
        continue;
      }
      body.hidden = this.rows.filter((one) => one.body === body).every(({ entry }) => this.hidden.has(entry.verdict.verdict));
      if (head && !body.hidden) head.hidden = false;
    }
  }

  /** @param {Claim} claim */
  body(claim) {
    const body = el("tbody", { class: "claim", data: { tag: claim.tag } });
    const title = [
      el("span", { class: "statement" }, nameOf(claim.statement)),
      el("code", { class: "claim-tag" }, nameOf(claim.tag, 60)),
      el("span", { class: "claim-kind", text: kindText(claim.entries[0].verdict) }),
    ];
    if (this.several) body.append(el("tr", { class: "claim-head" }, el("th", { colspan: 6, scope: "rowgroup" }, title)));
    for (const entry of claim.entries) {
      const row = this.row(entry, this.several ? [nameOf(this.scene.runs[entry.run].data.name, 60)] : title);
      this.rows.push({ entry, row, body });
      body.append(row);
    }
    return body;
  }

  /** @param {Entry} entry @param {HTMLElement[]} title */
  row(entry, title) {
    const { verdict, run } = entry;
    const span = spanOf(verdict);
    const seen = span ? this.button(entry, span) : el("span", { class: "nowhere", text: nowhere(verdict) });
    const why = el("p", { class: "reason" }, [nameOf(verdict.reason), regimeOf(verdict)]);
    const errors = [verdict.predicted_error, verdict.measured_error, null];
    const numbers = [verdict.predicted, verdict.measured, verdict.tolerance].map((cell, i) =>
      el("td", { class: "number", data: { label: ["predicted", "measured", "tolerance"][i] } }, [
        el("bdi", { text: cellText(cell, errors[i]), title: `${cell ?? ""} ${verdict.unit}`.trim() }),
        i === 2 && typeof cell === "number" && verdict.unit ? el("bdi", { class: "unit", text: brief(verdict.unit, 40) }) : null,
      ]),
    );
    const row = el("tr", { class: span ? "leads" : "", data: { verdict: verdict.verdict, run } }, [
      el("td", {}, badge(verdict.verdict)),
      el("td", { class: "claim-text" }, [el("div", {}, title), why, overRunsFigure(verdict.over_runs)]),
      ...numbers,
      el("td", { class: "seen" }, seen),
    ]);
    row.addEventListener("click", (event) => {
      const inside = event.target instanceof Element && event.target.closest("button");
      if (span && !inside && getSelection()?.isCollapsed !== false) this.jump(entry, span);
    });
    return row;
  }

  /** @param {Entry} entry @param {[number, number]} span */
  button(entry, span) {
    const { clock } = this.scene;
    return el("button", {
      type: "button",
      class: "jump",
      text: framesText(this.scene, entry.run, span),
      title: `${clockText(clock, span[0])} to ${clockText(clock, span[1])}: go there`,
      "aria-label": `show ${framesText(this.scene, entry.run, span)}: ${brief(entry.verdict.statement, 100)}`,
      on: { click: () => this.jump(entry, span) },
    });
  }

  /**
   * Moves the scrubber to where a run shows a claim, marks the stretch, and says which frames.
   * @param {Entry} entry
   * @param {[number, number]} span
   */
  jump(entry, span) {
    const { scene } = this;
    const { data } = scene.runs[entry.run];
    scene.enter(entry.verdict.lands ?? span[0], span[1]);
    scene.mark(span);
    this.choose(entry);
    const [from, to] = span.map((time) => clockText(scene.clock, time));
    const frames = `${framesText(scene, entry.run, span)} of ${count(data.frames)}`;
    setText(this.said, `Now in ${frames}, ${from} to ${to}; marked on the time bar.`);
  }

  /** Marks the row of a verdict and puts the word on where it is seen into it; null for none. @param {Entry|null} chosen */
  choose(chosen) {
    this.now.hidden = !chosen;
    for (const { entry, row } of this.rows) {
      row.classList.toggle("chosen", entry === chosen);
      if (entry === chosen) row.cells[1].append(this.now);
    }
  }
}

/**
 * The ledger of all runs of a scene; null if no run has one.
 * @param {Scene} scene
 * @returns {Panel|null}
 */
export function ledgerPanel(scene) {
  const claims = claimsOf(scene);
  if (!claims.length) return null;
  return { element: new LedgerTable(scene, claims).element, show: () => {} };
}
