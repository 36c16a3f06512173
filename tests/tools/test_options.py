#!/usr/bin/env python3
"""One list of options everywhere: --help, the manual pages, --dump-config, shell completion, the
documents and the shipped settings name the same ones.

Usage: test_options.py FOLDER_OF_THE_PROGRAMS
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTION = r"(?<![\w-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)"
# What a file of settings does not hold.
RUN_ONLY = {"model", "no-reload"}
# What stands for several others, which are dumped.
SPREAD = {"noise", "src", "tgt", "unit", "dropout", "after-epochs", "after-batches"}
# Options of other programs that the documents mention.
FOREIGN = {"emulated",  # of scripts/bench/gpu_check.sh
           "beam", "width", "vocabulary", "sentences", "steps", "layers",
           "totals",  # of step_counts
           "preset", "build", "install", "prefix", "test-dir", "target", "gtest",
           "no-install-recommends", "tool", "stat", "help", "version", "cflags", "libs",
           "allow-run-as-root", "oversubscribe", "host", "mca", "mpi", "bind-to",
           "gpu-bind",  # of mpirun and srun
           "read-only", "cap-drop",  # of podman
                        "vary", "no-diffoscope"}  # of reprotest


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def programs():
    return sorted(path for path in PROGRAMS.glob("nmt-*") if path.is_file())


def defined(help_text):
    """The names at the left of a help text, aliases too."""
    names = set()
    for line in help_text.splitlines():
        if re.match(r"  +-", line):
            left = re.split(r" {2,}", line.strip())[0]
            names.update(re.findall(OPTION, left))
    return names


def script_options():
    """Every option that a script of the project names, its own or another program's."""
    scripts = [path for path in (ROOT / "scripts").rglob("*") if path.suffix in (".py", ".sh")]
    return {name for path in scripts
            for name in re.findall(OPTION, path.read_text(encoding="utf-8"))}


def completions(program, *words):
    """What the completion script of bash offers for the last of the words."""
    script = run(PROGRAMS / program, "--completion=bash")
    ask = (f'COMP_WORDS=({program} "$@") COMP_CWORD=$#\n'
           f'$(complete -p {program} | grep -o "[-]F [^ ]*" | cut -c 4-)\n'
           'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", f"{script}\n{ask}", "bash", *words],
                          capture_output=True, text=True)
    assert done.stderr == "", done.stderr
    return done.stdout.split()


class Completion(unittest.TestCase):
    def test_one_job(self):
        self.assertEqual(completions("nmt-translate", "--beam-s"), ["--beam-size"])
        self.assertEqual(completions("nmt-translate", "--alignment", "s"), ["subword"])

    def test_jobs_of_nmt_vocab(self):
        self.assertEqual(completions("nmt-vocab", "tr"), ["train"])
        self.assertIn("inspect", completions("nmt-vocab", ""))
        self.assertEqual(completions("nmt-vocab", "train", "--max-line-"), ["--max-line-bytes"])
        self.assertEqual(completions("nmt-vocab", "inspect", "--dec"), ["--decode"])
        self.assertEqual(completions("nmt-vocab", "inspect", "--max-line-"), [])

    def test_every_program(self):
        """Both forms of the option, for every program; another shell or none is an error."""
        for program in programs():
            for shell in ("bash", "zsh"):
                script = run(program, f"--completion={shell}")
                self.assertEqual(run(program, "--completion", shell), script)
                self.assertIn(program.name, script)
            checked = subprocess.run(["bash", "-n"], input=run(program, "--completion=bash"),
                                     capture_output=True, text=True)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""), program)
            for words in (["--completion=fish"], ["--completion", "fish"], ["--completion"]):
                refused = subprocess.run([program, *words], capture_output=True, text=True)
                self.assertEqual((refused.returncode, refused.stdout, refused.stderr.count("\n")),
                                 (2, "", 1), (program, words, refused.stderr))
                self.assertRegex(refused.stderr, r"error: --completion: .*bash.*zsh", program)

    def test_a_job_has_the_script_of_its_program(self):
        for job in ("train", "inspect"):
            for words in (["--completion=bash"], ["--completion", "bash"]):
                self.assertEqual(run(PROGRAMS / "nmt-vocab", job, *words),
                                 run(PROGRAMS / "nmt-vocab", "--completion=bash"))

    def test_vocabularies_are_files(self):
        script = run(PROGRAMS / "nmt-vocab", "--completion=zsh")
        for name in ("--model", "-m"):
            lines = re.findall(rf"(?m)^  '\*{name}\[.*$", script)
            self.assertEqual([line.split("]")[1] for line in lines],
                             [":value:_files' \\"] * 2, lines)

    def test_zsh(self):
        script = run(PROGRAMS / "nmt-vocab", "--completion=zsh")
        self.assertTrue(script.startswith("#compdef nmt-vocab\n"), script)
        for job, option in (("train", "--max-line-bytes"), ("inspect", "--decode")):
            body = script.split(f"_nmt_vocab_{job}() {{")[1].split("\n}\n")[0]
            self.assertIn(f"'*{option}[", body)


class Options(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.help = {path.name: run(path, "--help") for path in programs()}
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", cls.folder.name],
                       check=True, capture_output=True)
        cls.corpus = [f"{cls.folder.name}/train.en", f"{cls.folder.name}/train.de"]
        assert cls.help, f"no programs in {PROGRAMS}"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_manual_pages(self):
        pages = PROGRAMS.parent / "man" / "man1"
        if not pages.is_dir():
            self.skipTest("no manual pages: help2man is not installed")
        for name, text in self.help.items():
            page = (pages / f"{name}.1").read_text(encoding="utf-8").replace("\\-", "-").replace(
                "\\fB", "").replace("\\fR", "")
            self.assertLessEqual(defined(text), set(re.findall(OPTION, page)), name)
            self.assertRegex(page, rf"\.SH NAME\n{name} - \w", name)

    def test_dump_config(self):
        """What is dumped is in --help."""
        for name, arguments in (("nmt-translate", ()), ("nmt-train", self.corpus)):
            dumped = set(re.findall(r"(?m)^([a-z0-9-]+):",
                                    run(PROGRAMS / name, "--dump-config", "full", *arguments)))
            self.assertTrue(dumped, name)
            self.assertLessEqual(dumped, defined(self.help[name]), name)

    def test_everything_about_a_training_is_dumped(self):
        dumped = run(PROGRAMS / "nmt-train", "--dump-config", "full", *self.corpus)
        about = re.split(r"\n\ncommon:\n", self.help["nmt-train"])[0]
        entries = re.split(r"\n(?=  +-)", about)[1:]
        self.assertGreater(len(entries), 50)
        for entry in entries:
            main = re.findall(OPTION, entry)[0]
            if main not in RUN_ONLY | SPREAD:
                self.assertRegex(dumped, rf"(?m)^(# )?{main}:", f"--{main} is not dumped")

    @unittest.skipUnless((PROGRAMS / "nmt-serve").exists(), "nmt-serve is not built")
    def test_documents(self):
        known = FOREIGN | script_options()
        for text in self.help.values():
            known |= defined(text)
        for command in ("train", "inspect"):
            known |= defined(run(PROGRAMS / "nmt-vocab", command, "--help"))
        known |= {f"no-{name}" for name in known}
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for name in re.findall(OPTION, line):
                    self.assertTrue(name in known,
                                    f"{path.name}:{number}: --{name} is no option of any program")

    @unittest.skipUnless((PROGRAMS / "nmt-serve").exists(), "nmt-serve is not built")
    def test_reference_is_current(self):
        done = subprocess.run([sys.executable, ROOT / "scripts/dev/make_option_reference.py",
                               PROGRAMS, "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_reference_describes_every_option(self):
        """In the section of its program, or in another one that this section links to."""
        page = (ROOT / "docs/reference/options.md").read_text(encoding="utf-8")
        sections, seen = {}, 0
        for part in re.split(r"(?m)^###? ", page)[1:]:
            heading, body = part.split("\n", 1)
            sections[re.sub(r"[^a-z-]", "", heading.lower().replace(" ", "-"))] = body
        words = [[path.name] for path in programs() if path.name != "nmt-vocab"]
        for program, *command in [*words, ["nmt-vocab", "train"], ["nmt-vocab", "inspect"]]:
            printed = run(PROGRAMS / program, *command, "--help=markdown")
            for part in re.split(r"(?m)^### ", printed)[1:]:
                heading, table = part.split("\n", 1)
                own = sections[heading.replace(": ", "-").replace(" ", "-")]
                for row in re.findall(r"(?m)^\| `.*$", table):
                    name = re.search(OPTION, row)[0]
                    linked = [sections[re.search(r"\]\(#([a-z-]+)\)", paragraph)[1]]
                              for paragraph in own.strip().split("\n\n")
                              if paragraph.startswith("As in") and f"`{name}`" in paragraph]
                    self.assertEqual(sum(row in text.splitlines() for text in [own, *linked]), 1,
                                     f"{heading}: {name}")
                    seen += 1
        self.assertGreater(seen, 500)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
