"""Checks arguments and converts them to the options of the programs."""

from __future__ import annotations

import contextlib
import functools
import math
import operator
import os
import reprlib
from collections.abc import Callable, Iterable, KeysView, Mapping, Set
from typing import Any, ParamSpec, TypeVar

from .errors import DataError, UsageError

Choice = TypeVar("Choice")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

#: Other names that the programs give an option.
OTHER_NAMES = {"batch-size": "mini-batch", "beam": "beam-size", "devices": "device",
               "threads": "cpu-threads"}

#: The largest integer of an option.
LARGEST = 2**31 - 1

#: Options that take a list.
LISTS = frozenset({"dim-vocabs", "lr-decay-start", "optimizer-params", "preserve", "rnmt-schedule",
                   "shortlist", "valid-metrics", "weights"})


def invalid(name: str, value: Any, expected: str) -> UsageError:
    """The error for a value of a wrong type or out of range."""
    return UsageError(f"{name}={' '.join(reprlib.repr(value).split())}; expected {expected}")


def plain(value: Any) -> Any:
    """Scalars and arrays of numpy as Python's numbers, texts and lists."""
    return value.tolist() if hasattr(value, "tolist") else value


def is_list(value: Any) -> bool:
    """Whether the items of an argument have an order. A text is a single value."""
    if isinstance(value, (str, bytes, bytearray, Mapping)):
        return False
    if isinstance(value, Set):
        return isinstance(value, KeysView)
    return isinstance(value, Iterable) or hasattr(value, "__getitem__")


def items_of(name: str, values: Any, expected: str = "a list of str") -> Iterable[Any]:
    """The items of an argument. TypeError: a single value, or items without an order."""
    items = plain(values)
    if not is_list(items):
        raise TypeError(f"{name}: {type(values).__name__}; expected {expected}")
    return items  # type: ignore[no-any-return]


def integer(name: str, value: Any, low: int, default: int | None = None,
            high: int = LARGEST) -> int:
    """An integer from `low` to `high`. None: the default, if there is one."""
    if value is None and default is not None:
        return default
    try:
        number = operator.index(value)
    except TypeError:
        number = low - 1
    if number < low or isinstance(value, bool):
        raise invalid(name, value, f"an integer of at least {low}")
    if number > high:
        raise invalid(name, value, f"an integer of at most {high}")
    return number


def number(name: str, value: Any) -> float:
    """A number of at least 0."""
    given = plain(value)
    result = -1.0
    if not isinstance(given, (str, bool)) and hasattr(given, "__float__"):
        with contextlib.suppress(OverflowError, ValueError, TypeError):
            result = float(given)
    if not 0 <= result < math.inf:
        raise invalid(name, value, "a number of at least 0")
    return result


def flag(name: str, value: Any) -> bool:
    """None: False."""
    given = plain(value)
    if given not in (True, False, None):
        raise invalid(name, value, "True or False")
    return bool(given)


def chosen(name: str, value: Any, known: Mapping[str, Choice]) -> Choice:
    if not isinstance(value, str) or value not in known:
        raise invalid(name, value, f"one of: {', '.join(known)}")
    return known[value]


def check_text(where: str, text: str) -> None:
    """DataError: the text contains a surrogate, which has no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{where}: {text[error.start]!r} at position {error.start} is half of a "
                        "character, as errors='surrogateescape' reads invalid UTF-8") from None


def path_of(name: str, value: Any) -> str:
    """A path, or the text of an option."""
    path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    with contextlib.suppress(UnicodeEncodeError):
        if isinstance(path, str) and b"\0" not in path.encode():
            return path
    raise invalid(name, value, "a str or os.PathLike without NUL and surrogates")


def paths_of(name: str, value: Any) -> list[str]:
    """One path or a list of them."""
    given = plain(value)
    if isinstance(given, (str, os.PathLike)):
        return [path_of(name, given)]
    if not is_list(given):
        raise invalid(name, value, "a path or a list of paths")
    return [path_of(name, each) for each in given]


def word_of(name: str, value: Any) -> str:
    """A single value as a word of a command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, os.PathLike)):
        return path_of(name, value)
    if hasattr(value, "__index__"):
        return str(operator.index(value))
    if hasattr(value, "__float__"):
        return repr(float(value))
    raise invalid(name, value, "text, a path, a number, a bool or a list of them")


def setting_of(name: str, option: str, value: Any) -> str:
    """The value of an option as the library takes it."""
    given = plain(value)
    if option in LISTS and isinstance(given, os.PathLike):
        given = [given]  # not a text, which the library would split at white space
    if not is_list(given):
        return word_of(name, given)
    if option not in LISTS:
        raise invalid(name, value, "a single value")
    words = [word_of(name, plain(each)) for each in given]
    if not words or any(word.split() != [word] for word in words):
        raise UsageError(f"{name}: a list cannot be empty, nor can its values be empty or contain "
                         "white space; None leaves the default")
    return " ".join(words)


def settings_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as the library takes them. None leaves the default."""
    settings: dict[str, str] = {}
    for name, value in options.items():
        if value is None:
            continue
        option = path_of("option", name).replace("_", "-")
        option = OTHER_NAMES.get(option, option)
        if option in settings:
            raise UsageError(f"{name}: another name of {option.replace('-', '_')}; "
                             "give one of them")
        settings[option] = setting_of(name, option, value)
    return settings


def one_line(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The function of the extension, with errors of one line for invalid arguments."""

    @functools.wraps(function)
    def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        try:
            return function(*arguments, **named)
        except TypeError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            if len(lines) < 3 or not lines[-1].startswith("Invoked with types: "):
                raise
            expected = " or ".join(line.partition(". ")[2] for line in lines[1:-1])
            given = lines[-1].removeprefix("Invoked with types: ").replace("nmt._nmt.", "")
        for value in (*arguments, *named.values()):
            for text in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(text, str):
                    check_text(function.__name__, text)
                elif isinstance(text, int) and not -2**63 <= text < 2**63:
                    raise invalid(function.__name__, text, "an integer of at most 64 bits")
        raise TypeError(f"{function.__name__}: arguments of the types {given}; expected {expected}")

    return call


def refuse(call: str, given: Mapping[str, Any], neutral: Mapping[str, Any]) -> None:
    """Raises for parameters of CTranslate2 that nmt does not have, unless they have no effect."""
    for name, value in given.items():
        if name not in neutral:
            raise TypeError(f"{call}() got an unexpected keyword argument '{name}'")
        if value is not None and plain(value) != neutral[name]:
            raise UsageError(f"{call}: {name} is not supported")
