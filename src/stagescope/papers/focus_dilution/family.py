"""The reduced family of TokenAttention: the small models inside the large one, and what opens at their critical points.

Rows of W0 and columns of W1 in a space S of dimension r, WQ and WK in S x U with dim U = rq: that set is invariant under
the flow and is the same model of width r and key width rq. A plateau of a run is a critical point of such a small model
[FD:ladder].
"""

import math
from dataclasses import dataclass

import numpy as np

from stagescope.core.params import Params
from stagescope.flow.softmax import softmax
from stagescope.papers.focus_dilution.limits import LIMITS
from stagescope.papers.focus_dilution.loss import BLOCKS, TokenCounts, TokenLoss, TokenPopulation
from stagescope.papers.focus_dilution.model import TokenAttention


@dataclass(frozen=True)
class Opening:
    """A direction out of the small model: its rate, and the combination of parameters outside S that grows along it.

    Embedding: u in W0, w in W1, q and k in WQ and WK, amplitude |P (W0^T u + W1 w + WQ U q + WK U k)| with P onto the
    complement of S. Attention: q and k in S, amplitude |P (WQ^T S q + WK^T S k)| with P onto the complement of U.
    """

    block: str
    rate: float
    u: np.ndarray
    w: np.ndarray
    q: np.ndarray
    k: np.ndarray


@dataclass(frozen=True)
class Place:
    """A point of the small model (r, rq) inside the large one: orthonormal rows `S` and `U`, at least one of each.

    At r = 0 or rq = 0 that one row belongs to a block of zeros, and the space is empty. `S` and `U` may have leading axes:
    then every frame of a run has its own member of the point's orbit under rotations.
    """

    small: dict[str, np.ndarray]
    S: np.ndarray
    U: np.ndarray
    r: int
    rq: int

    @property
    def params(self) -> dict[str, np.ndarray]:
        small, s, u, turned = self.small, self.S, self.U, np.swapaxes(self.S, -1, -2)
        return {"W0": small["W0"] @ s, "W1": turned @ small["W1"], "WQ": turned @ small["WQ"] @ u, "WK": turned @ small["WK"] @ u}

    def at(self, frame: int | np.ndarray) -> "Place":
        """The member of one frame, or those of several."""
        return Place(self.small, self.S[frame], self.U[frame], self.r, self.rq)

    @property
    def outside_s(self) -> np.ndarray:
        """Projection onto the complement of S."""
        return _outside(self.S[..., : self.r, :])

    @property
    def outside_u(self) -> np.ndarray:
        """Projection onto the complement of U."""
        return _outside(self.U[..., : self.rq, :])

    def projected(self, params: Params) -> dict[str, np.ndarray]:
        """The parameters of the small model that a point of the large one projects to, in this frame."""
        s, u = self.S * bool(self.r), self.U * bool(self.rq)
        right, keys = np.swapaxes(s, -1, -2), np.swapaxes(u, -1, -2)
        scores = {name: s @ params[name] @ keys for name in ("WQ", "WK")}
        return {"W0": params["W0"] @ right, "W1": s @ params["W1"], **scores}

    def leaving(self, params: Params) -> dict[str, np.ndarray]:
        """The point, moved by what of `params` is outside the small model: no motion inside it is left."""
        inside = Place(self.projected(params), self.S, self.U, self.r, self.rq).params
        return {name: point + params[name] - inside[name] for name, point in self.params.items()}

    def amplitude(self, opening: Opening, params: Params) -> np.ndarray:
        """Amplitude of an opening in every frame (frames first); it grows at the opening's rate."""
        w0, w1, wq, wk = (params[name] for name in BLOCKS)
        if opening.block == "attention":
            mode = _row(opening.q @ self.S) @ wq + _row(opening.k @ self.S) @ wk
            return np.linalg.norm(mode @ self.outside_u, axis=(-2, -1))
        mode = opening.u @ w0 + w1 @ opening.w
        for block, part in ((wq, opening.q), (wk, opening.k)):
            mode = mode + (block @ _row(part @ self.U).swapaxes(-1, -2))[..., 0]
        return np.linalg.norm(_row(mode) @ self.outside_s, axis=(-2, -1))


def _row(vectors: np.ndarray) -> np.ndarray:
    """Vectors (..., n) as matrices of one row."""
    return vectors[..., None, :]


def _outside(rows: np.ndarray) -> np.ndarray:
    return np.eye(rows.shape[-1]) - np.swapaxes(rows, -1, -2) @ rows


def plateau_amplitude(pi: np.ndarray) -> float:
    """a = (|lc| / |pi|)^(1/2), the size of W0 and of W1 on the plateau (1,0), lc = log pi less its mean [FD:condensed]."""
    centred = np.log(pi) - np.mean(np.log(pi))
    return float((np.linalg.norm(centred) / np.linalg.norm(pi)) ** 0.5)


def reduced(loss: TokenLoss, r: int, rq: int) -> TokenPopulation | TokenCounts:
    """The same loss of the model of width r and key width rq; each is at least 1, with entries that may be zero."""
    model = TokenAttention(vocab=loss.model.vocab, width=max(r, 1), key_width=max(rq, 1), scale=loss.model.scale)
    if isinstance(loss, TokenCounts):
        return loss.model_copy(update={"model": model})  # the contexts stay
    return TokenPopulation(model=model, process=loss.process)


def project(params: Params, r: int, rq: int) -> dict[str, np.ndarray]:
    """The nearest point of the small model: S from the leading right directions of W0 and W1^T, then U of WQ and WK."""
    rows = np.vstack([params["W0"], params["W1"].T])
    s = np.linalg.svd(rows, full_matrices=False)[2][: max(r, 1)]
    keys = np.vstack([s @ params["WQ"], s @ params["WK"]])
    u = np.linalg.svd(keys, full_matrices=False)[2][: max(rq, 1)]
    small = {"W0": params["W0"] @ s.T, "W1": s @ params["W1"], "WQ": s @ params["WQ"] @ u.T, "WK": s @ params["WK"] @ u.T}
    if r == 0:
        small |= {"W0": 0 * small["W0"], "W1": 0 * small["W1"]}
    return small if rq else small | {"WQ": 0 * small["WQ"], "WK": 0 * small["WK"]}


def place(small: Params, params: Params, r: int, rq: int) -> Place:
    """The member of a critical point's orbit under rotations that is nearest to `params`, or to each of its frames.

    Procrustes, first S, then U. What grows out of the small model tilts S in proportion. This changes the amplitude by the
    same factor in every frame, so rates do not depend on the frame of the alignment.
    """
    w0, w1, wq, wk = (small[name] for name in BLOCKS)
    s = _isometry(w0.T @ params["W0"] + w1 @ np.swapaxes(params["W1"], -1, -2))
    u = _isometry(wq.T @ s @ params["WQ"] + wk.T @ s @ params["WK"])
    return Place({name: np.array(small[name]) for name in BLOCKS}, s, u, r, rq)


def _isometry(matrix: np.ndarray) -> np.ndarray:
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return left @ right


def slopes(loss: TokenLoss, small: Params) -> tuple[np.ndarray, np.ndarray]:
    """GM = dL/dM for M = W0 W1, and GP = scale dL/dPhi, in closed form [FD:ladder].

    R_i = pi_i (softmax(A_i M) - P_i); GM = A^T R; dL/dPhi_ij = A_ij (X_ij - sum_k A_ik X_ik) with X = R M^T.
    """
    if isinstance(loss, TokenCounts):
        return loss.slopes(small)
    pi, product = loss.process.stationary, small["W0"] @ small["W1"]
    attention = loss.model.attention(small, pi)
    surprise = pi[:, None] * (softmax(attention @ product) - loss.process.transition)
    lift = surprise @ np.swapaxes(product, -1, -2)
    by_scores = loss.model.scale * attention * (lift - np.sum(attention * lift, axis=-1, keepdims=True))
    return np.swapaxes(attention, -1, -2) @ surprise, by_scores


def escape_matrices(loss: TokenLoss, small: Params) -> dict[str, np.ndarray]:
    """The two small matrices whose singular values are rates: B (d, d + 2 rq) and F (r, r) [FD:ladder].

    B = [-GM, -GP K, -GP^T Q] with Q = W0 WQ, K = W0 WK; F = -W0^T GP W0. They linearise the flow across the small model
    at any of its points, critical or not; of the population loss, at many points at once (frames first).
    """
    gm, gp = slopes(loss, small)
    w0, turned = small["W0"], np.swapaxes(gp, -1, -2)
    query, keys = w0 @ small["WQ"], w0 @ small["WK"]
    return {
        "embedding": np.concatenate([-gm, -gp @ keys, -turned @ query], axis=-1),
        "attention": -np.swapaxes(w0, -1, -2) @ gp @ w0,
    }


def openings(matrices: dict[str, np.ndarray], r: int) -> dict[str, list[Opening]]:
    """What can open, fastest first: singular triples of B (u a new column of W0, w a new row of W1) and of F."""
    left, rates, right = np.linalg.svd(matrices["embedding"], full_matrices=False)
    d = len(left)
    width = (right.shape[1] - d) // 2
    embedding = [
        Opening("embedding", float(rate), left[:, i], right[i, :d], right[i, d : d + width], right[i, d + width :])
        for i, rate in enumerate(rates)
    ]
    left, rates, right = np.linalg.svd(matrices["attention"])
    none = np.zeros(0)
    attention = [Opening("attention", float(rate), none, none, left[:, i], right[i]) for i, rate in enumerate(rates)]
    return {"embedding": embedding, "attention": attention if r else []}


# Closed forms of focus and dilution at the first saddles. n = |pi|, l = log pi, lc = l - mean(l).


def condensation_rate(pi: np.ndarray) -> float:
    """mu0 = |pi| |pi - 1/d|: growth rate at the origin, where G = -dL/dM = pi (pi - 1/d)^T for M = W0 W1 [FD:origin]."""
    return float(np.linalg.norm(pi) * np.linalg.norm(pi - 1 / len(pi)))


def condensation_directions(pi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left (W0) and right (W1) directions of the mode that grows at the origin [FD:origin]."""
    return _unit(pi), _unit(pi - 1 / len(pi))


def _unit(vector: np.ndarray) -> np.ndarray:
    """A vector of length 1 in the same direction; zero has none and stays."""
    length = np.linalg.norm(vector)
    return vector / length if length else vector


def attention_rate(pi: np.ndarray, transition: np.ndarray, scale: float) -> float:
    """c = scale a^2/n^4 [sum_i pi_i^2 (P_i - pi).l] [sum_j pi_j (pi_j - n^2)^2] at (1,0) [FD:attention-rate].

    Attention opens at rate |c|; its first bracket decides the sign: c > 0 focuses on the frequent token, c < 0 moves away.
    """
    return opening_rate(pi, (transition - pi) @ np.log(pi), scale)


def opening_rate(pi: np.ndarray, excess: np.ndarray, scale: float) -> float:
    """The same, given (P - pi) l."""
    square = float(np.sum(pi**2))
    drive = float(np.sum(pi**2 * excess))
    spread = float(np.sum(pi * (pi - square) ** 2))
    return scale * plateau_amplitude(pi) ** 2 / square**2 * drive * spread


def approach_matrix(pi: np.ndarray) -> np.ndarray:
    """K (d, d) in z' = -K z near (1,0), z the logits pi W0 W1 less their values lc there [FD:approach].

    With W0 = gamma alpha^T and W1 = alpha beta^T only sigma = pi.gamma and beta move z = sigma beta - lc:
    sigma' = n^2 beta.(pi - softmax), beta' = sigma (pi - softmax), and softmax - pi = Var(pi) z. At sigma = n a and |beta| = a
    that is K = n^2 a^2 (I + u u^T) Var(pi) with u = lc/|lc|: no rate of J_out is above 0.
    """
    u = _unit(np.log(pi) - np.mean(np.log(pi)))
    size = float(np.sum(pi**2)) * plateau_amplitude(pi) ** 2
    return size * (np.eye(len(pi)) + np.outer(u, u)) @ (np.diag(pi) - np.outer(pi, pi))


def approach_rate(first: float, tokens: int) -> float:
    """The same for equal rare tokens, where z stays along u: 2 n sqrt(d/(d-1)) pi_0 (1-pi_0) log((d-1) pi_0/(1-pi_0))."""
    n = math.sqrt(first**2 + (1 - first) ** 2 / (tokens - 1))
    return 2 * n * math.sqrt(tokens / (tokens - 1)) * first * (1 - first) * math.log((tokens - 1) * first / (1 - first))


def condensed_spectrum(pi: np.ndarray, transition: np.ndarray, model: TokenAttention) -> np.ndarray:
    """All rates of the flow at (1,0), largest first: c and -c once for each key, J_out, zeros [FD:condensed-spectrum]."""
    c, keys = attention_rate(pi, transition, model.scale), model.shapes["WQ"][1]
    out = -np.real(np.linalg.eigvals(approach_matrix(pi)))
    zeros = np.zeros(sum(math.prod(shape) for shape in model.shapes.values()) - 2 * keys - len(out))
    return np.sort(np.concatenate([np.full(keys, c), np.full(keys, -c), out, zeros]))[::-1]


def displacement(pi: np.ndarray, transition: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """How gamma = W0 alpha moves at (1,0) while eta = alpha^T WQ WK^T alpha grows by one, but for its part along pi.

    With v = Var(pi) gamma, m_i = (P_i - pi).beta and k = gamma.(pi m), to second order in the attention:
    gamma' = scale eta (2 k v + (gamma.v) pi m) + ... pi and eta' = 2 scale k (gamma.v) eta [FD:displacement].
    """
    v, drive = pi * (gamma - pi @ gamma), pi * ((transition - pi) @ beta)
    return v / (gamma @ v) + drive / (2 * (gamma @ drive))


def symmetric_margin(persistence: float, first: float, tokens: int) -> float:
    """Above 0 where the symmetric (1,1) of equal rare tokens is stable inside the rank-one model, else below 0 [FD:lambda-c].

    There the logits after the frequent token are a, and after a rare one b, on token 0 and 0 on the others: they give token 0
    its probabilities f = lam + (1 - lam) pi_0 and q = (1 - lam) pi_0. Let logits after rare token i change by x_i on token 0,
    and those on rare token k by b y_k (after token 0: a y_k), with sums 0. To second order the loss changes by

        sum_i [ pi_r q (1 - q) x_i^2 / 2 - pi_r lam x_i y_i + ((1 - pi_0) b^2 q_r + pi_0 a^2 f_r) y_i^2 / 2 ]

    with pi_r, q_r, f_r the shares of one rare token. The margin is the determinant of this form over pi_r.
    """
    rare, q, f = tokens - 1, (1 - persistence) * first, persistence + (1 - persistence) * first
    pi_r, q_r, f_r = (1 - first) / rare, (1 - q) / rare, (1 - f) / rare
    a, b = np.log(f / f_r), np.log(q / q_r)
    return float(q * (1 - q) * ((1 - first) * b**2 * q_r + first * a**2 * f_r) - pi_r * persistence**2)


def stall_boundary(first: float, tokens: int) -> float | None:
    """lambda_c: the least persistence above 0 at which the symmetric (1,1) loses its stability [FD:lambda-c].

    None for a uniform law. It does not depend on the scale of the scores.
    """
    from scipy.optimize import brentq

    if abs(first - 1 / tokens) < LIMITS.equal:
        return None
    trials = np.linspace(1e-6, 1 - 1e-6, 400)
    margins = [symmetric_margin(float(trial), first, tokens) for trial in trials]
    after = next((i for i in range(1, len(trials)) if margins[i] < 0), None)
    if after is None or margins[after - 1] <= 0:
        return None
    return float(brentq(lambda x: symmetric_margin(float(x), first, tokens), trials[after - 1], trials[after]))  # type: ignore[arg-type]


def saturation_boundary(first: float, tokens: int) -> float:
    """1 - 1/(d pi_0): the saturated end of the symmetric (1,1) needs more persistence [FD:saturation].

    There A_0 = e_0, and a rare row has only rare tokens, so its logits are gamma_r beta: to give token 0 less than 1/d,
    (1 - lam) pi_0 < 1/d, gamma_r must have the other sign than gamma_0. Otherwise rare rows would look at token 0.
    """
    return 1 - 1 / (tokens * first)


def saturated_attention(pi: np.ndarray, frequent: int) -> np.ndarray:
    """A at the saturated end: the frequent token attends to itself alone, rare ones to rare ones as often as they occur.

    Rare rows are the same for every delta, so theta(delta) is a critical point there [FD:saturated-orders].
    """
    rare = np.where(np.arange(len(pi)) == frequent, 0.0, pi)
    rows = np.tile(rare / rare.sum(), (len(pi), 1))
    rows[frequent] = np.arange(len(pi)) == frequent
    return rows


def saturated_kappa(first: float, persistence: float) -> float:
    """kappa at the saturated end of three tokens, pi = (pi_0, (1 - pi_0)/2 + delta, (1 - pi_0)/2 - delta) [FD:kappa].

    r = gamma_1/gamma_0, and p_i the probability of one rare token after token i. The range equation moves beta along
    (0, 1, -1) by g delta/gamma_0. GM = delta (0 -v_1 v_1; 0 -v_2 v_2; 0 -v_2 v_2) then, whose singular value is kappa delta.
    """
    lam, p, q = persistence, first, 1 - first
    frequent = np.array([lam + (1 - lam) * p, (1 - lam) * p])  # the probability of token 0 after tokens 0 and 1
    p_0, p_1 = (1 - frequent) / 2
    logits = np.log(frequent / (1 - frequent) * 2)
    r = logits[1] / logits[0]
    g = (lam * r + (1 - lam) * (p + q * r)) / (p * p_0 + q * r**2 * p_1)
    v_1, v_2 = p * (g * p_0 - (1 - lam)), (g * r * q * p_1 - lam - q * (1 - lam)) / 2
    return float(np.sqrt(2 * v_1**2 + 4 * v_2**2))
