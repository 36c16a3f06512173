"""Converts keyword arguments to the options of the programs."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .errors import UsageError


#: Other names that the programs give an option.
OTHER_NAMES = {"batch-size": "mini-batch", "beam": "beam-size", "devices": "device",
               "threads": "cpu-threads"}


def words_of(name: str, value: Any) -> list[str]:
    """The value as the words of a command line."""
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, (str, os.PathLike)):
        return [os.fspath(value)]
    if isinstance(value, Iterable):
        return [word for item in value for word in words_of(name, item)]
    if isinstance(value, (int, float)) or hasattr(value, "__float__"):
        return [repr(value.item() if hasattr(value, "item") else value)]
    raise UsageError(f"{name}: {type(value).__name__}; expected text, a number, a bool or a list")


def settings_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as the library takes them. None leaves the default."""
    settings: dict[str, str] = {}
    for name, value in options.items():
        if value is None:
            continue
        words = words_of(name, value)
        is_list = not isinstance(value, (str, os.PathLike))
        if is_list and any(word.split() != [word] for word in words):
            raise UsageError(f"{name}: a value of a list cannot be empty or contain white space")
        option = name.replace("_", "-")
        option = OTHER_NAMES.get(option, option)
        if option in settings:
            raise UsageError(f"{name}: another name of {option.replace('-', '_')}; give one of them")
        settings[option] = " ".join(words)
    return settings


def one_line(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of the extension, with errors of one line for arguments of a wrong type."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except TypeError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            if len(lines) < 3 or not lines[-1].startswith("Invoked with types: "):
                raise
            expected = " or ".join(line.partition(". ")[2] for line in lines[1:-1])
            given = lines[-1].removeprefix("Invoked with types: ").replace("nmt._nmt.", "")
        raise TypeError(f"{function.__name__}: arguments of the types {given}; expected {expected}")

    return call


def refuse(call: str, given: Mapping[str, Any], neutral: Mapping[str, Any]) -> None:
    """Raises for parameters of CTranslate2 that nmt does not have, unless they have no effect."""
    for name, value in given.items():
        if name not in neutral:
            raise TypeError(f"{call}() got an unexpected keyword argument '{name}'")
        if value != neutral[name]:
            raise UsageError(f"{call}: {name} is not supported")
