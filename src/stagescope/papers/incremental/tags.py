"""Incremental learning: what to cite, and the statements that the code uses, by tag."""

from stagescope.claims.reference import Reference, Tag

REFERENCE = Reference(
    key="yuksel2026incremental",
    title="Incremental Learning of Sparse Attention Patterns in Transformers",
    authors="Yüksel, Alvarez Lucendo, Flammarion",
    year=2026,
    venue="ICML",
    arxiv="2602.19143",
)
TAGS = {
    "ISA:task": Tag("task", "x_t ~ softmax(sum_i beta_i A_i sum_{l in I_i} w_il e_{x_{t-l}})"),
    "ISA:features": Tag("task", "A_i random orthogonal, |A_i|_F = sqrt d; centred; tr(A_i^T A_j) = 0"),
    "ISA:bayes": Tag("task", "Bayes loss: mean exact conditional entropy over sampled contexts"),
    "ISA:truncated": Tag("task", "T_j = softmax(sum_{i<=j} beta_i A_i sum_{l in I_i} w_il e_{x_{t-l}})"),
    "ISA:classes": Tag("restricted classes", "F_j = {softmax(sum_{i<=j} W_i sum_{l in I_i} w_il e_{x_{t-l}})}"),
    "ISA:levels": Tag("plateaus", "l_j = least cross-entropy in F_j to the true law; l_0 = ln d, l_k = Bayes"),
    "ISA:ridge": Tag("early stopping", "F_j fitted to N sequences: likelihood, or ridge chosen on held-out ones"),
    "ISA:positional-heads": Tag(
        "minimal model", "logits_t = sum_h V_h sum_{s<=t} softmax(a_h[t])_s e_{x_s}, V = 0 and a small at first"
    ),
    "ISA:content-heads": Tag(
        "minimal model of the code", "score [tok;pos]^T W_h [tok;pos]/sqrt(d + N), V_h reads [tok;pos]; N positions"
    ),
    "ISA:transformer": Tag(
        "full model", "tokens and positions embedded; attention and MLP after LayerNorm, added; one or two layers"
    ),
    "ISA:alignment": Tag("observables", "<V_h, A_i>/|A_i|: component of the values of head h along feature i"),
    "ISA:loss": Tag("loss", "mean cross-entropy of the targets, to the tokens drawn or to the true law"),
    "ISA:heads": Tag("simplified model", "P = sum_h V_h x softmax(a_h) fits G = sum_i g_i f_i x e_{p_i}"),
    "ISA:symmetric": Tag("exact reduction", "equal heads stay equal: one head with P = H V x s and the same law"),
    "ISA:flow": Tag("simplified model", "V_h' = R s_h, a_h' = J(s_h) R^T V_h, R = G - P: the flow of |R|^2/2"),
    "ISA:mirror": Tag("figure 10", "V_h' = R s_h, a_h' = R^T V_h; |V_h|^2/2 - log sum exp(a_h) is conserved"),
    "ISA:plateaus": Tag("plateaus", "plateau j at sum_{i>j} g_i^2/2, at most min(H, k) of them"),
    "ISA:transitions": Tag("events", "t_j: first crossing of (l_{j-1} + l_j)/2; a plateau if the loss slows down before t_{j+1}"),
    "ISA:first": Tag("plateau 1", "t_1 -> (pi/sqrt 2) sqrt(N)/g_1 (mirror), of order N/g_1 (exact)"),
    "ISA:leftover": Tag("plateau 1", "s_2 ~ 1/(D t) (mirror), 1/sqrt(2 N D t) (exact), D = (g_1^2 - g_2^2)/H"),
    "ISA:escape": Tag("plateau 1", "heads part at rate g_2 sqrt(s_2) or sqrt(2) g_2 s_2: sqrt(t_2) ~ ln(1/sigma)"),
    "ISA:wkb": Tag("plateau 1", "integral of the rate to t_2 = ln(1/sigma) + const on the symmetric trajectory"),
    "ISA:t2": Tag("plateau 1", "along equal heads each deviation obeys d' = L d, R held: t_2 for every sigma from one path"),
    "ISA:regression": Tag("simplified model", "mean |y - sum_h V_h sum_n s_hn x_n|^2/2, tokens with E x x^T = I"),
    "ISA:order": Tag("plateaus", "features are acquired in the order of their importance"),
    "ISA:nearest": Tag("plateaus", "on plateau j the least KL(F_i || model) is that of i = j"),
    "ISA:competition": Tag("heads", "on plateau 1 all heads attend to the most important group"),
    "ISA:cooperation": Tag("heads", "heads part after t_1, before plateau 2, and divide the groups"),
    "ISA:stays": Tag("heads", "equal heads stay on plateau 1"),
    "ISA:head-limit": Tag("heads", "H heads end on plateau min(H, k)"),
    "ISA:parting": Tag("plateau 1", "at equal heads H - 1 equal fastest modes, head differences, lead out of it"),
    "ISA:escape-law": Tag("plateau 1", "sqrt(t_2) ~ sqrt((g_1^2 - g_2^2)/H)/(2 g_2) ln(1/sigma), times sqrt(N) (exact)"),
    "ISA:clock": Tag("clock", "g_i = beta_i sqrt(d), t = lr step/d^2 for small logits and one target"),
    "ISA:mass": Tag("observables", "attention of a head on a lag group, mean over query rows"),
    "ISA:specialisation": Tag("observables", "mass of the best matching of heads to groups, mean over pairs"),
    "ISA:contrast": Tag("observables", "Hungarian matching of heads to groups on mass less the heads' mean"),
    "ISA:stages": Tag("stages", "transitions, plateaus, competitive then cooperative heads"),
    "ISA:text-heads": Tag("real text", "positional heads on windows: logits sum_h V_h sum_l s_h(l) e_{x_{t-l}}"),
    "ISA:text-importance": Tag("real text", "I(x_{t-l}; x_t), and what a lag adds to the most informative one"),
    "ISA:text-stages": Tag("real text", "t_j: the j-th lag that has most of the attention of a head"),
    "ISA:text-order": Tag("real text", "lags get attention in the order of the information they add"),
    "ISA:text-competition": Tag("real text", "all heads first attend to the most informative lag"),
    "ISA:text-level": Tag("real text", "before t_2 the loss rests at the entropy given the first lag"),
    "ISA:text-parting": Tag("real text", "heads leave the first lag one at a time"),
    "ISA:stopping-rules": Tag("early stopping", "least held-out loss, with patience in steps or in stages"),
    "ISA:early-stopping": Tag("early stopping", "argmin_j KL(F_j || model) at the best stop = best likelihood fit"),
    "ISA:stop-ridge": Tag("early stopping", "loss of the best ridge fit that knows the lags < that at the best stop"),
    "ISA:watched-together": Tag("a watched transformer", "cosine between moves of heads >= .8 when they have moved by .1"),
    "ISA:watched-part": Tag("a watched transformer", "that cosine falls by .2 or more to the end"),
}
