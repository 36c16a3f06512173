#!/usr/bin/env python3
"""Measures how models translate noised text and very short text, and prints a table of BLEU.

    scripts/bench/quality/noise.py --data FOLDER MODEL...

FOLDER has the text PREFIX.en and its reference PREFIX.de (--prefix, test2016). Each column
is the whole text with one kind of noise; the reference has the case and the final
punctuation of the source:

    upper        upper case, both sides
    title        every word with a capital letter, both sides
    typo         one typo in each source sentence
    typos        one typo in a source word drawn at random, and one in each other word with
                 probability 0.1; words of at least three letters
    punctuation  no final period, question or exclamation mark, both sides
    mixed        sentence i has kind i mod 4 of upper, title, typos, punctuation

A typo swaps two letters, drops or doubles one, replaces it by a neighbor on the keyboard or inserts
one. Nothing of nmt-train's noise is used here. `doubled` counts outputs of 1,000 short inputs (500
words and 500 pairs of neighboring words of the text, or as many as it has) in which a sequence of
words occurs twice in a row; `long` counts those with more than three words per input word. `guard`
has the counts of doubled outputs with --repetition-guard. Programs are taken from $NMT_BUILD/bin,
else build/bin."""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common import arguments, system  # noqa: E402

ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
FINAL = ".!?"


def neighbors(letter):
    """The letters around a letter on a QWERTY keyboard; the letter itself if it is not on it."""
    small = letter.lower()
    for r, row in enumerate(ROWS):
        at = row.find(small)
        if at >= 0:
            near = [line[c] for line in ROWS[max(0, r - 1) : r + 2]
                    for c in (at - 1, at, at + 1) if 0 <= c < len(line) and line[c] != small]
            return [c.upper() if letter != small else c for c in near]
    return [letter]


def with_typo(word, rng):
    changed = typo(word, rng)
    # Two equal letters swapped, or a letter without neighbors: drawn again, from numbers of its own
    # so that the other words have the same typos with and without it.
    again = random.Random(word)
    while changed == word:
        changed = typo(word, again)
    return changed


def typo(word, rng):
    """May be the word itself."""
    at, kind = rng.randrange(len(word)), rng.randrange(5)
    if kind == 0:
        first = min(at, len(word) - 2)
        return word[:first] + word[first + 1] + word[first] + word[first + 2 :]
    if kind == 1:
        return word[:at] + word[at + 1 :]
    if kind == 2:
        return word[:at] + word[at] + word[at:]
    return word[:at] + rng.choice(neighbors(word[at])) + word[at + (kind == 3) :]


def typos(line, rng, share):
    """One typo in a random word, and in each other one with probability `share`."""
    words = line.split(" ")
    can = [i for i, word in enumerate(words) if len(word.strip(".,!?\"'")) >= 3
                    and word.strip(".,!?\"'").isalpha()]
    certain = rng.choice(can) if can else -1
    for i in can:
        if i == certain or rng.random() < share:
            core = words[i].strip(".,!?\"'")
            words[i] = words[i].replace(core, with_typo(core, rng), 1)
    return " ".join(words)


def title(line):
    return " ".join(word[:1].upper() + word[1:] for word in line.split(" "))


def bare(source, target):
    """Both lines without final punctuation, if both have some."""
    short = source.rstrip().rstrip(FINAL), target.rstrip().rstrip(FINAL)
    return (short if short[0] != source.rstrip() and short[1] != target.rstrip()
            else (source, target))


def noised(sources, targets, seed):
    """Name -> sources and references."""
    rng = random.Random(seed)
    sets = {"clean": [sources, targets]}
    sets["upper"] = [[s.upper() for s in sources], [t.upper() for t in targets]]
    sets["title"] = [list(map(title, sources)), list(map(title, targets))]
    sets["typo"] = [[typos(s, rng, 0) for s in sources], targets]
    sets["typos"] = [[typos(s, rng, 0.1) for s in sources], targets]
    sets["punctuation"] = list(map(list, zip(*map(bare, sources, targets))))
    kinds = ("upper", "title", "typos", "punctuation")
    sets["mixed"] = [[sets[kinds[i % 4]][side][i] for i in range(len(sources))] for side in (0, 1)]
    return sets


def short_inputs(sources, seed):
    """At most 500 words and 500 pairs of neighboring words, all different."""
    words, pairs = set(), set()
    for line in sources:
        plain = [word.strip(".,!?\"'") for word in line.split()]
        words.update(word for word in plain if word)
        pairs.update(f"{a} {b}" for a, b in zip(plain, plain[1:]) if a and b and a != b)
    rng = random.Random(seed)
    return [one for found in (words, pairs)
            for one in rng.sample(sorted(found), min(500, len(found)))]


def has_repetition(line):
    words = [word.strip(".,!?\"'").casefold() for word in line.split()]
    words = [word for word in words if word]
    return any(words[i : i + n] == words[i + n : i + 2 * n] for n in range(1, 9)
               for i in range(len(words) - 2 * n + 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=arguments.folder, metavar="MODEL",
                        help="model directories")
    parser.add_argument("--data", help="folder of the text (default: $NMT_DATA/multi30k)")
    parser.add_argument("--prefix", default="test2016",
                        help="name of the text without its language (%(default)s)")
    parser.add_argument("--languages", nargs=2, default=["en", "de"],
                        help="source and target (%(default)s)")
    parser.add_argument("--threads", type=arguments.whole(), default=1,
                        help="CPU threads (%(default)s)")
    parser.add_argument("--seed", type=arguments.whole(0), default=1,
                        help="seed of typos and short inputs (%(default)s)")
    parser.add_argument("--recase", action="store_true", help="translate with --recase")
    parser.add_argument("--keep", type=arguments.new_folder,
                        help="folder for the noised texts and their translations")
    args = parser.parse_args()
    names = [f"{args.prefix}.{language}" for language in args.languages]
    data = arguments.data_folder(parser, args.data, "multi30k", names)
    programs = system.programs()
    texts = arguments.read_pair(*(data / name for name in names))
    arguments.need_programs(programs, "nmt-translate", "nmt-bleu")
    sets = noised(*texts, args.seed)
    short = short_inputs(texts[0], args.seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)

        def write(name, lines):
            (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
            return folder / name

        def translate(model, source, name, *more):
            subprocess.run([programs / "nmt-translate", "-m", model, "-i", source,
                            "-o", folder / name, "--cpu-threads", str(args.threads), "--quiet",
                            *(["--recase"] if args.recase else []), *more], check=True)
            return folder / name

        print("| model | " + " | ".join(sets) + " | doubled | guard | long |")
        print("|---" * (len(sets) + 4) + "|")
        for number, model in enumerate(args.models, 1):
            scores = []
            for name, (sources, targets) in sets.items():
                source, reference = (write(f"{name}.source", sources),
                                     write(f"{name}.reference", targets))
                output = translate(model, source, f"{name}.output.{number}")
                done = subprocess.run([programs / "nmt-bleu", reference, "-i", output, "-b"],
                                      check=True, capture_output=True, text=True)
                scores.append(float(done.stdout))
            source = write("short.source", short)
            counts = []
            for name, more in (("plain", []), ("guard", ["--repetition-guard"])):
                lines = translate(model, source, f"short.{name}.{number}",
                                  *more).read_text(encoding="utf-8").split("\n")
                counts.append(sum(map(has_repetition, lines)))
                if name == "plain":
                    long = sum(len(line.split()) > 3 * len(words.split())
                               for line, words in zip(lines, short))
            cells = [f"{scores[0]:.1f}"] + [f"{score:.1f} ({score - scores[0]:+.1f})"
                                            for score in scores[1:]]
            print("| " + " | ".join([str(model), *cells, *map(str, counts), str(long)])
                  + " |", flush=True)


if __name__ == "__main__":
    arguments.call(main)
