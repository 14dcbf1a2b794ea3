"""Scan and snap: what to cite, and the statements that the code uses, by tag."""

from stagescope.claims.reference import Reference, Tag

REFERENCE = Reference(
    key="tian2023scan",
    title="Scan and Snap: Understanding Training Dynamics and Token Composition in 1-layer Transformer",
    authors="Yuandong Tian, Yiping Wang, Beidi Chen, Simon Du",
    year=2023,
    venue="NeurIPS",
    arxiv="2305.16380",
)
TAGS = {
    "SnS:data": Tag("data model", "classes n with query psi(n), target n, contexts i.i.d. from P(l|n)"),
    "SnS:synthetic": Tag("generator of the code", "common tokens at equal weight, distinct ones on a linear ramp"),
    "SnS:model": Tag("model", "v_l ~ N_l exp(z_ml), f = v/|v|_2, logits Y^T f"),
    "SnS:merged-columns": Tag("exact reduction", "equal output columns that are never targets stay equal"),
    "SnS:lemma-1": Tag("lemma 1", "Ydot and zdot in closed form; the row sums of both are zero"),
    "SnS:lemma-2": Tag("lemma 2", "long sequences: c_{l|n} ~ P(l|n) exp(z_ml)"),
    "SnS:lemma-3": Tag("lemma 3", "the modified decoder steps along column n of F (F^T F)^-1"),
    "SnS:lemma-4": Tag("lemma 4", "lemma 1 with theorem 1's decoder: dz/dt = (eta_Z gamma/K) f o (F (F^T F)^-1 u - f)"),
    "SnS:stages": Tag("scan and snap", "scan: common tokens fall, distinct ones grow; snap: attention freezes"),
    "SnS:assumption-2": Tag("assumption 2", "eigenvalues of F^T F - I are below 1/K"),
    "SnS:theorem-1": Tag("theorem 1", "e^x + (M-1) x = M eta_Y t/K + 1 for the own-minus-other logit x = M h"),
    "SnS:gamma": Tag("theorem 1", "gamma = M (M-1) h / (M-1+e^x); printed with (M-1)^2"),
    "SnS:discrete": Tag("figure 8", "0 <= h* - h <= 2 eta_Y/M for steps h* against the flow's h"),
    "SnS:theorem-2-distinct": Tag("theorem 2", "distinct tokens grow: z_ml of a distinct l rises"),
    "SnS:theorem-2-common": Tag("theorem 2", "common tokens fall: z_ml of a common l drops"),
    "SnS:order": Tag("scan", "growth of distinct tokens is ordered by P(l|n)"),
    "SnS:theorem-3": Tag("theorem 3", "r(t) = c_l^2/c_l'^2 - 1 = r(0) chi_l(t), chi_l = e^{2(z_l(t)-z_l(0))}"),
    "SnS:sandwich": Tag("theorem 3", "e^{2 f_l(0)^2 B} <= chi_l <= e^{2 B}; B/K if all classes share one query"),
    "SnS:theorem-4": Tag("theorem 4", "e^{-4 z_ct} = 1 + 4 Gamma/C0, Gamma = eta_Z K M(M-1) h^2/(2 eta_Y)"),
    "SnS:transition": Tag("phase transition", "phase transition at t0 = K ln M / eta_Y"),
    "SnS:sparsity": Tag("figures 4 and 6", "a larger eta_Y/eta_Z gives attention of higher entropy"),
    "SnS:text-windows": Tag("real text", "classes of windows before a query word, by the word after it"),
    "SnS:text-transformer": Tag("figures 7 and 10", "one layer, one head, LayerNorm after attention and after the MLP"),
    "SnS:text-motion": Tag("real text", "total variation of held-out attention between checkpoints 50 steps apart"),
    "SnS:text-stages": Tag("real text", "prior, scan, snap: while time triples, attention goes an eighth of its way"),
    "SnS:text-frequency": Tag(
        "real text", "at equal frequency, z_l ranks types by KL(next | l in the window || next) of held-out windows"
    ),
    "SnS:text-rate": Tag("figure 10", "larger learning rates give sparser attention"),
    "SnS:text-freezing": Tag("figure 7", "the full transformer freezes under a decaying rate only"),
    "SnS:snap": Tag("after the transition", "attention has gone three quarters of the way that it goes in ten times the time"),
    "SnS:fixed": Tag("snap", "the combination of distinct tokens stays almost fixed after the transition"),
    "SnS:several": Tag("snap", "attention ends on several distinct tokens, not on one winner"),
}
