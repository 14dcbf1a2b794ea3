"""References of focus and dilution, and its statements by the numbers of arXiv version 1; its tokens 1..d are 0..d-1 here."""

from stagescope.claims.reference import Reference, Tag

FIRST_STAGE = Reference(
    key="chen2025condensation",
    title="From Condensation to Rank Collapse: A Two-Stage Analysis of Transformer Training Dynamics",
    authors="Zheng-An Chen, Tao Luo",
    year=2025,
    venue="NeurIPS (its Theorem 2 is the first stage)",
    arxiv="2510.06954",
)
REFERENCE = Reference(
    key="chen2026focus",
    title="Focus and Dilution: The Multi-stage Learning Process of Attention",
    authors="Zheng-An Chen, Pengxiao Lin, Zhi-Qin John Xu, Tao Luo",
    year=2026,
    venue="arXiv, version 1 of 2 May (spotlight at ICML by its record there)",
    arxiv="2605.01199",
    also=FIRST_STAGE,
)
OURS = "ours"
"""What the paper does not state."""
TAGS = {
    # Data, model and losses.
    "FD:lazy-chain": Tag("Definition 2.1, eq. 2", "P = lam I + (1 - lam) 1 pi^T"),
    "FD:asymmetry": Tag("eq. 1", "pi_i = (1 - pi_0)/(d - 1) + c_i delta for i >= 1, sum c_i = 0"),
    "FD:model": Tag(
        "Definition 2.2", "Phi = scale (W0 WQ)(W0 WK)^T, A_ij ~ n_j exp(Phi_ij), logits A W0 W1; the paper has scale 1"
    ),
    "FD:population": Tag("Proposition 2.3", "-sum_i pi_i sum_k P_ik log softmax(A_i W0 W1)_k, counts replaced by pi"),
    "FD:finite": Tag("Definition 2.2", "-sum_(n,i) p(n,i) sum_k P_ik log softmax(A(n,i) W0 W1)_k at length s, exact"),
    "FD:sampled": Tag("eq. 3", "mean cross-entropy of the token after N sampled contexts of length s"),
    # Stage I: from the origin to (1,0).
    "FD:linear-bound": Tag(
        "Lemma 3.1, eq. 7", "|x(t) - exp(Jt) x(0)| <= C eps^2 e^(2 mu t) with C = 4 L/mu near a critical point of a flow"
    ),
    "FD:origin": Tag("Theorem 3.2", "at the origin one mode grows at mu0 = |pi| |pi - 1/d|"),
    "FD:directions": Tag("Theorem 3.2, eq. 10", "W0 condenses along pi, W1 along pi - 1/d (Chen and Luo 2025, Theorem 2)"),
    "FD:frozen": Tag("Theorem 3.2, eq. 11", "WQ and WK do not move at the order at which embeddings condense"),
    "FD:approach": Tag(
        "Proposition C.6",
        "with equal rare tokens (1,0) is approached at 2 n sqrt(d/(d-1)) pi_0 (1 - pi_0) log((d-1) pi_0/(1 - pi_0)), n = |pi|; "
        "with others (ours) at the rates of n^2 a^2 (I + u u^T) Var(pi), u = lc/|lc|",
    ),
    "FD:condensed": Tag("Proposition 3.3, eq. 12", "W0 = a (pi/n) alpha^T, W1 = a alpha (lc/|lc|)^T, a^2 = |lc|/n, a = kappa_1"),
    "FD:eps-law": Tag(
        "Lemma 3.1, Proposition C.6", "per decade of the start: E1 ln10/mu0, Q1-E1 ln10/c, E2-Q1 ln10/mu11; later legs are ours"
    ),
    # Stage II: attention opens at (1,0).
    "FD:attention-rate": Tag("Proposition 3.4, eq. 14", "at (1,0) attention opens at rate |c|, dWQ = c alpha alpha^T WK"),
    "FD:condensed-spectrum": Tag(
        "Proposition 3.4, eq. 13", "J_out <= 0; J_att has the eigenvalues c and -c, as often as keys are wide, and 0"
    ),
    "FD:linear-condensed": Tag("Lemma 3.1", "exp(Jt) from the plateau (1,0) predicts the escape"),
    "FD:focus": Tag("Theorem 3.5, eq. 16", "Phi opens along sign(c) pi pi^T/|pi|^2; c of either sign is ours"),
    "FD:sign": Tag(OURS, "the sign of sum_i pi_i^2 (P_i - pi).log pi decides focus or defocus on any chain"),
    # Stage III: embeddings redistribute.
    "FD:ladder": Tag(
        "Proposition 3.6",
        "small models (r,rq) are invariant; rates out of them: singular values of [-GM, -GP K, -GP^T Q] and -W0^T GP W0",
    ),
    "FD:redistribution": Tag("Theorem 3.7, eq. 157", "D = (1 - pi_0) gamma_0 - pi_0 sum gamma_i grows like e^{2ct}"),
    "FD:displacement": Tag(
        "Theorem 3.7, eq. 157-159",
        "D = 3 (eta - eta_0)/(2 dgamma) for equal rare tokens, eta = alpha^T WQ WK^T alpha, dgamma = gamma_0 - gamma_i; "
        "for others (ours) D is that of (eta - eta_0) (Var gamma/|gamma|^2 + pi m/(2 gamma.(pi m)))",
    ),
    "FD:second-order": Tag("Theorem 3.7", "(2c I - J) w = F''[v,v]/2 at (1,0) gives sign and size of D"),
    "FD:dilution": Tag(
        OURS, "row i, moved towards zero by second order, is back at its base law when gamma_i = (W0 alpha)_i crosses zero"
    ),
    # Stage IV: equal and almost equal rare tokens at (1,1).
    "FD:degenerate": Tag(
        "Proposition 3.8", "with equal rare tokens the symmetric (1,1) has GM = GP = 0; the paper speaks of its saturated end"
    ),
    "FD:saturation": Tag(OURS, "the saturated end A_0 = e_0, A_i0 = 0 exists where lam > 1 - 1/(d pi_0)"),
    "FD:tangential": Tag(
        "Proposition 3.8", "at the saturated end with equal rare tokens nothing grows inside the rank-one model"
    ),
    "FD:saturated-orders": Tag(
        "Theorem 3.9", "at theta(delta), saturated: |grad L| = O(delta^3), rates inside the rank-one model O(delta^2)"
    ),
    "FD:kappa": Tag("Theorem 3.9, Lemma D.17", "the top embedding rate is kappa delta + O(delta^2), kappa closed at saturation"),
    "FD:delta-law": Tag("Theorem 3.9", "half the asymmetry, half the rate at which the flow leaves (1,1)"),
    "FD:lambda-c": Tag(OURS, "with equal rare tokens flows stay at the symmetric (1,1) where persistence < lambda_c(pi_0)"),
    "FD:stall": Tag(
        "Proposition 3.8", "without asymmetry no new embedding direction opens; at finite members of the family this is ours"
    ),
    "FD:embedding-rate": Tag(OURS, "at (1,1) an embedding direction opens at sv_1(B), B of the small model where the run is"),
    "FD:embedding-direction": Tag(OURS, "it opens along the singular vectors of B"),
    # The whole run.
    "FD:stages": Tag("section 3, figure 1", "condensation, focus, dilution, lifting; then the cycle repeats"),
    "FD:token-cycles": Tag(
        "hypothesis after figure 2", "once token 0 has converged, tokens 1, 2, ... have their cycles one after another"
    ),
    "FD:recurrence": Tag("text after figure 2", "after E2 the cycle repeats: some row focuses on a token and dilutes again"),
    "FD:predicted-sequence": Tag(OURS, "beside a small model's path E' = N E: the start gives the sequence of events"),
    "FD:predicted-times": Tag(OURS, "and their times"),
    "FD:critical-scale": Tag(OURS, "growth along a leg can be finite: below a start scale an event never comes"),
    # Real text, and watched transformers: the paper has figure 3 and no statement.
    **{
        tag: Tag(f"{OURS}, on text", law)
        for tag, law in {
            "FD:text-loss": "mean cross-entropy of the token after windows of a text",
            "FD:text-counts": "a window enters through its counts and its last token, A_j ~ n_j exp(Phi_ij)",
            "FD:text-causal": "the loss at all positions, attention over the tokens up to each",
            "FD:text-variants": "with positions, residual stream or LayerNorm before the output",
            "FD:text-stages": "openings E_k and Q_k, turns of attention rows, entropy and rare norms",
            "FD:text-origin": "the first mode grows at mu0 = |pi| |pi - 1/d|",
            "FD:text-order": "E1 < Q1 < E2 < min(E3, Q2)",
            "FD:text-bigram": "the flow on the bigram chain gives the time of E2",
            "FD:text-sign": "Phi opens along sign(c) pi pi^T, c measured on real windows",
            "FD:text-entropy": "under Adam the entropy of attention falls, rises and falls again",
            "FD:text-norms": "under Adam embeddings of rare types grow, retract and grow",
            "FD:text-separability": "r = sigma_2/sigma_1 of E[h (y - 1/d)^T]: small r, one mode grows alone; large r, no stages",
        }.items()
    },
    # Under Adam, RMSprop and sign descent.
    **{
        tag: Tag(f"{OURS}, normalised steps", law)
        for tag, law in {
            "FDA:signs": "W0 condenses along al = sign(|v|_1 W0^T u + |u|_1 W1 v), G = -dL/dM at 0 along u v^T",
            "FDA:rows": "W0(t) - W0(0) = 1 D^T: rows move alike, left vector 1/sqrt(d)",
            "FDA:offset": "gamma_j - gamma_k = m sigma sqrt(2/pi) |g|_1 (pi_j - pi_k)/sqrt(|g|_1^2 |pi|^2 + |g|^2) in the mean",
            "FDA:blind": "the first focus comes at the step at which it comes with P = 1 pi^T",
            "FDA:total": "rows pass pi_0 + (1 - pi_0)/2; the head model names those that do not",
            "FDA:head": "{WQ = x s^T, WK = y s^T, s in {-1,1}} is invariant, and one column predicts the first cycle",
            "FDA:drag": "d|WQ|^2/dt = 2 sum_i e_i in a flow, e_i = Q_i . sum_j S_ij K_j: attention stops growing at its turn",
            "FDA:freeze": "in saturated attention norms of rare rows stand still",
            "FDA:stall": "L = sum_B pi_B H(sum_(i in B) pi_i P_i / pi_B), B all rows that look at one token alone",
            "FDA:frozen": "below sigma_c, about eps^(1/2), no focus: the loss is H(pi)",
            "FDA:path": "eps joins normalised steps (0) and gradient descent (infinity, lr/eps fixed)",
            "FDA:cycles": "32 columns of queries and keys predict E_k, Q_k and self-attention of later cycles",
        }.items()
    },
    "FD:watched-rank": Tag(f"{OURS}, watched", "effective rank of the token embedding falls to half, then rises by half"),
    "FD:watched-order": Tag(f"{OURS}, watched", "E1 < Q1 < E2: embedding, attention, embedding again"),
}
