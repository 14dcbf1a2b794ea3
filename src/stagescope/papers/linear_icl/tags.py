"""Linear attention in context: what to cite, and the statements that the code uses, by tag."""

from stagescope.claims.reference import Reference, Tag

REFERENCE = Reference(
    key="zhang2025linear",
    title="Training Dynamics of In-Context Learning in Linear Attention",
    authors="Yedi Zhang, Aaditya K. Singh, Peter E. Latham, Andrew Saxe",
    year=2025,
    venue="ICML",
    arxiv="2501.16265",
)
TAGS = {
    "LIN:task": Tag("data model", "x_n, x_q from N(0, Lambda), w from N(0, I), y = w.x, contexts of length N"),
    "LIN:model": Tag("model", "yhat = beta^T M x_q, beta = sum y_n x_n / N, M = sum_h v_h U_h; U_h free, or K_h^T Q_h"),
    "LIN:loss": Tag("exact", "tr Lambda - 2 tr(Lambda^2 M) + tr(M Lambda M^T E[hatLambda^2]), E[..]_i = lambda_i^2 a_i"),
    "LIN:sampled": Tag("definition", "mean of (y_q - yhat)^2 over sequences that are drawn"),
    "LIN:flow": Tag("exact", "v' = k.Gq, k' = v G q, q' = v G^T k with G = Lambda^2 - E[hatLambda^2] M Lambda: half of the loss"),
    "LIN:levels": Tag("fixed points", "l_m = tr Lambda - sum_{i <= m} lambda_i/a_i, a_i = 1 + (1 + tr Lambda/lambda_i)/N"),
    "LIN:stages": Tag("plateaus", "d_m: the loss is halfway between l_{m-1} and l_m"),
    "LIN:order": Tag("saddle to saddle", "directions are learned in the order of the eigenvalues"),
    "LIN:pcr": Tag("saddle to saddle", "on plateau m, M is least squares on m principal components: diag 1/(lambda_i a_i)"),
    "LIN:merged": Tag("abrupt learning", "merged heads: the origin is left at the rate |Lambda^2|_F, and there is one drop"),
    "LIN:merged-rate": Tag("linearisation", "small merged starts grow at r = |Lambda^2|_F"),
    "LIN:merged-drop": Tag("ours", "merged drop at t_ref + ln(eps/c)/r, without a fitted constant"),
    "LIN:logistic": Tag("closed form", "white inputs: m(t) = m_inf/(1 + (m_inf/m_0 - 1) e^{-2 sqrt(D) lambda^2 t})"),
    "LIN:conserved": Tag("conservation", "v^2 - |k|^2 and v^2 - |q|^2, of merged heads v^2 - |U|^2, of each head"),
    "LIN:scalar": Tag("scalar ODE", "v' = lambda^2 v^2 - lambda^3 a v^5 of a head that learns one direction"),
    "LIN:blow-up": Tag("ours", "T_h = int dtau/sqrt(E): a silent head leaves a saddle of order two at a finite time"),
    "LIN:first-drop": Tag("ours", "the first drop is at min_h T_h + delay, by the head with the least T_h"),
    "LIN:cascade": Tag("ours", "all drops from the start: winner, fading push, next winner"),
    "LIN:purity": Tag("regime", "(s/v_1)^(1 - (lambda_2/lambda_1)^2): the share of the next direction in a head that learns one"),
    "LIN:scaling": Tag(
        "symmetry", "lambda -> c lambda with theta -> c^(-1/3) theta, merged c^(-1/2) theta, changes the clock alone"
    ),
    "LIN:rank": Tag("ours", "a further direction of the same head opens at the rate v_S lambda_i^2"),
    "LIN:rank-plateaus": Tag("low rank", "plateaus are long at multiples of the rank"),
    "LIN:few-heads": Tag("low rank", "H heads of rank R with H R < D end at l_{HR}"),
    "LIN:scale-law": Tag("ours", "(first drop - delay) x s is constant; of merged heads the drop grows as ln(1/s)/r"),
}
