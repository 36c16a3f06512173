"""A running nmt-serve and tiny models trained by nmt-train, for tests whose first argument is the
folder of the programs."""
import contextlib
import http.client
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BIN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 120  # far more than any command here takes


class Server:
    """A running nmt-serve on a free port."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([str(BIN / "nmt-serve"), "--port", "0",
                                         *map(str, arguments)], stderr=subprocess.PIPE, text=True)
        self.log, self.port = [], 0
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                break
        assert self.port, "".join(self.log)
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr))
        self.reader.start()

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def json(self, path, **fields):
        status, _, body = self.ask("POST", path, json.dumps(fields),
                                   {"Content-Type": "application/json"})
        return status, json.loads(body)

    def translate(self, q, **fields):
        status, answer = self.json("/translate", q=q, **{"source": "en", "target": "de", **fields})
        assert status == 200, answer
        return answer

    def raw(self, data, wait=True):
        """What comes back for these bytes on a connection of its own."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(data)
            if not wait:
                return b""
            got = b""
            with contextlib.suppress(OSError):
                while part := connection.recv(65536):
                    got += part
            return got

    def metric(self, name):
        _, _, body = self.ask("GET", "/metrics")
        found = re.search(rf"^{re.escape(name)} (\S+)$", body.decode(), re.M)
        return float(found[1]) if found else 0.0

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(timeout=SECONDS)
        self.reader.join()
        self.process.stderr.close()
        return status


@contextlib.contextmanager
def serving(*arguments):
    server = Server(*arguments)
    try:
        yield server
    finally:
        server.stop()


def train(home, model, source, target, seed, updates=120):
    done = subprocess.run(
        [str(BIN / "nmt-train"), home / f"train.{source}", home / f"train.{target}",
         "--valid-sets", home / f"valid.{source}", home / f"valid.{target}", "--model", model,
         "--dim-vocabs", "400", "--dim-emb", "32", "--dim-rnn", "32", "--enc-depth", "1",
         "--dec-depth", "1", "--after", f"{updates}u", "--mini-batch-words", "600",
         "--learn-rate", "0.003", "--lr-warmup", "20u", "--seed", str(seed), "--cpu-threads", "2"],
        capture_output=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr.decode()


class WithModels(unittest.TestCase):
    """Has the models en-de and de-fr in the folder `models`, and `lines` to translate."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        subprocess.run([sys.executable, str(ROOT / "scripts/data/make_toy_corpus.py"),
                        "--pairs", "1000", "--seed", "3", str(cls.home)], check=True,
                       timeout=SECONDS)
        cls.models = cls.home / "models"
        cls.models.mkdir()
        train(cls.home, cls.models / "en-de", "en", "de", 1)
        train(cls.home, cls.models / "de-fr", "de", "en", 2)
        cls.lines = (cls.home / "test.en").read_text().splitlines()[:40]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def expected(self, lines, *arguments, model="en-de"):
        """The translations of nmt-translate with the server's settings."""
        done = subprocess.run([str(BIN / "nmt-translate"), "-m", str(self.models / model),
                               "--quiet", "--preserve", "--repetition-guard", "--recase",
                               *arguments], input="\n".join(lines) + "\n",
                              capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n")[:-1]


class WithServer(WithModels):
    """A server of all models."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server(cls.models, "--max-body", "100000", "--read-timeout", "1",
                            "--idle-timeout", "3")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        super().tearDownClass()

    def refused(self, status, method, path, body=None, headers=None, says=""):
        got, answered, answer = self.server.ask(method, path, body, headers)
        self.assertEqual(got, status, answer)
        self.assertEqual(list(json.loads(answer)), ["error"])
        self.assertIn(says, json.loads(answer)["error"])
        return answered

    def logged(self, pattern, times=1):
        """Waits until so many lines of the log match."""
        end = time.monotonic() + 10
        while ((found := sum(bool(re.search(pattern, line)) for line in self.server.log)) < times
               and time.monotonic() < end):
            time.sleep(0.05)
        self.assertGreaterEqual(found, times, "".join(self.server.log[-20:]))
