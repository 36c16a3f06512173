"""Scripts that end while calls of other threads run."""
import subprocess
import sys
import time

import pytest

from conftest import TRAINING

TRANSLATE = """
import nmt, sys, threading, time
translator = nmt.Translator(sys.argv[1])
lines = open(sys.argv[2]).read().splitlines() * 100
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
lines = open(sys.argv[2]).read().splitlines() * 100
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
    done = run(script, model, corpus / "train.en", corpus / "train.de",
               tmp_path / "model", TRAINING)
    assert done.returncode == 0, done.stderr
    assert "terminate" not in done.stderr and "leaked" not in done.stderr, done.stderr
    assert time.monotonic() - begin < 60
    if script is TRAIN:
        assert list((tmp_path / "model" / "checkpoints").iterdir())


ASYNCHRONOUS = """
import nmt, os, signal, sys, threading, time
translator = nmt.Translator(sys.argv[1])
lines = open(sys.argv[2]).read().splitlines() * 100
calls = [translator.translate_batch(lines, asynchronous=True) for _ in range(4)]
if sys.argv[3] == "Ctrl-C":
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        calls[0][0].result()
    except KeyboardInterrupt:
        print("interrupted")
    try:
        calls[0][0].result(20)
    except nmt.StoppedError:
        print("stopped")
"""


@pytest.mark.parametrize("how, printed", [("end", ""), ("Ctrl-C", "interrupted\nstopped\n")])
def test_asynchronous_calls_do_not_hold_up_the_end(model, corpus, how, printed):
    begin = time.monotonic()
    done = run(ASYNCHRONOUS, model, corpus / "train.en", how)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")
    assert time.monotonic() - begin < 20


FORK = """
import nmt, os, sys
translator = nmt.Translator(sys.argv[1], cpu_threads=4)
assert translator.translate_batch(["a"], asynchronous=True)[0].result(60).hypotheses
child = os.fork()
if child == 0:
    assert translator.translate_batch(["a"], asynchronous=True)[0].result(60).hypotheses
    translator.close()
else:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_the_child_of_a_fork_has_a_thread_of_its_own(model):
    done = run(FORK, model)
    assert done.returncode == 0, done.stderr
