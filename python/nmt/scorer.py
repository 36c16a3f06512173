"""Scoring of given translations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from ._models import AsyncResult, Background, Path, load, loading_settings
from ._scoring import LOADING, Candidates, Scoring, Targets
from .parameters import ScoringParameters
from .results import ScoringResult

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class Scorer:
    """Scores targets given their sources by forced decoding, as nmt-score does.

    model, device, device_index, compute_type, inter_threads, intra_threads: as Translator.
    options: any other option of nmt-score that names no text file, with underscores.
    """

    def __init__(self, model: Path | Sequence[Path], device: str = "cpu", *,
                 device_index: int | None = None, compute_type: str = "default",
                 inter_threads: int = 0, intra_threads: int = 0, **options: Any) -> None:
        settings = loading_settings(device, device_index, compute_type, inter_threads,
                                    intra_threads, options)
        loaded = load(model, {"shortlist": "off", **{name: value for name, value in settings.items()
                                                     if name in LOADING}})
        self._scoring = Scoring(loaded, settings, Background("nmt-score"))
        self._scoring.prepare([], [])  # reports invalid options

    def close(self) -> None:
        """Frees the models as soon as unfinished calls have ended. `with` does so too."""
        self._scoring.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

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
