import gc
import os
import time

import numpy as np
import pytest

import nmt
from conftest import program


@pytest.fixture(scope="module")
def scorer(model):
    return nmt.Scorer(model)


@pytest.fixture(scope="module")
def pairs(corpus):
    return [(corpus / name).read_text().splitlines() for name in ("test.en", "test.de")]


def test_scores_are_those_of_the_program(scorer, translator, model, corpus, pairs):
    expected = [float(line) for line in program("nmt-score", "-m", model, "--quiet",
                                                corpus / "test.en", corpus / "test.de").split()]
    for results in (scorer.score_batch(*pairs), translator.score_batch(*pairs, max_batch_size=5)):
        np.testing.assert_allclose([each.score for each in results], expected, atol=1e-6)
    for result, target in zip(results, pairs[1]):
        assert len(result.tokens) == len(result.log_probs) and result.tokens[-1] == "</s>"
        assert np.isclose(result.log_probs.sum(dtype=np.float64), result.log_prob, rtol=1e-5)
        assert "".join(result.tokens[:-1]).replace("\u2581", " ").strip() == target


def test_translations_have_their_scores(scorer, translator, lines):
    translated = translator.translate_batch(lines[:20], return_scores=True)
    scored = scorer.score_batch(lines[:20], [each.hypotheses[0] for each in translated])
    for one, other in zip(translated, scored):
        if one.tokens[0] == other.tokens[:-1]:  # the same segmentation
            assert np.isclose(one.log_probs[0], other.log_prob, rtol=1e-5)


def test_a_language_model_is_refused(model, corpus, tmp_path, pairs):
    program("nmt-train", "--task", "language-model", corpus / "train.de", "--vocabs",
            model / "vocab.spm", "--model", tmp_path / "lm", "--after", "2u", "--dim-emb", 8,
            "--dim-rnn", 8, "--quiet")
    translator = nmt.Translator(model, lm=tmp_path / "lm", lm_weight=0.5)
    assert translator.translate_batch(pairs[0][:2])
    with pytest.raises(nmt.UsageError, match="adds the language model .*lm to its scores"):
        translator.score_batch(pairs[0][:2], pairs[1][:2])


def test_n_best_lists(scorer, pairs):
    sources, targets = pairs[0][:4], [pairs[1][:3], [], pairs[1][3:4], pairs[1][:2]]
    lists = scorer.score_batch(sources, targets)
    assert [len(each) for each in lists] == [3, 0, 1, 2]
    flat = scorer.score_batch([sources[0]] * 3, targets[0])
    assert [each.score for each in lists[0]] == [each.score for each in flat]


def test_attention(scorer, translator, pairs):
    plain = scorer.score_batch(pairs[0][:1], pairs[1][:1])[0]
    assert plain.attention.shape == (0, 0)
    result = scorer.score_batch(pairs[0][:1], pairs[1][:1], return_attention=True)[0]
    columns = len(translator.source_vocabulary.encode(pairs[0][0])) + 1
    assert result.attention.shape == (len(result.tokens), columns)
    np.testing.assert_allclose(result.attention.sum(axis=1), 1, atol=1e-5)


def test_asynchronous_calls(scorer, pairs):
    expected = scorer.score_batch(pairs[0][:5], pairs[1][:5])
    for source, target in (pairs[0][:5], pairs[1][:5]), (iter(pairs[0][:5]), iter(pairs[1][:5])):
        results = scorer.score_batch(source, target, asynchronous=True)
        assert [each.result(60).score for each in results] == [each.score for each in expected]


def test_tokens_of_pieces(scorer, translator, model, pairs):
    """With no_spm_encode, lines are in pieces already."""
    split = [" ".join(vocabulary.encode_as_pieces(line)) for vocabulary, line in (
        (translator.source_vocabulary, pairs[0][0]), (translator.target_vocabulary, pairs[1][0]))]
    expected = scorer.score_batch(pairs[0][:1], pairs[1][:1])[0]
    result = nmt.Scorer(model, no_spm_encode=True).score_batch(split[:1], split[1:])[0]
    assert result.tokens == expected.tokens
    np.testing.assert_allclose(result.log_probs, expected.log_probs, atol=1e-6)


def test_errors(scorer, model):
    with pytest.raises(nmt.DataError, match="2 sources and 1 targets"):
        scorer.score_batch(["a", "b"], ["a"])
    with pytest.raises(nmt.UsageError, match="max_input_length"):
        scorer.score_batch(["a"], ["a"], max_input_length=5)
    with pytest.raises(nmt.UsageError, match="beam-size"):
        nmt.Scorer(model, beam_size=4)
    for target, message in (("ab", "target: str; expected a list of str, or of lists of str"),
                            (None, "target: NoneType; expected a list of str, or of lists"),
                            ({"a", "b"}, "target: set; expected a list of str, or of lists"),
                            (["a", None], "target: str; expected a list of str"),
                            ([["a"], {"b", "c"}], "target: set; expected a list of str")):
        with pytest.raises(TypeError, match=message):
            scorer.score_batch(["a", "b"], target)
    with pytest.raises(nmt.DataError, match="target: line 2: .*half of a character"):
        scorer.score_batch(["a", "b"], ["a", "\ud800"])
    for parameters in ({"return_attention": "no"}, {"length_penalty": "x"}, {"offset": [0]}):
        with pytest.raises(nmt.UsageError, match=f"score_batch: {next(iter(parameters))}"):
            scorer.score_batch(["a"], ["a"], **parameters)
    with pytest.raises(nmt.UsageError, match="score_batch: offset is not supported"):
        scorer.score_batch(["a"], ["a"], offset=np.array([0, 1]))


def test_results_do_not_keep_the_models(model, pairs):
    sources, targets = pairs
    with nmt.Scorer(model, intra_threads=3) as own:
        results = own.score_batch(sources, targets)
        threads = len(os.listdir("/proc/self/task"))
    gc.collect()
    end = time.monotonic() + 5  # a joined thread may be there for a moment
    while len(os.listdir("/proc/self/task")) >= threads and time.monotonic() < end:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/task")) < threads
    assert results[0].tokens[-1] == "</s>"


def test_options_of_the_device_are_those_of_loading(model, pairs):
    with pytest.raises(nmt.UsageError, match="cuda-graphs"):  # the program's message, for the CPU
        nmt.Scorer(model, cuda_graphs="on")
    with nmt.Scorer(model, cuda_graphs="off", recurrences="auto") as own:
        assert len(own.score_batch(*pairs)) == len(pairs[0])
