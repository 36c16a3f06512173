"""Parameters of calls, for type checkers."""

from __future__ import annotations

from typing import Literal, TypedDict


class StreamParameters(TypedDict, total=False):
    """Parameters of Translator.translate_iterable."""

    batch_type: Literal["examples"] | None
    beam_size: int | None
    num_hypotheses: int | None
    length_penalty: float | None
    normalize: float | None
    coverage_penalty: float | None
    disable_unk: bool | None
    max_decoding_length: int | None
    alignment: Literal["word", "subword"] | None
    return_scores: bool | None
    return_attention: bool | None


class SearchParameters(StreamParameters, total=False):
    """Parameters of Translator.translate_batch."""

    max_batch_size: int | None


class ScoringParameters(TypedDict, total=False):
    """Parameters of score_batch."""

    max_batch_size: int | None
    batch_type: Literal["examples"] | None
    return_attention: bool | None
    alignment: Literal["word", "subword"] | None
    length_penalty: float | None
    normalize: float | None
    coverage_penalty: float | None
