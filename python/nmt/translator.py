"""Translation of raw text."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _nmt
from ._models import (AsyncResult, Background, Models, Path, as_lines, call_settings, load,
                      loading_settings, opened, replaced)
from ._options import flag, integer, items_of, path_of, refuse, settings_of
from ._scoring import LOADING, BatchScoring, Scoring
from .errors import UsageError
from .parameters import SearchParameters, StreamParameters
from .results import ExecutionStats, TranslationResult

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

#: Parameters of CTranslate2 that nmt does not have, with the values that have no effect.
UNSUPPORTED = {
    "target_prefix": None, "patience": 1, "repetition_penalty": 1, "no_repeat_ngram_size": 0,
    "suppress_sequences": None, "end_token": None, "return_end_token": False,
    "prefix_bias_beta": 0, "max_input_length": None, "min_decoding_length": 1, "use_vmap": False,
    "return_logits_vocab": False, "return_alternatives": False,
    "min_alternative_expansion_prob": 0, "sampling_topk": 1, "sampling_topp": 1,
    "sampling_temperature": 1, "replace_unknowns": False, "callback": None,
}
#: The same for translate_file, with parameters of translate_batch that it does not have.
UNSUPPORTED_FOR_FILES = {
    "return_scores": False, "return_attention": False, "asynchronous": False, "target_path": None,
    "read_batch_size": 0, "with_scores": False, "source_tokenize_fn": None,
    "target_tokenize_fn": None, "target_detokenize_fn": None,
}


class Translator(BatchScoring):
    """Translates raw text with a model directory, or with several as an ensemble. Translations are
    those of nmt-translate.

    device: "cpu", "cuda", "cuda:N" or "auto"; device_index: N of "cuda".
    compute_type: "default" (that of the model), "float32", "bfloat16", "int8" or "tf32".
    inter_threads: batches at a time on the CPU; 0: one per thread.
    intra_threads: threads per batch if inter_threads is set, else in total; 0: all processors.
    options: other options of nmt-translate with underscores: beam_size, shortlist, glossary,
    preserve, max_length, ... They are the defaults of all calls. Exceptions are those that name
    text files, n_best (a call has num_hypotheses) and those of the command line (config,
    dump_config, quiet, log_level, ...).

    Several threads may call one object, which computes one call at a time.
    """

    def __init__(self, model: Path | Sequence[Path], device: str = "cpu", *,
                 device_index: int | None = None, compute_type: str = "default",
                 inter_threads: int = 0, intra_threads: int = 0, **options: Any) -> None:
        self._settings = loading_settings(device, device_index, compute_type, inter_threads,
                                          intra_threads, options)
        if self._settings.pop("n-best", "false") != "false":
            raise UsageError("n_best: not an option of Translator; num_hypotheses of a call is the "
                             "number of hypotheses to return")
        self._open: Models[_nmt.Translator] | None = Models(load(model, self._settings))
        self._background = Background("nmt-translate")
        self._scoring = Scoring(self._native, {name: value for name, value in self._settings.items()
                                               if name in LOADING}, self._background)

    @property
    def _native(self) -> _nmt.Translator:
        return opened(self._open).native

    def close(self) -> None:
        """Frees the models as soon as unfinished calls have ended. `with` does so too."""
        self._open = None
        self._scoring.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def context_sentences(self) -> int:
        """Number of preceding lines of the document that the model reads with each line. The lines
        of a call are a document; a blank line ends it."""
        return self._native.context_sentences()

    @property
    def source_vocabulary(self) -> _nmt.Vocabulary:
        """The source vocabulary of the (first) model."""
        return self._native.source_vocabulary()

    @property
    def target_vocabulary(self) -> _nmt.Vocabulary:
        """The target vocabulary of the models."""
        return self._native.target_vocabulary()

    @overload
    def translate_batch(self, source: Iterable[str], *, asynchronous: Literal[False] = False,
                        **parameters: Unpack[SearchParameters]) -> list[TranslationResult]: ...

    @overload
    def translate_batch(self, source: Iterable[str], *, asynchronous: Literal[True],
                        **parameters: Unpack[SearchParameters]) -> list[
                            AsyncResult[TranslationResult]]: ...

    @overload
    def translate_batch(self, source: Iterable[str], *, asynchronous: bool,
                        **parameters: Unpack[SearchParameters]) -> list[TranslationResult] | list[
                            AsyncResult[TranslationResult]]: ...

    def translate_batch(self, source: Iterable[str], *, asynchronous: bool = False,
                        **parameters: Unpack[SearchParameters]) -> list[TranslationResult] | list[
                            AsyncResult[TranslationResult]]:
        """Translates each line; result i belongs to source[i].

        max_batch_size: sentences per batch. beam_size, num_hypotheses (at most beam_size),
        length_penalty, normalize, coverage_penalty: as nmt-translate. disable_unk: False lets
        outputs contain <unk>. max_decoding_length: longest output in tokens; by default
        max_length_factor * source tokens + max_length_offset. return_scores, return_attention: fill
        these members of the results. alignment: "word" or "subword". asynchronous: returns a list
        of AsyncResult at once.

        None leaves the value of the constructor. Ctrl-C stops the call after the current batch.
        """
        compute, count = self._prepare("translate_batch", source, **parameters)
        if flag("asynchronous", asynchronous):
            return self._background.submit(compute, count)
        return compute(None)

    async def translate_batch_async(
            self, source: Iterable[str],
            **parameters: Unpack[SearchParameters]) -> list[TranslationResult]:
        """translate_batch for asyncio."""
        return await self._background.run(
            self._prepare("translate_batch_async", source, **parameters)[0])

    def translate_iterable(self, source: Iterable[str], max_batch_size: int | None = None,
                           **parameters: Unpack[StreamParameters]) -> Iterator[TranslationResult]:
        """Translates a stream of lines of any length, 100 batches at a time. The stream is one
        text: context sentences may be lines of an earlier window. A line may end with its line end,
        as those of an open file do. max_batch_size: None or 0 is that of the constructor, or 64.
        TypeError: a single string."""
        lines = iter(items_of("source", source, "an iterable of str"))
        size = (integer("translate_iterable: max_batch_size", max_batch_size, 0, 0, 100_000)
                or int(self._settings.get("mini-batch", 64)))
        prepared = self._search("translate_iterable", max_batch_size=size, **parameters)
        return self._windows(lines, 100 * size, *prepared)

    def _windows(self, source: Iterator[str], size: int, native: _nmt.Translator, hypotheses: int,
                 scores: bool, attention: bool) -> Iterator[TranslationResult]:
        context = native.context_sentences()
        before: list[str] = []  # translated again, as the context of the window
        first = 1
        while window := as_lines("source", itertools.islice(source, size), first):
            lines = before + [line.removesuffix("\n").removesuffix("\r") for line in window]
            results = native.translate(lines, None, first - len(before))
            yield from (TranslationResult(each[:hypotheses], scores, attention)
                        for each in results[len(before):])
            before = lines[-context:] if context else []
            first += len(window)

    def translate_file(self, source_path: Path, output_path: Path,
                       **parameters: Any) -> ExecutionStats:
        """Translates the lines of a file into another in the output format of nmt-translate, which
        is an n-best list if num_hypotheses is above 1. The output appears whole or not at all.

        Parameters as translate_batch, without return_scores and return_attention.
        """
        refuse("translate_file", {name: parameters.pop(name) for name in UNSUPPORTED_FOR_FILES
                                  if name in parameters}, UNSUPPORTED_FOR_FILES)
        paths = path_of("source_path", source_path), path_of("output_path", output_path)
        native, count, _, _ = self._search("translate_file", **parameters)
        beam = parameters.get("beam_size") or int(self._settings.get("beam-size", 4))
        if count not in (1, beam):
            raise UsageError(f"translate_file: num_hypotheses={count}; expected 1 or the beam size "
                             f"{beam}: n-best lists have all hypotheses of the beam")
        start = time.monotonic()
        lines = native.translate_file(*paths)
        return ExecutionStats(lines, 1000 * (time.monotonic() - start))

    def _prepare(self, call: str, source: Iterable[str], **parameters: Any) -> tuple[
            Callable[[_nmt.Stop | None], list[TranslationResult]], int]:
        lines = as_lines("source", source)
        native, hypotheses, scores, attention = self._search(call, **parameters)

        def compute(stop: _nmt.Stop | None) -> list[TranslationResult]:
            return [TranslationResult(each[:hypotheses], scores, attention)
                    for each in native.translate(lines, stop)]

        return compute, len(lines)

    def _search(self, call: str, *, max_batch_size: int | None = None,
                batch_type: str | None = None, beam_size: int | None = None,
                num_hypotheses: int | None = None, length_penalty: float | None = None,
                normalize: float | None = None,
                coverage_penalty: float | None = None, disable_unk: bool | None = None,
                max_decoding_length: int | None = None, alignment: str | None = None,
                return_scores: bool | None = None, return_attention: bool | None = None,
                **others: Any) -> tuple[_nmt.Translator, int, bool, bool]:
        """The translator with these parameters, and which results are wanted."""
        refuse(call, others, UNSUPPORTED)
        beam = integer(f"{call}: beam_size", beam_size, 1, int(self._settings.get("beam-size", 4)))
        count = integer(f"{call}: num_hypotheses", num_hypotheses, 1, 1)
        if count > beam:
            raise UsageError(f"{call}: num_hypotheses={count}; expected 1 to the beam size {beam}")
        longest = integer(f"{call}: max_decoding_length", max_decoding_length, 0, -1, 100_000)
        scores = flag(f"{call}: return_scores", return_scores)
        attention = flag(f"{call}: return_attention", return_attention)
        changes = call_settings(call, max_batch_size, batch_type, alignment,
                                length_penalty=length_penalty, normalize=normalize,
                                coverage_penalty=coverage_penalty)
        changes.update(settings_of({
            "beam_size": beam_size,
            "allow_unk": None if disable_unk is None else
                         not flag(f"{call}: disable_unk", disable_unk),
            "n_best": True if count > 1 else None,
            "max_length_factor": None if longest < 0 else 0,
            "max_length_offset": None if longest < 0 else longest}))
        models = opened(self._open)
        native = models.native
        if changes or attention:
            native = models.variant(changes, attention, partial(
                native.with_settings, replaced(self._settings, changes), attention))
        return native, count, scores, attention
