import subprocess
import sys

import pytest

import nmt


def test_text_to_ids_and_back(translator, corpus):
    vocabulary = translator.source_vocabulary
    for line in (corpus / "test.en").read_text().splitlines():
        ids = vocabulary.encode(line)
        assert vocabulary.decode(ids) == line
        assert [vocabulary.piece(each) for each in ids] == vocabulary.encode_as_pieces(line)
        assert all(2 < each < len(vocabulary) for each in ids)
    assert (vocabulary.unk, vocabulary.bos, vocabulary.eos) == (0, 1, 2)


def test_a_vocabulary_outlives_its_translator(model):
    vocabulary = nmt.Translator(model).target_vocabulary
    assert vocabulary.decode(vocabulary.encode("das Haus"))


def test_training_saving_loading(corpus, tmp_path):
    lines = (corpus / "train.de").read_text().splitlines()
    vocabulary = nmt.Vocabulary.train(lines, size=300)
    assert len(vocabulary) == 300
    vocabulary.save(tmp_path / "de.spm")
    again = nmt.Vocabulary(tmp_path / "de.spm")
    assert again.encode(lines[0]) == vocabulary.encode(lines[0])
    for name in ("", "-"):
        with pytest.raises(nmt.UsageError, match=f"save to '{name}'; expected the name of a file"):
            vocabulary.save(name)


def test_errors(tmp_path, translator):
    vocabulary = translator.source_vocabulary
    (tmp_path / "bad.spm").write_bytes(b"no model")
    with pytest.raises(nmt.DataError, match="bad.spm"):
        nmt.Vocabulary(tmp_path / "bad.spm")
    with pytest.raises(nmt.UsageError, match="missing.spm"):
        nmt.Vocabulary(tmp_path / "missing.spm")
    for call, name in ((lambda: vocabulary.encode(5), "encode"),
                       (lambda: vocabulary.decode("a"), "decode"),
                       (lambda: vocabulary.piece("a"), "piece"),
                       (lambda: vocabulary.copy(1), "copy"),
                       (lambda: nmt.Vocabulary.train(5), "train")):
        with pytest.raises(TypeError, match=f"^{name}: arguments of the types .*; expected {name}"
                                            r"\(.*\) -> \S+$"):
            call()
    for number in (400000, 2**40, -1):
        for call in (vocabulary.piece, lambda number: vocabulary.decode([5, number])):
            with pytest.raises(nmt.FailedError, match=f"id {number} is outside 0"):
                call(number)
    with pytest.raises(nmt.UsageError, match="size 2147483648: at most 2147483647 is possible"):
        nmt.Vocabulary.train(["a"], size=2**31)
    with pytest.raises(nmt.UsageError, match=f"^decode={2**70}; expected an integer of .* 64 bits"):
        vocabulary.decode([5, 2**70])
    for call in (nmt.Vocabulary, lambda: nmt.Vocabulary("a", "b"),
                 lambda: nmt.Vocabulary(name="a")):
        with pytest.raises(TypeError, match="^Vocabulary: .* arguments; expected path$"):
            call()
    for call in (nmt.Vocabulary, vocabulary.save, lambda path: nmt.Vocabulary(path=path)):
        for wrong in (5, None):
            with pytest.raises(TypeError, match=f"^path: {type(wrong).__name__}; expected a str or "
                                                "os.PathLike$"):
                call(wrong)
        for wrong, shown in (("a\0b", r"'a\\x00b'"), ("\ud800", r"'\\ud800'")):
            with pytest.raises(nmt.UsageError, match=f"^path={shown}; expected .* without NUL"):
                call(wrong)
    for call in (lambda: vocabulary.encode("a \ud800"),
                 lambda: nmt.Vocabulary.train(["a", "\ud800"])):
        with pytest.raises(nmt.DataError, match="half of a character"):
            call()
    with pytest.raises(TypeError, match="^set_log_level: arguments of the types int; expected "):
        nmt.set_log_level(5)
    with pytest.raises(nmt.UsageError, match="^set_log_level: 'loud x'; expected debug"):
        nmt.set_log_level("loud\nx")
    with pytest.raises(nmt.UsageError, match="cannot be opened"):
        nmt.Vocabulary(b"/nowhere/\xe4.spm")


def test_training_is_quiet():
    script = ("import nmt; nmt.Vocabulary.train([f'word {i} of the text' for i in range(500)],"
              " size=9000)")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True,
                          text=True, check=True)
    assert done.stderr == ""
