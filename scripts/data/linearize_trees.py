#!/usr/bin/env python3
"""Dependency trees as text for a sequence-to-sequence model, and the scores of its output.

    linearize_trees.py write TREES.conllu WORDS PARSES
    linearize_trees.py score TREES.conllu OUTPUT

`write` makes two files with one sentence per line: the words, and the tree as brackets in the order
of the words (Vinyals et al. 2015, "Grammar as a foreign language"). A subtree is `(relation`, its
left dependents, `*` for its word, its right dependents and `)`:

    She reads books .     (root (nsubj * ) * (obj * ) (punct * ) )

Subtypes of relations (nsubj:pass) are dropped with --no-subtypes. A tree with crossing arcs is
written as the nearest projective one: each word within the range of a crossing arc is attached to
the head of its head until none crosses (Nivre & Nilsson 2005, without their encoding of the move).

`score` compares the output of a model with the trees of the file, which may cross: the shares of
words with the right head (UAS), and head and relation (LAS), the share of trees that are right as a
whole, and the share of outputs that are well-formed trees of as many words. Missing closing
brackets are added at the end, others are left out; words that the output lacks count as wrong."""
import argparse
import os
import re
import sys

WORD = "*"


def open_file(path, mode="r"):
    try:
        return open(path, mode, encoding="utf-8" if mode == "w" else "utf-8-sig")
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}")


def lines_of(path):
    with open_file(path) as file:
        try:
            return file.read().split("\n")
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            sys.exit(f"{path}:{line}: invalid UTF-8")


def check_tree(where, sentence):
    """Every head is a word of the sentence, and leads to the root."""
    heads = [head for _, head, _ in sentence]
    for word, head in enumerate(heads, 1):
        if head > len(heads):
            sys.exit(
                f"{where}: word {word} has the head {head}, the sentence has {len(heads)} words")
    for word, head in enumerate(heads, 1):
        seen = set()
        while head != 0:
            if head in seen:
                sys.exit(f"{where}: the heads of word {word} form a circle")
            seen.add(head)
            head = heads[head - 1]


def read_trees(path):
    """Sentences of (form, head, relation); heads count from 1, 0 is the root."""
    sentence, first = [], 0
    for number, line in enumerate([*lines_of(path), ""], 1):
        if not line:
            if sentence:
                check_tree(f"{path}:{first}", sentence)
                yield sentence
            sentence = []
        elif not line.startswith("#"):
            columns = line.split("\t")
            if len(columns) != 10:
                sys.exit(f"{path}:{number}: {len(columns)} columns, expected the 10 of CoNLL-U")
            if not columns[0].isdecimal() and not re.fullmatch(r"\d+[-.]\d+", columns[0]):
                sys.exit(f"{path}:{number}: word number '{columns[0][:80]}', expected 3, "
                         "3-4 or 3.1")
            if columns[0].isdecimal():
                if int(columns[0]) != len(sentence) + 1:
                    sys.exit(f"{path}:{number}: word number {columns[0]}, "
                             f"expected {len(sentence) + 1}")
                if not columns[6].isdecimal():
                    sys.exit(f"{path}:{number}: head '{columns[6]}', expected a number")
                if len(sentence) == LONGEST:
                    sys.exit(f"{path}:{first}: a sentence of more than {LONGEST:,} words")
                first = first if sentence else number
                sentence.append((columns[1].replace(" ", "_"), int(columns[6]), columns[7]))


LONGEST = 1000  # words of a sentence: making a tree projective takes their third power


def crossing(heads):
    """A word (from 1) whose arc spans a word that does not descend from its head, with the shortest
    such arc; 0: the tree is projective."""
    found, shortest = 0, len(heads) + 2
    for word, head in enumerate(heads, 1):
        low, high = min(word, head), max(word, head)
        if head == 0 or high - low >= shortest:
            continue
        for between in range(low + 1, high):
            above = between
            while above not in (0, head):
                above = heads[above - 1]
            if above != head:
                found, shortest = word, high - low
                break
    return found


def projective(heads):
    heads = list(heads)
    while word := crossing(heads):
        heads[word - 1] = heads[heads[word - 1] - 1]
    return heads


def linearize(sentence, subtypes=True):
    heads = projective([head for _, head, _ in sentence])
    children = [[] for _ in range(len(sentence) + 1)]
    for word, head in enumerate(heads, 1):
        children[head].append(word)
    out = []
    todo = [(child, False) for child in reversed(children[0])]
    while todo:  # without recursion: trees can be deep
        item, is_text = todo.pop()
        if is_text:
            out.append(item)
            continue
        relation = sentence[item - 1][2]
        out.append("(" + (relation if subtypes else relation.split(":")[0]))
        left = [(child, False) for child in children[item] if child < item]
        right = [(child, False) for child in children[item] if child > item]
        todo += reversed([*left, (WORD, True), *right, (")", True)])
    return out


def parse(tokens):
    """Heads and relations of the words of an output, and whether it is well-formed."""
    heads, relations, open_subtrees, sound = [], [], [], True
    waiting = []  # per open subtree: the words whose head is its word, which is not known yet
    for token in tokens:
        if token.startswith("(") and len(token) > 1:
            open_subtrees.append([token[1:], 0])
            waiting.append([])
        elif token == WORD and open_subtrees and open_subtrees[-1][1] == 0:
            relations.append(open_subtrees[-1][0])
            heads.append(0)
            open_subtrees[-1][1] = len(heads)
        elif token == ")" and open_subtrees:
            sound = sound and open_subtrees[-1][1] > 0
            close(heads, open_subtrees, waiting)
        else:
            sound = False
    sound = sound and not open_subtrees
    while open_subtrees:
        close(heads, open_subtrees, waiting)
    return heads, relations, sound and heads.count(0) == 1


def close(heads, open_subtrees, waiting):
    """Ends the innermost subtree: its word becomes the head of its dependents, and a dependent of
    the next subtree."""
    (_, word), below = open_subtrees.pop(), waiting.pop()
    if word:
        for dependent in below:
            heads[dependent - 1] = word
        below = [word]
    if waiting:
        waiting[-1] += below


def write(args):
    sentences = list(read_trees(args.trees))  # all are checked before anything is written
    if len({os.path.realpath(path) for path in (args.trees, args.words, args.parses)}) < 3:
        sys.exit(f"{args.trees}, {args.words}, {args.parses}: expected three different files")
    parts = [path if os.path.exists(path) and not os.path.isfile(path) else f"{path}.part"
             for path in (args.words, args.parses)]
    made = [part for part, path in zip(parts, (args.words, args.parses)) if part != path]
    try:
        with open_file(parts[0], "w") as words, open_file(parts[1], "w") as parses:
            for sentence in sentences:
                words.write(" ".join(form for form, _, _ in sentence) + "\n")
                parses.write(" ".join(linearize(sentence, not args.no_subtypes)) + "\n")
        for part in made:
            os.replace(part, part.removesuffix(".part"))
    except OSError as error:
        sys.exit(f"{error.filename or args.words}: {error.strerror}")
    finally:
        for part in made:
            if os.path.exists(part):
                os.remove(part)


def score(args):
    sentences = list(read_trees(args.trees))
    if not sentences:
        sys.exit(f"{args.trees}: no tree")
    outputs = lines_of(args.output)
    outputs = outputs if outputs[-1] else outputs[:-1]
    if len(outputs) != len(sentences):
        sys.exit(f"{args.output}: {len(outputs)} lines for {len(sentences)} trees in {args.trees}")
    words = unlabeled = labeled = whole = sound = 0
    for sentence, output in zip(sentences, outputs):
        heads, relations, is_sound = parse(output.split())
        kept = (lambda r: r.split(":")[0]) if args.no_subtypes else (lambda r: r)
        right = [(h == head, h == head and kept(r) == kept(relation))
                 for (_, head, relation), h, r in zip(sentence, heads, relations)]
        words += len(sentence)
        unlabeled += sum(u for u, _ in right)
        labeled += sum(l for _, l in right)
        sound += is_sound and len(heads) == len(sentence)
        whole += len(heads) == len(sentence) and all(l for _, l in right)
    print(f"UAS {100 * unlabeled / words:.2f} | LAS {100 * labeled / words:.2f} | whole trees "
          f"{100 * whole / len(sentences):.2f} % | "
          f"well-formed {100 * sound / len(sentences):.2f} % | {words:,} words, {len(sentences):,} "
          "sentences")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = parser.add_subparsers(required=True, metavar="write|score")
    job = jobs.add_parser("write", help="trees to lines of words and of brackets")
    job.add_argument("trees", metavar="TREES.conllu")
    job.add_argument("words", metavar="WORDS")
    job.add_argument("parses", metavar="PARSES")
    job.set_defaults(run=write)
    other = jobs.add_parser("score", help="attachment scores of a model's output")
    other.add_argument("trees", metavar="TREES.conllu")
    other.add_argument("output", metavar="OUTPUT")
    other.set_defaults(run=score)
    for either in (job, other):
        either.add_argument("--no-subtypes", action="store_true",
                            help="relations without what follows the colon")
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
