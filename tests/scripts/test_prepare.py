#!/usr/bin/env python3
"""scripts/data/prepare_wmt14_fr.sh and prepare_iwslt14.sh, from small archives in place of the real
ones; no network."""
import gzip
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts/data"


class Prepare(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.home = pathlib.Path(self.folder.name)
        self.out, self.served = self.home / "out", self.home / "served"
        self.served.mkdir()

    def tearDown(self):
        self.folder.cleanup()

    def archive(self, name, files):
        with tarfile.open(self.served / name, "w:gz") as tar:
            for path, text in files.items():
                data = gzip.compress(text.encode()) if path.endswith(".gz") else text.encode()
                info = tarfile.TarInfo(path)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))

    def prepare(self, script, variable):
        environment = {**os.environ, variable: self.served.as_uri()}
        return subprocess.run(["bash", SCRIPTS / script, self.out], capture_output=True, text=True,
                              timeout=120, env=environment)

    def read(self, name):
        return (self.out / name).read_text(encoding="utf-8")

    def french(self):
        self.archive("bitexts.tgz",
                     {"bitexts.selected/ep7_pc45.en.gz": "Madam President\nA test line\n",
                      "bitexts.selected/ep7_pc45.fr.gz": "Madame la Présidente\nUne ligne\n",
                      "bitexts.selected/nc9.en.gz": "The news\n",
                      "bitexts.selected/nc9.fr.gz": "Les nouvelles\n"})
        self.archive("dev+test.tgz", {"dev/ntst1213.en.gz": "A dev line\nAnother\n",
                                      "dev/ntst1213.fr.gz": "Une ligne de dev\nUne autre\n",
                                      "dev/ntst14.en.gz": "A test line\n",
                                      "dev/ntst14.fr.gz": "Une ligne de test\n"})

    @unittest.skipUnless(shutil.which("curl"), "wget reads no file:// addresses")
    def test_french(self):
        self.french()
        done = self.prepare("prepare_wmt14_fr.sh", "NMT_WMT14_FR_MIRROR")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.read("train.en"), self.read("train.fr")),
                         ("Madam President\nThe news\n", "Madame la Présidente\nLes nouvelles\n"))
        self.assertEqual(self.read("newstest2012+2013.en"), "A dev line\nAnother\n")
        self.assertEqual(self.read("newstest2014.fr"), "Une ligne de test\n")
        sums = self.read("archives/SHA256SUMS").split()
        self.assertEqual(sums[0],
                         hashlib.sha256((self.served / "bitexts.tgz").read_bytes()).hexdigest())
        again = self.prepare("prepare_wmt14_fr.sh", "NMT_WMT14_FR_MIRROR")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertNotIn("cleaning", again.stdout)
        # Another archive than the recorded one is refused.
        (self.out / "archives/bitexts.tgz").write_bytes((self.served / "dev+test.tgz").read_bytes())
        changed = self.prepare("prepare_wmt14_fr.sh", "NMT_WMT14_FR_MIRROR")
        self.assertEqual(changed.returncode, 1)
        self.assertIn("bitexts.tgz has SHA-256", changed.stderr)

    @unittest.skipUnless(shutil.which("curl"), "wget reads no file:// addresses")
    def test_an_interrupted_download_is_resumed(self):
        self.french()
        whole = (self.served / "bitexts.tgz").read_bytes()
        (self.out / "archives").mkdir(parents=True)
        (self.out / "archives/bitexts.tgz.part").write_bytes(whole[:100])
        done = self.prepare("prepare_wmt14_fr.sh", "NMT_WMT14_FR_MIRROR")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.out / "archives/bitexts.tgz").read_bytes(), whole)

    def talks(self, pairs):
        side = (lambda word: "<url>http://x</url>\n<title>The %s</title>\n" % word
                + "".join(f" {word} number {i} \n" for i in range(pairs))
                + "<keywords>a, b</keywords>\n")
        xml = (lambda word: f'<?xml?><doc><seg id="1"> {word} &amp; one </seg>\n'
                            f'<seg id="2">{word} two</seg></doc>')
        files = {}
        for language, word in (("de", "Satz"), ("en", "sentence")):
            files[f"de-en/train.tags.de-en.{language}"] = side(word)
            for part in ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011",
                         "TED.tst2012"):
                files[f"de-en/IWSLT14.{part}.de-en.{language}.xml"] = xml(f"{word} {part}")
        return files

    @unittest.skipUnless(shutil.which("curl"), "wget reads no file:// addresses")
    def test_talks(self):
        self.archive("de-en.tgz", self.talks(46))
        done = self.prepare("prepare_iwslt14.sh", "NMT_IWSLT14_MIRROR")
        self.assertEqual(done.returncode, 0, done.stderr)
        train, valid, test = ({side: self.read(f"{name}.{side}").splitlines()
                               for side in ("de", "en")} for name in ("train", "valid", "test"))
        # 47 pairs with the title; numbers 23 and 46 of them, from 1, are for development.
        self.assertEqual(valid, {"de": ["Satz number 21", "Satz number 44"],
                                 "en": ["sentence number 21", "sentence number 44"]})
        self.assertEqual((len(train["de"]), train["de"][0], train["en"][-1]),
                         (45, "The Satz", "sentence number 45"))
        self.assertEqual((len(test["de"]), test["de"][0], test["en"][-1]),
                         (10, "Satz TED.dev2010 & one", "sentence TED.tst2012 two"))

    @unittest.skipUnless(shutil.which("curl"), "wget reads no file:// addresses")
    def test_what_is_missing_is_named(self):
        files = self.talks(3)
        del files["de-en/IWSLT14.TED.tst2011.de-en.de.xml"]
        self.archive("de-en.tgz", files)
        done = self.prepare("prepare_iwslt14.sh", "NMT_IWSLT14_MIRROR")
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no file IWSLT14.TED.tst2011.de-en.de.xml", done.stderr)
        (self.out / "archives/de-en.tgz").unlink()
        (self.served / "de-en.tgz").unlink()
        done = self.prepare("prepare_iwslt14.sh", "NMT_IWSLT14_MIRROR")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for words in ("de-en.tgz", str(self.out / "archives"), "could not be downloaded"):
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
