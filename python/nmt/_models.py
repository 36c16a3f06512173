"""What translators and scorers share: loading, and calls in the background."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as WaitTimeout
from typing import Any, Generic, TypeVar, Union

from . import _nmt
from ._options import (check_text, chosen, integer, invalid, items_of, number, path_of, paths_of,
                       settings_of)
from .errors import NotFoundError, StoppedError, UsageError

Path = Union[str, "os.PathLike[str]"]
Made = TypeVar("Made")
Result = TypeVar("Result")

COMPUTE_TYPES = {"default": "auto", "auto": "auto", "float32": "float32", "bfloat16": "bfloat16",
                 "int8": "int8", "tf32": "tf32"}


#: What waits for a thread of calls; None ends it.
Calls = queue.SimpleQueue[Union["tuple[Future[Any], Callable[[_nmt.Stop], Any], _nmt.Stop]", None]]

BACKGROUNDS: weakref.WeakSet[Background] = weakref.WeakSet()


def run_calls(calls: Calls) -> None:
    while (item := calls.get()) is not None:
        call, compute, stop = item
        if call.set_running_or_notify_cancel():
            try:
                call.set_result(compute(stop))
            except BaseException as error:
                call.set_exception(error)
        del item, call, compute, stop  # which the results of the next call need not outlive


def forget_threads() -> None:
    for background in list(BACKGROUNDS):
        background.forget_thread()


os.register_at_fork(after_in_child=forget_threads)


class AsyncResult(Generic[Result]):
    """One result of a call with asynchronous=True."""

    def __init__(self, call: Future[list[Result]], index: int, stop: _nmt.Stop) -> None:
        self._call, self._index, self._stop = call, index, stop

    def done(self) -> bool:
        """Whether result() returns at once."""
        return self._call.done()

    def result(self, timeout: float | None = None) -> Result:
        """Waits for the result. Raises what the call raised, or TimeoutError. Ctrl-C stops the
        call after the current batch."""
        if timeout is not None:
            timeout = min(number("timeout", timeout), threading.TIMEOUT_MAX)
        try:
            return self._call.result(timeout)[self._index]
        except WaitTimeout:
            if self._call.done():
                raise
            raise TimeoutError from None  # another class before Python 3.11
        except CancelledError:
            raise StoppedError("stopped by the caller") from None
        except KeyboardInterrupt:
            self._stop.set()
            raise

    def cancel(self) -> None:
        """Stops the whole call after the current batch. Unless it has ended by then, its results
        raise StoppedError."""
        self._stop.set()
        self._call.cancel()


def load(model: Path | Sequence[Path], settings: dict[str, str]) -> _nmt.Translator:
    """Loads a model or an ensemble."""
    paths = paths_of("model", model)
    try:
        return _nmt.Translator(paths, settings)
    except UsageError as error:
        if not str(error).startswith("model: ") or all(map(os.path.exists, paths)):
            raise
        raise NotFoundError(str(error)) from None


class Once(Generic[Made]):
    """A value that is made when it is first needed, by one thread while others wait for it."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make, self._lock = make, threading.RLock()
        self._made: Made | None = None

    def value(self) -> Made:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made


class Models(Generic[Made]):
    """Loaded models and their variants: what calls with other options have made of them. Threads
    may share it."""

    def __init__(self, native: _nmt.Translator) -> None:
        self.native = native
        #: Of its own, so that results do not keep the models.
        self.target_vocabulary = Once(lambda: native.target_vocabulary().copy())
        self._lock = threading.RLock()
        self._variants: dict[Any, Once[Made]] = {}

    def variant(self, settings: dict[str, str], attention: bool,
                make: Callable[[], Made]) -> Made:
        """The variant with these options. The 16 used last are kept."""
        key = (tuple(sorted(settings.items())), attention)
        with self._lock:
            variant = self._variants.pop(key) if key in self._variants else Once(make)
            self._variants[key] = variant
            if len(self._variants) > 16:
                del self._variants[next(iter(self._variants))]
        return variant.value()


def opened(models: Models[Made] | None) -> Models[Made]:
    if models is None:
        raise UsageError("the models are closed; load them again")
    return models


def loading_settings(device: str, device_index: int | None, compute_type: str, inter_threads: int,
                     intra_threads: int, options: dict[str, Any]) -> dict[str, str]:
    """The options of the programs for the parameters of a constructor."""
    if not isinstance(device, str):
        raise invalid("device", device, "'cpu', 'cuda', 'cuda:N' or 'auto'")
    if device_index is not None:
        device_index = integer("device_index", device_index, 0)
        if device != "cuda":
            raise UsageError(f"device_index: {device_index} with device '{device}'; "
                             "only 'cuda' has an index")
        device = f"cuda:{device_index}"
    settings = settings_of({"device": device, **options})
    # Calls with other parameters read them again, perhaps in another directory.
    if settings.get("glossary"):
        settings["glossary"] = path_of("glossary", os.path.abspath(settings["glossary"]))
    if (words := settings.get("shortlist", "off").split()) not in ([], ["off"]):
        path, *numbers = words
        path = path_of("shortlist", os.path.abspath(path))
        # Separated by NUL, since the current directory may contain spaces.
        settings["shortlist"] = "\0".join([path, *numbers])
    inter_threads = integer("inter_threads", inter_threads, 0, 0)
    intra_threads = integer("intra_threads", intra_threads, 0, 0)
    named = {"precision": ("compute_type", chosen("compute_type", compute_type, COMPUTE_TYPES),
                           "auto"),
             "workers": ("inter_threads", str(inter_threads), "0"),
             "cpu-threads": ("intra_threads", str(intra_threads), "0")}
    for option, (name, value, default) in named.items():
        if value == default:
            continue
        if settings.setdefault(option, value) != value:
            raise UsageError(f"{option.replace('-', '_')}: '{settings[option]}' with {name}: "
                             f"'{value}', which is the same option; give one of them")
    return settings


def replaced(settings: dict[str, str], changes: dict[str, str]) -> dict[str, str]:
    """The options of a call: those of the constructor with its changes. Of `normalize` and the
    length penalty, which exclude each other, that of the call replaces that of the constructor."""
    result = {**settings, **changes}
    for name, other in (("normalize", "length-penalty"), ("length-penalty", "normalize")):
        if float(changes.get(name, 0)) > 0 and other not in changes:
            result.pop(other, None)
    return result


class Background:
    """Runs calls one after another in a thread of its own. It is a daemon thread, so that the end
    of the program stops its calls instead of waiting for all of them. A signal handler may call any
    method while the thread that it interrupts is in one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.RLock()
        self._calls: Calls | None = None
        BACKGROUNDS.add(self)

    def forget_thread(self) -> None:
        """In the child of a fork, which has no other threads than its own."""
        self._lock = threading.RLock()
        self._calls = None

    def _new_thread(self) -> Calls:
        calls: Calls = queue.SimpleQueue()
        try:
            threading.Thread(target=run_calls, args=(calls,), name=self._name, daemon=True).start()
        except BaseException:
            calls.put(None)  # the exception may be that of a signal handler, and the thread run
            raise
        weakref.finalize(self, calls.put, None).atexit = False
        return calls

    def _start(self, compute: Callable[[_nmt.Stop], list[Result]]) -> tuple[
            Future[list[Result]], _nmt.Stop]:
        call: Future[list[Result]] = Future()
        stop = _nmt.Stop()
        item = call, compute, stop
        with self._lock:
            if self._calls is not None:
                self._calls.put(item)
            else:
                calls = self._new_thread()
                calls.put(item)
                # That of a call of a signal handler, which has interrupted the lines above.
                other, self._calls = self._calls, calls
                if other is not None:
                    other.put(None)
        return call, stop

    def close(self) -> None:
        """Ends the thread after the calls so far."""
        with self._lock:
            calls, self._calls = self._calls, None
            if calls is not None:
                calls.put(None)

    def submit(self, compute: Callable[[_nmt.Stop], list[Result]],
               count: int) -> list[AsyncResult[Result]]:
        call, stop = self._start(compute)
        return [AsyncResult(call, index, stop) for index in range(count)]

    async def run(self, compute: Callable[[_nmt.Stop], list[Result]]) -> list[Result]:
        """Awaits a call; cancellation of the task stops it after the current batch."""
        call, stop = self._start(compute)
        try:
            return await asyncio.wrap_future(call)
        except (asyncio.CancelledError, CancelledError):
            stop.set()
            raise


def as_lines(name: str, lines: Any, first: int = 1) -> list[str]:
    """A list of texts. A single text is refused, since its characters would be the lines. `first`
    is the number that messages give lines[0]."""
    texts: list[str] = list(items_of(name, lines))
    for number, line in enumerate(texts, first):
        if not isinstance(line, str):
            raise TypeError(f"{name}: line {number} contains {type(line).__name__}; expected str: "
                            "raw text, not tokens")
        check_text(f"{name}: line {number}", line)
    return texts


def call_settings(call: str, max_batch_size: int | None, batch_type: str | None,
                  alignment: str | None, **penalties: float | None) -> dict[str, str]:
    """The options for the parameters that translating and scoring share."""
    if batch_type not in (None, "examples"):
        raise invalid(f"{call}: batch_type", batch_type, "'examples'")
    return settings_of({
        "mini_batch": integer(f"{call}: max_batch_size", max_batch_size, 0, 0, 100_000) or None,
        "alignment": alignment,
        **{name: None if value is None else number(f"{call}: {name}", value)
           for name, value in penalties.items()}})
