"""Scripts that end while calls of other threads run."""
import subprocess
import sys
import time

import pytest

from conftest import TRAINING

TRANSLATE = """
import nmt, sys, threading, time
translator = nmt.Translator(sys.argv[1])
lines = open(sys.argv[2]).read().splitlines() * 500
def call():
    translator.translate_batch(lines)
for _ in range(3):
    threading.Thread(target=call, daemon=True).start()
time.sleep(0.3)
"""

TRAIN = """
import nmt, sys, threading
seen = threading.Event()
def call():
    nmt.train(train_sets=[sys.argv[2], sys.argv[3]], model=sys.argv[4], after="1000000u",
              progress=lambda now: seen.set(), **eval(sys.argv[5]))
threading.Thread(target=call, daemon=True).start()
seen.wait()
"""

BLOCKED = """
import nmt, sys, threading
seen = threading.Event()
def progress(now):
    seen.set()
    threading.Event().wait()
def call():
    nmt.train(train_sets=[sys.argv[2], sys.argv[3]], model=sys.argv[4], after="1000000u",
              progress=progress, **eval(sys.argv[5]))
threading.Thread(target=call, daemon=True).start()
seen.wait()
"""

SERVER = """
import http.server, nmt, sys, threading, time, urllib.request
translator = nmt.Translator(sys.argv[1])
lines = open(sys.argv[2]).read().splitlines() * 500
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        translator.translate_batch(lines if self.path == "/long" else lines[:1])
        self.send_response(204)
        self.end_headers()
    def log_message(self, *words):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = "http://127.0.0.1:%d/" % server.server_address[1]
def ask():
    try:
        urllib.request.urlopen(address + "long")
    except OSError:
        pass
for _ in range(4):
    threading.Thread(target=ask, daemon=True).start()
assert urllib.request.urlopen(address).status == 204
time.sleep(0.3)
"""


def run(script, *arguments):
    return subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True,
                          text=True, timeout=120)


@pytest.mark.parametrize("script", [TRANSLATE, TRAIN, BLOCKED, SERVER],
                         ids=["translate", "train", "blocked callback", "server"])
def test_the_end_of_python_stops_calls_of_daemon_threads(model, corpus, tmp_path, script):
    begin = time.monotonic()
    done = run(script, model, corpus / "train.en", corpus / "train.de", tmp_path / "model", TRAINING)
    assert done.returncode == 0, done.stderr
    assert "terminate" not in done.stderr and "leaked" not in done.stderr, done.stderr
    assert time.monotonic() - begin < 60
    if script is TRAIN:
        assert list((tmp_path / "model" / "checkpoints").iterdir())
