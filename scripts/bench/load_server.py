#!/usr/bin/env python3
"""Loads nmt-serve and prints its speed against nmt-translate, latencies and the growth of memory.

    load_server.py BIN EN-DE=MODEL FILE [--clients 64] [--seconds 60] [-- OPTIONS OF NMT-SERVE]

1. nmt-translate translates FILE, and again after 3.
2. nmt-serve starts, with --starts several times; the time to its first answer is measured.
3. All clients send single lines of FILE one after another for the given time.
4. For a third of the time, requests arrive at half that rate, at random times.
5. With --hostile, the same as 3 while other clients send malformed, endless and too large requests,
   half-open connections and requests that they do not wait for.

The clients are one process on the same machine."""
import argparse
import collections
import contextlib
import http.client
import json
import os
import random
import re
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

from common import arguments as checks
from common.system import cpu_seconds


def model(text):
    """EN-DE=DIRECTORY"""
    found = re.fullmatch(r"(?:[^-_=]+-[^-_=]+|[^_=]+_[^_=]+)=(.+)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}', expected EN-DE=DIRECTORY")
    checks.folder(found[1])
    return text


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=checks.folder)
    parser.add_argument("model", type=model, help="EN-DE=DIRECTORY")
    parser.add_argument("file", type=checks.file)
    parser.add_argument("--clients", type=checks.whole(), default=64)
    parser.add_argument("--seconds", type=checks.number(above=0), default=60)
    parser.add_argument("--starts", type=checks.whole(), default=1,
                        help="starts of the server, to measure its first answer")
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--memory", type=checks.new_file, metavar="FILE",
                        help="write seconds and resident bytes of each run")
    own, behind = sys.argv[1:], []
    if "--" in own:
        own, behind = own[:own.index("--")], own[own.index("--") + 1:]
    options = parser.parse_args(own)
    options.options = behind
    checks.need_programs(options.bin, "nmt-serve", "nmt-translate")
    return options


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))] if values else float("nan")


def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def metrics(port):
    """The values of /metrics without labels."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    return {name: float(value) for name, value in re.findall(r"^(\w+) ([-+.\de]+)$", text, re.M)}


class Client:
    """A keep-alive connection with at most one open request."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.sent = b"", 0.0

    def send(self, request, now=None):
        self.sent = now or time.perf_counter()
        self.socket.sendall(request)

    def receive(self):
        """The status once the whole answer is there."""
        part = self.socket.recv(65536)
        if not part:
            raise ConnectionError("the server closed a connection")
        self.buffer += part
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        length = int(re.search(rb"Content-Length: (\d+)", self.buffer)[1])
        if len(self.buffer) < end + 4 + length:
            return None
        status = int(self.buffer[9:12])
        self.buffer = b""
        return status


def requests_of(lines, direction):
    source, target = direction.split("_" if "_" in direction else "-")
    result = []
    for line in lines:
        body = json.dumps({"q": line, "source": source, "target": target}).encode()
        result.append(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                      b"application/json\r\n"
                      b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    return result


def translate(options, lines):
    """Sentences per second of nmt-translate, and CPU time per sentence."""
    done = subprocess.run([f"{options.bin}/nmt-translate", "-m", options.model.split("=", 1)[1],
                           "-i", options.file, "-o", os.devnull],
                          capture_output=True, text=True, check=True)
    speed = float(re.search(r"([\d.]+) sentences/s", done.stderr)[1])
    processor = float(re.search(r"([\d.]+) s of CPU time", done.stderr)[1]) / lines
    print(f"nmt-translate: {speed:.1f} sentences/s, {1000 * processor:.2f} ms of CPU time per "
          "sentence", flush=True)
    return speed, processor


class Run:
    """Clients that send requests until the time is over; `rate`: per second in all, else each at
    once after its answer."""

    def __init__(self, port, pid, requests, clients, seconds, rate=None):
        self.times, self.statuses, self.memory = [], {}, []
        selector = selectors.DefaultSelector()
        idle = collections.deque(Client(port) for _ in range(clients))
        for client in idle:
            selector.register(client.socket, selectors.EVENT_READ, client)
        before, server_before, own_before = metrics(port), cpu_seconds(pid), time.process_time()
        start = time.perf_counter()
        end, due, number, waiting = start + seconds, start, 0, 0
        next_sample = start
        generator = random.Random(1)
        while True:
            now = time.perf_counter()
            if now >= next_sample:
                self.memory.append((now - start, resident(pid)))
                next_sample += 1
            while now < end and idle and (rate is None or due <= now):
                client = idle.popleft()  # in turn, so that none is closed as unused
                # At a fixed rate, the wait for a free client counts too.
                client.send(requests[number % len(requests)], None if rate is None else due)
                number += 1
                waiting += 1
                if rate is not None:
                    due += generator.expovariate(rate)
            if now >= end and waiting == 0:
                break
            timeout = 0.05 if rate is None or not idle else max(0.0, min(due - now, 0.05))
            for key, _ in selector.select(timeout):
                status = key.data.receive()
                if status is None:
                    continue
                self.times.append(time.perf_counter() - key.data.sent)
                self.statuses[status] = self.statuses.get(status, 0) + 1
                idle.append(key.data)
                waiting -= 1
        self.seconds = time.perf_counter() - start
        answered = max(self.statuses.get(200, 0), 1)
        self.processor = (cpu_seconds(pid) - server_before) / answered
        self.own_processor = (time.process_time() - own_before) / answered
        after = metrics(port)
        done = {name: after[name] - before[name]
                for name in ("nmt_batches_total", "nmt_sentences_total",
                             "nmt_translating_seconds_total")}
        self.batch = done["nmt_sentences_total"] / max(done["nmt_batches_total"], 1)
        self.busy = done["nmt_translating_seconds_total"] / self.seconds
        for key in list(selector.get_map().values()):
            key.data.socket.close()

    def speed(self):
        return self.statuses.get(200, 0) / self.seconds

    def slope(self):
        """Bytes per second of resident memory over the second half (least squares)."""
        half = [each for each in self.memory if each[0] >= self.seconds / 2]
        if len(half) < 3:
            return float("nan")
        mean_t = sum(t for t, _ in half) / len(half)
        mean_m = sum(m for _, m in half) / len(half)
        return (sum((t - mean_t) * (m - mean_m)
                    for t, m in half) / sum((t - mean_t) ** 2 for t, _ in half))

    def text(self):
        return ((f"{self.speed():.1f} sentences/s, p50 {1000 * percentile(self.times, 0.5):.0f} "
                 "ms, p99 "
                 f"{1000 * percentile(self.times, 0.99):.0f} ms, statuses {self.statuses}; "
                 "CPU time per sentence: server "
                 f"{1000 * self.processor:.2f} ms, clients {1000 * self.own_processor:.2f} ms; "
                 f"{self.batch:.1f} sentences per batch, "
                 f"translating {100 * self.busy:.0f} % of the time"))


def attack(port, over, counts):
    """Sends what no client should send, until `over` is set."""
    generator = random.Random(2)
    head = b"POST /translate HTTP/1.1\r\nContent-Type: application/json\r\n"
    kept = []
    while not over.is_set():
        kind = generator.randrange(7)
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=5)
            if kind == 0:  # malformed
                connection.sendall(bytes(generator.randrange(256) for _ in range(200))
                                   + b"\r\n\r\n")
            elif kind == 1:  # half-open
                kept.append(connection)
                connection = None
            elif kind == 2:  # trickles
                connection.sendall(head[:generator.randrange(1, len(head))])
                kept.append(connection)
                connection = None
            elif kind == 3:  # 100 MB
                connection.sendall(head + b"Content-Length: 100000000\r\n\r\n" + b"x" * 1000000)
            elif kind == 4:
                body = b'{"q": "a", "source": "en", "target": "de", "alternatives": 10000}'
                connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            elif kind == 5:  # does not wait
                body = json.dumps({"q": ["A man sleeps."] * 5, "source": "en",
                                   "target": "de"}).encode()
                connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            else:  # broken JSON
                connection.sendall(head + b"Content-Length: 4\r\n\r\n{[{[")
            counts[kind] = counts.get(kind, 0) + 1
            if connection:
                connection.close()
        except OSError:
            counts["refused"] = counts.get("refused", 0) + 1
        if len(kept) > 200:
            kept.pop(0).close()
        time.sleep(0.002)
    for connection in kept:
        connection.close()


@contextlib.contextmanager
def started(options, request):
    """The server's process and port, the seconds until it listened and until its first answer. The
    server stops at the end of the block."""
    begin = time.perf_counter()
    server = subprocess.Popen([f"{options.bin}/nmt-serve", "--port", "0",
                               "--no-access-log", options.model, *options.options],
                              stderr=subprocess.PIPE, text=True)
    try:
        port, said = None, []
        for line in server.stderr:
            said.append(line.strip())
            found = re.search(r"listening on http://[^:]+:(\d+)", line)
            if found:
                port = int(found[1])
                break
        if port is None:
            checks.fail(f"nmt-serve: status {server.wait()}: "
                        f"{said[-1] if said else 'it said nothing'}", checks.FAILED)
        listening = time.perf_counter() - begin
        threading.Thread(target=lambda: [print(line, end="", file=sys.stderr)
                                         for line in server.stderr], daemon=True).start()
        first = Client(port)
        first.send(request)
        while first.receive() is None:
            pass
        answered = time.perf_counter() - begin
        first.socket.close()
        yield server, port, listening, answered
    finally:
        if server.poll() is None:
            stop(server)


def stop(server):
    """Its exit status."""
    server.send_signal(signal.SIGTERM)
    try:
        return server.wait(timeout=60)
    except subprocess.TimeoutExpired:
        server.kill()
        return server.wait()


def main():
    options = arguments()
    try:
        return load(options)
    except ConnectionError as error:
        checks.fail(f"nmt-serve: {error}", checks.FAILED)


def load(options):
    """The exit status of the script."""
    direction = options.model.split("=", 1)[0]
    lines = [line for line in checks.read_lines(options.file) if line.strip()]
    before = translate(options, len(lines))
    requests = requests_of(lines, direction)
    starts = []
    for number in range(1, options.starts + 1):
        with started(options, requests[0]) as (server, port, listening, answered):
            print(f"start: listening after {1000 * listening:.0f} ms, first answer after "
                  f"{1000 * answered:.0f} ms, "
                  f"{resident(server.pid) / 1e6:.1f} MB", flush=True)
            starts.append(answered)
            if number == options.starts:
                return measure(options, server, port, requests, before, starts)


def measure(options, server, port, requests, before, starts):
    """The exit status of the script. `before`: what translate() returned before the starts."""
    print(f"first answer: median {1000 * statistics.median(starts):.0f} ms, "
          f"{1000 * min(starts):.0f} to "
          f"{1000 * max(starts):.0f} ms in {len(starts)} starts", flush=True)

    full = Run(port, server.pid, requests, options.clients, options.seconds)
    # The other work of the machine changes with time, so the reference is what nmt-translate does
    # before and after.
    reference, processor = map(statistics.mean,
                               zip(before, translate(options, len(requests))))
    print(f"{options.clients} clients: {full.text()}, {100 * full.speed() / reference:.1f} % of "
          "nmt-translate "
          f"({100 * processor / full.processor:.1f} % by CPU time)", flush=True)
    print(f"memory: {full.memory[-1][1] / 1e6:.1f} MB at the end, {full.slope() / 1e3:+.2f} kB/s "
          "in the second half", flush=True)
    half = Run(port, server.pid, requests, options.clients, max(options.seconds / 3, 5),
               full.speed() / 2)
    print(f"half load: {half.text()}", flush=True)
    bad = {status for run in (full, half) for status in run.statuses} - {200}
    if options.hostile:
        over, counts = threading.Event(), {}
        attackers = [threading.Thread(target=attack, args=(port, over, counts)) for _ in range(4)]
        for thread in attackers:
            thread.start()
        try:
            hostile = Run(port, server.pid, requests, options.clients, options.seconds)
        finally:
            over.set()
        for thread in attackers:
            thread.join()
        print(f"hostile: {hostile.text()}; {sum(counts.values())} hostile connections", flush=True)
        print(f"memory: {hostile.memory[-1][1] / 1e6:.1f} MB at the end, "
              f"{hostile.slope() / 1e3:+.2f} kB/s in the second half")
        bad |= set(hostile.statuses) - {200}
    if options.memory:
        with open(options.memory, "w", encoding="ascii") as file:
            for name, run in (("full", full), ("half", half)) + ((("hostile", hostile),)
                                                                 if options.hostile else ()):
                file.writelines(f"{name} {seconds:.0f} {size}\n" for seconds, size in run.memory)
    status = stop(server)
    print(f"exit status {status}")
    return 1 if bad or status else 0


if __name__ == "__main__":
    checks.call(main)
