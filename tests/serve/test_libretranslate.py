#!/usr/bin/env python3
"""nmt-serve's answers have the shapes of LibreTranslate's documentation. Usage:
test_libretranslate.py BIN_FOLDER.

The shapes are those of two public sources: the examples of
https://docs.libretranslate.com/guides/api_usage (also in the README of
github.com/LibreTranslate/LibreTranslate), and the OpenAPI specification that a LibreTranslate
server shows at /docs, which is in its libretranslate/app.py (commit e9e58e6b). An answer has
exactly the keys of the shape, and every value its type."""
import json
import pathlib
import sys
import tempfile
import unittest
import urllib.parse

from running_server import ROOT, Server

sys.path.insert(0, str(ROOT / "tests/golden"))
import golden

NUMBER = (int, float)
TRANSLATION = {"translatedText": str}
DETECTED = {"confidence": NUMBER, "language": str}
LANGUAGE = {"code": str, "name": str}
ERROR = {"error": str}
SETTINGS = {"alternativesLimit": int, "apiKeys": bool, "charLimit": int, "filesTranslation": bool,
            "frontendTimeout": int, "keyRequired": bool,
            "language": {"source": LANGUAGE, "target": LANGUAGE}, "suggestions": bool,
            "supportedFilesFormat": [str], "textsLimit": int}
TEXT = "This is surely a long English sentence ."


def difference(shape, value, place="answer"):
    """Where a value does not have the shape: a type, a tuple of types, a list of one shape, or a
    dictionary of shapes."""
    if isinstance(shape, dict):
        if not isinstance(value, dict) or set(value) != set(shape):
            return f"{place}: {value!r} instead of an object with {sorted(shape)}"
        found = (difference(each, value[key], f"{place}.{key}") for key, each in shape.items())
    elif isinstance(shape, list):
        if not isinstance(value, list):
            return f"{place}: {value!r} instead of a list"
        found = (difference(shape[0], each, f"{place}[{i}]") for i, each in enumerate(value))
    else:
        types = shape if isinstance(shape, tuple) else (shape,)
        # In Python, True is an int.
        wrong = not isinstance(value, types) or (isinstance(value, bool) and bool not in types)
        return f"{place}: {value!r} instead of {shape}" if wrong else None
    return next((each for each in found if each), None)


class Shapes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        home = pathlib.Path(cls.folder.name)
        cls.model = "en-de=" + str(golden.unpack(ROOT / "tests/golden/0.1", "rnnsearch-gru",
                                                 home / "model"))
        cls.keys = home / "keys"
        cls.keys.write_text("a key\n")
        cls.server = Server(cls.model, "--max-body", "20000")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.folder.cleanup()

    def answer(self, shape, method, path, status=200, form=False, server=None, **fields):
        if form:
            body, kind = urllib.parse.urlencode(fields), "application/x-www-form-urlencoded"
        else:
            body, kind = json.dumps(fields) if fields else None, "application/json"
        got, headers, text = (server or self.server).ask(method, path, body, {"Content-Type": kind})
        self.assertEqual(got, status, text)
        self.assertEqual(headers["Content-Type"].split(";")[0], "application/json")
        value = json.loads(text)
        self.assertIsNone(difference(shape, value), value)
        return value

    def translate(self, shape, status=200, **fields):
        return self.answer(shape, "POST", "/translate", status,
                           **{"q": TEXT, "source": "en", "target": "de", **fields})

    def test_shapes_are_told_apart(self):
        for shape, value in ((TRANSLATION, {"translatedText": [""]}), (TRANSLATION, {}),
                             (TRANSLATION, {"translatedText": "", "alternatives": []}),
                             ([str], [1]), (NUMBER, True), (NUMBER, "1"),
                             ([DETECTED], [{"confidence": 1}]), (int, 1.5)):
            self.assertIsNotNone(difference(shape, value), (shape, value))

    def test_simple_translation(self):
        self.translate(TRANSLATION)

    def test_array(self):
        answer = self.translate({"translatedText": [str]}, q=["Hello world!", "Goodbye world!"])
        self.assertEqual(len(answer["translatedText"]), 2)

    def test_markup(self):
        answer = self.translate(TRANSLATION, q='<p class="green">Hello!</p>', format="html")
        self.assertRegex(answer["translatedText"], '^<p class="green">.*</p>$')

    def test_alternatives(self):
        answer = self.translate({"alternatives": [str], "translatedText": str}, format="text",
                                alternatives=3)
        self.assertIn(len(answer["alternatives"]), (1, 2, 3))

    def test_alternatives_of_an_array(self):
        answer = self.translate({"alternatives": [[str]], "translatedText": [str]}, q=[TEXT, TEXT],
                                alternatives=1)
        self.assertEqual(len(answer["alternatives"]), 2)

    def test_form_with_an_api_key(self):
        expected = self.translate(TRANSLATION)
        self.assertEqual(self.translate(TRANSLATION, form=True, api_key="xxxxxxxx-xxxx",
                                        format="text", alternatives=0), expected)

    def can_detect(self):
        if self.server.json("/detect", q=TEXT)[0] == 501:
            self.skipTest("built without a language detector")

    def test_automatic_source(self):
        self.can_detect()
        self.translate({"detectedLanguage": DETECTED, "translatedText": str}, source="auto")
        answer = self.translate({"detectedLanguage": [DETECTED], "translatedText": [str]},
                                q=[TEXT, TEXT], source="auto")
        self.assertEqual(len(answer["detectedLanguage"]), 2)

    def test_detection(self):
        self.can_detect()
        for form in (False, True):
            answer = self.answer([DETECTED], "POST", "/detect", q=TEXT, form=form)
            self.assertGreater(len(answer), 0)
            self.assertTrue(all(0 <= each["confidence"] <= 100 for each in answer), answer)

    def test_languages(self):
        answer = self.answer([{**LANGUAGE, "targets": [str]}], "GET", "/languages")
        self.assertIn({"code": "en", "name": "English", "targets": ["de", "en"]}, answer)

    def test_settings(self):
        self.answer(SETTINGS, "GET", "/frontend/settings")

    def test_health(self):
        self.assertEqual(self.answer({"status": str}, "GET", "/health"), {"status": "ok"})

    def test_errors(self):
        self.translate(ERROR, 400, q=None)
        self.translate(ERROR, 400, target="xx")
        self.translate(ERROR, 400, format="pdf")
        self.answer(ERROR, "POST", "/detect", 400, source="en")
        # as where suggestions are off
        self.answer(ERROR, "POST", "/suggest", 403, q="a", s="b", source="en", target="de")
        limited = Server(self.model, "--api-keys", self.keys, "--requests-per-minute", "2")
        try:
            self.translate(ERROR, 403, server=limited)
            self.translate(ERROR, 403, server=limited, api_key="another")
            self.translate(TRANSLATION, server=limited, api_key="a key")
            self.translate(TRANSLATION, server=limited, api_key="a key")
            self.translate(ERROR, 429, server=limited, api_key="a key")
        finally:
            limited.stop()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
