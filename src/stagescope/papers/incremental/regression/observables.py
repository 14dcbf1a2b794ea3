"""Observables of the regression models: loss, attention on the positions of the features, agreement of heads."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagescope.errors import InputError
from stagescope.fields.softmax import log_sum_exp
from stagescope.papers.incremental.forms import RegressionForms
from stagescope.papers.incremental.regression.loss import Regression
from stagescope.papers.incremental.regression.model import RegressionHeads
from stagescope.papers.incremental.regression.sampled import RegressionSampled
from stagescope.papers.incremental.regression.transformer import RegressionTransformer
from stagescope.papers.incremental.specialisation import GroupMass, agreement
from stagescope.papers.rebuild import rebuilt
from stagescope.runs.run import Run


@dataclass(frozen=True)
class HeadCurves(GroupMass):
    """A run of RegressionHeads under either law, or of the transformer they are the average of, frame by frame [ISA:heads].

    Examples:
        >>> heads = ss.RegressionHeads(positions=3, gains=(2.0, 1.0), heads=2)
        >>> flow = ss.evolve(ss.RegressionLoss(model=heads), heads.init(seed=0), ss.GradientFlow(), until=20)
        >>> float(ss.head_curves(flow).time[-1])
        20.0
    """

    time: np.ndarray
    params: dict[str, np.ndarray]
    model: RegressionHeads | RegressionTransformer
    mirror: bool

    @cached_property
    def loss(self) -> np.ndarray:
        """|R|^2/2 (frames,), also where the law has no objective."""
        return self.model.losses(self.params)

    @cached_property
    def attention(self) -> np.ndarray:
        """s (frames, H, N)."""
        return self.model.attention(self.params)

    @property
    def forms(self) -> RegressionForms:
        """The closed forms of this model and law."""
        return RegressionForms(self.model.gains, self.model.positions, self.model.heads * self.model.copies, self.mirror)

    @cached_property
    def parts(self) -> np.ndarray:
        """What each head adds to `learned` (frames, H, k)."""
        return self.model.copies * self.model.reduce(self.params)["V"] * self.mass / np.array(self.model.gains)

    @property
    def learned(self) -> np.ndarray:
        """<P e_{p_i}, f_i> / g_i (frames, k): 1 where feature i is fitted [ISA:order]."""
        return self.parts.sum(axis=1)

    @cached_property
    def mass(self) -> np.ndarray:
        """Attention of each head on the positions of the features (frames, H, k)."""
        return self.attention[:, :, self.model.at]

    @cached_property
    def agreement(self) -> np.ndarray:
        """Mean cosine between the attention of two heads (frames,); 1 for a single head."""
        return agreement(self.attention)

    @cached_property
    def value_agreement(self) -> np.ndarray:
        """Mean cosine between the values V of two heads (frames,); nan while the values of a head are zero."""
        values = self.params["V"]
        return agreement(values.reshape(*values.shape[:2], -1))

    @cached_property
    def invariant(self) -> np.ndarray:
        """What each head conserves (frames, H): sum_n a_n, or |V|^2/2 - log sum_n exp(a_n) under the mirror law."""
        a = self.params["a"]
        if not self.mirror:
            return a.sum(axis=2)
        return np.sum(self.params["V"] ** 2, axis=2) / 2 - log_sum_exp(a)


def head_curves(run: Run) -> HeadCurves:
    """The curves of a run of RegressionLoss, MirrorFlow or RegressionSampled.

    Args:
        run: a run of these laws.

    Examples:
        >>> heads = ss.RegressionHeads(positions=3, gains=(2.0, 1.0), heads=2)
        >>> flow = ss.evolve(ss.RegressionLoss(model=heads), heads.init(seed=0), ss.GradientFlow(), until=20)
        >>> len(ss.head_curves(flow).time)
        400
    """
    law = rebuilt(run.spec["field"])
    if not isinstance(law, Regression | RegressionSampled):
        known = "RegressionLoss, MirrorFlow or RegressionSampled"
        raise InputError(f"expected a run of {known}, got one of {run.spec['field']['type']}")
    mirror = isinstance(law, Regression) and law.mirror
    return HeadCurves(run.time, {name: run.params[name] for name in run.params}, law.model, mirror)
