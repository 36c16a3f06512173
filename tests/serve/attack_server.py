#!/usr/bin/env python3
"""Attacks nmt-serve while another client is served, and prints what came back.

    attack_server.py BIN EN-DE=MODEL [--malformed 100000] [-- OPTIONS OF NMT-SERVE]

The attacks: malformed requests, bodies of 100 MB, alternatives=10000, half-open connections,
requests that trickle, and clients that are killed (SIGKILL) with open requests. The other client
must get all its translations, and the server must end with status 0. With a build under
AddressSanitizer (docs/guide/serve.md), this status also means that nothing leaked."""
import argparse
import json
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/bench"))
from load_server import Client, metrics, percentile, requests_of, resident

BODY_BYTES = 100_000_000
HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
KILLED = """
import socket, sys, time
body = b'{"q": ["A man sleeps.", "Two dogs run."], "source": "%s", "target": "%s"}'
request = b"POST /translate HTTP/1.1\\r\\nContent-Type: application/json\\r\\n\
Content-Length: %%d\\r\\n\\r\\n%%s" %% (len(body), body)
connections = [socket.create_connection(("127.0.0.1", %d)) for _ in range(20)]
for i, connection in enumerate(connections):
    connection.sendall(request[:len(request) if i %% 2 else len(request) // 2])
print("sent", flush=True)
time.sleep(60)
"""


def malformed(generator, good):
    """A request that is wrong in one of several ways; sometimes one that a mutation left right."""
    kind = generator.randrange(8)
    if kind == 0:
        return bytes(generator.randrange(256)
                     for _ in range(generator.randrange(1, 300))) + b"\r\n\r\n"
    if kind == 1:
        return generator.choice(
            (b"GET / HTTP/9.9\r\n\r\n", b"POST /translate HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
             b"POST /translate HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
             b"\x16\x03\x01\x02\x00",
             b"POST /translate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
             b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
    if kind == 2:
        return b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n\r\n"
    if kind == 3:
        return b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 3000 + b"\r\n"
    if kind in (4, 5):
        body = generator.choice((b"{", b"[" * 5000, b'{"q": 1e999}',
                                 b'{"q": "\xff", "source": "en"}',
                                 b'{"q": null, "source": [], "target": {}}',
                                 b'{"q": "a", "source": "en", "target": "zz"}'))
        return HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    changed = bytearray(good)
    for _ in range(generator.randrange(1, 6)):
        changed[generator.randrange(len(changed))] = generator.randrange(256)
    return bytes(changed[:generator.randrange(1, len(changed) + 1)])


def exchange(port, data, statuses, wait=0.5):
    """Sends bytes on a connection of their own and counts the status that comes back."""
    status = "none"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            connection.settimeout(wait)
            answer = connection.recv(65536)
            if answer:
                status = answer[9:12].decode("latin-1")
    except OSError as error:
        status = type(error).__name__
    statuses[status] = statuses.get(status, 0) + 1


class Other(threading.Thread):
    """A client that behaves."""

    def __init__(self, port, requests):
        super().__init__()
        self.port, self.requests = port, requests
        self.times, self.failures, self.over = [], [], threading.Event()

    def run(self):
        client, number = None, 0
        while not self.over.wait(0.05):
            try:
                client = client or Client(self.port)
                client.socket.settimeout(20)
                client.send(self.requests[number % len(self.requests)])
                while (status := client.receive()) is None:
                    pass
                self.times.append(time.perf_counter() - client.sent)
                if status != 200:
                    self.failures.append(status)
            except OSError as error:
                self.failures.append(repr(error))
                client = None
            number += 1


def send_malformed(port, good, count):
    statuses, threads = {}, []

    def work(seed, share):
        generator = random.Random(seed)
        for _ in range(share):
            exchange(port, malformed(generator, good), statuses)

    for seed in range(8):
        threads.append(threading.Thread(target=work, args=(seed, count // 8)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return statuses


def send_large(port):
    """Half of the bodies have an announced length, half are in chunks; all of it is offered."""
    statuses, piece = {}, b"x" * 1_000_000
    for i in range(6):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            sent, answer = 0, b""
            try:
                connection.sendall(HEAD + (b"Transfer-Encoding: chunked\r\n\r\n" if i % 2
                                           else b"Content-Length: %d\r\n\r\n" % BODY_BYTES))
                while sent < BODY_BYTES:
                    connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if i % 2 else piece)
                    sent += len(piece)
            except OSError:
                pass
            try:
                answer = connection.recv(65536)
            except OSError:
                pass
            status = answer[9:12].decode() or "closed"
            statuses[status] = statuses.get(status, 0) + 1
    return statuses


def send_many_alternatives(port, languages):
    statuses = {}
    body = json.dumps({"q": "a", **languages, "alternatives": 10000}).encode()
    for _ in range(100):
        exchange(port, HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body, statuses, wait=20)
    return statuses


def hold_open(port, trickle, seconds=10):
    """Connections that send nothing, or a byte at a time."""
    kept = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(300)]
    closed, end, at = set(), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for i, connection in enumerate(kept if trickle else ()):
            try:
                connection.send(HEAD[at:at + 1])
            except OSError:
                closed.add(i)
        at = (at + 1) % len(HEAD)
        time.sleep(0.5)
    for connection in kept:
        connection.close()
    return {"connections": len(kept), **({"closed by the server": len(closed)} if trickle else {})}


def kill_clients(port, languages):
    for _ in range(10):
        client = subprocess.Popen([sys.executable,
                                   "-c", KILLED % (languages["source"], languages["target"], port)],
                                  stdout=subprocess.PIPE)
        client.stdout.readline()
        client.kill()
        client.wait()
        client.stdout.close()
    return {"clients": 10, "connections": 200}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("model", help="EN-DE=DIRECTORY")
    parser.add_argument("--malformed", type=int, default=100_000)
    own, behind = sys.argv[1:], []
    if "--" in own:
        own, behind = own[:own.index("--")], own[own.index("--") + 1:]
    options = parser.parse_args(own)
    direction = options.model.split("=")[0]
    languages = dict(zip(("source", "target"), direction.split("-")))
    server = subprocess.Popen([f"{options.bin}/nmt-serve", "--port", "0", "--no-access-log",
                               "--read-timeout", "3", options.model, *behind],
                              stderr=subprocess.PIPE, text=True)
    found = next((match for line in server.stderr
                  if (match := re.search(r"listening on http://[^:]+:(\d+)", line))), None)
    if found is None:
        sys.exit("nmt-serve did not start")
    port, log = int(found[1]), []
    reader = threading.Thread(target=lambda: log.extend(server.stderr))
    reader.start()
    requests = requests_of(["A man sleeps.", "Two dogs run over the grass.",
                            "A woman reads a book."], direction)
    other = Other(port, requests)
    other.start()
    time.sleep(1)
    print(f"start: {resident(server.pid) / 1e6:.1f} MB", flush=True)
    for name, attack in ((f"{options.malformed} malformed requests",
                          lambda: send_malformed(port, requests[0], options.malformed)),
                         ("bodies of 100 MB", lambda: send_large(port)),
                         ("alternatives=10000", lambda: send_many_alternatives(port, languages)),
                         ("half-open connections", lambda: hold_open(port, False)),
                         ("trickling requests", lambda: hold_open(port, True)),
                         ("killed clients", lambda: kill_clients(port, languages))):
        begin, before = time.perf_counter(), len(other.times)
        result = attack()
        print(f"{name}: {dict(sorted(result.items(), key=str))}; {time.perf_counter() - begin:.1f} "
              "s, other client: "
              f"{len(other.times) - before} translations; {resident(server.pid) / 1e6:.1f} MB, "
              f"{metrics(port)['nmt_connections']:.0f} connections", flush=True)
    other.over.set()
    other.join()
    server.send_signal(signal.SIGTERM)
    status = server.wait(timeout=60)
    reader.join()
    print(f"other client: {len(other.times)} translations, "
          f"p50 {1000 * percentile(other.times, 0.5):.0f} ms, p99 "
          f"{1000 * percentile(other.times, 0.99):.0f} ms, failures {other.failures[:5]}; "
          f"exit status {status}")
    if status or not other.times or other.failures:
        print("".join(log[-60:]), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
