#!/usr/bin/env python3
"""End-to-end tests of nmt-serve on tiny models trained by nmt-train. Usage: test_serve.py
BIN_FOLDER.

Answers have the shapes of LibreTranslate's documentation and the texts of nmt-translate; models are
chained; wrong parameters, keys, rates and overload are refused; signals end the server in order.
test_http.py has the transport."""
import concurrent.futures
import http.client
import json
import random
import re
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.parse

from running_server import BIN, SECONDS, Server, WithServer, serving


class Serve(WithServer):
    def test_shapes_of_the_documentation(self):
        server, line = self.server, self.lines[0]
        out = self.expected([line])[0]
        self.assertEqual(server.translate(line), {"translatedText": out})
        self.assertEqual(server.translate(line, format="text", api_key=""), {"translatedText": out})
        self.assertEqual(server.translate([line, line]), {"translatedText": [out, out]})
        form = urllib.parse.urlencode({"q": line, "source": "en", "target": "de"})
        status, headers, body = server.ask("POST", "/translate", form,
                                           {"Content-Type": "application/x-www-form-urlencoded"})
        self.assertEqual((status, json.loads(body)), (200, {"translatedText": out}))
        self.assertEqual(headers["Content-Type"], "application/json")
        self.assertEqual(headers["Access-Control-Allow-Origin"], "*")
        answer = server.translate(line, alternatives=3)
        self.assertEqual(set(answer), {"translatedText", "alternatives"})
        self.assertLessEqual(len(answer["alternatives"]), 3)
        self.assertNotIn(answer["translatedText"], answer["alternatives"])
        answer = server.translate([line, line], alternatives=1)
        self.assertEqual([type(each) for each in answer["alternatives"]], [list, list])
        answer = server.translate(f"<p>{line} <b>{line}</b></p>", format="html")
        self.assertEqual(answer, {"translatedText": f"<p>{out} <b>{out}</b></p>"})
        status, _, body = server.ask("GET", "/languages")
        self.assertEqual((status, json.loads(body)), (200, [
            {"code": "de", "name": "German", "targets": ["de", "fr"]},
            {"code": "en", "name": "English", "targets": ["de", "en", "fr"]},
            {"code": "fr", "name": "French", "targets": ["fr"]}]))
        status, _, body = server.ask("GET", "/health")
        self.assertEqual((status, json.loads(body)), (200, {"status": "ok"}))
        status, _, body = server.ask("GET", "/frontend/settings")
        settings = json.loads(body)
        self.assertEqual((status, set(settings)),
                         (200, {"alternativesLimit", "apiKeys", "charLimit", "filesTranslation",
                                "frontendTimeout", "keyRequired", "language",
                                "suggestions", "supportedFilesFormat", "textsLimit"}))
        self.assertEqual(settings["alternativesLimit"], 3)
        self.assertEqual(settings["language"]["source"], {"code": "de", "name": "German"})

    def test_settings_have_what_the_page_may_ask_for(self):
        """The page asks for min(3, alternativesLimit) alternatives."""
        for options, limit in ((("--max-alternatives", "0"), 0), (("--max-alternatives", "2"), 2),
                               (("--beam-size", "2"), 1), (("--beam-size", "1"), 0),
                               (("--beam-size", "12"), 3),
                               (("--beam-size", "12", "--max-alternatives", "11"), 11)):
            with serving(self.models, *options) as server:
                self.assertEqual(
                    json.loads(server.ask("GET", "/frontend/settings")[2])["alternativesLimit"],
                    limit, options)
                server.translate("a", segments=True, alternatives=limit)
                self.assertEqual(server.json("/translate", q="a", source="en", target="de",
                                             alternatives=limit + 1)[0], 400)

    def test_detection(self):
        status, answer = self.server.json("/detect", q="This is surely a long English sentence.")
        if status == 501:
            self.assertIn("detection", answer["error"])
            self.skipTest("built without a language detector")
        self.assertEqual(status, 200)
        self.assertEqual(answer[0]["language"], "en")
        self.assertGreater(answer[0]["confidence"], 50)
        answer = self.server.translate("This is surely a long English sentence.", source="auto")
        self.assertEqual(answer["detectedLanguage"]["language"], "en")
        self.assertEqual(set(answer), {"translatedText", "detectedLanguage"})
        answer = self.server.translate(["This is surely a long English sentence."], source="auto")
        self.assertEqual(len(answer["detectedLanguage"]), 1)

    def test_texts_are_those_of_nmt_translate(self):
        expected = self.expected(self.lines)
        self.assertEqual(self.server.translate(self.lines)["translatedText"], expected)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            one_by_one = list(pool.map(lambda line: self.server.translate(line)["translatedText"],
                                       self.lines))
        self.assertEqual(one_by_one, expected)
        text = " \n".join(self.lines[:5]) + "\n\n\t" + self.lines[5]
        out = " \n".join(expected[:5]) + "\n\n\t" + expected[5]
        self.assertEqual(self.server.translate(text)["translatedText"], out)

    def test_segments(self):
        text = "  " + self.lines[0] + ".\n" + self.lines[1]
        answer = self.server.translate(text, segments=True, alternatives=2)
        segments = answer["segments"]
        self.assertEqual("".join(each.get("text", each.get("source")) for each in segments), text)
        self.assertEqual("".join(each["text"] if "text" in each else each["translations"][0]["text"]
                                 for each in segments), answer["translatedText"])
        sentences = [each for each in segments if "source" in each]
        self.assertEqual(len(sentences), 2)
        for each in sentences:
            self.assertLessEqual(len(each["translations"]), 3)
            self.assertGreater(len(each["translations"]), 1)
            for translation in each["translations"]:
                for source, target in translation["alignment"]:
                    self.assertLess(source, len(each["source"].split()))
                    self.assertLess(target, len(translation["text"].split()))
        self.assertEqual(self.alignment(self.lines[1]),
                         sentences[1]["translations"][0]["alignment"])
        self.assertEqual(self.server.translate([text], segments="true")["segments"][0][0],
                         {"text": "  "})
        chained = self.server.translate(self.lines[0], target="fr", segments=True)["segments"][0]
        self.assertEqual(chained["translations"][0]["alignment"], [])
        self.assertEqual(self.server.translate("as is", target="en", segments=True)["segments"],
                         [{"text": "as is"}])
        # A number is a sentence; only text without letters and digits is none.
        number, stars = self.server.translate(["123", "***"], segments=True)["segments"]
        self.assertEqual((number, stars),
                         ([{"source": "123", "translations": [{"text": "123", "alignment": []}]}],
                          [{"text": "***"}]))
        self.assertNotIn("segments", self.server.translate("a"))
        good = {"q": "a", "source": "en", "target": "de"}
        for change in ({"segments": "maybe"}, {"segments": True, "format": "html"}):
            self.refused(400, "POST", "/translate", json.dumps({**good, **change}),
                         {"Content-Type": "application/json"})

    def alignment(self, line):
        """The alignment of nmt-translate."""
        done = subprocess.run([str(BIN / "nmt-translate"), "-m", self.models / "en-de",
                               "--alignment"], input=line + "\n",
                              capture_output=True, text=True, timeout=SECONDS, check=True)
        return sorted(([int(number) for number in pair.split("-")]
                       for pair in done.stdout.split(" ||| ")[1].split()), key=lambda pair: pair)

    def test_alternatives_and_segments_do_not_change_the_translation(self):
        lines = [*self.lines,
                 *(f"{line} 7,5 https://a.org/{i} {{x}}" for i, line in enumerate(self.lines)),
                 *(line.upper() for line in self.lines[:9])]
        for beam, limit in (("1", 0), ("2", 1), ("4", 3), ("6", 3)):
            with serving(self.models, "--beam-size", beam) as server:
                plain = server.translate(lines)["translatedText"]
                self.assertEqual(plain, self.expected(lines, "--beam-size", beam))
                for options in ({"segments": True}, {"alternatives": limit},
                                {"segments": True, "alternatives": limit}):
                    answer = server.translate(lines, **options)
                    self.assertEqual(answer["translatedText"], plain, (beam, options))
                    for text, others in zip(plain, answer.get("alternatives", [])):
                        self.assertNotIn(text, others)
                        self.assertLessEqual(len(others), limit)

    def test_page_can_be_turned_off(self):
        self.assertEqual(self.server.ask("GET", "/")[0], 200)
        with serving(self.models, "--no-web-ui") as server:
            for path in ("/", "/ui/page.js"):
                self.assertEqual(server.ask("GET", path)[0], 404)

    def test_memory_is_flat(self):
        """Many texts of many lengths, canceled and refused requests: resident memory stays the same
        after a start."""
        with serving(self.models, "--cpu-threads", "2") as server:
            def load(rounds, seed):
                generator = random.Random(seed)
                for _ in range(rounds):
                    texts = [" ".join(generator.choices(self.lines, k=generator.randrange(1, 4)))
                             for _ in range(generator.randrange(1, 40))]
                    server.translate(texts)
                    body = json.dumps({"q": texts, "source": "en", "target": "de"}).encode()
                    server.raw(b"POST /translate HTTP/1.1\r\nContent-Type: application/json\r\n"
                               b"Content-Length: %d\r\n\r\n%s" % (len(body), body), wait=False)
                    server.raw(b"POST /translate HTTP/1.1\r\nConnection: close\r\nContent-Length: "
                               b"4\r\n\r\n{[{[")

            load(20, 1)
            before = server.metric("process_resident_memory_bytes")
            load(20, 2)
            after = server.metric("process_resident_memory_bytes")
            self.assertLess(after, before + 4_000_000)

    def test_spans_survive(self):
        spans = "{name} %s https://a.org/b?c=d me@x.org 12,345.6"
        answer = self.server.translate(f"the lamp {spans} <keep>Zx qQ</keep>")["translatedText"]
        for span in [*spans.split(), "Zx qQ"]:
            self.assertIn(span, answer)
        self.assertNotIn("<keep>", answer)

    def test_same_language_and_empty_texts(self):
        self.assertEqual(self.server.translate("as <it> is", target="en"),
                         {"translatedText": "as <it> is"})
        self.assertEqual(self.server.translate(["", " \n "]), {"translatedText": ["", " \n "]})
        self.assertEqual(self.server.translate([]), {"translatedText": []})

    def test_pivot(self):
        middle = self.expected(self.lines[:4])
        self.assertEqual(self.server.translate(self.lines[:4], target="fr")["translatedText"],
                         self.expected(middle, model="de-fr"))

    def test_marked_text_survives_a_pivot(self):
        marked = self.server.translate("the lamp <keep>the lamp Zx</keep>", target="fr")
        self.assertIn("the lamp Zx", marked["translatedText"])
        self.assertNotIn("keep>", marked["translatedText"])

    def test_markers_in_html_text_stay(self):
        answer = self.server.translate("the lamp &lt;keep&gt;the lamp&lt;/keep&gt;", format="html")
        lamp = self.expected(["the lamp"])[0]
        self.assertEqual(answer["translatedText"], f"{lamp} &lt;keep&gt;{lamp}&lt;/keep&gt;")

    def test_errors(self):
        good = {"q": "a", "source": "en", "target": "de"}
        kind = {"Content-Type": "application/json"}
        for change in ({"q": None}, {"source": None}, {"target": "xx"}, {"source": "fr"},
                       {"format": "pdf"},
                       {"alternatives": 10000}, {"alternatives": -1}, {"q": 5}, {"q": ["a", 5]},
                       {"q": ["a"] * 2000}):
            self.refused(400, "POST", "/translate", json.dumps({**good, **change}), kind)
        for body in ("", "{", "[]", "nonsense", '{"q": "\ud800"}'.encode("utf-8", "surrogatepass"),
                     "[" * 90000):
            self.refused(400, "POST", "/translate", body, kind)
        self.refused(415, "POST", "/translate", "<q/>", {"Content-Type": "text/xml"})
        # As curl -d sends it.
        self.refused(415, "POST", "/translate", json.dumps(good),
                     {"Content-Type": "application/x-www-form-urlencoded"},
                     says="'Content-Type: application/json'")
        self.refused(404, "GET", "/nothing")
        self.refused(404, "GET", "/../etc/passwd")
        self.assertEqual(self.refused(405, "GET", "/translate")["Allow"], "POST, OPTIONS")
        self.refused(405, "DELETE", "/health")
        self.refused(403, "POST", "/suggest", "{}", kind)
        self.refused(403, "POST", "/translate_file", "{}", kind)
        self.refused(413, "POST", "/translate", json.dumps({**good, "q": "a " * 60000}), kind)
        status, headers, body = self.server.ask("OPTIONS", "/translate")
        self.assertEqual((status, body, headers["Access-Control-Allow-Methods"]),
                         (204, b"", "GET, POST"))
        status, headers, body = self.server.ask("HEAD", "/health")
        self.assertEqual((status, body), (200, b""))

    def test_no_address_is_not_every_address(self):
        done = subprocess.run([BIN / "nmt-serve", self.models, "--host", "", "--port", "0"],
                              capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual((done.returncode, "no address is given" in done.stderr), (2, True),
                         done.stderr)

    def test_metrics_and_log_have_no_texts(self):
        self.server.translate("the secretword lamp")
        _, headers, body = self.server.ask("GET", "/metrics")
        self.assertTrue(headers["Content-Type"].startswith("text/plain"))
        for line in body.decode().splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)+\})? [-+.\de]+)$')
        self.assertGreater(
            self.server.metric('nmt_http_requests_total{path="/translate",status="200"}'), 0)
        self.assertGreater(self.server.metric("process_resident_memory_bytes"), 1e6)
        self.logged(r"request method=POST path=/translate status=200 texts=1 characters=19 "
                    r"source=en")
        everything = "".join(self.server.log) + body.decode()
        self.assertNotIn("secretword", everything)
        self.assertNotIn("127.0.0.1", body.decode())

    def test_keys_and_rates(self):
        keys = self.home / "keys"
        keys.write_text("key one\nkey-2\n")
        with serving(self.models, "--api-keys", keys, "--requests-per-minute", "3") as server:
            fields = {"q": "a", "source": "en", "target": "en"}
            self.assertEqual(server.json("/translate", **fields)[0], 403)
            self.assertEqual(server.json("/translate", **fields, api_key="wrong")[0], 403)
            for _ in range(3):
                self.assertEqual(server.json("/translate", **fields, api_key="key-2")[0], 200)
            status, headers, _ = server.ask("POST", "/translate",
                                            json.dumps({**fields, "api_key": "key-2"}),
                                            {"Content-Type": "application/json"})
            self.assertEqual((status, headers["Retry-After"]), (429, "20"))
            self.assertEqual(server.json("/translate", **fields, api_key="key one")[0], 200)
            # Wrong keys count for the address, so that they cannot be guessed at any speed.
            self.assertEqual([server.json("/translate", **fields, api_key=f"guess {i}")[0]
                              for i in range(3)], [403, 429, 429])
            self.assertEqual(server.json("/translate", **fields, api_key="key one")[0], 200)
            self.assertEqual(server.ask("GET", "/languages")[0], 200)

    def test_overload(self):
        """A full queue, too many connections and late answers are 503 with Retry-After."""
        with serving(self.models, "--max-queue", "40", "--max-connections", "20",
                     "--request-timeout", "0.5",
                     "--beam-size", "60", "--max-length-offset", "100") as server:
            def ask(_):
                try:
                    return server.ask("POST", "/translate", json.dumps(
                        {"q": self.lines[:20], "source": "en", "target": "de"}),
                                      {"Content-Type": "application/json"})[:2]
                except (ConnectionError, http.client.HTTPException):
                    return 0, {}
            with concurrent.futures.ThreadPoolExecutor(60) as pool:
                answers = list(pool.map(ask, range(120)))
            statuses = {status for status, _ in answers}
            self.assertLessEqual(statuses, {0, 200, 503})
            self.assertIn(503, statuses)
            for status, headers in answers:
                if status == 503:
                    self.assertGreaterEqual(int(headers["Retry-After"]), 1)
            time.sleep(1)
            self.assertEqual(server.ask("GET", "/health")[0], 200)
            self.assertEqual(server.metric("nmt_queue_sentences"), 0)

    def test_glossary(self):
        word = self.lines[0].split()[1]
        glossary = self.home / "glossary.tsv"
        glossary.write_text(f"{word}\tQxzq\n")
        with serving(self.models, "--glossaries", f"en-de={glossary}") as server:
            self.assertIn("Qxzq", server.translate(self.lines[0])["translatedText"])

    def test_signals_drain(self):
        server = Server(self.models)
        body = json.dumps({"q": self.lines * 5, "source": "en", "target": "de"})
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(server.ask, "POST", "/translate", body,
                                 {"Content-Type": "application/json"}) for _ in range(4)]
            end = time.monotonic() + 10
            while server.metric("nmt_texts_total") < 800 and time.monotonic() < end:
                time.sleep(0.005)
            status = server.stop()
            self.assertEqual([each.result()[0] for each in asked], [200] * 4)
        self.assertEqual(status, 0)
        self.assertTrue(server.log[-1].endswith("stopped\n"), server.log[-3:])

    def test_the_drain_time_and_further_signals_end_the_server(self):
        """Sentences that wait are not translated when nobody can be answered any longer."""
        body = json.dumps({"q": [f"{each} {line} {line} {line}" for each in "abcde"
                                 for line in self.lines] * 4,
                           "source": "en", "target": "de"}).encode()
        request = (b"POST /translate HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: "
                   b"%d\r\n\r\n%s" % (len(body), body))
        for drain, further in (("0.5", 0), ("600", 1)):
            server = Server(self.models, "--beam-size", "40", "--max-length-offset", "100",
                            "--max-queue", "100000", "--mini-batch", "8",
                            "--request-timeout", "600", "--drain-timeout", drain,
                            "--cpu-threads", "1")
            clients = [socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)
                       for _ in range(8)]
            for client in clients:
                client.sendall(request)
            end = time.monotonic() + 20
            while server.metric("nmt_queue_sentences") < 6400 and time.monotonic() < end:
                time.sleep(0.05)
            begin = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            for _ in range(further):
                time.sleep(0.5)
                server.process.send_signal(signal.SIGTERM)
            try:
                self.assertEqual(server.process.wait(timeout=20), 0,
                                 (drain, time.monotonic() - begin))
            finally:
                server.process.kill()
                server.stop()
                for client in clients:
                    client.close()

    def test_wrong_command_lines(self):
        empty = self.home / "empty"
        empty.mkdir()
        listening = socket.create_server(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        (self.home / "bad.tsv").write_text("a\tb\tc\n")
        (self.home / "good.tsv").write_text("a\tb\n")
        good = f"en-de={self.home / 'good.tsv'}"
        for status, arguments in (
                (2, []), (2, [empty]), (2, [self.models / "en-de"]), (2, ["en-de=/nowhere"]),
                (2, ["nonsense"]),
                (2, [self.models, f"en-de={self.models / 'en-de'}"]),
                (2, [self.models, "--port", port]),
                (2, [self.models, "--port", 70000]),
                (2, [self.models, "--host", "no.such.host.invalid"]),
                (2, [self.models, "--glossaries", "xx-yy=f"]),
                (2, [self.models, "--glossaries", good, good]),
                (2, [self.models, "--api-keys", "/nowhere"]),
                (2, [self.models, "--max-body", 2000, "--max-pending-bytes", 1000]),
                (2, [self.models, "--max-alternatives", 3, "--beam-size", 3]),
                (3, [self.models, "--glossaries", f"en-de={self.home / 'bad.tsv'}"])):
            done = subprocess.run([str(BIN / "nmt-serve"), "--port", "0", *map(str, arguments)],
                                  capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual(done.returncode, status, (arguments, done.stderr))
            self.assertEqual(len(re.findall("^error: ", done.stderr, re.M)), 1, done.stderr)
            if arguments == [empty]:
                self.assertIn(f"error: models: none in {empty}; expected", done.stderr)
        listening.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
