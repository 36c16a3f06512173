"""score_batch of translators and scorers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Union

from . import _nmt
from ._models import AsyncResult, Background, as_lines, batch_settings, opened
from ._options import refuse, settings_of
from .errors import DataError
from .results import ScoringResult

#: Targets of one source.
Candidates = Union["list[str]", "tuple[str, ...]"]
#: One target for each source, or a list of targets for each source.
Targets = Union[Iterable[str], Iterable[Candidates]]

#: Options of loaded models, which scorers share with translators.
LOADING = ("max-length", "no-spm-encode", "device", "workers", "cpu-threads", "precision",
           "weights", "ensemble")
#: Parameters of CTranslate2 that nmt does not have, with the values that have no effect.
UNSUPPORTED = {"max_input_length": None, "offset": 0}


class Scoring:
    """Scores with the models of a translator. settings: options of nmt-score."""

    def __init__(self, loaded: _nmt.Translator, settings: dict[str, str],
                 background: Background) -> None:
        self._open: _nmt.Translator | None = loaded
        self._settings, self._background = settings, background
        self._scorers: dict[Any, _nmt.Scorer] = {}

    @property
    def _loaded(self) -> _nmt.Translator:
        return opened(self._open)

    def close(self) -> None:
        self._open = None
        self._scorers.clear()
        self._background.close()

    def _scorer(self, settings: dict[str, str], attention: bool) -> _nmt.Scorer:
        key = (tuple(sorted(settings.items())), attention)
        if key not in self._scorers:
            if len(self._scorers) >= 16:
                self._scorers.pop(next(iter(self._scorers)))
            self._scorers[key] = _nmt.Scorer(self._loaded, {**self._settings, **settings},
                                             attention)
        return self._scorers[key]

    def prepare(self, source: Iterable[str], target: Targets, *, max_batch_size: int = 0,
                batch_type: str = "examples", return_attention: bool = False,
                alignment: str | None = None, length_penalty: float | None = None,
                normalize: float | None = None, coverage_penalty: float | None = None,
                **others: Any) -> tuple[Callable[[_nmt.Stop | None], Any], int]:
        """The call, ready to run, and the number of its results."""
        loaded = self._loaded
        refuse("score_batch", others, UNSUPPORTED)
        sources = as_lines("source", source)
        given = list(target) if not isinstance(target, (str, bytes)) else as_lines("target", target)
        if len(sources) != len(given):
            raise DataError(f"score_batch: {len(sources)} sources and {len(given)} targets; "
                            "the numbers must be equal")
        one_each = all(isinstance(each, str) for each in given)
        lists: list[list[str]] = [[str(each)] if one_each else as_lines("target", each)
                                  for each in given]
        settings = {**batch_settings("score_batch", max_batch_size, batch_type),
                    **settings_of({"alignment": alignment, "length_penalty": length_penalty,
                                   "normalize": normalize, "coverage_penalty": coverage_penalty})}
        scorer = self._scorer(settings, return_attention)
        in_pieces = self._settings.get("no-spm-encode", "").lower() in ("true", "yes", "on")
        vocabulary = None if in_pieces else loaded.target_vocabulary()

        def compute(stop: _nmt.Stop | None) -> Any:
            results = [[ScoringResult(score, vocabulary, text) for score, text in zip(scores, texts)]
                       for scores, texts in zip(scorer.score(sources, lists, stop), lists)]
            return [result[0] for result in results] if one_each else results

        return compute, len(sources)

    def call(self, source: Iterable[str], target: Targets, asynchronous: bool,
             parameters: dict[str, Any]) -> Any:
        compute, count = self.prepare(source, target, **parameters)
        if asynchronous:
            return self._background.submit(compute, count)
        return compute(None)

    async def call_async(self, source: Iterable[str], target: Targets,
                         parameters: dict[str, Any]) -> Any:
        return await self._background.run(self.prepare(source, target, **parameters)[0])
