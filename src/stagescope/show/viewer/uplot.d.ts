/** The little of uPlot that the viewer uses. The library itself comes with the Python package uplot-python. */
declare class uPlot {
  constructor(options: object, data: ArrayLike<number>[], target: HTMLElement);
  bbox: { left: number; top: number; width: number; height: number };
  ctx: CanvasRenderingContext2D;
  over: HTMLElement;
  under: HTMLElement;
  setSize(size: { width: number; height: number }): void;
  setSeries(index: number, options: { show: boolean }): void;
  redraw(paths?: boolean, axes?: boolean): void;
  axes: { label?: string }[];
  destroy(): void;
}
