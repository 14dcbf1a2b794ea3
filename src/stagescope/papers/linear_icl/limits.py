"""The numbers that decide what is read in a run of linear attention and predicted from its start, each with its derivation."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Regimes and tolerances (science page, section 7).

    Sizes of starts are in units of the final value of a head on direction 1, because lambda -> c lambda changes nothing but
    units: on the page that value is 1.31, and the scales are .03 and .01.
    """

    # errors of the computation
    solver: float = 1e-8  # of the loss of a flow, relative to tr Lambda; of the value of a head that has learned
    exact: float = 1e-6  # of an end (of tr Lambda), of the logistic curve and of a start that is aligned for it, relatively
    # starts
    small: float = 0.023  # largest rms of a start for levels and for the first drop to 1 %
    first: float = 0.06  # for the first drop to 3 %: two heads of equal T come earlier by a third of the rms
    course: float = 0.0075  # for the time course of a head
    spread: float = 1.25  # the rms of a start of 20 numbers or more may be this many times the scale that it was drawn at
    purity: float = 0.2  # largest share of the next direction in a head
    # tolerances, relative
    near: float = 0.01  # of closed forms; the largest start of merged heads; what a loss may fall by between two frames
    far: float = 3 * near  # of the first drop from larger starts; merged heads are linear below it: M, a square, is a thousandth
    drop: float = near / 2  # of the drop of merged heads
    level: float = near / 10  # of tr Lambda
    short_level: float = 0.012  # of tr Lambda, on a plateau that is short
    rate: float = 0.05  # of an opening inside a head
    steady: float = 2 * near  # v of a head must be this close to v_S while a direction opens, and M_ii below this share of
    # its end: the push on it is then as good as constant
    later: float = 0.15  # of a later drop
    separate: float = 1 + later  # least ratio of the waits of two heads: nearer ones disturb each other
    # shares and counts
    tenth: float = 0.1  # a plateau is short below this share of its end time; so many of the later drops may be wrong
    right: float = 1 - tenth
    least: int = round(1 / tenth)  # later drops that decide this: one wrong is a tenth
    factors: tuple[float, ...] = (1.0, 10**-0.5, tenth)  # starts of the scale law, the run's own first
    runs: int = least + 1  # flows from other seeds
    sure: float = 1.64  # a share is missed where it is so many standard errors below: one run in twenty by chance
    settled: float = 7.5  # e-folds of a plateau after which a head is pure: twice ln(.2/.005), because it is read in its middle
    # frames
    growth: float = 0.4  # ln(M_ii + floor of its end) may change by this between two: openings are seen while they are small
    floor: float = 1e-4
    most_frames: int = 8000
    slope_frames: int = most_frames // 4  # of which a slope is taken at most: nearer ones differ by the solver's error
    longer: float = 1.5  # a flow lasts so many times its last drop predicted: later drops are predicted to a tenth or so
    # integrals of the cascade, and the common curve of merged heads
    exponent: float = 600.0  # largest one: e^600 is a number
    nodes: int = 16  # of Gauss and Legendre in a panel
    panel: float = 0.5  # width of a panel in the stretched variable
    blown: float = 50.0  # a silent head whose value is so many times the final one of a learned head has blown up
    curve_start: float = exact  # beside the final value of a head: the curve is exponential there to the square of this
    curve_steps: int = 1500  # in Runge and Kutta's way: one is a sixtieth of 1/r, so its drop is right to 1e-7


LIMITS = Limits()
