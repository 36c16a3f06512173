"""Training of models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _nmt
from ._options import path_of, paths_of, settings_of

FILES = ("train_sets", "valid_sets", "vocabs")


def train(*, progress: Callable[[_nmt.TrainProgress], bool | None] | None = None,
          validation: Callable[[_nmt.Validation], bool | None] | None = None,
          **options: Any) -> _nmt.TrainResult:
    """Trains a model, or resumes the training in the model directory, as nmt-train does.

    options: those of nmt-train with underscores: train_sets=["train.en", "train.de"],
    model="model", unit="gru", after="10e", ..., except those of the command line (config,
    dump_config, quiet, log_level, ...). None leaves the default.

    progress is called every disp_freq and validation every valid_freq. A callback that returns
    False stops the training: it saves a checkpoint, and the next call with the same options resumes
    from it. Ctrl-C saves in the same way and raises KeyboardInterrupt.
    """
    for name, callback in (("progress", progress), ("validation", validation)):
        if callback is not None and not callable(callback):
            raise TypeError(f"{name}: {type(callback).__name__}; expected a function")
    given = {name: options.pop(name, None) for name in (*FILES, "model")}
    files = {name: [] if given[name] is None else paths_of(name, given[name]) for name in FILES}
    model = "model" if given["model"] is None else path_of("model", given["model"])
    return _nmt.train(settings_of(options), model=model, progress=progress, validation=validation,
                      **files)
