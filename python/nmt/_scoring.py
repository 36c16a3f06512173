"""score_batch of translators and scorers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Union, overload

from . import _nmt
from ._models import (AsyncResult, Background, Models, as_lines, call_settings, opened,
                      replaced)
from ._options import flag, items_of, refuse
from .errors import DataError
from .parameters import ScoringParameters
from .results import ScoringResult

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Targets of one source.
Candidates = Union["list[str]", "tuple[str, ...]"]
#: One target for each source, or a list of targets for each source.
Targets = Union[Iterable[str], Iterable[Candidates]]

#: Options of loaded models, which scorers share with translators.
LOADING = ("max-length", "no-spm-encode", "device", "workers", "cpu-threads", "precision",
           "weights", "ensemble", "recurrences", "cuda-graphs")
#: Parameters of CTranslate2 that nmt does not have, with the values that have no effect.
UNSUPPORTED = {"max_input_length": None, "offset": 0}


class Scoring:
    """Scores with the models of a translator. settings: options of nmt-score."""

    def __init__(self, loaded: _nmt.Translator, settings: dict[str, str],
                 background: Background) -> None:
        self._open: Models[_nmt.Scorer] | None = Models(loaded)
        self._settings, self._background = settings, background

    def close(self) -> None:
        self._open = None
        self._background.close()

    def prepare(self, source: Iterable[str], target: Targets, *, max_batch_size: int | None = None,
                batch_type: str | None = None, return_attention: bool | None = None,
                alignment: str | None = None, length_penalty: float | None = None,
                normalize: float | None = None, coverage_penalty: float | None = None,
                **others: Any) -> tuple[Callable[[_nmt.Stop | None], Any], int]:
        """The call, ready to run, and the number of its results."""
        models = opened(self._open)
        refuse("score_batch", others, UNSUPPORTED)
        sources = as_lines("source", source)
        given = list(items_of("target", target, "a list of str, or of lists of str"))
        if len(sources) != len(given):
            raise DataError(f"score_batch: {len(sources)} sources and {len(given)} targets; "
                            "the numbers must be equal")
        one_each = all(isinstance(each, str) for each in given)
        lists = ([[text] for text in as_lines("target", given)] if one_each else
                 [as_lines("target", each) for each in given])
        settings = call_settings("score_batch", max_batch_size, batch_type, alignment,
                                 length_penalty=length_penalty, normalize=normalize,
                                 coverage_penalty=coverage_penalty)
        attention = flag("score_batch: return_attention", return_attention)
        scorer = models.variant(settings, attention, partial(
            _nmt.Scorer, models.native, replaced(self._settings, settings), attention))
        in_pieces = self._settings.get("no-spm-encode", "").lower() in ("true", "yes", "on")
        vocabulary = None if in_pieces else models.target_vocabulary.value()

        def compute(stop: _nmt.Stop | None) -> Any:
            results = [[ScoringResult(score, vocabulary, text)
                        for score, text in zip(scores, texts)]
                       for scores, texts in zip(scorer.score(sources, lists, stop), lists)]
            return [result[0] for result in results] if one_each else results

        return compute, len(sources)

    def call(self, source: Iterable[str], target: Targets, asynchronous: bool,
             parameters: dict[str, Any]) -> Any:
        compute, count = self.prepare(source, target, **parameters)
        if flag("asynchronous", asynchronous):
            return self._background.submit(compute, count)
        return compute(None)

    async def call_async(self, source: Iterable[str], target: Targets,
                         parameters: dict[str, Any]) -> Any:
        return await self._background.run(self.prepare(source, target, **parameters)[0])


class BatchScoring:
    """What translators and scorers share: score_batch."""

    _scoring: Scoring

    @overload
    def score_batch(self, source: Iterable[str], target: Iterable[str], *,
                    asynchronous: Literal[False] = False,
                    **parameters: Unpack[ScoringParameters]) -> list[ScoringResult]: ...

    @overload
    def score_batch(self, source: Iterable[str], target: Iterable[Candidates], *,
                    asynchronous: Literal[False] = False,
                    **parameters: Unpack[ScoringParameters]) -> list[list[ScoringResult]]: ...

    @overload
    def score_batch(self, source: Iterable[str], target: Targets, *, asynchronous: Literal[True],
                    **parameters: Unpack[ScoringParameters]) -> list[AsyncResult[Any]]: ...

    @overload
    def score_batch(self, source: Iterable[str], target: Targets, *, asynchronous: bool,
                    **parameters: Unpack[ScoringParameters]) -> list[Any]: ...

    def score_batch(self, source: Iterable[str], target: Targets, *, asynchronous: bool = False,
                    **parameters: Unpack[ScoringParameters]) -> Any:
        """Scores target[i] given source[i]. A target may be a list of candidates (an n-best list);
        its result is then a list.

        max_batch_size: pairs per batch. return_attention: fill ScoringResult.attention. alignment:
        "word" or "subword". length_penalty, normalize, coverage_penalty: as nmt-score.
        asynchronous: returns a list of AsyncResult at once.
        """
        return self._scoring.call(source, target, asynchronous, dict(parameters))

    async def score_batch_async(self, source: Iterable[str], target: Targets,
                                **parameters: Unpack[ScoringParameters]) -> Any:
        """score_batch for asyncio."""
        return await self._scoring.call_async(source, target, dict(parameters))
