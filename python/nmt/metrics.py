"""BLEU, chrF and TER as sacreBLEU computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

from . import _nmt
from ._models import as_lines
from ._options import chosen, flag, integer, items_of, number
from .errors import UsageError

#: One reference for each hypothesis, or several such lists.
References = Union[Sequence[str], Sequence[Sequence[str]]]

TOKENIZERS = {"13a": _nmt.BleuTokenizer.v13a, "intl": _nmt.BleuTokenizer.intl,
              "none": _nmt.BleuTokenizer.none, "multi-bleu": _nmt.BleuTokenizer.multi_bleu}
SMOOTHING = {"exp": _nmt.BleuSmoothing.exp, "floor": _nmt.BleuSmoothing.floor,
             "add-k": _nmt.BleuSmoothing.add_k, "none": _nmt.BleuSmoothing.none}


@dataclass(frozen=True)
class Score:
    """The score of a corpus, in percent."""

    name: str
    score: float
    signature: str  #: sacreBLEU's

    def __str__(self) -> str:
        return f"{self.name}|{self.signature} = {self.score:.2f}"


@dataclass(frozen=True)
class BleuScore(Score):
    """BLEU and its parts, with sacreBLEU's names."""

    precisions: list[float]  #: of 1- to 4-grams, 0 to 100
    bp: float  #: brevity penalty
    sys_len: int  #: words
    ref_len: int  #: words of the references closest in length
    counts: list[int]  #: matches of 1- to 4-grams
    totals: list[int]  #: 1- to 4-grams of the hypotheses


def _streams(references: References) -> list[list[str]]:
    streams = list(items_of("references", references, "a list of str, or of such lists"))
    if all(isinstance(each, str) for each in streams):
        return [as_lines("references", streams)]
    return [as_lines("references", each) for each in streams]


def bleu(hypotheses: Sequence[str], references: References, *, tokenize: str = "13a",
         lowercase: bool = False, smooth_method: str = "exp", smooth_value: float | None = None,
         effective_order: bool = False) -> BleuScore:
    """Corpus BLEU (Papineni et al. 2002) of detokenized text.

    references: one for each hypothesis, or a list of such lists. tokenize: "13a", "intl", "none" or
    "multi-bleu". smooth_method: "exp", "floor", "add-k" or "none"; smooth_value: of "floor" and
    "add-k" only.
    """
    options = _nmt.BleuOptions()
    options.tokenizer = chosen("tokenize", tokenize, TOKENIZERS)
    options.smoothing = chosen("smooth_method", smooth_method, SMOOTHING)
    options.lowercase = flag("lowercase", lowercase)
    options.effective_order = flag("effective_order", effective_order)
    if smooth_value is not None:
        options.smoothing_value = number("smooth_value", smooth_value)
        if smooth_method not in ("floor", "add-k"):
            raise UsageError(f"smooth_value={options.smoothing_value:g}; only smooth_method "
                             f"'floor' and 'add-k' take one, not {smooth_method!r}")
    streams = _streams(references)
    result = _nmt.bleu(as_lines("hypotheses", hypotheses), streams, options)
    return BleuScore("BLEU", result.score, options.signature(len(streams)), list(result.precisions),
                     result.brevity_penalty, result.hypothesis_length, result.reference_length,
                     list(result.correct), list(result.total))


def chrf(hypotheses: Sequence[str], references: References, *, char_order: int = 6,
         word_order: int = 0, beta: int = 2, lowercase: bool = False,
         whitespace: bool = False) -> Score:
    """Corpus chrF (Popovic 2015). word_order=2: chrF++. references: as bleu()."""
    options = _nmt.ChrfOptions()
    options.character_order = integer("char_order", char_order, 1)
    options.word_order = word_order = integer("word_order", word_order, 0)
    options.beta = beta = integer("beta", beta, 0)
    options.lowercase = flag("lowercase", lowercase)
    options.whitespace = flag("whitespace", whitespace)
    streams = _streams(references)
    score = _nmt.chrf(as_lines("hypotheses", hypotheses), streams, options)
    return Score(f"chrF{beta}" + "+" * word_order, score, options.signature(len(streams)))


def ter(hypotheses: Sequence[str], references: References, *,
        case_sensitive: bool = False) -> Score:
    """Corpus TER (Snover et al. 2006); lower is better. references: as bleu()."""
    options = _nmt.TerOptions()
    options.case_sensitive = flag("case_sensitive", case_sensitive)
    streams = _streams(references)
    score = _nmt.ter(as_lines("hypotheses", hypotheses), streams, options)
    return Score("TER", score, options.signature(len(streams)))
