"""Exceptions. Each status is the exit status that the programs of nmt have for the error."""

from . import _nmt


class Error(Exception):
    """An error of nmt. Its text is one line that names the object, its value and what was
    expected."""

    status: int = 1


class FailedError(Error, RuntimeError):
    """The call failed, for instance because a file could not be written."""

    status = 1


class UsageError(Error, ValueError):
    """An invalid option, value or file name."""

    status = 2


class NotFoundError(UsageError, FileNotFoundError):
    """A model directory that does not exist."""


class DataError(Error, ValueError):
    """Invalid contents of a file or of the input."""

    status = 3


class OutOfMemoryError(Error, MemoryError):
    """Out of memory, on the host or on the device."""

    status = 4


class StoppedError(Error):
    """The call was stopped: by AsyncResult.cancel(), by Ctrl-C in AsyncResult.result(), or by the
    end of Python."""

    status = 130


_nmt.use_errors(FailedError, UsageError, DataError, OutOfMemoryError, StoppedError)
