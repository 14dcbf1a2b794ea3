/**
 * The shape of the data a page carries, and what its parts promise each other. Only types: nothing of this runs.
 *
 * @typedef {{id: number, shape: number[], encoding: "f64"|"f32"|"i32"|"u8"|"companded", low?: number, high?: number,
 *   order?: number}} Block
 *   A compressed array in <script type="application/octet-stream" id="block-ID">. See blocks.js; `order` is for f32 only.
 *
 * @typedef {{name: string, family: string, token: string, faint: boolean, dashed: boolean, values: Block}} Curve
 *   `token`: the token that it is about, or "".
 * @typedef {{name: string, value: number}} Level
 * @typedef {{slot: string, title: string, about: string, frames: Block|null, of: number, shown: number}} AnyView
 *   `frames`: which of the run's `of` frames are shown, null for all; `shown` is their number.
 * @typedef {AnyView & {kind: "curves", axis: string, log: boolean, start_log?: boolean,
 *   curves: Curve[], levels: Level[]}} CurvesView
 *   `log`: a logarithmic axis makes sense; `start_log`: the page opens with one.
 * @typedef {AnyView & {kind: "matrices", values: Block, panels: string[], rows: string[], columns: string[],
 *   row_axis: string, column_axis: string, low: number, high: number, across: number|null, tokens: boolean,
 *   marks: {names: string[], cells: Block}|null}} MatricesView
 * @typedef {AnyView & {kind: "points", values: Block, labels: string[], tokens: boolean, explained: Block}} PointsView
 * @typedef {CurvesView | MatricesView | PointsView} View
 *
 * @typedef {{name: string, start: number, stop: number|null, evidence: string, track: string, aside: boolean}} Stage
 *   `aside`: its track is shown in the timeline, not above plots.
 * @typedef {number|string|null} Cell
 * @typedef {{tag: string, statement: string, regime: string, predicted: Cell, measured: Cell, tolerance: Cell,
 *   predicted_error: number|null, measured_error: number|null, unit: string, place: string, group: string, kind: string|null,
 *   verdict: "confirmed"|"violated"|"inconclusive"|"not applicable", reason: string, calibrated: boolean, rates: {inputs: number, violated: number, nulls: number, null_confirmed: number}|null,
 *   span: [number, number]|null, lands: number|null, over_runs?: OverRuns|null}} Verdict
 *   `kind`: prediction or pattern. `calibrated`: it has a null. `rates`: how it fared on inputs in regime and on nulls. `span`: from when to when the run shows it, on the run's clock; `lands`: where in it a reader lands.
 *   `place`: where it stands in its theory. `group`: claims of one group count as one.
 *   `over_runs`: the numbers of several runs, where the claim is about them together.
 * @typedef {{x: number[], measured: (number|null)[], predicted: (number|null)[], x_axis: string, y_axis: string, names: string[],
 *   log_x: boolean, log_y: boolean}} OverRuns
 *   One entry a run; `predicted` and `names` may be empty.
 * @typedef {{label: string, t: number, residual: number|null, distance: number|null, loss: number|null, opening: string|null,
 *   rates: number[], measured_rate: number|null, local_rate: number|null, cosines: number[],
 *   predicted_escape: number|null, measured_escape: number|null, remainder: number|null, law: string, note: string}} Rung
 * @typedef {{name: string, t: number|null, low: number|null, high: number|null, measured: number|null, said: string}} PredictedEvent
 *   `said`: why an event is not predicted, or did not come.
 * @typedef {{title: string, start: number, stop: number|null, text: string}} Caption
 * @typedef {{title: string, rows: string[], columns: string[], values: (number|null)[][]}} SmallTable
 * @typedef {{sentence: string, table: SmallTable|null, captions: Caption[], lead: string,
 *   paper: {text: string, arxiv: string}|null}} About
 *   What a run is and what happens when, in words; `lead`: the slot of curves that a guided tour shows.
 * @typedef {{title: string, rows?: [string, string][], text?: string}} Facts
 * @typedef {{name: string, status: string, reason: string, clock: string, frames: number, time: Block,
 *   change: {of: string, at: Block}|null, about: About|null, notes: string[], stages: Stage[], events: Object<string, number|null>, event_notes: Object<string, string>,
 *   event_states: Object<string, string>, event_intervals: Object<string, [number, number]|null>,
 *   ledger: Verdict[]|null, ledger_counts: Object<string, number>, ledger_summary: string, ladder: Rung[]|null, prediction: PredictedEvent[]|null, provenance: Facts[], views: View[]}} RunData
 *   `change`: where each frame lies on the scale by change, 0 to 1, and whose change it is. `ledger_counts`: groups of claims by verdict.
 * @typedef {{title: string, clock: string, log_time?: boolean, runs: RunData[], glossary: Object<string, string>,
 *   differs: [string, string[]][], tokens: string[], places: string[]}} SceneData
 *   `glossary`: symbols and what they mean. `differs`: options and their values in each run. `tokens`: in the order of their colours.
 *   `places`: of claims, in the order of their theory. `log_time`: the page opens with a logarithmic axis of time.
 * @typedef {{title: string, version: string, scenes: SceneData[], play?: import("./play_types.js").PlayData}} PageData
 *   `play`: studies of these runs that can be played.
 *
 * @typedef {{columns: string[], rows: (string|number|null)[][]}} Table
 * @typedef {{element: HTMLElement, tools?: HTMLElement, show: (time: number) => void, recolour?: () => void,
 *   table?: () => Table}} Panel
 *   One view on the page. `show` draws the frame each run has at a time of the scene's clock and must be cheap;
 *   `table` gives the numbers that are seen now, to be saved.
 *
 * The page of a sweep:
 * @typedef {{name: string, named: boolean, log: boolean, ordinal: boolean, reach: [number, number], values: (number|string)[],
 *   at: number[], places: number[]}} SweepAxis
 *   `values`: of the grid, ascending; of categories (`named`) their names. `at`: values that rows have, of categories their
 *   numbers; `places`: where these lie, and `reach` where the outermost cells end. `ordinal`: at equal distances.
 * @typedef {{states: Block, values: Block, intervals?: Block|null, shares?: Block|null}} CellStatistics
 *   One item a cell. `states`: why there is no value, see sweep.js; `values`: f64 medians, or i32 most frequent names;
 *   `intervals`: two f64, NaN for none, an upper end of infinity is beyond the end of the runs; `shares`: five f64 each: cell,
 *   name, share and its interval, where a cell has several names.
 * @typedef {{name: string, group: "axes"|"run"|"events"|"starts"|"durations"|"verdicts"|"numbers",
 *   about: string, kind: "time"|"number"|"word", lacks: Block|null, values: Block, names?: string[],
 *   cells: CellStatistics}} SweepColumn
 *   A value a row: f64 with NaN for none, or i32 into `names` with -1 for none; `lacks`: why a row has none (i32 into `whys`),
 *   null where all have one. `names` in the order of their colours. `about`: what the column means.
 * @typedef {{title: string, version: string, study: string, rows: number, notes: string[],
 *   fixed: [string, string][], axes: SweepAxis[], cells: Block, areas: {axes: [number, number], counts: Block, rects: Block}[],
 *   columns: SweepColumn[], whys: Block, lacks: Object<string, string>, clocks: string[], clock_note: string,
 *   outcomes: {values: Block, names: string[]}, run: Block, confidence: number,
 *   start: {x: string, y: string|null, color: string, at: [string, string][]},
 *   boundary?: {name: string, title: string, axes: string[], places: (number|null)[][]}}} SweepData
 *   `notes`: what is missing; `fixed`: options that stay; `cells`: the cell of each row; `areas`: for every two axes how many
 *   rectangles each cell has, and left, right, bottom, top of each in places of the axes; `whys`: kinds of lacks with their
 *   sentences; `lacks`: what is said where sentences differ; `clock_note`: that clocks do not compare; `outcomes`: how runs
 *   ended that did not reach their end, -1 for the others; `run`: a command a row. Texts are UTF-8 with NUL between.
 *   `boundary`: a line of theory over two axes, in places along each.
 */
export {};
