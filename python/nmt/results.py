"""Results of translating and scoring."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _nmt


class TranslationResult:
    """The hypotheses of a line, best first. Item i of each list belongs to hypotheses[i]."""

    __slots__ = ("hypotheses", "_native", "_scores", "_attention")

    def __init__(self, native: list[_nmt.Hypothesis], scores: bool, attention: bool) -> None:
        self._native, self._scores, self._attention = native, scores, attention
        #: Texts.
        self.hypotheses: list[str] = [each.text for each in native]

    @property
    def scores(self) -> NDArray[np.float64]:
        """Log probabilities under the length penalty; empty without return_scores."""
        return np.array([each.score for each in self._native] if self._scores else [], np.float64)

    @property
    def log_probs(self) -> NDArray[np.float64]:
        """Log probabilities, </s> included; empty without return_scores."""
        return np.array([each.log_prob for each in self._native] if self._scores else [],
                        np.float64)

    @property
    def attention(self) -> list[NDArray[np.float32]]:
        """Weights [target subwords + 1, source subwords + 1], where the last are those of </s>;
        empty without return_attention. Columns of context sentences, each with its </s>, come
        before those of the line."""
        return [each.attention for each in self._native] if self._attention else []

    @property
    def tokens(self) -> list[list[str]]:
        """Subwords, without </s>."""
        return [each.tokens for each in self._native]

    @property
    def alignments(self) -> list[list[tuple[int, int]]]:
        """Pairs of source and target positions; empty lists without alignment."""
        return [each.alignment for each in self._native]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TranslationResult):
            return NotImplemented
        return (self.hypotheses == other.hypotheses and self.tokens == other.tokens
                and self.alignments == other.alignments
                and np.array_equal(self.scores, other.scores)
                and np.array_equal(self.log_probs, other.log_probs)
                and len(self.attention) == len(other.attention)
                and all(map(np.array_equal, self.attention, other.attention)))

    __hash__ = None  # type: ignore[assignment]  # hypotheses is a list

    def __repr__(self) -> str:
        return f"TranslationResult(hypotheses={self.hypotheses!r})"


class ScoringResult:
    """The score of a target given its source."""

    __slots__ = ("_native", "_pieces", "_target")

    def __init__(self, native: _nmt.PairScore, vocabulary: _nmt.Vocabulary | None,
                 target: str) -> None:
        self._native, self._pieces, self._target = native, vocabulary, target

    @property
    def log_prob(self) -> float:
        """Log probability of the target, </s> included."""
        return self._native.log_prob

    @property
    def score(self) -> float:
        """log_prob under the length and coverage penalties."""
        return self._native.score

    @property
    def log_probs(self) -> NDArray[np.float32]:
        """Of each token."""
        return self._native.token_log_probs

    @property
    def tokens(self) -> list[str]:
        """Subwords of the target and </s>; cropped as the target was."""
        count = len(self._native.token_log_probs)
        if self._pieces:
            pieces = self._pieces.encode_as_pieces(self._target)
        else:  # pieces already, which ASCII white space divides
            pieces = [piece.decode() for piece in self._target.encode().split()]
        return [*pieces[:count - 1], "</s>"] if count else []

    @property
    def attention(self) -> NDArray[np.float32]:
        """As TranslationResult.attention; of shape (0, 0) without return_attention."""
        return self._native.attention

    @property
    def alignment(self) -> list[tuple[int, int]]:
        """Pairs of source and target positions; empty without alignment."""
        return self._native.alignment

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoringResult):
            return NotImplemented
        return (self.score == other.score and self.log_prob == other.log_prob
                and self.tokens == other.tokens and self.alignment == other.alignment
                and np.array_equal(self.log_probs, other.log_probs)
                and np.array_equal(self.attention, other.attention))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the vocabulary."""
        return ScoringResult, (self._native, None, " ".join(self.tokens[:-1]))

    def __repr__(self) -> str:
        return f"ScoringResult(log_prob={self.log_prob!r})"


class ExecutionStats(NamedTuple):
    """Numbers of translate_file."""

    num_examples: int
    total_time_in_ms: float
