"""What trainings and other work of scripts were computed from, so that what is finished is used
again only with the same options and the same contents of files."""
import functools
import hashlib
import json
import pathlib
import re
import sys


class Changed(Exception):
    """Something was computed from other inputs than those of now."""


@functools.cache
def digest(path):
    """SHA-256 of the contents of a file."""
    result = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            result.update(block)
    return result.hexdigest()


def of_command(words, without=()):
    """Options of a command line and their values; a file counts by its contents. Words in front of
    the first option have the name "the training text"."""
    found, name = {}, "the training text"
    for word in map(str, words):
        value = word
        if re.match(r"--?[a-z]", word):
            name, equals, value = word.partition("=")
            found.setdefault(name, [])
            if not equals:
                continue
        found.setdefault(name, []).append(digest(value) if pathlib.Path(value).is_file() else value)
    return {name: values for name, values in found.items() if name not in without}


def differences(before, now):
    """Names of the inputs that differ."""
    return [name for name in {**now, **before} if before.get(name) != now.get(name)]


def changed(record, now):
    """Names of the inputs that differ from those in the file `record`; None if it does not
    exist."""
    try:
        return differences(json.loads(record.read_text(encoding="utf-8")), now)
    except FileNotFoundError:
        return None


def keep(record, now):
    """Writes a record atomically."""
    temporary = record.with_name(record.name + ".tmp")
    temporary.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    temporary.rename(record)


def refuse(made, names):
    raise Changed(f"{made}: was computed with other values or files of {', '.join(names)}; "
                  "take another --work, or remove it")


def warn(made):
    print(f"warning: {made}: the inputs were not recorded; they are assumed to be those of now",
          file=sys.stderr, flush=True)


def reuse(record, now, made):
    """Before `made` is computed or used again: keeps a record of its inputs if it does not exist,
    raises Changed if the recorded ones differ. Older versions kept no record; what they made is
    used with a warning."""
    if not pathlib.Path(made).exists():
        keep(record, now)
        return
    names = changed(record, now)
    if names is None:
        warn(made)
    elif names:
        refuse(made, names)
