#!/usr/bin/env python3
"""Checks what texts say about the source tree: links in Markdown lead to files and headings, the
paths and programs that texts, comments and scripts name exist, and every page and image of docs/ is
linked.

    check_docs.py [SOURCE_DIR]

Exit status 1 and a line for every untrue statement."""
import fnmatch
import itertools
import pathlib
import posixpath
import re
import sys

from files import GOLDEN, IMAGES, project_files, suffix, text_of

TOP = ("src", "include", "cuda", "tools", "scripts", "tests", "configs", "docs", "examples",
       "python", "packaging", "cmake")
# Within a paragraph, perhaps over several lines.
TEXT = r"(?:[^\[\]\n]|\n(?!\s*\n))"
LINK = re.compile(rf"!?\[(?:{TEXT}|\[{TEXT}*\])*\]\(\s*([^()\s]+)\s*\)")
# A path from the root of the tree, perhaps with patterns: src/units/*.h, tests/{nn,model}/a.cpp.
PATH = re.compile(r"(?<![\w/.$}~<>-])(?:\./)?((?:%s)/[\w./*?{},+<>-]*)" % "|".join(TOP))
# Names that stand for any name: src/units/NAME.h, tests/<floor>, docs/X.md, src/....
PLACEHOLDER = re.compile(r"<|>|\.\.\.|(?:^|[/._-])(?:[A-Z]+|[a-z]?X)(?:[/._-]|$)")
PROGRAM = re.compile(r"(?<![\w/.-])nmt-[a-z][a-z0-9]*(?![\w-])")
# Names of file formats, of Debian packages, and the program that count_places.py adds to a
# copy of the tree.
NOT_PROGRAMS = {"nmt-model", "nmt-checkpoint", "nmt-trial", "nmt-mpi", "nmt-doc"}
# Paths in the trees of other projects, by the word before them.
FOREIGN = re.compile(r"(?:marian|sockeye|fairseq|dynet|haste|mlx|ggml)\W*$", re.I)
# Patterns of paths, names of files that are added to a copy, and what was there in older versions.
EXEMPT = re.compile(r"CHANGELOG\.md|tests/tree/check_\w+\.py|scripts/dev/count_places\.py")
TEXTS = {".md", ".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake", ".yaml", ".yml", ".def",
         ".inc", ".txt", ".html", ".css", ".js"}
# What a build or a release writes, and what users write.
GENERATED = ("docs/index.html",)


def slug(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    text = re.sub(r"[^\w\- ]", "", text.strip().lower())
    return text.replace(" ", "-")


def anchors(text):
    seen, found = {}, set()
    for line in without_code(text).splitlines():
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            name = slug(heading[1])
            count = seen.get(name, 0)
            seen[name] = count + 1
            found.add(f"{name}-{count}" if count else name)
        found.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
    return found


def without_code(text):
    """Blank lines in place of fenced blocks."""
    out, inside = [], False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        inside ^= fence
        out.append("" if inside or fence else line)
    return "\n".join(out)


def alternatives(path):
    """a/{b,c}.h -> a/b.h, a/c.h"""
    parts = [part[1:-1].split(",") if part.startswith("{") else [part]
             for part in re.split(r"(\{[^{}]*\})", path)]
    return ["".join(choice) for choice in itertools.product(*parts)]


class Tree:
    def __init__(self, root):
        self.root = root
        self.names = project_files(root)
        self.files = set(self.names)
        self.folders = {str(parent) for name in self.names
                        for parent in pathlib.PurePosixPath(name).parents}
        self.texts = {name: text_of(root, name) for name in self.names
                      if (suffix(name) in TEXTS or suffix(name) == "")
                      and not name.startswith(GOLDEN)}
        self.texts = {name: text for name, text in self.texts.items() if text is not None}
        self.programs = {pathlib.PurePosixPath(name).stem for name in self.names
                         if re.fullmatch(r"tools/nmt-[a-z]+\.cpp", name)}

    def exists(self, path):
        path = path.rstrip("/")
        if "*" in path or "?" in path:
            return any(fnmatch.fnmatch(name, path) for name in self.files | self.folders)
        # "src/core/error" may name a header and its source.
        return (path in self.files or path in self.folders
                or any(f"{path}{end}" in self.files for end in (".h", ".cpp", ".cu")))


def link_errors(tree):
    linked = {"README.md", "CHANGELOG.md"}
    for name, text in tree.texts.items():
        if suffix(name) != ".md":
            continue
        folder = posixpath.dirname(name)
        prose = without_code(text)
        for link in LINK.finditer(prose):
            target, number = link[1], prose.count("\n", 0, link.start()) + 1
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            path = posixpath.normpath(posixpath.join(folder, path)) if path else name
            if path not in tree.files and path not in tree.folders:
                yield f"{name}:{number}: the link {target} leads to no file"
            elif anchor and path.endswith(".md") and anchor not in anchors(tree.texts[path]):
                yield f"{name}:{number}: {path} has no heading #{anchor}"
            linked.add(path)
    for name in sorted(tree.texts):
        if name.startswith("docs/") and suffix(name) == ".md" and name not in linked:
            yield f"{name}: no page links to it"
    for name in sorted(tree.names):
        if name.startswith("docs/") and suffix(name) in IMAGES and name not in linked:
            yield f"{name}: no page shows it"


def path_errors(tree):
    for name, text in tree.texts.items():
        if EXEMPT.fullmatch(name):
            continue
        folder = posixpath.dirname(name)
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            before = lines[number - 2] if number > 1 else ""
            for match in PATH.finditer(line):
                found = match[1].rstrip(".,")
                if found.count("{") != found.count("}"):
                    found = found.split("{")[0]
                if (PLACEHOLDER.search(found) or found in GENERATED
                        or FOREIGN.search(before + line[:match.start()].lstrip(" /*#"))):
                    continue
                for path in alternatives(found):
                    if not tree.exists(path) and not tree.exists(posixpath.join(folder, path)):
                        yield f"{name}:{number}: {path} does not exist"


def program_errors(tree):
    for name, text in tree.texts.items():
        if EXEMPT.fullmatch(name) or re.match(r"tests/.*\.cpp$", name):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for program in PROGRAM.findall(line):
                if program not in tree.programs | NOT_PROGRAMS:
                    yield f"{name}:{number}: there is no program {program}"


def main():
    tree = Tree(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
    errors = [*link_errors(tree), *path_errors(tree), *program_errors(tree)]
    print("\n".join(errors) or f"{len(tree.texts)} texts agree with the tree")
    return 1 if errors or not tree.texts else 0


if __name__ == "__main__":
    sys.exit(main())
