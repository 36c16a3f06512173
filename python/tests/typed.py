"""Calls for a type checker, which test_package.py runs over this file."""
from __future__ import annotations

import pathlib
from collections.abc import Iterator

from typing_extensions import assert_type

import nmt


def lines() -> Iterator[str]:
    yield "A man sleeps."


def calls(asynchronous: bool) -> None:
    with nmt.Translator(pathlib.Path("model"), beam_size=2) as translator:
        assert_type(translator, nmt.Translator)
    assert_type(translator.translate_batch(lines(), beam_size=3), list[nmt.TranslationResult])
    assert_type(translator.translate_batch(("a", "b"), asynchronous=True)[0].result(),
                nmt.TranslationResult)
    assert_type(translator.translate_batch(lines(), asynchronous=asynchronous),
                "list[nmt.TranslationResult] | list[nmt.AsyncResult[nmt.TranslationResult]]")
    assert_type(next(translator.translate_iterable(open("text"), return_scores=True)),
                nmt.TranslationResult)
    scorer = nmt.Scorer(["model1", "model2"])
    assert_type(scorer.score_batch(lines(), lines()), list[nmt.ScoringResult])
    assert_type(scorer.score_batch(lines(), [["a", "b"], ("c",)]), list[list[nmt.ScoringResult]])
    scorer.score_batch(lines(), lines(), asynchronous=asynchronous)
    nmt.Vocabulary(pathlib.Path("model.spm")).save("copy.spm")
    nmt.train(train_sets=["a", "b"], progress=lambda now: now.updates < 3)
