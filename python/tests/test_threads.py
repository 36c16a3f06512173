"""Calls from several threads, asynchronous calls, signals, and the end of a translator."""
import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import nmt
from conftest import texts
from nmt import _nmt


def test_closing(model, lines):
    with nmt.Translator(model) as translator, nmt.Scorer(model) as scorer:
        expected = texts(translator.translate_batch(lines))
        vocabulary = translator.target_vocabulary
        stream = translator.translate_iterable(lines)
        calls = translator.translate_batch(lines, asynchronous=True)
    assert [each.result(60).hypotheses[0] for each in calls] == expected
    with pytest.raises(nmt.UsageError, match="^timeout='5'; expected a number of at least 0"):
        calls[0].result("5")
    assert texts(stream) == expected
    for call in (lambda: translator.translate_batch(lines), lambda: translator.context_sentences,
                 lambda: translator.translate_batch(lines, asynchronous=True),
                 lambda: translator.score_batch(lines, lines),
                 lambda: scorer.score_batch(lines, lines)):
        with pytest.raises(nmt.UsageError, match="closed"):
            call()
    translator.close()
    assert vocabulary.decode(vocabulary.encode("das Haus"))


def test_threads_share_the_variants_of_the_models(model, lines, monkeypatch):
    """Which calls with other options make. A variant is made once, and not under a lock of all."""
    translator, scorer = nmt.Translator(model), nmt.Scorer(model)
    made, with_settings, new_scorer = [], _nmt.Translator.with_settings, _nmt.Scorer

    def slowly(make):
        def call(*arguments):
            made.append(threading.get_ident())
            time.sleep(0.1)
            return make(*arguments)
        return call

    monkeypatch.setattr(_nmt.Translator, "with_settings", slowly(with_settings))
    monkeypatch.setattr(_nmt, "Scorer", slowly(new_scorer))
    with ThreadPoolExecutor(8) as pool:
        for call in (lambda _: texts(translator.translate_batch(lines[:3], beam_size=2)),
                     lambda _: [each.score for each in scorer.score_batch(
                         lines[:3], lines[:3], length_penalty=0.5)]):
            made.clear()
            results = list(pool.map(call, range(8)))
            assert len(made) == 1 and results == results[:1] * 8
        # Other variants are made at the same time.
        together = threading.Barrier(8, timeout=20)

        def meeting(*arguments):
            together.wait()
            return with_settings(*arguments)

        monkeypatch.setattr(_nmt.Translator, "with_settings", meeting)
        list(pool.map(lambda beam: translator.translate_batch([], beam_size=beam), range(3, 11)))


def test_threads_that_use_more_variants_than_are_kept(model):
    translator = nmt.Translator(model)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            beams = [1 + each % 40 for each in range(1600)]
            results = pool.map(lambda beam: translator.translate_batch([], beam_size=beam), beams)
            assert list(results) == [[]] * len(beams)
    finally:
        sys.setswitchinterval(interval)


def test_a_variant_that_fails_is_made_again(translator, lines):
    for _ in range(2):
        with pytest.raises(nmt.UsageError, match="beam-size"):
            translator.translate_batch(lines[:1], beam_size=2000)


def test_closing_while_another_thread_makes_a_variant(model, monkeypatch):
    translator = nmt.Translator(model)
    making, closed, variants = threading.Event(), threading.Event(), []
    with_settings = _nmt.Translator.with_settings

    class Variant:
        def __init__(self, native):
            self.translate = native.translate
            variants.append(weakref.ref(self))

    def slowly(*arguments):
        making.set()
        assert closed.wait(20)
        return Variant(with_settings(*arguments))

    monkeypatch.setattr(_nmt.Translator, "with_settings", slowly)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(translator.translate_batch, ["a"], beam_size=2)
        assert making.wait(20)
        translator.close()
        closed.set()
        assert len(call.result(20)) == 1
    assert variants[0]() is None  # so that close() frees the models


def test_asynchronous_calls(translator, lines):
    expected = texts(translator.translate_batch(lines))
    results = translator.translate_batch(lines, asynchronous=True)
    assert isinstance(results[0], nmt.AsyncResult)
    assert [each.result(60).hypotheses[0] for each in results] == expected
    assert results[0].done()

    async def both():
        return await asyncio.gather(translator.translate_batch_async(lines),
                                    translator.score_batch_async(lines[:3], lines[:3]))

    translations, scores = asyncio.run(both())
    assert texts(translations) == expected and len(scores) == 3


def test_a_canceled_call_stops(translator, lines):
    results = translator.translate_batch(lines * 500, asynchronous=True, max_batch_size=4)
    waiting = translator.translate_batch(lines, asynchronous=True)
    while not results[0]._call.running():
        time.sleep(0.01)
    for calls in waiting, results:
        calls[0].cancel()
        with pytest.raises(nmt.StoppedError, match="^stopped by the caller$"):
            calls[0].result(20)

    async def too_slow():
        await asyncio.wait_for(translator.translate_batch_async(lines * 500), 0.05)

    async def canceled():
        task = asyncio.create_task(translator.translate_batch_async(lines * 500))
        asyncio.get_running_loop().call_later(0.05, task.cancel)
        await task

    for call, error in (too_slow, asyncio.TimeoutError), (canceled, asyncio.CancelledError):
        with pytest.raises(error):
            asyncio.run(call())
    assert len(translator.translate_batch(lines)) == len(lines)


def test_calls_after_a_thread_that_could_not_start(model, monkeypatch):
    translator, start = nmt.Translator(model), threading.Thread.start

    def refuse(thread):
        monkeypatch.setattr(threading.Thread, "start", start)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        translator.translate_batch(["a"], asynchronous=True)
    assert translator.translate_batch(["a"], asynchronous=True)[0].result(60).hypotheses


HANDLER = """
import nmt, os, signal, sys, threading
translator = nmt.Translator(sys.argv[1])
calls, start = [], threading.Thread.start
def call():
    calls.append(translator.translate_batch(["a"], asynchronous=True)[0])
def interrupted(thread):
    threading.Thread.start = start
    os.kill(os.getpid(), signal.SIGUSR1)
    start(thread)
signal.signal(signal.SIGUSR1, lambda *_: call() if sys.argv[2] == "call" else translator.close())
threading.Thread.start = interrupted
call()
print([each.result(60).hypotheses for each in calls] == [calls[0].result().hypotheses] * len(calls),
      len(calls))
"""


@pytest.mark.parametrize("what, calls", [("call", 2), ("close", 1)])
def test_signal_handlers_that_interrupt_an_asynchronous_call(model, what, calls):
    done = subprocess.run([sys.executable, "-c", HANDLER, model, what], capture_output=True,
                          text=True, timeout=60)
    assert done.stdout == f"True {calls}\n", done.stderr


def test_other_threads_run_meanwhile(translator, lines):
    counted, over = 0, threading.Event()

    def count():
        nonlocal counted
        while not over.wait(0.001):
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    translator.translate_batch(lines * 40)
    over.set()
    thread.join()
    assert counted > 20


SCRIPT = """
import os, signal, sys, threading, time
import nmt
translator = nmt.Translator(sys.argv[1])
lines = open(sys.argv[2]).read().splitlines()
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    if sys.argv[3]:
        translator.translate_file(sys.argv[2], sys.argv[3])
    else:
        translator.translate_batch(lines)
except KeyboardInterrupt:
    assert time.monotonic() - start < 10, time.monotonic() - start
    assert len(translator.translate_batch(lines[:5])) == 5
    print("interrupted")
"""


@pytest.mark.parametrize("to_file", [False, True])
def test_ctrl_c_stops_translating(model, corpus, lines, tmp_path, to_file):
    many, output = tmp_path / "many", tmp_path / "output"
    many.write_text("\n".join(lines[:60] * 2000))
    done = subprocess.run([sys.executable, "-c", SCRIPT, model, many, output if to_file else ""],
                          capture_output=True, text=True, timeout=120)
    assert done.stdout == "interrupted\n", done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["many"]


def test_ctrl_c_while_another_thread_translates(model, corpus, tmp_path):
    script = f"""
import nmt, os, signal, threading, time
translator = nmt.Translator({str(model)!r}, cpu_threads=1)
text = open({str(corpus / "train.en")!r}).read() * 40
open({str(tmp_path / "long")!r}, "w").write(text)
thread = threading.Thread(daemon=True, target=translator.translate_file,
                          args=({str(tmp_path / "long")!r}, {str(tmp_path / "out")!r}))
thread.start()
time.sleep(0.5)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
try:
    translator.translate_batch(["a"])
except KeyboardInterrupt:
    print(thread.is_alive(), time.monotonic() - begin)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", script + "\n"], capture_output=True, text=True,
                          timeout=120)
    alive, seconds = done.stdout.split() if done.stdout else ("", done.stderr)
    assert alive == "True" and float(seconds) < 5
