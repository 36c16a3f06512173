import decimal
import itertools
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import nmt
from conftest import TRAINING, program, texts
from nmt import _options


def n_best(output):
    """Text, log probability and score of each line of an n-best list, by sentence."""
    lists = {}
    for line in output.splitlines():
        number, text, features, score = line.split(" ||| ")
        lists.setdefault(int(number), []).append((text, float(features.split()[1]), float(score)))
    return [lists[number] for number in sorted(lists)]


def test_translations_are_those_of_the_program(translator, model, lines):
    expected = program("nmt-translate", "-m", model, "--quiet", stdin="\n".join(lines) + "\n")
    assert texts(translator.translate_batch(lines)) == expected.splitlines()
    assert texts(translator.translate_batch(lines, max_batch_size=3)) == expected.splitlines()
    assert texts(translator.translate_iterable(iter(lines), max_batch_size=1)) == (
        expected.splitlines())
    ends = [line + end for line, end in zip(lines, itertools.cycle(["\n", "\r\n", ""]))]
    assert texts(translator.translate_iterable(ends)) == expected.splitlines()
    for wrong in ("one sentence", b"one sentence", None, 5, {"a": 1}):
        with pytest.raises(TypeError, match="source: .*; expected an iterable of str"):
            translator.translate_iterable(wrong)


def test_streams_are_checked_at_the_call(translator, lines):
    for size in (-1, 1.5, True):
        with pytest.raises(nmt.UsageError, match=f"max_batch_size={size}"):
            translator.translate_iterable(lines, max_batch_size=size)
        with pytest.raises(nmt.UsageError, match=f"max_batch_size={size}"):
            translator.translate_batch(lines, max_batch_size=size)
    with pytest.raises(nmt.UsageError, match="num_hypotheses"):
        translator.translate_iterable(lines, num_hypotheses=5)
    with pytest.raises(TypeError, match="beam_sise"):
        translator.translate_iterable(lines, beam_sise=1)
    expected = texts(translator.translate_batch(lines))
    for size in (0, None):
        assert texts(translator.translate_iterable(lines, max_batch_size=size)) == expected
    assert texts(translator.translate_iterable(lines, max_batch_size=np.int64(1))) == expected


def test_messages_have_the_numbers_of_the_stream(translator):
    lines = ["a"] * 250 + ["one\ntwo"]
    with pytest.raises(nmt.DataError, match="line 251 contains a line feed"):
        list(translator.translate_iterable(lines, max_batch_size=1))
    for line, error, message in ((1, TypeError, "line 251 contains int; expected str"),
                                 ("\ud800", nmt.DataError, "line 251: .*half of a character")):
        with pytest.raises(error, match=message):
            list(translator.translate_iterable([*lines[:-1], line], max_batch_size=1))


def test_context_sentences(corpus, lines, tmp_path, translator):
    nmt.train(train_sets=[corpus / "train.en", corpus / "train.de"], model=tmp_path / "model",
              context_sentences=2, max_length=150, after="30u", **TRAINING)
    reader = nmt.Translator(tmp_path / "model", beam_size=2)
    assert (translator.context_sentences, reader.context_sentences) == (0, 2)
    many = [*lines[:40], "", *lines[:30], *lines[20:60], "", *lines[5:20]]
    assert len(many) > 100  # more than a window of translate_iterable
    expected = program("nmt-translate", "-m", tmp_path / "model", "--quiet", "--beam-size", 2,
                       stdin="\n".join(many) + "\n").split("\n")[:-1]
    assert texts(reader.translate_batch(many)) == expected
    assert texts(reader.translate_iterable(iter(many), max_batch_size=1)) == expected
    alone = [texts(reader.translate_batch([line]))[0] for line in many]
    assert alone != expected
    scores = reader.score_batch(many[:5], expected[:5])
    lists = reader.score_batch(many[:5], [[text, "x"] for text in expected[:5]])
    assert [each[0].log_probs.tolist() for each in lists] == [each.log_probs.tolist()
                                                              for each in scores]


def test_n_best_lists(translator, model, lines):
    expected = n_best(program("nmt-translate", "-m", model, "--quiet", "--beam-size", 3, "--n-best",
                              "--length-penalty", 1, "--coverage-penalty", 0.2,
                              stdin="\n".join(lines[:20]) + "\n"))
    results = translator.translate_batch(lines[:20], beam_size=3, num_hypotheses=3,
                                         length_penalty=1, coverage_penalty=0.2, return_scores=True)
    assert [result.hypotheses for result in results] == [[each[0] for each in one]
                                                         for one in expected]
    for result, one in zip(results, expected):
        np.testing.assert_allclose(result.log_probs, [each[1] for each in one], atol=1e-6)
        np.testing.assert_allclose(result.scores, [each[2] for each in one], atol=1e-6)
    two = translator.translate_batch(lines[:20], beam_size=3, num_hypotheses=2, length_penalty=1,
                                     coverage_penalty=0.2)
    assert [each.hypotheses for each in two] == [each.hypotheses[:2] for each in results]
    assert two[0].scores.size == 0 and two[0].attention == []


@pytest.mark.parametrize("parameters, options", [
    ({"beam_size": 1}, ["--beam-size", 1]),
    ({"normalize": 0.8}, ["--normalize", 0.8]),
    ({"disable_unk": False}, ["--allow-unk"]),
    ({"max_decoding_length": 3}, ["--max-length-factor", 0, "--max-length-offset", 3]),
])
def test_parameters_of_a_call(translator, model, lines, parameters, options):
    expected = program("nmt-translate", "-m", model, "--quiet", *options,
                       stdin="\n".join(lines) + "\n")
    results = translator.translate_batch(lines, **parameters)
    assert texts(results) == expected.splitlines()
    if "max_decoding_length" in parameters:
        assert max(len(result.tokens[0]) for result in results) == 3


@pytest.mark.parametrize("own, of_call", [({"length_penalty": 1}, {"normalize": 0.8}),
                                          ({"normalize": 0.8}, {"length_penalty": 1})])
def test_the_penalty_of_a_call_replaces_that_of_the_constructor(model, lines, own, of_call):
    def scores(own, of_call):
        translator, scorer = nmt.Translator(model, **own), nmt.Scorer(model, **own)
        return ([each.scores[0] for each in translator.translate_batch(
            lines[:3], return_scores=True, **of_call)],
                [each.score for each in scorer.score_batch(lines[:3], lines[:3], **of_call)])

    assert scores(own, of_call) == scores({}, of_call) != scores(own, {})
    with pytest.raises(nmt.UsageError, match="exclude each other"):
        nmt.Translator(model).translate_batch(["a"], **own, **of_call)


def test_options_of_the_constructor(model, lines):
    expected = program("nmt-translate", "-m", model, "--quiet", "--beam-size", 2, "--precision",
                       "int8", stdin="\n".join(lines) + "\n")
    translator = nmt.Translator([model], compute_type="int8", inter_threads=2, intra_threads=1,
                                beam_size=2)
    assert texts(translator.translate_batch(lines)) == expected.splitlines()


def test_two_names_of_an_option(model, lines):
    """compute_type, inter_threads and intra_threads are options of nmt-translate too."""
    expected = texts(nmt.Translator(model, compute_type="int8", intra_threads=1).translate_batch(
        lines, return_scores=True))
    for options in ({"precision": "int8", "cpu_threads": 1, "workers": 1},
                    {"precision": "int8", "compute_type": "int8", "cpu_threads": 1,
                     "intra_threads": 1}):
        translator = nmt.Translator(model, **options)
        assert texts(translator.translate_batch(lines)) == expected
    int8 = nmt.Translator(model, precision="int8").translate_batch(lines[:5], return_scores=True)
    float32 = nmt.Translator(model, precision="float32").translate_batch(lines[:5],
                                                                         return_scores=True)
    assert [each.scores[0] for each in int8] != [each.scores[0] for each in float32]
    for options, name in (({"precision": "nonsense"}, "precision"),
                          ({"precision": "int8", "compute_type": "float32"}, "compute_type"),
                          ({"cpu_threads": 1, "intra_threads": 2}, "intra_threads"),
                          ({"workers": 1, "inter_threads": 2}, "inter_threads")):
        for loader in (nmt.Translator, nmt.Scorer):
            with pytest.raises(nmt.UsageError, match=name):
                loader(model, **options)


def test_other_names_of_options(model, lines):
    expected = nmt.Translator(model, beam_size=8, mini_batch=3).translate_batch(
        lines[:10], num_hypotheses=8)
    translator = nmt.Translator(model, beam=8, batch_size=3)
    assert translator.translate_batch(lines[:10], num_hypotheses=8) == expected
    assert translator.translate_batch(lines[:10], num_hypotheses=8, max_batch_size=2) == expected
    with pytest.raises(nmt.UsageError, match="beam: another name of beam_size"):
        nmt.Translator(model, beam_size=8, beam=8)


def test_attention_and_alignment(translator, lines):
    results = translator.translate_batch(lines, return_attention=True, alignment="subword")
    for line, result in zip(lines, results):
        weights, tokens = result.attention[0], result.tokens[0]
        source = translator.source_vocabulary.encode(line) if line.strip() else []
        if not source:
            assert weights.shape == (0, 0)
            continue
        assert weights.dtype == np.float32
        assert weights.shape == (len(tokens) + 1, len(source) + 1)
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
        strongest = weights[:len(tokens), :len(source)].argmax(axis=1)
        assert sorted((int(s), t) for t, s in enumerate(strongest)) == result.alignments[0]


def test_results_are_pickled_and_compared(translator, lines):
    parameters = dict(num_hypotheses=2, return_scores=True, return_attention=True,
                      alignment="subword")
    results = translator.translate_batch(lines[:3], **parameters)
    copies = pickle.loads(pickle.dumps(results))
    assert copies == results == translator.translate_batch(lines[:3], **parameters)
    for one, other in zip(results, copies):
        assert (one.hypotheses, one.tokens, one.alignments) == (other.hypotheses, other.tokens,
                                                                other.alignments)
        assert one.scores.tolist() == other.scores.tolist()
        assert [each.tolist() for each in one.attention] == [each.tolist()
                                                             for each in other.attention]
    plain = translator.translate_batch(lines[:3], num_hypotheses=2)
    assert plain[0] != results[0] and plain[0] != plain[1] and plain[0] != plain[0].hypotheses
    scores = translator.score_batch(lines[:3], lines[:3], return_attention=True)
    copies = pickle.loads(pickle.dumps(scores))
    assert copies == scores and scores[0] != scores[1]
    assert [each.tokens for each in copies] == [each.tokens for each in scores]
    assert copies[0].log_probs.tolist() == scores[0].log_probs.tolist()


def test_files(translator, model, corpus, tmp_path):
    stats = translator.translate_file(corpus / "test.en", tmp_path / "one", beam_size=2)
    program("nmt-translate", "-m", model, "--quiet", "--beam-size", 2, "-i", corpus / "test.en",
            "-o", tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert stats.num_examples == (corpus / "test.en").read_bytes().count(b"\n")
    assert stats.total_time_in_ms > 0
    nmt.Translator(model, n_best=False, beam_size=2).translate_file(corpus / "test.en",
                                                                    tmp_path / "three")
    assert (tmp_path / "three").read_bytes() == (tmp_path / "two").read_bytes()
    for name in ("n_best", "n-best"):
        with pytest.raises(nmt.UsageError, match="num_hypotheses of a call"):
            nmt.Translator(model, **{name: True})
    unsupported = {"target_path": None, "read_batch_size": 0, "with_scores": False,
                   "source_tokenize_fn": None, "target_tokenize_fn": None,
                   "target_detokenize_fn": None, "return_scores": False, "asynchronous": None}
    translator.translate_file(corpus / "test.en", tmp_path / "four", beam_size=2, **unsupported)
    assert (tmp_path / "four").read_bytes() == (tmp_path / "two").read_bytes()
    for name in unsupported:
        with pytest.raises(nmt.UsageError, match=f"^translate_file: {name} is not supported$"):
            translator.translate_file(corpus / "test.en", tmp_path / "five", **{name: "x"})
    with pytest.raises(TypeError, match="target_pth"):
        translator.translate_file(corpus / "test.en", tmp_path / "five", target_pth=None)


def test_errors(translator, model, tmp_path):
    with pytest.raises(nmt.UsageError, match="no-such-model") as caught:
        nmt.Translator("no-such-model")
    assert caught.value.status == 2 and isinstance(caught.value, (nmt.Error, ValueError))
    for loader in (nmt.Translator, nmt.Scorer):
        with pytest.raises(FileNotFoundError, match="no-such-model") as caught:
            loader([model, "no-such-model"])
        assert isinstance(caught.value, nmt.UsageError) and "\n" not in str(caught.value)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(nmt.Error, match="config.json"):
        nmt.Translator(tmp_path)
    for parameters, name in (({"beam_size": 0}, "beam"), ({"num_hypotheses": 5}, "num_hypotheses"),
                             ({"num_hypotheses": 2.0}, "num_hypotheses"),
                             ({"batch_type": "tokens"}, "batch_type"),
                             ({"repetition_penalty": 1.2}, "repetition_penalty"),
                             ({"target_prefix": [["a"]]}, "target_prefix"),
                             ({"max_decoding_length": -1}, "max_decoding_length=-1")):
        with pytest.raises(nmt.UsageError, match=name):
            translator.translate_batch(["a"], **parameters)
    assert translator.translate_batch(["a"], repetition_penalty=1, sampling_topk=1, patience=None)
    with pytest.raises(TypeError, match="beam_sise"):
        translator.translate_batch(["a"], beam_sise=1)
    with pytest.raises(nmt.DataError, match="line 2 contains a line feed"):
        translator.translate_batch(["one", "two\nlines"])
    for call in (translator.translate_batch, lambda texts: translator.score_batch(texts, texts)):
        with pytest.raises(nmt.DataError, match="source: line 2: .*half of a character"):
            call(["one", "a \ud800 man"])
    with pytest.raises(nmt.UsageError, match="without effect: weights"):
        nmt.Translator(model, weights=1.0)
    with pytest.raises(TypeError, match="expected a list"):
        translator.translate_batch("one text")
    with pytest.raises(TypeError, match="expected str"):
        translator.translate_batch([["to", "kens"]])
    with pytest.raises(nmt.UsageError, match="missing"):
        translator.translate_file(tmp_path / "missing", tmp_path / "output")
    with pytest.raises(nmt.UsageError, match="compute_type.*float64"):
        nmt.Translator(model, compute_type="float64")
    with pytest.raises(nmt.UsageError, match="beam-sise"):
        nmt.Translator(model, beam_sise=4)
    with pytest.raises(nmt.UsageError, match="device_index"):
        nmt.Translator(model, device_index=1)
    for wrong in ("one text", b"text", None, 5, {"a": 1}, {"a"}, np.array("a")):
        with pytest.raises(TypeError, match="^source: .*; expected a list of str$"):
            translator.translate_batch(wrong)


def test_values_of_numpy_and_decimal(model, translator, lines):
    expected = translator.translate_batch(lines[:9], num_hypotheses=2, beam_size=3,
                                          length_penalty=0.5, disable_unk=False)
    assert translator.translate_batch(
        np.array(lines[:9]), num_hypotheses=np.int64(2), beam_size=np.uint8(3),
        length_penalty=np.float32(0.5), disable_unk=np.False_) == expected
    other = nmt.Translator(np.array([model, model]), beam_size=np.array(3), allow_unk=np.True_,
                           length_penalty=decimal.Decimal("0.5"), weights=np.array([1, 1]),
                           inter_threads=np.int32(1), preserve=np.array(["urls"]))
    assert texts(other.translate_batch(iter(lines[:9]))) == texts(expected)
    defaults = dict.fromkeys(nmt.translator.SearchParameters.__annotations__)
    assert translator.translate_batch(lines, **defaults) == translator.translate_batch(lines)


@pytest.mark.parametrize("options, message", [
    ({"model": None}, "model=None; expected a path or a list of paths"),
    ({"model": b"model"}, "model=b'model'; expected a path or a list"),
    ({"model": {"model"}}, "model={'model'}; expected a path or a list"),
    ({"model": ["model", 5]}, "model=5; expected a str or os.PathLike"),
    ({"model": "model\0"}, r"model='model\\x00'; expected a str .* without NUL"),
    ({"device": None}, "device=None; expected 'cpu', 'cuda'"),
    ({"device": ["cpu"]}, r"device=\['cpu'\]; expected 'cpu', 'cuda'"),
    ({"devices": "cuda"}, "devices: another name of device"),
    ({"device": "cuda", "device_index": True}, "device_index=True; expected an integer"),
    ({"compute_type": ["int8"]}, r"compute_type=\['int8'\]; expected one of: default"),
    ({"inter_threads": 2.5}, "inter_threads=2.5; expected an integer of at least 0"),
    ({"intra_threads": "2"}, "intra_threads='2'; expected an integer of at least 0"),
    ({"shortlist": b"lex.tsv"}, "shortlist=b'lex.tsv'; expected text, a path, a number"),
    ({"shortlist": pathlib.Path("a b")}, "shortlist: .*white space"),
    ({"glossary": ["a", "b"]}, r"glossary=\['a', 'b'\]; expected a single value"),
    ({"glossary": "\udcff"}, r"glossary='\\udcff'; expected a str .* surrogates"),
    ({"glossary": {"a": "b"}}, "glossary={'a': 'b'}; expected text"),
    ({"beam_size": [2, 3]}, r"beam_size=\[2, 3\]; expected a single value"),
    ({"beam_size": object()}, "beam_size=<object .*; expected text"),
    ({"weights": []}, "weights: a list cannot be empty"),
    ({"weights": [[1], [2]]}, r"weights=\[1\]; expected text"),
])
def test_invalid_options(model, options, message):
    for loader in (nmt.Translator, nmt.Scorer):
        with pytest.raises(nmt.UsageError, match=f"^{message}"):
            loader(**{"model": model, **options})


@pytest.mark.parametrize("name, values, expected", [
    ("beam_size", ("4", True, 2.0, [2], 0), "an integer of at least 1"),
    ("num_hypotheses", ("2", True, np.array([1, 2])), "an integer of at least 1"),
    ("max_batch_size", ("3", np.array([1, 2])), "an integer of at least 0"),
    ("max_decoding_length", ("3", 2.5, True), "an integer of at least 0"),
    ("length_penalty", ("0.6", True, [0.6], -1, float("nan")), "a number of at least 0"),
    ("normalize", (np.array([0.6]),), "a number of at least 0"),
    ("disable_unk", ("False", 2, []), "True or False"),
    ("return_scores", ("no",), "True or False"),
    ("asynchronous", ("no",), "True or False"),
])
def test_invalid_parameters_of_a_call(translator, name, values, expected):
    for value in values:
        with pytest.raises(nmt.UsageError, match=f"{name}=.*; expected {expected}"):
            translator.translate_batch(["a"], **{name: value})


def test_invalid_paths(translator):
    for paths, name in ((None, "b"), "source_path"), (("a", 5), "output_path"), (
            (b"a", "b"), "source_path"), (("a\0", "b"), "source_path"):
        with pytest.raises(nmt.UsageError, match=f"{name}=.*; expected a str or os.PathLike"):
            translator.translate_file(*paths)


def test_options_with_lists(model, corpus):
    """Those that the Python package knows are those of the programs, except files."""
    lists = set()
    for arguments in (("nmt-translate",), ("nmt-score",), (
            "nmt-train", corpus / "train.en", corpus / "train.de", "--model", corpus / "none")):
        settings = program(*arguments, "--dump-config").splitlines()
        lists |= {line.partition(":")[0] for line in settings if ": [" in line}
    assert lists - {"model", "train-sets", "valid-sets", "vocabs"} == _options.LISTS


def test_calls_do_not_depend_on_the_current_directory(model, corpus, lines, monkeypatch, tmp_path):
    shutil.copytree(model, tmp_path / "copy", symlinks=True)
    before = (tmp_path / "copy" / "config.json").read_bytes()
    monkeypatch.chdir(tmp_path)
    own = nmt.Translator("copy")
    monkeypatch.chdir("/")
    assert own.translate_batch(lines[:2], beam_size=2)
    for parameters in {}, {"beam_size": 2}:
        with pytest.raises(nmt.UsageError, match="config.json is a file of the model"):
            own.translate_file(corpus / "test.en", tmp_path / "copy" / "config.json", **parameters)
    assert (tmp_path / "copy" / "config.json").read_bytes() == before


def test_files_in_a_directory_with_a_space(model, translator, lines, monkeypatch, tmp_path):
    folder = tmp_path / "with a space"
    folder.mkdir()
    pieces = translator.target_vocabulary
    for name in (tmp_path / "list", folder / "list"):
        name.write_text("".join(f"{pieces.piece(each)} NULL 1\n" for each in range(3, 60)))
    (folder / "glossary").write_text("house\tHaus\n")
    outside = nmt.Translator(model, shortlist=[tmp_path / "list", 40])
    expected = texts(outside.translate_batch(lines))
    assert expected != texts(translator.translate_batch(lines))
    monkeypatch.chdir(folder)
    own = nmt.Translator(model, shortlist=["list", 40])
    with_glossary = nmt.Translator(model, glossary="glossary")
    monkeypatch.chdir(tmp_path)
    assert texts(own.translate_batch(lines)) == expected
    assert texts(own.translate_batch(lines, max_batch_size=3)) == expected
    assert with_glossary.translate_batch(lines[:1], max_batch_size=3)


def test_files_in_a_directory_that_is_not_utf8(model, monkeypatch, tmp_path):
    folder = os.fsencode(tmp_path) + b"/\xe4"
    os.mkdir(folder)
    monkeypatch.chdir(os.fsdecode(folder))
    for name in ("glossary", "shortlist"):
        with pytest.raises(nmt.UsageError, match=f"^{name}=.*; expected a str .* surrogates$"):
            nmt.Translator(model, **{name: "file"})
    with pytest.raises(nmt.UsageError, match="^option=.*; expected a str .* surrogates$"):
        nmt.Translator(model, **{"\udce4": 1})


def test_mini_batch_of_the_constructor_is_that_of_streams(model, lines, monkeypatch):
    sizes = []
    own = nmt.Translator(model, mini_batch=2)
    monkeypatch.setattr(nmt.Translator, "_windows",
                        lambda self, source, size, *rest: sizes.append(size) or iter(()))
    list(own.translate_iterable(lines))
    list(own.translate_iterable(lines, max_batch_size=3))
    assert sizes == [200, 300]


def test_invalid_options_of_missing_models_are_named_first():
    for name in ("/nowhere", "beam"):
        with pytest.raises(nmt.UsageError, match="beam-size") as caught:
            nmt.Translator(name, beam_size=0)
        assert not isinstance(caught.value, nmt.NotFoundError)
    for name in ("/nowhere", "mis\nsing"):
        with pytest.raises(nmt.NotFoundError, match="^model: "):
            nmt.Translator(name)


def test_empty_names_of_files_are_none(model, lines):
    own = nmt.Translator(model, glossary="")
    assert own.translate_batch(lines[:1])
    with pytest.raises(nmt.Error, match="cannot be opened"):
        nmt.Translator(model, shortlist=" ")


def test_models_are_freed_with_their_translator(model):
    script = f"""
import gc, nmt, os, time
gc.disable()
before = len(os.listdir("/proc/self/task"))
for make in (nmt.Translator, nmt.Scorer):
    own = make({str(model)!r}, intra_threads=3)
    assert len(os.listdir("/proc/self/task")) > before
    del own
    end = time.monotonic() + 5  # a joined thread may be there for a moment
    while len(os.listdir("/proc/self/task")) > before and time.monotonic() < end:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/task")) == before, make
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
