#!/usr/bin/env python3
"""Scripts and their environment: the packages of .venv, programs that fail, a repository that git
refuses, and paths with blanks. Usage: test_environment.py [BIN_DIR]"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
CHECK = ROOT / "tests/tree/check_includes.py"

CLOSING_SERVER = """import os, pathlib, socket, sys
pathlib.Path(__file__).with_name("pid").write_text(str(os.getpid()))
server = socket.create_server(("127.0.0.1", 0))
print(f"listening on http://127.0.0.1:{server.getsockname()[1]}", file=sys.stderr, flush=True)
while True:
    server.accept()[0].close()
"""


class Environment(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="nmt environment test ")
        self.addCleanup(temporary.cleanup)
        self.home = pathlib.Path(temporary.name)

    def write(self, name, text):
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def run_it(self, *command, **more):
        environment = {name: value for name, value in os.environ.items() if name != "NMT_IN_VENV"}
        return subprocess.run([str(word) for word in command], cwd=self.home, capture_output=True,
                              text=True, timeout=120, env={**environment, **more})

    def test_packages_come_from_the_environment_that_all_scripts_share(self):
        for path in (SCRIPTS / "bench/common/system.py", SCRIPTS / "dev/environment.sh"):
            self.write(path.relative_to(ROOT), path.read_text())
        script = self.write(pathlib.Path("scripts", "bench", "needs.py"),
                            "from common.system import ensure_packages\n"
                            "ensure_packages('nmt_none', 'nmt_other')\n")
        # Stands for a Python that has the packages.
        self.write(".venv/bin/python", '#!/bin/sh\necho "$NMT_IN_VENV: $@"\n')
        done = self.run_it(sys.executable, script)
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr),
            (0, f": -c import nmt_none,nmt_other\n1: {script}\n", ""))
        # It still has none.
        done = self.run_it(sys.executable, script, NMT_IN_VENV="1")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (1, "", "needs.py: No module named 'nmt_none'\n"))
        self.write(".venv/bin/python",
                   '#!/bin/sh\ncase "$*" in *install*|*import*) exit 1 ;; esac\n')
        done = self.run_it(sys.executable, script)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "needs.py: pip could not install nmt_none nmt_other in "
                                      f"{self.home.resolve()}/.venv\n")

    def test_a_program_that_fails(self):
        train = self.write("build/bin/nmt-train", "#!/bin/sh\nexit 9\n")
        done = self.run_it(sys.executable, SCRIPTS / "bench/measure_scale.py", "--pairs", 600,
                           NMT_BUILD=str(self.home / "build"))
        self.assertEqual((done.returncode, done.stderr.splitlines()[-1]),
                         (1, f"{train.resolve()}: status 9"))

    def test_a_server_that_closes_its_connections(self):
        self.write("bin/nmt-translate",
                   "#!/bin/sh\necho '1 lines in 1 s (1 s of CPU time): 1 sentences/s' >&2\n")
        self.write("bin/nmt-serve", f"#!{sys.executable}\n{CLOSING_SERVER}")
        self.write("text", "a b\n")
        (self.home / "model").mkdir()
        done = self.run_it(sys.executable, SCRIPTS / "bench/load_server.py", "bin", "en-de=model",
                           "text", "--clients", 1, "--seconds", 1)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertTrue(done.stderr.startswith("load_server.py: nmt-serve: "), done.stderr)
        with self.assertRaises(ProcessLookupError):
            os.kill(int((self.home / "bin/pid").read_text()), 0)

    def test_a_tree_without_files_and_one_that_git_refuses(self):
        done = self.run_it(sys.executable, CHECK, self.home)
        self.assertEqual((done.returncode, done.stdout), (1, "0 files include what they use\n"))
        self.write(".git", "gitdir: none\n")
        done = self.run_it(sys.executable, CHECK, self.home)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertTrue(done.stderr.startswith("git ls-files: fatal: "), done.stderr)

    @unittest.skipUnless(shutil.which("help2man"), "needs help2man")
    def test_a_manual_page_of_a_path_with_blanks(self):
        program = self.write("bin/idle", '#!/bin/sh\necho "idle: does nothing"\n')
        done = self.run_it("bash", SCRIPTS / "dev/make_man_page.sh", program, "man/idle.1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("does nothing", (self.home / "man/idle.1").read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
