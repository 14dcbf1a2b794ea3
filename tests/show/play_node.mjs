// Reads questions as JSON from standard input and answers them with the page's own modules: what the laws of the papers give.
import { playFlow, TOOLS } from "../../src/stagescope/show/viewer/play_flow.js";
import { drawPlayLevels } from "../../src/stagescope/show/viewer/play_levels.js";
import { PlayOptions } from "../../src/stagescope/show/viewer/play_options.js";
import { Rkc } from "../../src/stagescope/show/viewer/play_rkc.js";
import { readFileSync } from "node:fs";

const asked = JSON.parse(readFileSync(0, "utf8"));
(0, eval)(asked.laws);
const laws = globalThis.stagescopeLaws;
const study = Object.fromEntries(asked.data.studies.map((each) => [each.name, each]));

function prepared({ study: name, options }) {
  const blocks = study[name].draws[options.seed] ?? {};
  const numbers = (text) => new Float64Array(Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)).buffer);
  const draws = Object.fromEntries(Object.entries(blocks).map(([block, text]) => [block, numbers(text)]));
  return laws[name].prepare(options, draws, study[name].constants, TOOLS);
}

const answers = {
  field(question) {
    const law = prepared(question);
    const out = new Float64Array(question.theta.length);
    const loss = law.velocity(Float64Array.from(question.theta), out);
    return { loss, velocity: Array.from(out), start: Array.from(law.start), forms: law.forms, levels: law.panels[0].levels };
  },
  flow(question) {
    const { events, loss, evaluations } = playFlow(prepared(question), question.tolerance);
    return { events: Object.fromEntries(events.map(({ name, time }) => [name, time])), loss: loss.at(-1), evaluations };
  },
  // y' = -k (y - cos t) with t as a coordinate, and decay of modes with rates up to 1e4: closed forms exist for both
  decay({ rates, until, tolerance }) {
    const solver = new Rkc((y, out) => (rates.forEach((rate, i) => (out[i] = -rate * y[i])), 0), new Float64Array(rates.length).fill(1), until, tolerance);
    let steps = 0;
    solver.run(() => steps++);
    return { theta: Array.from(solver.theta), steps, evaluations: solver.evaluations, radius: solver.radius };
  },
  growth({ rate, until, tolerance }) {
    const solver = new Rkc((y, out) => ((out[0] = rate * y[0] * (1 - y[0])), 0), Float64Array.of(1e-3), until, tolerance);
    solver.run(() => {});
    return { theta: solver.theta[0] };
  },
  values({ matrix, rows, columns }) {
    return Array.from(TOOLS.singularValues(Float64Array.from(matrix), rows, columns));
  },
  // where the name of a level begins, in a box of 400 x 100: names are 100 wide, and curves have the given heights
  named({ heights }) {
    const drawn = [];
    const none = () => {};
    const pen = { setLineDash: none, beginPath: none, moveTo: none, lineTo: none, stroke: none, strokeText: none };
    Object.assign(pen, { measureText: () => ({ width: 94 }), fillText: (text, x) => drawn.push(x) });
    const at = (share) => [heights[Math.min(heights.length - 1, Math.floor(share * heights.length))]];
    drawPlayLevels(pen, [{ name: "level", value: 0.5 }], { left: 0, top: 0, width: 400, height: 100 }, { at: (y) => y }, {}, at);
    return drawn;
  },
  hash({ study: name, text }) {
    const settings = new PlayOptions(study[name], laws[name]);
    settings.read(new URLSearchParams(text), "");
    const back = new URLSearchParams();
    settings.write(back, "");
    return { options: settings.options, notes: settings.notes, command: settings.command(), config: settings.config(), hash: String(back) };
  },
  moves({ study: name, moves }) {
    const settings = new PlayOptions(study[name], laws[name]);
    return moves.map(([option, value]) => (settings.set(option, value), settings.options));
  },
};

process.stdout.write(JSON.stringify(asked.questions.map((question) => answers[question.kind](question))));
