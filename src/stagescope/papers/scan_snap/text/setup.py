"""From the options of scan and snap on a text to what `evolve` needs."""

import math
from typing import Any

import numpy as np

from stagescope.core.errors import InputError
from stagescope.corpora.corpus import TextCorpus
from stagescope.corpora.options import text_facts
from stagescope.flow.record import Every
from stagescope.papers.scan_snap.limits import LIMITS
from stagescope.papers.scan_snap.text.loss import PairwiseWindows, TextTransformer, TextTransformerLoss, on_windows
from stagescope.papers.scan_snap.text.process import topic_windows
from stagescope.papers.scan_snap.text.study import TextSnapOptions, check_use
from stagescope.readings.setup import make_descent
from stagescope.readings.study import Setup


def text_setup(options: TextSnapOptions, seed: int) -> Setup:
    check_use(options)
    topical, corpus = options.model == "topics", options.read()
    loss, params, facts = (_topics if topical else _transformer)(options, corpus, seed)
    steps = options.steps or (3000 if topical else 1500)
    rate = options.lr or (0.01 if options.optimizer == "adam" else 1.0 if topical else 5.0)
    half_life = None if options.decay is None else steps * math.log(2) / -math.log(options.decay)
    clip = options.clip if topical else options.clip or 0.5
    mlp = {} if options.rate_mlp == 1 else dict.fromkeys("MmNn", options.rate_mlp)
    rates = {"Y": options.rate_y, "Z": options.rate_z} if topical else mlp
    if topical and not options.rate_y:
        raise InputError("--rate-y 0 leaves Y at zero, and then Z never moves: take a rate above 0")
    return Setup(
        what=loss,
        params=params,
        dynamics=make_descent(options, rates=rates, lr=rate, steps=steps, clip=clip, half_life=half_life),
        record=Every(n=LIMITS.fine if topical and steps <= LIMITS.fine * LIMITS.most_frames else LIMITS.interval),
        facts={**text_facts(corpus), **facts},
    )


def _topics(options: TextSnapOptions, corpus: TextCorpus, seed: int) -> tuple[Any, Any, dict[str, Any]]:
    window = options.window or 32
    process = topic_windows(corpus, options.query, options.nexts, topics=options.topics, window=window, least=options.least)
    model = on_windows(process)
    loss = PairwiseWindows(model=model, process=process, batch=options.batch or 256, seed=seed)
    words = np.array(corpus.words)[list(process.keys)]
    facts = {
        "next_words": list(process.nexts),
        "train_windows": len(process.part("train")),
        "held_out_windows": len(process.part("held-out")),
        "common_words": words[process.common].tolist(),
        "distinct_words": words[process.distinct].tolist(),
    }
    return loss, model.init(), facts


def _transformer(options: TextSnapOptions, corpus: TextCorpus, seed: int) -> tuple[Any, Any, dict[str, Any]]:
    length, hidden = options.window or 35, options.hidden or 2 * options.width
    for part in ("train", "held-out"):
        corpus.windows(length + 1, part)  # a corpus shorter than one window is refused here
    sizes = {name: getattr(options, name) for name in ("width", "places", "layers", "dropout", "student")}
    model = TextTransformer(vocab=corpus.vocab, length=length, hidden=hidden, **sizes)
    reading = {"batch": options.streams or options.batch or 20, "in_order": options.streams is not None}
    loss = TextTransformerLoss(model=model, process=corpus, length=length, seed=seed, **reading)
    loss.minibatch(0)  # more streams than the text has windows are refused here
    return loss, model.init(seed), {}
