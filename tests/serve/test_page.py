#!/usr/bin/env python3
"""The web page of nmt-serve in a headless Chromium. Usage: test_page.py BIN_FOLDER
       test_page.py BIN_FOLDER --pictures FOLDER EN-DE=MODEL TEXT
The second form writes the pictures of docs/guide/serve.md.

Exit status 77 where Chromium is not installed (Debian: apt-get install chromium)."""
import contextlib
import http.client
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import chromium
from running_server import ROOT, SECONDS, Server, train

MARKDOWN = """---
title: stays
---
# The lamp

- the *red* lamp and `code here`
- see [the lamp](https://a.org/the_lamp) or ![a](b.png)

| the | lamp |
|-----|------|

```
the lamp
```
"""
SUBTITLES = """1
00:00:01,000 --> 00:00:02,000
the <i>lamp</i>
is red

2
00:00:03,000 --> 00:00:04,000
- 1 -
"""
MESSAGES = r'''# A comment.
msgid ""
msgstr ""
"Language: de\n"

#: a.c:1
msgid "the \"lamp\"\n"
"is red"
msgstr ""

msgid "done"
msgstr "fertig"

msgid "a lamp"
msgid_plural "lamps"
msgstr[0] ""
msgstr[1] ""
'''


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        subprocess.run([sys.executable, str(ROOT / "scripts/data/make_toy_corpus.py"),
                        "--pairs", "1000", "--seed", "3", str(cls.home)],
                       check=True, timeout=SECONDS)
        train(cls.home, cls.home / "models" / "en-de", "en", "de", 1, updates=500)
        (cls.home / "models" / "de-en").symlink_to(cls.home / "models" / "en-de")
        cls.server = Server(cls.home / "models")
        cls.address = f"http://127.0.0.1:{cls.server.port}/"
        cls.browser = chromium.Browser()
        lines = (cls.home / "test.en").read_text().splitlines()
        answers = cls.server.translate(lines[:50], segments=True, alternatives=3)["segments"]
        cls.lines = [line for line, segments in zip(lines, answers) if len(segments) == 1
                                    and len(segments[0]["translations"]) > 1
                                    and len(segments[0]["translations"][0]["text"].split()) > 2
                                    and segments[0]["translations"][0]["alignment"]]

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        assert cls.server.stop() == 0
        cls.folder.cleanup()

    def setUp(self):
        browser = self.browser
        browser.size(1100, 760)
        browser.dark(False)
        browser.events.clear()
        browser.open(self.address)
        browser.until("document.getElementById('target').value")
        browser.evaluate("source.value = 'en'; source.dispatchEvent(new Event('change')); "
                         "target.value = 'de';")

    def translate(self, text):
        self.browser.evaluate("text.focus()")
        self.browser.type(text)
        self.browser.until("output.querySelector('.word') && !output.hasAttribute('aria-busy') && "
                           "!output.classList.contains('stale')")

    def shown(self):
        return self.browser.evaluate("output.textContent")

    def test_translates_what_is_typed(self):
        text = self.lines[0] + ".\n\n" + self.lines[1]
        self.translate(text)
        self.assertEqual(self.shown(), self.server.translate(text)["translatedText"])
        self.assertIn(f"{len(text)} characters",
                      self.browser.evaluate("document.getElementById('count').textContent"))
        for event in self.browser.events:
            if event["method"] == "Network.requestWillBeSent":
                self.assertTrue(event["params"]["request"]["url"].startswith(self.address), event)
            self.assertNotEqual(event["method"], "Runtime.exceptionThrown", event)
            if event["method"] == "Log.entryAdded":
                self.assertNotIn(event["params"]["entry"]["level"], ("warning", "error"), event)

    def test_pointing_at_a_word_shows_its_link(self):
        self.translate(self.lines[0])
        segment = self.server.translate(self.lines[0],
                                        segments=True)["segments"][0]["translations"][0]
        source, target = segment["alignment"][0]
        self.browser.mouse(".word", index=target)
        self.assertEqual(self.browser.until("document.querySelector('#backdrop "
                                            "mark')?.textContent"), self.lines[0].split()[source])
        start = len(" ".join(self.lines[0].split()[:source])) + 1
        self.browser.evaluate(f"text.focus(); text.setSelectionRange(...Array(2).fill({start}))")
        self.assertTrue(self.browser.until(
            f"document.querySelector('.word[data-word=\"{target}\"].linked')?.textContent"))

    def test_alternatives_by_mouse(self):
        self.translate(self.lines[0])
        before = self.shown()
        self.browser.mouse(".word", click=True, index=1)
        self.browser.until("!menu.hidden")
        chosen = self.browser.evaluate("[...menu.querySelectorAll('button')].at(-1).textContent")
        self.browser.mouse("#menu button:last-child", click=True)
        self.browser.until("menu.hidden")
        self.assertEqual(self.shown(), chosen)
        self.assertNotEqual(chosen, before)

    def test_a_new_translation_closes_the_menu(self):
        self.translate(self.lines[0])
        before = self.shown()
        self.browser.evaluate(
            f"text.value = {json.dumps(self.lines[1])}; text.dispatchEvent(new Event('input')); "
            "output.querySelectorAll('.word')[1].click()")
        self.assertFalse(self.browser.evaluate("menu.hidden"))
        self.browser.until(f"output.textContent !== {json.dumps(before)}")
        self.assertTrue(self.browser.evaluate("menu.hidden"))

    def test_keyboard(self):
        browser = self.browser
        self.translate(self.lines[0])
        before = self.shown()
        for _ in range(20):  # from the text to the first word
            browser.key("Tab")
            if browser.evaluate("document.activeElement.className.includes('word')"):
                break
        browser.key("ArrowRight")
        self.assertEqual(browser.evaluate("document.activeElement.dataset.word"), "1")
        self.assertEqual(
            browser.evaluate("document.querySelectorAll('.word[tabindex=\"0\"]').length"), 1)
        browser.key("Enter")
        browser.until("!menu.hidden && menu.contains(document.activeElement)")
        browser.key("Escape")
        browser.until("menu.hidden && document.activeElement.dataset.word === '1'")
        browser.key("Enter")
        browser.key("End")
        browser.key("Enter")
        browser.until("menu.hidden")
        self.assertNotEqual(self.shown(), before)
        browser.until("document.activeElement.classList.contains('word')")
        browser.evaluate("text.focus(); text.value = ''")
        browser.type(self.lines[1])
        browser.key("Enter", modifiers=2)
        browser.until("output.textContent === "
                      f"{json.dumps(self.server.translate(self.lines[1])['translatedText'])}")
        self.assertNotIn("\n", browser.evaluate("text.value"))

    def test_swap(self):
        self.translate(self.lines[0])
        first = self.shown()
        self.browser.mouse("#swap", click=True)
        self.assertEqual(self.browser.evaluate("[source.value, target.value, text.value]"),
                         ["de", "en", first])

    def test_errors_are_shown(self):
        self.browser.evaluate("source.append(new Option('x', 'xx')); source.value = 'xx'; "
                              "text.focus()")
        self.browser.type("a")
        self.assertEqual(self.browser.until("document.querySelector('#status.error')?.textContent"),
                         "xx is not supported")

    def read(self, name, text):
        """The texts that are sent, and the file with them in upper case."""
        return self.browser.evaluate(
            f"(() => {{ const f = Files.read({json.dumps(name)}, {json.dumps(text)}); "
            "const t = f.pieces.filter(p => p.translate).map(p => p.text);"
            "return [t, f.join(t.map(x => x.toUpperCase())), f.join(t)]; })()")

    def test_files_keep_their_structure(self):
        texts, upper, same = self.read("a.txt", "the lamp\r\n\r\n 12\nred")
        self.assertEqual((texts, upper), (["the lamp", "red"], "THE LAMP\r\n\r\n 12\nRED"))
        texts, upper, same = self.read("a.md", MARKDOWN)
        self.assertEqual(same, MARKDOWN)
        wanted = MARKDOWN
        for part in ("# The lamp", "- the *red* lamp and ", "- see [the lamp]", " or !",
                     "| the | lamp |"):
            wanted = wanted.replace(part, part.upper(), 1)
        self.assertEqual(upper, wanted)
        texts, upper, same = self.read("a.srt", SUBTITLES)
        self.assertEqual(texts, ["the ", "lamp", " is red"])
        self.assertEqual(same, SUBTITLES)
        self.assertIn("THE <i>LAMP</i>\nIS RED\n\n2\n", upper)
        texts, upper, same = self.read("a.po", MESSAGES)
        self.assertEqual(texts, ['the "lamp"\nis red', "a lamp", "lamps"])
        self.assertIn('msgstr ""\n"THE \\"LAMP\\"\\n"\n"IS RED"\n', upper)
        self.assertIn('msgstr "fertig"', upper)
        self.assertTrue(upper.endswith('msgstr[0] "A LAMP"\nmsgstr[1] "LAMPS"\n'), upper)
        self.assertIn('"Language: de\\n"', upper)
        self.assertEqual(self.browser.evaluate("(() => { try { Files.read('a.pdf', ''); "
                                               "} catch (e) { return e.message; } })()"),
                         "a.pdf: expected a file ending in .txt, .md, .html, .srt or .po")

    def test_upload(self):
        page = f"\ufeff<p class='a'>{self.lines[0]}</p>\r\n<script>x = '<p>'</script>\n"
        path = self.home / "page.html"
        path.write_bytes(page.encode())
        document = self.browser.send("DOM.getDocument")["root"]["nodeId"]
        node = self.browser.send("DOM.querySelector", nodeId=document, selector="#file")["nodeId"]
        self.browser.send("Browser.setDownloadBehavior", behavior="allow",
                          downloadPath=str(self.home))
        self.browser.send("DOM.setFileInputFiles", files=[str(path)], nodeId=node)
        self.browser.until("!document.getElementById('download').hidden")
        self.browser.mouse("#download", click=True)
        result, end = self.home / "page.de.html", time.monotonic() + 20
        while not result.exists() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(result.read_bytes().decode(), "\ufeff" + self.server.translate(
            page[1:], format="html")["translatedText"])

    def contrast(self, selector):
        return self.browser.evaluate("""(() => {
          const light = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
              .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); \
return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          let e = document.querySelector(%s); const ink = light(getComputedStyle(e).color);
          while (/, 0\\)$/.test(getComputedStyle(e).backgroundColor)) e = e.parentElement;
          const paper = light(getComputedStyle(e).backgroundColor);
          return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05); })()"""
                                     % json.dumps(selector))

    def test_contrast_width_and_names(self):
        """WCAG 2.2: contrast of 4.5 (1.4.3), no sideways scrolling at 320 pixels (1.4.10), names of
        all controls (4.1.2)."""
        self.translate(self.lines[0])
        for dark in (False, True):
            self.browser.dark(dark)
            time.sleep(0.2)
            for selector in ("h1", "h2", ".soft", "#text", ".word", "#swap", "#source",
                             "#status", "#keys"):
                self.assertGreaterEqual(self.contrast(selector), 4.5, (selector, dark))
        self.browser.evaluate("document.querySelector('.word').classList.add('linked')")
        self.assertGreaterEqual(self.contrast(".word"), 4.5)
        self.browser.size(320, 700, phone=True)
        self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 320)
        nodes = self.browser.send("Accessibility.getFullAXTree")["nodes"]
        controls = [node for node in nodes if node.get("role", {}).get("value")
                    in ("button", "combobox", "textbox", "group", "status")]
        self.assertGreater(len(controls), 8)
        for node in controls:
            if node["role"]["value"] != "status" and not node.get("ignored"):
                self.assertTrue(node.get("name", {}).get("value"), node)

    def ask(self, path, headers=None):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.server.port,
                                                           timeout=SECONDS)) as connection:
            connection.request("GET", path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def test_alternatives_of_a_word_stand_in_its_place(self):
        segment = {"source": "a b", "translations": [
            {"text": "A B", "alignment": [[0, 0], [1, 1]]},
            {"text": "A C D", "alignment": [[0, 0], [1, 0], [1, 1], [1, 2]]},
            {"text": "A x C", "alignment": [[1, 0], [1, 2]]},
            {"text": "A B", "alignment": []}]}
        self.assertEqual(
            self.browser.evaluate(f"Output.wordAlternatives({json.dumps(segment)}, 1)"),
            [{"text": "A C D", "chosen": 1}, {"text": "A", "chosen": 2}])
        segment["translations"][2]["alignment"] = [[1, 0], [1, 3]]
        segment["translations"][2]["text"] = "A x y C"
        segment["translations"][0] = {"text": "A x y B", "alignment": [[1, 3]]}
        self.assertEqual(self.browser.evaluate(
            f"Output.wordAlternatives({json.dumps(segment)}, 3)")[1], {"text": "C", "chosen": 2})

    def test_headers(self):
        status, headers, page = self.ask("/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertTrue(headers["Content-Security-Policy"].startswith(
            "default-src 'none'; script-src 'self'; style-src 'self'"))
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(page, (ROOT / "src/http/web/index.html").read_bytes())
        status, again, body = self.ask("/", {"If-None-Match": headers["ETag"]})
        self.assertEqual((status, body, again["ETag"]), (304, b"", headers["ETag"]))
        self.assertEqual(self.ask("/", {"If-None-Match": '"other"'})[0], 200)
        self.assertNotEqual(self.ask("/ui/page.js")[1]["ETag"], headers["ETag"])
        self.assertEqual(self.ask("/ui/other.js")[0], 404)


def pictures(folder, model, text):
    server, browser = Server(model), chromium.Browser()
    for name, size, dark in (("serve-light", (980, 560), False), ("serve-dark", (980, 560), True),
                             ("serve-phone", (390, 760), False)):
        browser.size(*size, phone=name == "serve-phone")
        browser.dark(dark)
        browser.open(f"http://127.0.0.1:{server.port}/")
        browser.until("document.getElementById('target').value")
        browser.evaluate("text.focus()")
        browser.type(text)
        browser.until("output.querySelector('.word') && !output.classList.contains('stale')")
        if dark:
            browser.mouse(".word", click=True, index=9)
        else:
            browser.mouse(".word", index=4)
        time.sleep(0.5)
        browser.picture(pathlib.Path(folder) / f"{name}.png")
    browser.close()
    server.stop()


if __name__ == "__main__":
    if chromium.program() is None:
        print("Chromium is not installed (Debian: apt-get install chromium)")
        sys.exit(77)
    if "--pictures" in sys.argv:
        pictures(*sys.argv[3:])
    else:
        unittest.main(argv=sys.argv[:1])
