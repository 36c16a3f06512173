#!/usr/bin/env python3
"""The HTTP transport of nmt-serve: requests that are malformed, too large or too slow are refused,
and other clients are still served. Usage: test_http.py BIN_FOLDER."""
import contextlib
import json
import re
import socket
import subprocess
import sys
import time
import unittest

from running_server import BIN, SECONDS, WithServer, serving


class Http(WithServer):
    def test_malformed_requests(self):
        cases = [b"\r\n\r\n", b"GET\r\n\r\n", b"\0" * 1000, b"GET / HTTP/9.9\r\n\r\n",
                 b"POST /translate HTTP/1.1\r\n"
                 b"Content-Length: -5\r\n\r\n",
                 b"POST /translate HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
                 b"POST /translate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                 b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n\r\n",
                 b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
                 b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00"]
        for i in range(200):
            answer = self.server.raw(cases[i % len(cases)], wait=i < 22)
            if answer:
                self.assertRegex(answer, rb"^HTTP/1\.1 (4\d\d|503) ", cases[i % len(cases)][:40])
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)

    def test_versions_of_http(self):
        """An answer has the version of its request, and says whether the connection stays open."""
        for head, version, kept in (("HTTP/1.0", "1.0", False),
                                    ("HTTP/1.0\r\nConnection: keep-alive", "1.0", True),
                                    ("HTTP/1.1", "1.1", True),
                                    ("HTTP/1.1\r\nConnection: close", "1.1", False)):
            with socket.create_connection(("127.0.0.1", self.server.port),
                                          timeout=SECONDS) as connection:
                connection.sendall(f"GET /health {head}\r\n\r\n".encode())
                lines = connection.recv(65536).decode().split("\r\n")
                self.assertEqual(lines[0], f"HTTP/{version} 200 OK")
                shown = [line.lower() for line in lines if line.lower().startswith("connection:")]
                self.assertEqual(shown,
                                 {("1.0", True): ["connection: keep-alive"],
                                  ("1.1", False): ["connection: close"]}.get((version, kept), []))
                if kept:
                    connection.sendall(b"GET /health HTTP/1.1\r\n\r\n")
                self.assertEqual(bool(connection.recv(65536)), kept)

    def test_forms_of_requests(self):
        def statuses(data):
            return [int(each) for each in re.findall(rb"HTTP/1\.1 (\d+) ", self.server.raw(data))]

        end = b" HTTP/1.1\r\nConnection: close\r\n\r\n"
        for target, status in ((b"http://localhost:5000/health", 200),
                               (b"HTTP://x/health?a=b", 200), (b"http://x", 200),
                               (b"http://x?a", 200),
                               (b"https://x/nothing", 404), (b"ftp://x/health", 404)):
            self.assertEqual(statuses(b"GET " + target + end), [status], target)
        self.assertEqual(statuses(b"\r\n\r\nGET /health HTTP/1.1\r\n\r\n\r\nGET /health" + end),
                         [200, 200])
        self.assertEqual(statuses(b"\r\r\nGET /health" + end), [400])
        body = json.dumps({"q": "a", "source": "en", "target": "en"}).encode()
        head = (b"POST /translate HTTP/1.1\r\nConnection: close\r\nContent-Type: "
                b"application/json\r\n")
        chunks = b"\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        for coding, status in ((b"chunked", 200), (b"Chunked", 200), (b"gzip, chunked", 501),
                               (b"gzip", 501),
                               (b"chunked\r\nTransfer-Encoding: gzip", 400)):
            self.assertEqual(statuses(head + b"Transfer-Encoding: " + coding + chunks),
                             [status], coding)
        for coding, status in ((b"identity", 200), (b"gzip", 415)):
            self.assertEqual(statuses(head + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s"
                                      % (coding, len(body), body)), [status])

    def test_long_headers(self):
        """Up to the largest --max-header: 200 up to the limit, 431 beyond it, and a larger limit is
        refused at the start."""
        for limit in (20_000, 65_536):
            with serving(self.models, "--max-header", limit) as server:
                def status(size):
                    head = b"GET /health HTTP/1.1\r\nConnection: close\r\nX: "
                    return int(re.match(rb"HTTP/1\.1 (\d+) ", server.raw(
                        head + b"x" * (size - len(head) - 4) + b"\r\n\r\n"))[1])
                self.assertEqual([status(size) for size in (limit // 2, limit, limit + 1,
                                                            limit + 5000, 2_000_000)],
                                 [200, 200, 431, 431, 431])
                for width in (10, 100, 1000):
                    head = b"GET /health HTTP/1.1\r\nConnection: close\r\n"
                    field = b"A: %s\r\n" % (b"x" * (width - 5))
                    head += field * ((limit - len(head) - 7) // width - 1)
                    for size, wanted in ((limit, b"200"), (limit + 1, b"431")):
                        last = b"A: %s\r\n\r\n" % (b"x" * (size - len(head) - 7))
                        answer = server.raw(head + last)
                        self.assertEqual(re.findall(rb"HTTP/1\.1 (\d+) ", answer), [wanted], size)
                end = b"A: b\r\n" * (limit // 6 - 20) + b"\r\n"
                answer = server.raw(b"GET /health HTTP/1.1\r\n" + end
                                    + b"GET /health HTTP/1.1\r\nConnection: close\r\n" + end)
                self.assertEqual(re.findall(rb"HTTP/1\.1 (\d+) ", answer), [b"200", b"200"])
        done = subprocess.run([str(BIN / "nmt-serve"), self.models, "--port", "0",
                               "--max-header", "65537"], capture_output=True, text=True,
                              timeout=SECONDS)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("is not an integer from 256 to 65536", done.stderr)

    def test_fields_that_trickle_count(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=SECONDS) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with contextlib.suppress(OSError):
                client.sendall(b"GET /health HTTP/1.1\r\n")
                for _ in range(12):
                    time.sleep(0.02)
                    client.sendall(b"A: " + b"x" * 1000 + b"\r\n")
                client.sendall(b"\r\n")
            self.assertTrue(client.recv(65536).startswith(b"HTTP/1.1 431 "))

    def test_large_bodies_are_not_read(self):
        head = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        answer = self.server.raw(head + b"Content-Length: 100000000\r\n\r\n" + b"x" * 3_000_000)
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer[:100])
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        answer = self.server.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 20)
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer[:100])
        self.logged(r"request method=POST path=/translate status=413 ", times=2)
        self.assertGreaterEqual(
            self.server.metric('nmt_http_requests_total{path="/translate",status="413"}'), 2)
        answer = self.server.raw(head.replace(b"POST", b"HEAD")
                                 + b"Content-Length: 100000000\r\n\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 ")
                        and answer.endswith(b"\r\n\r\n"), answer)

    def test_bodies_count_as_they_arrive(self):
        """An announced length holds no room of --max-pending-bytes; only one that cannot
        fit is refused."""
        head = b"POST /translate HTTP/1.1\r\nContent-Type: application/json\r\n"
        with serving(self.models, "--max-body", "100000",
                     "--max-pending-bytes", "150000") as server:
            def announce(sent):
                connection = socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)
                connection.sendall(head + b"Content-Length: 75000\r\n\r\n" + b" " * sent)
                return connection

            idle = [announce(0) for _ in range(5)]
            server.translate("a")
            body = json.dumps({"q": "a", "source": "en", "target": "de"}).encode()
            chunked = (head + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n"
                              b"0\r\n\r\n" % (len(body), body))
            self.assertTrue(server.raw(chunked).startswith(b"HTTP/1.1 200 "))
            # the second fits whole beside what the first has sent
            full = [announce(70000) for _ in range(2)]
            end = time.monotonic() + 10
            while server.metric("nmt_pending_bytes") < 140000 and time.monotonic() < end:
                time.sleep(0.05)
            self.assertEqual(server.metric("nmt_pending_bytes"), 140000)
            large = json.dumps({"q": "a" * 20000, "source": "en", "target": "de"})
            status, headers, _ = server.ask("POST", "/translate", large,
                                            {"Content-Type": "application/json"})
            self.assertEqual((status, "Retry-After" in headers), (503, True))
            answer = server.raw(head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n"
                                % (len(large), large.encode()))
            self.assertTrue(answer.startswith(b"HTTP/1.1 503 "), answer[:100])
            for connection in [*idle, *full]:
                connection.close()
            while server.metric("nmt_pending_bytes") > 0 and time.monotonic() < end:
                time.sleep(0.05)
            self.assertEqual(server.ask("POST", "/translate", large,
                                        {"Content-Type": "application/json"})[0], 200)

    def test_slow_and_vanishing_clients(self):
        """Half-open connections and trickling headers end by the read time-out; others are
        served."""
        slow = [socket.create_connection(("127.0.0.1", self.server.port), timeout=SECONDS)
                for _ in range(50)]
        for i, connection in enumerate(slow):
            connection.sendall((b"", b"POST /tran",
                                b"POST /translate HTTP/1.1\r\nContent-Length: 50\r\n\r\n{")[i % 3])
        body = json.dumps({"q": self.lines, "source": "en", "target": "de"}).encode()
        request = (b"POST /translate HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: "
                   + str(len(body)).encode() + b"\r\n\r\n" + body)
        for _ in range(30):  # gone before the answer
            self.server.raw(request, wait=False)
        self.assertEqual(self.server.translate(self.lines[0])["translatedText"],
                         self.expected(self.lines[:1])[0])
        end = time.monotonic() + 10
        while self.server.metric("nmt_connections") > 2 and time.monotonic() < end:
            time.sleep(0.1)
        self.assertLessEqual(self.server.metric("nmt_connections"), 2)
        self.assertEqual(self.server.metric("nmt_pending_bytes"), 0)
        for connection in slow:
            connection.close()

    def test_headers_on_a_kept_connection_have_the_time_of_a_request(self):
        """--idle-timeout (3 s) is for connections without a request, --read-timeout (1 s) for a
        header that trickles."""
        with socket.create_connection(("127.0.0.1", self.server.port),
                                      timeout=SECONDS) as connection:
            for pause in (1.5, 0.3):
                connection.sendall(b"GET /health HTTP/1.1\r\n\r\n")
                self.assertIn(b"200 OK", connection.recv(65536))
                time.sleep(pause)
            connection.sendall(b"GET /hea")
            begin = time.monotonic()
            self.assertEqual(connection.recv(65536), b"")
            self.assertLess(time.monotonic() - begin, 2.3)

    def test_header_and_body_share_the_time_of_a_request(self):
        """--read-timeout (1 s) from the first byte to the last."""
        with socket.create_connection(("127.0.0.1", self.server.port),
                                      timeout=SECONDS) as connection:
            begin = time.monotonic()
            connection.sendall(b"POST /translate HTTP/1.1\r\nContent-Type: application/json\r\n"
                               b"Content-Length: 50\r\n")
            time.sleep(0.9)
            connection.sendall(b"\r\n{")
            self.assertEqual(connection.recv(65536), b"")
            self.assertLess(time.monotonic() - begin, 1.85)

    def test_old_clients_are_not_told_to_continue(self):
        answer = self.server.raw(b"POST /detect HTTP/1.0\r\nExpect: 100-continue\r\nContent-Type: "
                                 b"application/json\r\nContent-Length: 2\r\n\r\n{}")
        self.assertTrue(answer.startswith(b"HTTP/1.0 400 "), answer[:100])

    def test_clients_that_vanish_behind_a_further_request_are_noticed(self):
        body = json.dumps({"q": self.lines * 25, "source": "en", "target": "de"}).encode()
        request = (b"POST /translate HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: "
                   b"%d\r\n\r\n%s" % (len(body), body))
        name = 'nmt_jobs_total{result="canceled"}'
        with serving(self.models, "--beam-size", "60", "--mini-batch", "8", "--cpu-threads", "1",
                     "--request-timeout", "600") as server:
            with socket.create_connection(("127.0.0.1", server.port),
                                          timeout=SECONDS) as connection:
                connection.sendall(request)
                while server.metric("nmt_queue_sentences") == 0:
                    time.sleep(0.01)
                connection.sendall(b"G")
                time.sleep(0.2)
            end = time.monotonic() + 5
            while server.metric(name) == 0 and time.monotonic() < end:
                time.sleep(0.01)
            self.assertEqual(server.metric(name), 1)
            with socket.create_connection(("127.0.0.1", server.port),
                                          timeout=SECONDS) as connection:
                body = json.dumps({"q": self.lines[:8], "source": "en", "target": "de"}).encode()
                connection.sendall(b"POST /translate HTTP/1.1\r\nContent-Type: application/json\r\n"
                                   b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
                                   + b"GET /hea")
                time.sleep(0.05)
                connection.sendall(b"lth HTTP/1.1\r\nConnection: close\r\n\r\n")
                got = b""
                while part := connection.recv(65536):
                    got += part
            self.assertEqual(re.findall(rb"HTTP/1\.1 (\d+)", got), [b"200", b"200"])
            self.assertTrue(got.endswith(b'{"status":"ok"}'), got[-100:])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
