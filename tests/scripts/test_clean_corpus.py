#!/usr/bin/env python3
"""scripts/data/clean_corpus.py, sgm_to_text.py and prepare_wmt14.sh on planted faults, without a
network. Usage: test_clean_corpus.py [BIN_FOLDER]"""
import bz2
import gzip
import hashlib
import http.server
import io
import lzma
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts/data"


def run(script, *arguments, environment=None):
    command = ["bash"] if script.endswith(".sh") else [sys.executable]
    return subprocess.run([*command, str(SCRIPTS / script), *map(str, arguments)],
                          capture_output=True, timeout=120, env=environment)


class Cleaning(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.home = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, data):
        path = self.home / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def clean(self, pairs, *options):
        """Pairs of bytes or text -> the pairs that are kept, and the report."""
        raw = [[side if isinstance(side, bytes) else side.encode() for side in pair]
               for pair in pairs]
        source, target = (self.write(f"in.{i}", b"".join(pair[i] + b"\n" for pair in raw))
                          for i in (0, 1))
        result = run("clean_corpus.py", source, target, self.home / "out.0",
                     self.home / "out.1", *options)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        sides = [(self.home / f"out.{i}").read_bytes().decode().split("\n")[:-1] for i in (0, 1)]
        return list(zip(*sides, strict=True)), result.stderr.decode()

    def test_every_planted_fault_goes_and_the_rest_stays_in_order(self):
        good = [("A man sleeps .", "Ein Mann schläft ."), ("Two dogs run .", "Zwei Hunde rennen ."),
                ("Yes .", "Ja doch .")]
        faults = [("", "Nichts da ."), ("Nothing here .", " \t\u00a0 "),
                  ("Copied line", "Copied line"), ("COPIED in capitals", "Copied In Capitals"),
                  ("word " * 101, "Wort " * 101), ("short one", "lang " * 30),
                  ("lang " * 30, "short two"), ("x" * 2001, "y"), good[0],
                  ("A  man\tsleeps .", "Ein Mann schläft .")]
        kept, report = self.clean([good[0], *faults[:5], good[1], *faults[5:], good[2]])
        self.assertEqual(kept, good)
        for words in ("13 read", "3 kept", "2 empty", "2 copied", "2 too long", "2 ratio",
                      "2 seen before"):
            self.assertIn(words, report)

    def test_lines_are_normalized(self):
        kept, _ = self.clean([(b"\xef\xbb\xbfone\xa0 \xff two", "eins\u00a0\u2009zwei\u0007"),
                              ("three\r", "\u2028drei\u0085vier "),
                              ("cafe\u0301 \u200bhere", "soft\u00adhyphen \u202eda"),
                              ("a \0 b", "b \x1b a")])
        self.assertEqual(kept, [("one two", "eins zwei"), ("three", "drei vier"),
                                ("caf\u00e9 here", "softhyphen da"), ("a b", "b a")])

    def test_other_encodings_are_reported(self):
        _, report = self.clean([("A man .", "Ein Bär .".encode("latin-1")), ("A dog .", "Hund .")])
        self.assertIn("in.1: 1 lines had invalid UTF-8; these bytes were removed", report)
        _, report = self.clean([("A man .", "Ein Mann .")])
        self.assertNotIn("warning", report)

    def test_compressed_text_and_other_encodings_are_named(self):
        text = "Ein Bär .\n"
        unzip, convert = "decompress it first", "convert it to UTF-8, for example with iconv"
        cases = [("gzip-compressed", unzip, gzip.compress(text.encode())),
                 ("bzip2-compressed", unzip, bz2.compress(text.encode())),
                 ("bzip2-compressed", unzip, bz2.compress(b"")),
                 ("xz-compressed", unzip, lzma.compress(text.encode())),
                 ("zstd-compressed", unzip, b"\x28\xb5\x2f\xfd" + bytes(8)),
                 *((f"UTF-{bits}", convert, ("\ufeff" + text).encode(f"utf-{bits}-{order}"))
                   for bits in (16, 32) for order in ("le", "be"))]
        good, other = self.write("a", text), self.home / "b"
        out = self.home / "c", self.home / "d"
        for name, remedy, data in cases:
            self.write("b", data)
            for files in ((good, other), (other, good), (good, good, "--hold-out", good, other)):
                result = run("clean_corpus.py", *files[:2], *out, *files[2:])
                self.assertEqual((result.returncode, result.stderr.decode()),
                                 (3, f"clean_corpus: {other}: {name}: {remedy}\n"))
                self.assertEqual(sorted(path.name for path in self.home.iterdir()), ["a", "b"])
        kept, _ = self.clean([("BZh9 is text", "BZh9 ist Text")])
        self.assertEqual(len(kept), 1)

    def test_a_hold_out_file_in_another_encoding_is_told(self):
        held = self.write("held", "Ein Bär .\nHund .\n".encode("latin-1"))
        _, report = self.clean([("A bear .", "Ein Bär ."), ("A dog .", "Hund .")],
                               "--hold-out", held)
        self.assertIn(f"warning: {held}: 1 lines had invalid UTF-8; its sentences may not be found",
                      report)
        self.assertNotIn("bytes were removed", report)
        self.assertIn("1 held out", report)

    def test_limits_and_hold_outs(self):
        pairs = [("a b c", "d e f"), ("g", "h"), ("i j k l m", "n o p q"),
                 ("held out here", "anything else"), ("something new", "held back there")]
        held = self.write("held", "held   out here\nheld back there\n\n")
        kept, report = self.clean(pairs, "--min-words", "2", "--max-words", "4", "--hold-out", held)
        self.assertEqual(kept, pairs[:1])
        for words in ("1 too short", "1 too long", "2 held out"):
            self.assertIn(words, report)
        kept, _ = self.clean([("a", "b c d e f g h i"), ("a b", "c d e f g h i j k")],
                             "--max-ratio", "4")
        self.assertEqual(kept, [])
        # short pairs may differ by five words
        kept, _ = self.clean([("a", "b c d e f")], "--max-ratio", "2")
        self.assertEqual(len(kept), 1)

    def test_a_pipe_or_device_is_not_replaced(self):
        source, target = self.write("a", "one\n"), self.write("b", "eins\n")
        os.mkfifo(self.home / "pipe")
        result = run("clean_corpus.py", source, target, self.home / "pipe", self.home / "x.1")
        self.assertEqual(result.returncode, 2)
        self.assertIn("is no regular file", result.stderr.decode())
        self.assertTrue((self.home / "pipe").is_fifo())
        self.assertFalse((self.home / "x.1").exists())

    def test_equal_names_are_refused(self):
        source, target = self.write("a", "one\n"), self.write("b", "eins\n")
        held = self.write("c", "two\n")
        (self.home / "link").symlink_to(source)
        for out, what in ((("same", "./same"), "is the output of both sides"),
                          (("x.0", "b"), "b is an input and an output"),
                          (("link", "x.1"), "link is an input and an output"),
                          (("c", "x.1"), "c is an input and an output"),
                          (("x", "x.part"), "x.part is the name of")):
            result = run("clean_corpus.py", source, target, *(self.home / name for name in out),
                         "--hold-out", held)
            self.assertEqual(result.returncode, 2, result.stderr.decode())
            self.assertIn(what, result.stderr.decode())
        self.assertEqual(sorted(path.name for path in self.home.iterdir() if path.is_file()),
                         ["a", "b", "c", "link"])
        self.assertEqual((source.read_text(), target.read_text()), ("one\n", "eins\n"))

    def test_a_file_that_cannot_be_read(self):
        source, target = self.write("a", "one\n"), self.write("b", "eins\n")
        result = run("clean_corpus.py", source, target, self.home / "x.0", self.home / "x.1",
                     "--hold-out", "/proc/self/mem")
        self.assertEqual((result.returncode, result.stderr.decode()),
                         (1, "clean_corpus: [Errno 5] Input/output error\n"))
        self.assertEqual(sorted(path.name for path in self.home.iterdir()), ["a", "b"])

    def test_several_files_and_unequal_ones(self):
        a, b, c, d = (self.write(name, text)
                      for name, text in (("a", "one\n"), ("b", "eins"), ("c", "two\nthree"),
                                         ("d", "zwei\ndrei\n")))
        out = self.home / "x.0", self.home / "x.1"
        self.assertEqual(run("clean_corpus.py", f"{a},{c}", f"{b},{d}", *out).returncode, 0)
        self.assertEqual([path.read_text() for path in out],
                         ["one\ntwo\nthree\n", "eins\nzwei\ndrei\n"])
        result = run("clean_corpus.py", a, d, self.home / "y.0", self.home / "y.1")
        self.assertEqual(result.returncode, 3)
        self.assertIn(f"{a} ends before line 2", result.stderr.decode())
        self.assertEqual([path.name for path in self.home.iterdir() if path.name.startswith("y")],
                         [])
        self.assertEqual(run("clean_corpus.py", a, self.home / "missing", *out).returncode, 2)

    def test_segments_of_sgm(self):
        sgm = self.write("x.sgm",
                         '<srcset setid="t"><doc>\n<hl>\n<seg id="1"> Bread &amp;  butter </seg>\n'
                         '</hl><p>\n<SEG id="2">two\nlines</SEG><seg id="3"></seg></p>')
        self.assertEqual(run("sgm_to_text.py", sgm).stdout.decode(),
                         "Bread & butter\ntwo lines\n\n")
        self.assertEqual(run("sgm_to_text.py", self.write("y.sgm", "no segments")).returncode, 3)


class Breaking(http.server.BaseHTTPRequestHandler):
    """Gives at most `limit` bytes of a file a request, from where it is asked to begin, and then
    breaks off."""

    limit = 75
    begun = []

    def do_GET(self):
        data = (self.server.root / self.path.lstrip("/")).read_bytes()
        asked = self.headers.get("Range")
        begin = int(asked.removeprefix("bytes=").split("-")[0]) if asked else 0
        self.begun.append(begin)
        if begin >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        self.wfile.write(data[begin:begin + self.limit])

    def log_message(self, *args):
        pass


class Wmt14(unittest.TestCase):
    """The whole way, with archives as small as the real ones are large."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.home = pathlib.Path(self.folder.name)
        self.sums = self.home / "out/archives/SHA256SUMS"
        self.sums.parent.mkdir(parents=True)
        self.environment = {**os.environ, "NMT_WMT14_MIRROR": (self.home / "nowhere").as_uri()}

    def tearDown(self):
        self.folder.cleanup()

    def archive(self, name, files):
        with tarfile.open(self.home / "out/archives" / name, "w:gz") as tar:
            for path, text in files.items():
                data = text.encode()
                info = tarfile.TarInfo(path)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))

    def archives(self):
        sgm = lambda *segments: "<doc>" + "".join(f'<seg id="{i}">{s}</seg>\n'
                                                  for i, s in enumerate(segments)) + "</doc>"
        self.archive("europarl-v7-de-en.tgz",
                     {"europarl-v7.de-en.en": "Madam President\nMadam President\n",
                      "europarl-v7.de-en.de": "Frau Präsidentin\nFrau Präsidentin\n"})
        self.archive("training-parallel-commoncrawl.tgz",
                     {"commoncrawl.cs-en.en": "no\n", "commoncrawl.de-en.en": "same\nA test line\n",
                      "commoncrawl.de-en.de": "same\nEine Zeile\n"})
        self.archive("training-parallel-nc-v9.tgz",
                     {"training/news-commentary-v9.de-en.en": "The news\n",
                      "training/news-commentary-v9.de-en.de": "Die Nachrichten\n"})
        self.archive("dev.tgz", {"dev/newstest2013-src.en.sgm": sgm("A dev &amp; line"),
                                 "dev/newstest2013-ref.de.sgm": sgm("Eine Dev-Zeile")})
        self.archive("test-full.tgz", {"test-full/newstest2014-deen-src.en.sgm": sgm("A test line"),
                                       "test-full/newstest2014-deen-ref.de.sgm": sgm("Testzeile")})

        self.accept()

    def accept(self):
        """These are not the real archives: what a user who wants others writes down."""
        archives = sorted(self.sums.parent.glob("*.tgz"))
        self.sums.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  "
                                     f"{path.name}\n" for path in archives), encoding="utf-8")

    def prepare(self):
        return run("prepare_wmt14.sh", self.home / "out", environment=self.environment)

    def test_from_archives_to_training_files(self):
        self.archives()
        result = self.prepare()
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        read = lambda name: (self.home / "out" / name).read_text(encoding="utf-8")
        self.assertEqual(read("train.en"), "Madam President\nThe news\n")
        self.assertEqual(read("train.de"), "Frau Präsidentin\nDie Nachrichten\n")
        self.assertEqual((read("newstest2013.en"), read("newstest2014.de")),
                         ("A dev & line\n", "Testzeile\n"))
        again = self.prepare()
        self.assertEqual(again.returncode, 0)
        self.assertNotIn(b"cleaning", again.stdout)
        self.archive("dev.tgz", {"other": "x"})
        changed = self.prepare()
        self.assertEqual(changed.returncode, 1)
        self.assertIn("dev.tgz has SHA-256", changed.stderr.decode())

    @unittest.skipUnless(shutil.which("curl"), "wget reads no file:// addresses")
    def test_a_download_is_resumed(self):
        self.archives()
        served = self.home / "served/wmt14"
        served.mkdir(parents=True)
        whole = (self.home / "out/archives/dev.tgz").read_bytes()
        (served / "dev.tgz").write_bytes(whole)
        self.environment["NMT_WMT14_MIRROR"] = (self.home / "served").as_uri()
        for begun in (whole[:100], whole):  # broken off, and broken off before it took its name
            (self.home / "out/archives/dev.tgz").unlink()
            (self.home / "out/archives/dev.tgz.part").write_bytes(begun)
            result = self.prepare()
            self.assertEqual(result.returncode, 0, result.stderr.decode())
            self.assertEqual((self.home / "out/archives/dev.tgz").read_bytes(), whole)

    def test_a_download_that_keeps_breaking_off_arrives(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Breaking)
        server.root = self.home / "served"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.environment["NMT_WMT14_MIRROR"] = f"http://127.0.0.1:{server.server_port}"
        self.archives()
        (server.root / "wmt14").mkdir(parents=True)
        arrived, served = self.home / "out/archives/dev.tgz", server.root / "wmt14/dev.tgz"
        whole = arrived.read_bytes()
        self.assertGreater(len(whole), 2 * Breaking.limit)
        for program in ("curl", "wget"):
            if not shutil.which(program):
                continue
            tools = self.home / f"with-{program}"  # a PATH that has one of the two
            tools.mkdir()
            for name in ("awk bash cat cut dirname grep gzip head md5sum mkdir mv python3 rm sed "
                         "sha1sum sha256sum stat tar touch wc " + program).split():
                (tools / name).symlink_to(sys.executable if name == "python3"
                                          else shutil.which(name))
            self.environment["PATH"] = str(tools)
            with self.subTest(program=program):
                arrived.unlink()
                Breaking.begun.clear()
                served.write_bytes(whole)
                result = self.prepare()
                self.assertEqual(result.returncode, 0, result.stderr.decode())
                self.assertEqual(arrived.read_bytes(), whole)
                self.assertEqual(Breaking.begun, list(range(0, len(whole), Breaking.limit)))
                # What is no archive is not gone on with for ever.
                arrived.unlink()
                served.write_bytes(b"<html>moved</html>")
                result = self.prepare()
                self.assertEqual(result.returncode, 1)
                self.assertIn("no whole archive", result.stderr.decode())
                self.assertFalse(arrived.with_name("dev.tgz.part").exists())
                served.write_bytes(whole)
                self.assertEqual(self.prepare().returncode, 0)

    def test_another_archive_than_the_published_one_is_used_only_if_accepted(self):
        self.archives()
        self.sums.write_text("".join(line for line in self.sums.read_text().splitlines(True)
                                     if "nc-v9" not in line))
        before = self.sums.read_text()
        result = self.prepare()
        self.assertEqual(result.returncode, 1)
        told = result.stderr.decode().splitlines()
        self.assertEqual(len(told), 1, told)
        for words in ("training-parallel-nc-v9.tgz", "published: 80418416",
                      "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
                      "SHA256SUMS"):
            self.assertIn(words, told[0])
        self.assertEqual(self.sums.read_text(), before)
        for answer, status in ((b"\n", 1), (b"y\n", 0)):  # on a terminal it asks
            controller, terminal = pty.openpty()
            os.write(controller, answer)
            asked = subprocess.run(["bash", str(SCRIPTS / "prepare_wmt14.sh"), self.home / "out"],
                                   stdin=terminal, capture_output=True, timeout=120,
                                   env=self.environment)
            os.close(terminal)
            os.close(controller)
            self.assertEqual(asked.returncode, status, asked.stderr.decode())
            self.assertIn("[y/N]", asked.stderr.decode())
        self.assertEqual(len(self.sums.read_text().splitlines()), 5)
        # The line that the message gives accepts as well.
        self.sums.write_text(before)
        accept = told[0].split("accept it: ")[1]
        subprocess.run(["bash", "-c", accept], check=True)
        self.assertEqual(self.prepare().returncode, 0)

    def test_the_published_archive_needs_no_word(self):
        self.archives()
        self.sums.write_text("")
        # The script as it is, with the checksums of these archives in the place of the real ones'.
        text = (SCRIPTS / "prepare_wmt14.sh").read_text(encoding="utf-8")
        rows = re.findall(r"^(?:table=\")?(\S+\.tgz) [^:]*?((sha1|sha256|md5):[0-9a-f]+)", text,
                          re.M)
        self.assertEqual(sorted(name for name, _, _ in rows),
                         sorted(path.name for path in self.sums.parent.glob("*.tgz")))
        for name, published, kind in rows:
            text = text.replace(
                published,
                f"{kind}:{hashlib.new(kind, (self.sums.parent / name).read_bytes()).hexdigest()}")
        (self.home / "prepare_wmt14.sh").write_text(text, encoding="utf-8")
        for name in ("archives.sh", "clean_corpus.py", "sgm_to_text.py"):
            shutil.copy(SCRIPTS / name, self.home)
        result = subprocess.run(["bash", self.home / "prepare_wmt14.sh", self.home / "out"],
                                capture_output=True, timeout=120, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        self.assertIn("test-full.tgz: MD5 as published by sacreBLEU", result.stdout.decode())
        self.assertEqual(len(self.sums.read_text().splitlines()), 5)

    def test_without_a_network_it_says_what_to_put_where(self):
        self.archives()
        for name in ("dev.tgz", "europarl-v7-de-en.tgz"):
            (self.home / "out/archives" / name).unlink()
        result = self.prepare()
        self.assertEqual(result.returncode, 1)
        messages = result.stderr.decode().splitlines()
        self.assertEqual(len(messages), 1, result.stderr.decode())
        for words in ("dev.tgz", "europarl-v7-de-en.tgz", "europarl/v7/de-en.tgz",
                      str(self.home / "out/archives")):
            self.assertIn(words, messages[0])
        self.assertNotIn("test-full", messages[0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
