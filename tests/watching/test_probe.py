"""Probes from text, ids and batches; what is refused, and why."""

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from stagescope.core.errors import InputError
from stagescope.watching.probe import Probe, embedding_of, make_probe, vocabulary_of
from tests.watching.models import VOCABULARY, Scripted, made, tokens

WORDS = [f"w{i}" for i in range(VOCABULARY)]


@pytest.fixture(scope="module")
def model():
    return made()


@pytest.fixture(scope="module")
def tokenizer():
    found = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="w0"))
    found.pre_tokenizer = Whitespace()
    return found


def text(count: int) -> str:
    return " ".join(WORDS[i % VOCABULARY] for i in range(count))


def test_text_with_a_tokenizer(model, tokenizer, tmp_path):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for coder in (tokenizer, tmp_path / "tokenizer.json", str(tmp_path / "tokenizer.json")):
        probe = make_probe(text(150), model, coder)
        assert probe.ids.tolist() == (np.arange(128) % VOCABULARY).reshape(2, 64).tolist()
        assert probe.words(3) == "w3"
    assert probe.types(2) == [0, 1]
    assert probe.period == 32


def test_text_with_a_function_a_list_of_characters_and_several_texts(model, tokenizer):
    probe = make_probe(text(20), model, lambda given: {"input_ids": [WORDS.index(word) for word in given.split()]})
    assert probe.ids.tolist() == [list(range(20))]
    assert probe.words(3) == "3"
    letters = [chr(97 + i) for i in range(26)]
    probe = make_probe("abcdefghijkl", model, letters)
    assert probe.ids.tolist() == [list(range(12))]
    assert probe.words(2) == "c"
    assert make_probe([text(30), text(22)], model, tokenizer).ids.shape == (2, 22)


def test_ids_in_every_form(model):
    rows = tokens(3, 20)
    for given in (rows, rows.numpy(), rows.tolist(), rows.to(torch.int32), list(rows), (rows,), [rows.numpy()]):
        assert torch.equal(make_probe(given, model).ids, rows)
    assert make_probe(tokens(9, 80), model).ids.shape == (6, 64)
    assert make_probe(tokens(1, 21)[0], model).ids.shape == (1, 20)


def test_a_file_of_tokens_that_is_mapped_into_memory(model, tmp_path, recwarn):
    np.tile(np.arange(VOCABULARY, dtype=np.uint16), 1000).tofile(tmp_path / "train.bin")
    data = np.memmap(tmp_path / "train.bin", dtype=np.uint16, mode="r")
    probe = make_probe(data, model)
    assert probe.ids.shape == (6, 64)
    assert probe.ids[0, :3].tolist() == [0, 1, 2]
    assert not recwarn.list


def test_batches_of_a_dataloader(model):
    rows = tokens(4, 21)
    inputs, targets = rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    for given in (next(iter(DataLoader(TensorDataset(inputs, targets), batch_size=4))), (inputs, targets)):
        probe = make_probe(given, model)
        assert torch.equal(probe.ids, inputs)
        assert torch.equal(probe.targets, targets)
    assert make_probe({"input_ids": inputs, "labels": inputs}, model).targets is None


def test_the_part_of_a_padded_batch_without_padding(model):
    ids = tokens(4, 24)
    mask = torch.ones_like(ids)
    mask[0, 5:], mask[1, 20:], mask[2, 18:] = 0, 0, 0
    probe = make_probe({"input_ids": ids, "attention_mask": mask}, model)
    assert torch.equal(probe.ids, ids[1:, :18])
    left = {"input_ids": ids, "attention_mask": mask.flip(1)[:3]}
    with pytest.raises(InputError, match="begins with padding"):
        make_probe(left | {"input_ids": ids[:3]}, model)


def test_the_repeated_probe_says_each_half_twice(model):
    probe = make_probe(tokens(2, 24), model)
    first, second = probe.repeated[:, :12], probe.repeated[:, 12:]
    assert torch.equal(first, second)
    assert probe.repeated.shape == (2, 24)
    assert all(len(set(row.tolist())) == 12 for row in first)
    assert not torch.equal(first[0], first[1])
    assert torch.equal(make_probe(tokens(3, 24, seed=5), model).repeated, probe.repeated)
    small = nn.Sequential(nn.Embedding(4, 8))
    assert make_probe(tokens(2, 24, vocabulary=4), small).repeated.max() < 4


def test_a_digest_tells_probes_apart(model):
    one, same, other = (make_probe(tokens(2, 24, seed=seed), model).sha256 for seed in (1, 1, 2))
    assert one == same != other


def test_the_length_differs_from_the_sizes_that_are_softmaxed_too(model):
    """A table (length, length) is attention only if neither the vocabulary nor the experts are as many."""
    assert make_probe(tokens(2, 41), model).ids.shape == (2, VOCABULARY - 2)
    experts = made()
    experts.config = type("Config", (), {"num_experts": VOCABULARY - 2, "n_positions": 64})()
    assert make_probe(tokens(2, 40), experts).ids.shape == (2, VOCABULARY - 4)


def test_a_long_sequence_is_cut_at_the_context():
    """At that of the config, and at the rows of a table of positions; sequences that were given are not cut by it."""
    short = Scripted()
    short.config.block_size = 16
    assert make_probe(tokens(1, 100)[0], short).ids.shape == (6, 16)
    assert make_probe(tokens(1, 100)[0], made(context=20)).ids.shape == (5, 20)
    with pytest.raises(InputError, match="24 tokens a sequence, the model's context has 16"):
        make_probe(tokens(2, 24), short)


def test_the_token_embedding_is_not_the_table_of_positions(model):
    assert embedding_of(model) == ("wte", model.wte)
    assert model.wpe.num_embeddings > VOCABULARY
    unnamed = nn.ModuleDict({"a": nn.Embedding(99, 4), "b": nn.Embedding(30, 4), "head": nn.Linear(4, 30)})
    assert embedding_of(unnamed)[0] == "b"
    own = nn.ModuleDict({"a": nn.Embedding(9, 4), "b": nn.Embedding(30, 4)})
    own.get_input_embeddings = lambda: own["a"]
    assert embedding_of(own)[0] == "a"
    assert vocabulary_of(own) == 9
    assert embedding_of(nn.Linear(2, 2)) is None
    assert vocabulary_of(nn.Linear(2, 2)) is None


def test_a_model_without_an_embedding_takes_any_ids():
    assert make_probe(tokens(2, 24) + 1000, nn.Linear(2, 2)).repeated.max() <= 1000 + VOCABULARY


REFUSED = {
    "another vocabulary": (tokens(2, 24) + 30, "token id 69, the model knows 0 to 39: use the model's own tokenizer"),
    "negative": (tokens(2, 24) - 20, "token id -"),
    "short": (tokens(2, 7), "7 tokens a sequence; give at least 10"),
    "no numbers": (torch.rand(2, 24), "torch.float32 of shape"),
    "truth values": (tokens(2, 24) > 3, "torch.bool of shape"),
    "three axes": (torch.zeros(2, 3, 4, dtype=torch.long), "expected whole token ids"),
    "ragged": ([[1, 2, 3], [1]], "no array of token ids"),
    "nothing": (None, "no array of token ids"),
    "empty": ([], "the probe is empty"),
    "no ids": ({"text": "a"}, "without 'input_ids'"),
    "pair": ((tokens(2, 24), tokens(2, 23)), "differ in shape"),
    "three tensors": ([tokens(2, 24)] * 3, "a batch of 3 tensors"),
    "text": ("hello", "needs tokenizer="),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(model, name):
    given, why = REFUSED[name]
    with pytest.raises(InputError, match=why):
        make_probe(given, model)


def test_refused_files_and_lists(model, tmp_path):
    with pytest.raises(InputError, match=r"read the file first"):
        make_probe(tmp_path / "text.txt", model)
    (tmp_path / "other.json").write_text("{}")
    for name in ("other.json", "missing.json"):
        with pytest.raises(InputError, match=r"is no tokenizer.json"):
            make_probe("a", model, tmp_path / name)
    with pytest.raises(InputError, match="no 'z'"):
        make_probe("abz", model, ["a", "b"])


def test_a_probe_moves_with_its_targets():
    probe = Probe(tokens(2, 24), tokens(2, 24), str, tokens(2, 24)).to(torch.device("meta"))
    assert {each.device.type for each in (probe.ids, probe.repeated, probe.targets)} == {"meta"}
