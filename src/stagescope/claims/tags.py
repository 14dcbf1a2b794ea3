"""Equation tags: words in the code, numbers in this one table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A reference."""

    key: str
    title: str
    authors: str
    year: int
    venue: str
    arxiv: str

    @property
    def text(self) -> str:
        return f"{self.authors}: {self.title}. {self.venue}, {self.year}. arXiv:{self.arxiv}"

    @property
    def bibtex(self) -> str:
        authors = self.authors.replace(", ", " and ")
        lines = (f"title = {{{self.title}}}", f"author = {{{authors}}}", f"year = {{{self.year}}}")
        rest = (f"note = {{{self.venue}}}", f"eprint = {{{self.arxiv}}}", "archivePrefix = {arXiv}")
        return f"@misc{{{self.key},\n  " + ",\n  ".join(lines + rest) + "\n}"


@dataclass(frozen=True)
class Tag:
    """One statement: where it stands and what it says, in the code's own names."""

    paper: str
    number: str
    says: str


PAPERS = {
    "scan-snap": Paper(
        key="tian2023scan",
        title="Scan and Snap: Understanding Training Dynamics and Token Composition in 1-layer Transformer",
        authors="Yuandong Tian, Yiping Wang, Beidi Chen, Simon Du",
        year=2023,
        venue="NeurIPS",
        arxiv="2305.16380",
    ),
    "focus-dilution": Paper(
        key="chen2026focus",
        title="Focus and Dilution",
        authors="Chen, Lin, Xu, Luo",
        year=2026,
        venue="ICML",
        arxiv="2605.01199",
    ),
    "incremental": Paper(
        key="yuksel2026incremental",
        title="Incremental learning of sparse attention patterns",
        authors="Yüksel, Alvarez Lucendo, Flammarion",
        year=2026,
        venue="ICML",
        arxiv="2602.19143",
    ),
}

TAGS = {
    "flow:field": Tag("", "definition", "theta_b' = rate_b F_b(theta)"),
    "flow:dissipation": Tag("", "identity", "dL/dt = -sum_b rate_b |grad_b L|^2 along a gradient flow"),
    "flow:linear": Tag("", "definition", "delta' = J delta near a critical point, J the Jacobian of F"),
    "SnS:data": Tag("scan-snap", "data model", "classes n with query psi(n), target n, contexts i.i.d. from P(l|n)"),
    "SnS:synthetic": Tag("scan-snap", "generator of the code", "common tokens at equal weight, distinct ones on a linear ramp"),
    "SnS:model": Tag("scan-snap", "model", "v_l ~ N_l exp(z_ml), f = v/|v|_2, logits Y^T f"),
    "SnS:merged-columns": Tag("scan-snap", "exact reduction", "equal output columns that are never targets stay equal"),
    "SnS:lemma-1": Tag("scan-snap", "lemma 1", "Ydot and zdot in closed form; the row sums of both are zero"),
    "SnS:lemma-2": Tag("scan-snap", "lemma 2", "long sequences: c_{l|n} ~ P(l|n) exp(z_ml)"),
    "SnS:lemma-3": Tag("scan-snap", "lemma 3", "the modified decoder steps along column n of F (F^T F)^-1"),
    "SnS:stages": Tag("scan-snap", "scan and snap", "scan: common tokens fall, distinct ones grow; snap: attention freezes"),
    "SnS:assumption-2": Tag("scan-snap", "assumption 2", "eigenvalues of F^T F - I are below 1/K"),
    "SnS:theorem-1": Tag("scan-snap", "theorem 1", "e^x + (M-1) x = M eta_Y t/K + 1 for the own-minus-other logit x = M h"),
    "SnS:gamma": Tag("scan-snap", "theorem 1", "gamma = M (M-1) h / (M-1+e^x); printed with (M-1)^2"),
    "SnS:discrete": Tag("scan-snap", "figure 8", "0 <= h* - h <= 2 eta_Y/M for steps h* against the flow's h"),
    "SnS:theorem-2-distinct": Tag("scan-snap", "theorem 2", "distinct tokens grow: z_ml of a distinct l rises"),
    "SnS:theorem-2-common": Tag("scan-snap", "theorem 2", "common tokens fall: z_ml of a common l drops"),
    "SnS:order": Tag("scan-snap", "scan", "growth of distinct tokens is ordered by P(l|n)"),
    "SnS:theorem-3": Tag("scan-snap", "theorem 3", "r(t) = c_l^2/c_l'^2 - 1 = r(0) chi_l(t), chi_l = e^{2(z_l(t)-z_l(0))}"),
    "SnS:sandwich": Tag("scan-snap", "theorem 3", "e^{2 f_l(0)^2 B} <= chi_l <= e^{2 B}; B/K if all classes share one query"),
    "SnS:theorem-4": Tag("scan-snap", "theorem 4", "e^{-4 z_ct} = 1 + 4 Gamma/C0, Gamma = eta_Z K M(M-1) h^2/(2 eta_Y)"),
    "SnS:transition": Tag("scan-snap", "phase transition", "phase transition at t0 = K ln M / eta_Y"),
    "SnS:sparsity": Tag("scan-snap", "figures 4 and 6", "a larger eta_Y/eta_Z gives attention of higher entropy"),
    "SnS:scaling": Tag("scan-snap", "exact", "(s eta_Y, s eta_Z) at t/s is (eta_Y, eta_Z) at t"),
    "SnS:finite-step": Tag("scan-snap", "figures 4 and 6", "larger rates end sparser: an effect of finite steps"),
    "FD:lazy-chain": Tag("focus-dilution", "data", "P = lam I + (1 - lam) 1 pi^T"),
    "FD:asymmetry": Tag("focus-dilution", "data", "pi_i = (1 - pi_0)/(d - 1) + c_i delta for i >= 1, sum c_i = 0"),
    "FD:model": Tag("focus-dilution", "model", "Phi = scale (W0 WQ)(W0 WK)^T, A_ij ~ n_j exp(Phi_ij), logits A W0 W1"),
    "FD:origin": Tag("focus-dilution", "saddle (0,0)", "rate mu0 = |pi| |pi - 1/d|, directions pi and pi - 1/d"),
    "FD:condensed": Tag("focus-dilution", "saddle (1,0)", "W0 = a (pi/n) alpha^T, W1 = a alpha (lc/|lc|)^T, a^2 = |lc|/n"),
    "FD:frozen": Tag("focus-dilution", "stage I", "attention does not move at the order at which embeddings condense"),
    "FD:attention-rate": Tag("focus-dilution", "saddle (1,0)", "attention opens at rate |c|, dWQ = c alpha alpha^T WK"),
    "FD:focus": Tag("focus-dilution", "stage II", "Phi opens along sign(c) pi pi^T"),
    "FD:dilution": Tag("focus-dilution", "stage III", "row i is back at its base law when gamma_i = (W0 alpha)_i crosses zero"),
    "FD:directions": Tag("focus-dilution", "saddle (0,0)", "W0 condenses along pi, W1 along pi - 1/d"),
    "FD:linear-condensed": Tag("focus-dilution", "saddle (1,0)", "exp(Jt) from the plateau predicts the escape"),
    "FD:sign": Tag("focus-dilution", "general P", "the sign of sum_i pi_i^2 (P_i - pi).log pi decides focus or defocus"),
    "FD:redistribution": Tag("focus-dilution", "stage III", "D = (1 - pi_0) gamma_0 - pi_0 sum gamma_i grows like e^{2ct}"),
    "FD:second-order": Tag("focus-dilution", "stage III", "(2c I - J) w = F''[v,v]/2 at (1,0) gives sign and size of D"),
    "FD:ladder": Tag(
        "focus-dilution", "saddle ladder", "rates at (r,rq): singular values of [-GM, -GP K, -GP^T Q] and -W0^T GP W0"
    ),
    "FD:focused": Tag("focus-dilution", "saddle (1,1)", "dL/dPhi = 0: only embeddings can open"),
    "FD:embedding-rate": Tag("focus-dilution", "saddle (1,1)", "an embedding direction opens at rate sv_1(B)"),
    "FD:embedding-direction": Tag("focus-dilution", "saddle (1,1)", "it opens along the singular vectors of B"),
    "FD:linear-focused": Tag("focus-dilution", "saddle (1,1)", "exp(Jt) from the plateau predicts the escape"),
    "FD:third": Tag("focus-dilution", "saddle (2,2)", "the third embedding direction opens at rate sv_1(B)"),
    "FD:eps-law": Tag("focus-dilution", "initial scale", "per decade: E1 ln10/mu0, Q1-E1 ln10/c, E2-Q1 ln10/mu11"),
    "FD:degenerate": Tag(
        "focus-dilution", "stage IV", "equal rare tokens: GM = GP = 0 at the symmetric (1,1), all transverse rates 0"
    ),
    "FD:kappa": Tag("focus-dilution", "stage IV", "the top embedding rate is kappa(c) delta + O(delta^2)"),
    "FD:tangential": Tag("focus-dilution", "stage IV", "tangential perturbations are at most O(delta^2)"),
    "FD:stall": Tag("focus-dilution", "stage IV", "without asymmetry no new embedding direction opens"),
    "FD:stages": Tag("focus-dilution", "stages I-IV", "condensation, focus, dilution, lifting; then the cycle repeats"),
    "FD:finite": Tag("focus-dilution", "loss", "-sum_(n,i) p(n,i) sum_k P_ik log softmax(A(n,i) W0 W1)_k at length s, exact"),
    "FD:sampled": Tag("focus-dilution", "loss", "mean cross-entropy of the token after N sampled contexts of length s"),
    "FD:population": Tag("focus-dilution", "loss", "-sum_i pi_i sum_k P_ik log softmax(A_i W0 W1)_k, counts replaced by pi"),
    "FD:text-loss": Tag("focus-dilution", "real text", "mean cross-entropy of the token after windows of a text"),
    "FD:text-counts": Tag(
        "focus-dilution", "real text", "a window enters through its counts and its last token, A_j ~ n_j exp(Phi_ij)"
    ),
    "FD:text-causal": Tag("focus-dilution", "real text", "the loss at all positions, attention over the tokens up to each"),
    "FD:text-variants": Tag("focus-dilution", "real text", "with positions, residual stream or LayerNorm before the output"),
    "FD:text-stages": Tag("focus-dilution", "real text", "openings E_k and Q_k, turns of attention rows, entropy and rare norms"),
    "FD:text-origin": Tag("focus-dilution", "real text", "the first mode grows at mu0 = |pi| |pi - 1/d|"),
    "FD:text-order": Tag("focus-dilution", "real text", "E1 < Q1 < E2 < min(E3, Q2)"),
    "FD:text-bigram": Tag("focus-dilution", "real text", "the flow on the bigram chain gives the times of E2, E3 and Q2"),
    "FD:text-sign": Tag("focus-dilution", "real text", "Phi opens along sign(c) pi pi^T, c measured on real windows"),
    "FD:text-rows": Tag(
        "focus-dilution", "real text", "under Adam rows focus on the most frequent type, then lose half of their gain"
    ),
    "FD:text-entropy": Tag("focus-dilution", "real text", "under Adam the entropy of attention falls, rises and falls again"),
    "FD:text-norms": Tag("focus-dilution", "real text", "under Adam embeddings of rare types grow, retract and grow"),
    "FD:text-separability": Tag(
        "focus-dilution",
        "real text",
        "r = sigma_2/sigma_1 of E[h (y - 1/d)^T]: small r, one mode grows alone; large r, no stages",
    ),
    "ISA:task": Tag("incremental", "task", "x_t ~ softmax(sum_i beta_i A_i sum_{l in I_i} w_il e_{x_{t-l}})"),
    "ISA:features": Tag("incremental", "task", "A_i random orthogonal, |A_i|_F = sqrt d; centred; tr(A_i^T A_j) = 0"),
    "ISA:bayes": Tag("incremental", "task", "Bayes loss: mean exact conditional entropy over sampled contexts"),
    "ISA:truncated": Tag("incremental", "task", "T_j = softmax(sum_{i<=j} beta_i A_i sum_{l in I_i} w_il e_{x_{t-l}})"),
    "ISA:classes": Tag("incremental", "restricted classes", "F_j = {softmax(sum_{i<=j} W_i sum_{l in I_i} w_il e_{x_{t-l}})}"),
    "ISA:levels": Tag("incremental", "plateaus", "l_j = least cross-entropy in F_j to the true law; l_0 = ln d, l_k = Bayes"),
    "ISA:ridge": Tag("incremental", "early stopping", "F_j fitted to N sequences: likelihood, or ridge chosen on held-out ones"),
    "ISA:positional-heads": Tag(
        "incremental", "minimal model", "logits_t = sum_h V_h sum_{s<=t} softmax(a_h[t])_s e_{x_s}, V = 0 and a small at first"
    ),
    "ISA:content-heads": Tag(
        "incremental",
        "minimal model of the code",
        "score [tok;pos]^T W_h [tok;pos]/sqrt(d + N), V_h reads [tok;pos]; N positions",
    ),
    "ISA:transformer": Tag(
        "incremental", "full model", "tokens and positions embedded; attention and MLP after LayerNorm, added; one or two layers"
    ),
    "ISA:alignment": Tag("incremental", "observables", "<V_h, A_i>/|A_i|: how much of feature i the values of head h hold"),
    "ISA:loss": Tag("incremental", "loss", "mean cross-entropy of the targets, to the tokens drawn or to the true law"),
    "ISA:heads": Tag("incremental", "simplified model", "P = sum_h V_h x softmax(a_h) fits G = sum_i g_i f_i x e_{p_i}"),
    "ISA:symmetric": Tag("incremental", "exact reduction", "equal heads stay equal: one head with P = H V x s and the same law"),
    "ISA:flow": Tag("incremental", "simplified model", "V_h' = R s_h, a_h' = J(s_h) R^T V_h, R = G - P: the flow of |R|^2/2"),
    "ISA:mirror": Tag("incremental", "figure 10", "V_h' = R s_h, a_h' = R^T V_h; |V_h|^2/2 - log sum exp(a_h) is conserved"),
    "ISA:plateaus": Tag("incremental", "plateaus", "plateau j at sum_{i>j} g_i^2/2, at most min(H, k) of them"),
    "ISA:transitions": Tag("incremental", "events", "t_j: first crossing of (l_{j-1} + l_j)/2"),
    "ISA:first": Tag("incremental", "plateau 1", "t_1 -> (pi/sqrt 2) sqrt(N)/g_1 (mirror), of order N/g_1 (exact)"),
    "ISA:leftover": Tag("incremental", "plateau 1", "s_2 ~ 1/(D t) (mirror), 1/sqrt(2 N D t) (exact), D = (g_1^2 - g_2^2)/H"),
    "ISA:escape": Tag("incremental", "plateau 1", "heads part at rate g_2 sqrt(s_2) or sqrt(2) g_2 s_2: sqrt(t_2) ~ ln(1/sigma)"),
    "ISA:wkb": Tag("incremental", "plateau 1", "integral of the rate to t_2 = ln(1/sigma) + const on the symmetric trajectory"),
    "ISA:regression": Tag("incremental", "simplified model", "mean |y - sum_h V_h sum_n s_hn x_n|^2/2, tokens with E x x^T = I"),
    "ISA:order": Tag("incremental", "plateaus", "features are acquired in the order of their importance"),
    "ISA:nearest": Tag("incremental", "plateaus", "on plateau j the least KL(F_i || model) is that of i = j"),
    "ISA:competition": Tag("incremental", "heads", "on plateau 1 all heads look at the most important group"),
    "ISA:cooperation": Tag("incremental", "heads", "heads part between t_1 and t_2 and share the groups out"),
    "ISA:stays": Tag("incremental", "heads", "equal heads stay on plateau 1"),
    "ISA:head-limit": Tag("incremental", "heads", "H heads end on plateau min(H, k)"),
    "ISA:parting": Tag("incremental", "plateau 1", "at equal heads H - 1 equal fastest modes, head differences, lead out of it"),
    "ISA:escape-law": Tag(
        "incremental", "plateau 1", "sqrt(t_2) ~ sqrt((g_1^2 - g_2^2)/H)/(2 g_2) ln(1/sigma), times sqrt(N) (exact)"
    ),
    "ISA:clock": Tag("incremental", "clock", "g_i = beta_i sqrt(d), t = lr step/d^2 for small logits and one target"),
    "ISA:mass": Tag("incremental", "observables", "attention of a head on a lag group, mean over query rows"),
    "ISA:specialisation": Tag("incremental", "observables", "mass of the best matching of heads to groups, mean over pairs"),
    "ISA:contrast": Tag("incremental", "observables", "Hungarian matching of heads to groups on mass less the heads' mean"),
    "ISA:stages": Tag("incremental", "stages", "transitions, plateaus, competitive then cooperative heads"),
    "ISA:shoulders": Tag("incremental", "stages", "transitions: maxima of |dL/d ln step|; shoulders: the minima between them"),
    "ISA:text-heads": Tag("incremental", "real text", "positional heads on windows: logits sum_h V_h sum_l s_h(l) e_{x_{t-l}}"),
    "ISA:text-importance": Tag("incremental", "real text", "I(x_{t-l}; x_t), and what a lag adds to the most informative one"),
    "ISA:text-stages": Tag("incremental", "real text", "t_j: the j-th lag that some head gives most of its attention to"),
    "ISA:text-order": Tag("incremental", "real text", "lags are acquired in the order of the information they add"),
    "ISA:text-competition": Tag("incremental", "real text", "all heads first look at the most informative lag"),
    "ISA:text-level": Tag("incremental", "real text", "before t_2 the loss rests at the entropy given the first lag"),
    "ISA:text-parting": Tag("incremental", "real text", "heads leave the first lag one at a time"),
    "ISA:text-reach": Tag("incremental", "real text", "every head ends with a lag of its own"),
    "ISA:stopping-rules": Tag("incremental", "early stopping", "least held-out loss, with patience in steps or in stages"),
    "ISA:early-stopping": Tag(
        "incremental", "early stopping", "argmin_j KL(F_j || model) at the best stop = best likelihood fit"
    ),
    "ISA:stop-ridge": Tag(
        "incremental", "early stopping", "loss at the best stop <= that of the best ridge fit that knows the lags"
    ),
    "SnS:text-windows": Tag("scan-snap", "real text", "classes of windows before a query word, by the word after it"),
    "SnS:text-transformer": Tag(
        "scan-snap", "figures 7 and 10", "one layer, one head, LayerNorm after attention and after the MLP"
    ),
    "SnS:text-motion": Tag("scan-snap", "real text", "total variation of held-out attention between checkpoints 50 steps apart"),
    "SnS:text-stages": Tag("scan-snap", "real text", "prior, scan, snap: attention moves by less than .05 between checkpoints"),
    "SnS:text-distinct": Tag("scan-snap", "real text", "z_l ranks types by KL(next | l in the window || next)"),
    "SnS:text-frequency": Tag("scan-snap", "real text", "it does so at equal frequency, by the partial rank correlation"),
    "SnS:text-held": Tag("scan-snap", "real text", "z_l ranks types by KL(next | l in the window || next) of held-out windows"),
    "SnS:text-common": Tag("scan-snap", "real text", "types in more than 15 % of the windows end with z below 0"),
    "SnS:text-mass": Tag("scan-snap", "real text", "attention on distinct types of held-out windows at least doubles"),
    "SnS:text-snap": Tag("scan-snap", "figure 7", "at a constant rate the motion of attention falls below .05"),
    "SnS:text-rate": Tag("scan-snap", "figure 10", "larger learning rates give sparser attention"),
    "SnS:text-freezing": Tag("scan-snap", "figure 7", "the full transformer freezes under a decaying rate only"),
    "SnS:snap": Tag("scan-snap", "after the transition", "after the transition the attention speed keeps falling"),
}
