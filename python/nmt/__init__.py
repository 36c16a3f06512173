"""Neural machine translation with recurrent units.

    translator = nmt.Translator("model")
    for result in translator.translate_batch(["A man sleeps.", "Two dogs run."]):
        print(result.hypotheses[0])
"""

from . import _nmt
from ._models import AsyncResult
from ._nmt import TrainProgress, TrainResult, Validation, Vocabulary, version
from ._options import one_line
from .errors import (DataError, Error, FailedError, NotFoundError, OutOfMemoryError, StoppedError,
                     UsageError)
from .metrics import BleuScore, Score, bleu, chrf, ter
from .results import ExecutionStats, ScoringResult, TranslationResult
from .scorer import Scorer
from .training import train
from .translator import Translator

__version__ = version()

set_log_level = one_line(_nmt.set_log_level)
for _name in ("encode", "encode_as_pieces", "decode", "piece", "save", "copy"):
    setattr(Vocabulary, _name, one_line(getattr(Vocabulary, _name)))
setattr(Vocabulary, "train", staticmethod(one_line(Vocabulary.train)))

__all__ = [
    "AsyncResult", "BleuScore", "DataError", "Error", "ExecutionStats", "FailedError",
    "NotFoundError", "OutOfMemoryError", "Score", "Scorer", "ScoringResult", "StoppedError",
    "TrainProgress", "TrainResult", "TranslationResult", "Translator", "UsageError", "Validation",
    "Vocabulary", "__version__", "bleu", "chrf", "set_log_level", "ter", "train",
]
