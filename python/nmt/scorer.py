"""Scoring of given translations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._models import Background, Path, load, loading_settings
from ._scoring import LOADING, BatchScoring, Scoring

if TYPE_CHECKING:
    from typing_extensions import Self


class Scorer(BatchScoring):
    """Scores targets given their sources by forced decoding, as nmt-score does.

    model, device, device_index, compute_type, inter_threads, intra_threads: as Translator.
    options: other options of nmt-score with underscores. Exceptions are those of files and of the
    output (n_best, summary, ...) and those of the command line (config, quiet, log_level, ...).
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
