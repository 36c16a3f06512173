import random

import numpy as np
import pytest
import sacrebleu

import nmt

WORDS = "the a Dog dogs man, sleeps. runs Straße (quick) it's 1,000.5 über – \"yes\" ?".split()


@pytest.fixture(scope="module")
def texts():
    rng = random.Random(7)
    system = [" ".join(rng.choices(WORDS, k=rng.randint(1, 20))) for _ in range(80)]
    references = [[" ".join(word if rng.random() < 0.7 else rng.choice(WORDS)
                            for word in line.split()) for line in system] for _ in range(2)]
    return system, references


def without_version(signature):
    return signature.rsplit("|version:", 1)[0]


@pytest.mark.parametrize("options", [
    {}, {"lowercase": True}, {"tokenize": "intl"}, {"tokenize": "none"},
    {"smooth_method": "floor", "smooth_value": 0.2}, {"effective_order": True}])
def test_bleu(texts, options):
    metric = sacrebleu.BLEU(**{**options, "force": True})
    expected = metric.corpus_score(*texts)
    result = nmt.bleu(*texts, **options)
    assert result.score == pytest.approx(expected.score, abs=1e-9)
    assert result.precisions == pytest.approx(expected.precisions, abs=1e-9)
    assert (result.counts, result.totals) == (expected.counts, expected.totals)
    assert (result.sys_len, result.ref_len) == (expected.sys_len, expected.ref_len)
    assert result.bp == pytest.approx(expected.bp)
    assert without_version(result.signature) == without_version(str(metric.get_signature()))


@pytest.mark.parametrize("options", [{}, {"word_order": 2}, {"beta": 3, "lowercase": True},
                                     {"whitespace": True}])
def test_chrf(texts, options):
    metric = sacrebleu.CHRF(**options)
    expected = metric.corpus_score(*texts)
    result = nmt.chrf(*texts, **options)
    assert result.score == pytest.approx(expected.score, abs=1e-9)
    assert result.name == expected.name
    assert without_version(result.signature) == without_version(str(metric.get_signature()))


@pytest.mark.parametrize("options", [{}, {"case_sensitive": True}])
def test_ter(texts, options):
    metric = sacrebleu.TER(**options)
    rng = random.Random(11)
    moved = [" ".join(rng.choices("abcdefghijkl", k=rng.randint(1, 20))) for _ in range(10)]
    system = texts[0][:15] + ["", "a b c"] + moved
    extra = []
    for line in moved:  # the same words in other places
        words, at = line.split(), rng.randrange(10)
        extra.append(" ".join(words[at:] + words[:at] + rng.choices("abc", k=rng.randint(0, 2))))
    references = [stream[:15] + ["a", "c a b"] + extra for stream in texts[1]]
    for number in (1, 2):
        expected = metric.corpus_score(system, references[:number])
        result = nmt.ter(system, references[:number], **options)
        assert result.score == pytest.approx(expected.score, abs=1e-9)
    assert without_version(result.signature) == without_version(str(metric.get_signature()))
    for line, reference in zip(system, references[0]):
        assert nmt.ter([line], [reference], **options).score == pytest.approx(
            metric.sentence_score(line, [reference]).score, abs=1e-9)
    assert nmt.ter(["a"], [""]).score == 100 and nmt.ter([""], [""]).score == 0


def test_one_list_of_references(texts):
    assert nmt.bleu(texts[0], texts[1][0]) == nmt.bleu(texts[0], texts[1][:1])
    assert str(nmt.bleu(["a"] * 4, ["a"] * 4, effective_order=True)).endswith(" = 100.00")


def test_errors():
    with pytest.raises(nmt.DataError, match="1 hypothesis and 2"):
        nmt.bleu(["a"], [["a", "b"]])
    with pytest.raises(nmt.UsageError, match="tokenize='zh'; expected one of: 13a"):
        nmt.bleu(["a"], ["a"], tokenize="zh")
    for wrong in ("a", None, 5, {"a": 1}, {"a"}):
        for metric in (nmt.bleu, nmt.chrf, nmt.ter):
            with pytest.raises(TypeError, match="^references: .*; expected a list of str, or of"):
                metric(["a"], wrong)
            with pytest.raises(TypeError, match="^hypotheses: .*; expected a list of str"):
                metric(wrong, ["a"])
    for metric, name, values in ((nmt.bleu, "lowercase", ("yes", 2)),
                                 (nmt.bleu, "tokenize", (None, ["13a"])),
                                 (nmt.bleu, "smooth_value", ("1", True, -1, float("nan"))),
                                 (nmt.chrf, "char_order", ("6", True, 0, 2.0, 2**40)),
                                 (nmt.chrf, "beta", (True, 2.0, -1)),
                                 (nmt.ter, "case_sensitive", ("no",))):
        for value in values:
            with pytest.raises(nmt.UsageError, match=f"^{name}=.*; expected "):
                metric(["a"], ["a"], **{name: value})
    for method in ("exp", "none"):
        with pytest.raises(nmt.UsageError, match="^smooth_value=0.5; only smooth_method 'floor' "
                                                 f"and 'add-k' take one, not '{method}'$"):
            nmt.bleu(["a"], ["a"], smooth_method=method, smooth_value=0.5)


def test_values_of_numpy(texts):
    system, references = map(np.array, texts)
    assert nmt.bleu(system, references, lowercase=np.True_) == nmt.bleu(*texts, lowercase=True)
    assert nmt.chrf(system, references[0], beta=np.int64(3), word_order=np.int8(1)) == nmt.chrf(
        texts[0], texts[1][0], beta=3, word_order=1)


@pytest.mark.parametrize("beta", [46340, 65536, 2**31 - 1])
def test_chrf_of_a_large_beta_is_recall(texts, beta):
    expected = sacrebleu.CHRF(beta=beta).corpus_score(*texts).score
    assert nmt.chrf(*texts, beta=beta).score == pytest.approx(expected, abs=1e-6)
