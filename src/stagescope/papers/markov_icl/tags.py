"""In-context Markov chains: what to cite, and the statements that the code uses, by tag."""

from stagescope.claims.reference import Reference, Tag

REFERENCE = Reference(
    key="edelman2024evolution",
    title="The Evolution of Statistical Induction Heads: In-Context Learning Markov Chains",
    authors="Edelman, Tsilivis, Edelman, Malach, Goel",
    year=2024,
    venue="NeurIPS; the plateaus are those of Varre, Yuce, Flammarion, ICML 2025, arXiv 2508.12837",
    arxiv="2402.11004",
)
TAGS = {
    "MIC:task": Tag("task", "each sequence has its own chain, rows of P ~ Dirichlet; doubly stochastic: p = q"),
    "MIC:entropies": Tag("levels", "ln k; E_P H(pi); E_P sum_i pi_i H(P_i): estimators on an infinite context"),
    "MIC:enumeration": Tag("levels", "weight of a sequence with P integrated out: ratios of Gamma functions of its counts"),
    "MIC:strategies": Tag("strategies", "uniform, unigram (n_j + 1)/(t + k), bigram (n_ij + alpha)/(n_i + k alpha)"),
    "MIC:model": Tag("two layers", "h_s = sum_d A_d e_{x_{s-d}}, A = softmax(v); layer 2 scores W[x_t] . h_s"),
    "MIC:model-r": Tag("model R", "z_ij = a pi_j + b pi_i sum_d A_d (P^d)_ij: linear layer 2, infinite context"),
    "MIC:model-s": Tag("model S", "p(j|i) = sum_w pi(w) e^{b h_i(w)} [x_s = j] / Z: softmax layer 2, windows of D lags"),
    "MIC:model-s3": Tag("model S3", "score b_1 <x_t, h1_s> + b_2 <h1_t, h2_s> on chains of order 2"),
    "MIC:model-f": Tag("model F", "logits_t = W[x_t] . sum_{s <= t} h_s x e_{x_s}: finite, causal, linear layer 2"),
    "MIC:model-t": Tag("model T", "logits_t = U o_t, o_t the causal softmax average of tokens"),
    "MIC:finite": Tag("finite sequences", "mean over all places but the last, over all k^T sequences or over batches"),
    "MIC:classes": Tag("levels", "l_1, l_2: least loss over a, b with A even over the lags, and with A at lag 1"),
    "MIC:stages": Tag("stages", "t_j: half of the step between two levels; a stage is the nearest strategy by KL"),
    "MIC:start": Tag("start of R", "a' = E|pi|^2 - 1/k, b' = sum_d A_d g_d; v does not move at b = 0"),
    "MIC:chi-square": Tag("unigram point of S", "-dL/db = sum_d A_d c_d, c_d the chi-square information of lag d"),
    "MIC:second-chi-square": Tag("bigram point of S3", "-dL/db_2 = sum_d A2_d c'_d: the information of a lag beyond bigrams"),
    "MIC:order": Tag("stages", "uniform, then unigram, then bigram predictions"),
    "MIC:levels": Tag("plateaus", "plateau losses are levels of classes (R, F) or entropies (S)"),
    "MIC:layers": Tag("stages", "b has half of its plateau value before A_1 has twice its start"),
    "MIC:lag-gradient": Tag("start", "|F| at the start by closed forms; v of odd lags rises above its neighbours, lag 1 most"),
    "MIC:plateau-law": Tag("unigram plateau of R", "t_2 = D / (rho b* gamma_1), D = sum_d e^{v_d} / e^{v_1}"),
    "MIC:start-noise": Tag("unigram plateau of R", "t_2 over its law does not depend on the noise of the initial v"),
    "MIC:near-stationary": Tag("unigram point of S", "|F| = C/D, C = sum_d c_d"),
    "MIC:two-step": Tag("unigram point of S, doubly stochastic R", "t_2 = D sqrt(2 / (rho C (g_1 - <g>)))"),
    "MIC:doubly-stochastic": Tag("simplicity bias", "t_2 is earlier where unigrams are useless"),
    "MIC:adam": Tag("Adam", "the number of steps to t_2 does not depend on D"),
    "MIC:trigram": Tag("order 2", "head 2 joins at lag 2 after head 1 at lag 1; the loss ends at the trigram entropy"),
    "MIC:induction": Tag("induction head", "layer 2 attends to what followed earlier occurrences of the current token"),
}
