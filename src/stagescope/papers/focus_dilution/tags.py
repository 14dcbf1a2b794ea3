"""Focus and dilution: what to cite, and the statements that the code uses, by tag."""

from stagescope.claims.reference import Reference, Tag

REFERENCE = Reference(
    key="chen2026focus",
    title="Focus and Dilution: The Multi-stage Learning Process of Attention",
    authors="Chen, Lin, Xu, Luo",
    year=2026,
    venue="ICML (spotlight)",
    arxiv="2605.01199",
)
TAGS = {
    "FD:lazy-chain": Tag("data", "P = lam I + (1 - lam) 1 pi^T"),
    "FD:asymmetry": Tag("data", "pi_i = (1 - pi_0)/(d - 1) + c_i delta for i >= 1, sum c_i = 0"),
    "FD:model": Tag("model", "Phi = scale (W0 WQ)(W0 WK)^T, A_ij ~ n_j exp(Phi_ij), logits A W0 W1"),
    "FD:origin": Tag("saddle (0,0)", "rate mu0 = |pi| |pi - 1/d|, directions pi and pi - 1/d"),
    "FD:condensed": Tag("saddle (1,0)", "W0 = a (pi/n) alpha^T, W1 = a alpha (lc/|lc|)^T, a^2 = |lc|/n"),
    "FD:frozen": Tag("stage I", "attention does not move at the order at which embeddings condense"),
    "FD:attention-rate": Tag("saddle (1,0)", "attention opens at rate |c|, dWQ = c alpha alpha^T WK"),
    "FD:focus": Tag("stage II", "Phi opens along sign(c) pi pi^T"),
    "FD:dilution": Tag(
        "stage III", "row i, moved towards zero by second order, is back at its base law when gamma_i = (W0 alpha)_i crosses zero"
    ),
    "FD:recurrence": Tag("stage IV", "after E2 the cycle repeats: some row focuses and dilutes again"),
    "FD:directions": Tag("saddle (0,0)", "W0 condenses along pi, W1 along pi - 1/d"),
    "FD:linear-condensed": Tag("saddle (1,0)", "exp(Jt) from the plateau predicts the escape"),
    "FD:sign": Tag("general P", "the sign of sum_i pi_i^2 (P_i - pi).log pi decides focus or defocus"),
    "FD:redistribution": Tag("stage III", "D = (1 - pi_0) gamma_0 - pi_0 sum gamma_i grows like e^{2ct}"),
    "FD:second-order": Tag("stage III", "(2c I - J) w = F''[v,v]/2 at (1,0) gives sign and size of D"),
    "FD:ladder": Tag("saddle ladder", "rates at (r,rq): singular values of [-GM, -GP K, -GP^T Q] and -W0^T GP W0"),
    "FD:embedding-rate": Tag(
        "saddle (1,1)", "an embedding direction opens at rate sv_1(B), B of the small model where the run is"
    ),
    "FD:embedding-direction": Tag("saddle (1,1)", "it opens along the singular vectors of B"),
    "FD:eps-law": Tag("initial scale", "per decade: E1 ln10/mu0, Q1-E1 ln10/c, E2-Q1 ln10/mu11"),
    "FD:kappa": Tag("stage IV", "the top embedding rate is kappa(c) delta + O(delta^2)"),
    "FD:delta-law": Tag("stage IV", "half the asymmetry, half the rate at which the flow leaves (1,1)"),
    "FD:tangential": Tag("stage IV", "tangential perturbations are at most O(delta^2)"),
    "FD:lambda-c": Tag("stage IV", "with equal rare tokens flows stay at the symmetric (1,1) where persistence < lambda_c(pi_0)"),
    "FD:stall": Tag("stage IV", "without asymmetry no new embedding direction opens"),
    "FD:stages": Tag("stages I-IV", "condensation, focus, dilution, lifting; then the cycle repeats"),
    "FD:finite": Tag("loss", "-sum_(n,i) p(n,i) sum_k P_ik log softmax(A(n,i) W0 W1)_k at length s, exact"),
    "FD:sampled": Tag("loss", "mean cross-entropy of the token after N sampled contexts of length s"),
    "FD:population": Tag("loss", "-sum_i pi_i sum_k P_ik log softmax(A_i W0 W1)_k, counts replaced by pi"),
    "FD:predicted-sequence": Tag("saddle path", "beside a small model's path E' = N E: the start gives the sequence of events"),
    "FD:predicted-times": Tag("saddle path", "and their times"),
    "FD:critical-scale": Tag("saddle path", "growth along a leg can be finite: below a start scale an event never comes"),
    "FD:text-loss": Tag("real text", "mean cross-entropy of the token after windows of a text"),
    "FD:text-counts": Tag("real text", "a window enters through its counts and its last token, A_j ~ n_j exp(Phi_ij)"),
    "FD:text-causal": Tag("real text", "the loss at all positions, attention over the tokens up to each"),
    "FD:text-variants": Tag("real text", "with positions, residual stream or LayerNorm before the output"),
    "FD:text-stages": Tag("real text", "openings E_k and Q_k, turns of attention rows, entropy and rare norms"),
    "FD:text-origin": Tag("real text", "the first mode grows at mu0 = |pi| |pi - 1/d|"),
    "FD:text-order": Tag("real text", "E1 < Q1 < E2 < min(E3, Q2)"),
    "FD:text-bigram": Tag("real text", "the flow on the bigram chain gives the time of E2"),
    "FD:text-sign": Tag("real text", "Phi opens along sign(c) pi pi^T, c measured on real windows"),
    "FD:text-entropy": Tag("real text", "under Adam the entropy of attention falls, rises and falls again"),
    "FD:text-norms": Tag("real text", "under Adam embeddings of rare types grow, retract and grow"),
    "FD:text-separability": Tag(
        "real text", "r = sigma_2/sigma_1 of E[h (y - 1/d)^T]: small r, one mode grows alone; large r, no stages"
    ),
    "FD:watched-rank": Tag("a watched transformer", "effective rank of the token embedding falls to half, then rises by half"),
    "FD:watched-order": Tag("a watched transformer", "E1 < Q1 < E2: embedding, attention, embedding again"),
}
