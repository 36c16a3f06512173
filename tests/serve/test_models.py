#!/usr/bin/env python3
"""Models of a running nmt-serve that come, change and go, with requests meanwhile. Usage:
test_models.py BIN_FOLDER."""
import concurrent.futures
import json
import shutil
import sys
import threading
import time
import unittest

from running_server import SECONDS, WithModels, serving


class Models(WithModels):
    def test_reloading_does_not_stop_translating(self):
        """Requests are answered by the old model while the new one is loaded, and none fails."""
        model = self.home / "reloaded"
        shutil.copytree(self.models / "en-de", model, symlinks=True)
        config = model / "config.json"
        with serving(f"en-de={model}", "--reload-interval", "1") as server:
            expected = server.translate(self.lines[:4])
            stop, answers = threading.Event(), []

            def ask():
                while not stop.is_set():
                    answers.append(server.translate(self.lines[:4]))

            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                asked = [pool.submit(ask) for _ in range(4)]
                end = time.monotonic() + 20
                while server.metric("nmt_model_loads_total") < 4 and time.monotonic() < end:
                    config.touch()
                    time.sleep(0.2)
                stop.set()
                for each in asked:
                    each.result()
            self.assertGreaterEqual(server.metric("nmt_model_loads_total"), 4)
            self.assertTrue(all(answer == expected for answer in answers))
            end = time.monotonic() + 10
            while server.metric("nmt_models_loaded") != 1 and time.monotonic() < end:
                time.sleep(0.1)
            self.assertEqual(server.metric('nmt_jobs_total{result="failed"}'), 0)

    def test_models_come_change_and_go(self):
        folder = self.home / "changing"
        folder.mkdir()
        shutil.copytree(self.models / "en-de", folder / "en-de", symlinks=True)
        with serving(folder, "--reload-interval", "1", "--unload-after", "1") as server:
            def until(what):
                end = time.monotonic() + 20
                while not what() and time.monotonic() < end:
                    time.sleep(0.1)
                self.assertTrue(what(), server.log)
            self.assertEqual(server.metric("nmt_models_loaded"), 0)
            first = server.translate(self.lines)["translatedText"]
            self.assertEqual(server.metric("nmt_models_loaded"), 1)
            until(lambda: server.metric("nmt_models_loaded") == 0)
            shutil.copytree(self.models / "de-fr", folder / "de-fr", symlinks=True)
            until(lambda: server.json("/translate", q="a", source="de", target="fr")[0] == 200)
            shutil.rmtree(folder / "de-fr")
            until(lambda: server.json("/translate", q="a", source="de", target="fr")[0] == 400)
        with serving(f"en-de={folder / 'en-de'}", "--reload-interval", "1") as server:
            self.assertEqual(server.translate(self.lines)["translatedText"], first)
            shutil.copytree(self.models / "de-fr", folder / "new", symlinks=True)
            shutil.rmtree(folder / "en-de")
            (folder / "new").rename(folder / "en-de")
            end = time.monotonic() + 20
            while (server.translate(self.lines)["translatedText"] == first
                   and time.monotonic() < end):
                time.sleep(0.2)
            self.assertEqual(server.translate(self.lines)["translatedText"],
                             self.expected(self.lines, model="de-fr"))
            for manifest in (folder / "en-de").glob("checkpoints/*/manifest.json"):
                manifest.write_text("{")
            end = time.monotonic() + 20
            while server.metric("nmt_model_load_failures_total") < 1 and time.monotonic() < end:
                time.sleep(0.2)
            self.assertEqual(server.metric("nmt_model_load_failures_total"), 1)
            self.assertEqual(server.translate(self.lines[:1])["translatedText"],
                             self.expected(self.lines[:1], model="de-fr"))

    def test_a_model_that_translates_is_not_idle(self):
        """A batch of more than two seconds, with models unloaded after one."""
        text = "\n".join(self.lines * 100)
        for beam in (16, 32, 64, 128, 256):
            with serving(self.models, "--unload-after", "1", "--beam-size", beam, "--mini-batch",
                         "100000", "--latency-target", "60000",
                         "--request-timeout", SECONDS) as server:
                start, loaded = time.monotonic(), []
                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    asked = pool.submit(server.translate, text)
                    while not asked.done():
                        loaded.append(server.metric("nmt_models_loaded"))
                        time.sleep(0.1)
                seconds = time.monotonic() - start
                asked.result()
                self.assertEqual(loaded, sorted(loaded))  # 0, then 1 to the end
                end = time.monotonic() + 20
                while server.metric("nmt_models_loaded") != 0 and time.monotonic() < end:
                    time.sleep(0.1)
                self.assertEqual(server.metric("nmt_models_loaded"), 0)
            if seconds > 3:
                return
        self.fail(f"the longest batch took {seconds} s")

    def test_an_unusable_model_does_not_keep_others_from_coming(self):
        folder, named = self.home / "others", self.home / "named"
        shutil.copytree(self.models / "en-de", folder / "en-de", symlinks=True)
        shutil.copytree(self.models / "de-fr", named, symlinks=True)
        with serving(folder, f"fr-en={named}", "--reload-interval", "1") as server:
            named.rename(self.home / "away")
            shutil.copytree(self.models / "de-fr", folder / "de-fr", symlinks=True)
            shutil.copytree(self.models / "de-fr", folder / "de_fr", symlinks=True)
            end = time.monotonic() + 20
            while (server.json("/translate", q="a", source="de", target="fr")[0] != 200
                   and time.monotonic() < end):
                time.sleep(0.1)
            self.assertEqual(server.json("/translate", q="a", source="de", target="fr")[0], 200)
            self.assertEqual(server.json("/translate", q="a", source="fr", target="en")[0], 500)
            (self.home / "away").rename(named)
            while (server.json("/translate", q="a", source="fr", target="en")[0] != 200
                   and time.monotonic() < end):
                time.sleep(0.1)
            self.assertEqual(server.json("/translate", q="a", source="fr", target="en")[0], 200)
            self.assertEqual(sum("both translate de to fr" in line for line in server.log), 1)

    def test_a_model_seen_while_it_is_copied_is_loaded_when_it_is_complete(self):
        model, copied = self.home / "copied", self.home / "half"
        shutil.copytree(self.models / "de-fr", model, symlinks=True)
        shutil.copytree(self.models / "en-de", copied, symlinks=True)
        late = [(path, path.read_bytes())
                for path in copied.glob("checkpoints/*/model.safetensors")]
        for path, _ in late:
            path.unlink()
        with serving(f"en-de={model}", "--reload-interval", "1") as server:
            first = server.translate(self.lines)["translatedText"]
            shutil.rmtree(model)
            copied.rename(model)
            end = time.monotonic() + 20
            while server.metric("nmt_model_load_failures_total") < 1 and time.monotonic() < end:
                time.sleep(0.1)
            self.assertEqual(server.translate(self.lines)["translatedText"], first)
            for path, contents in late:
                (model / path.relative_to(copied)).write_bytes(contents)
            expected = self.expected(self.lines, model="en-de")
            while (server.translate(self.lines)["translatedText"] != expected
                   and time.monotonic() < end):
                time.sleep(0.2)
            self.assertEqual(server.translate(self.lines)["translatedText"], expected)

    def test_what_a_folder_has_besides_models_is_logged_once(self):
        folder = self.home / "mixed"
        folder.mkdir()
        shutil.copytree(self.models / "en-de", folder / "en-de", symlinks=True)
        shutil.copytree(self.models / "en-de", folder / "english", symlinks=True)
        shutil.copytree(self.models / "en-de", folder / "en-xx", symlinks=True)
        config = json.loads((folder / "en-xx/config.json").read_text())
        config["model"]["task"] = "tagging"
        (folder / "en-xx/config.json").write_text(json.dumps(config))
        (folder / "de-en").mkdir()
        (folder / "notes.txt").write_text("models\n")
        reasons = {"english": "not two languages", "en-xx": "is a tagger",
                   "de-en": "config.json is missing", "notes.txt": "not two languages"}
        with serving(folder, "--reload-interval", "1") as server:
            status, _, body = server.ask("GET", "/languages")
            self.assertEqual([language["code"] for language in json.loads(body)], ["de", "en"])
            time.sleep(2.5)  # two checks of the folder
            (folder / "late").mkdir()
            end = time.monotonic() + 10
            while not any("late" in line for line in server.log) and time.monotonic() < end:
                time.sleep(0.1)
            lines = [line for line in server.log if "skipped " in line]
        self.assertEqual(len(lines), 5, lines)
        for name, reason in {**reasons, "late": "not two languages"}.items():
            self.assertEqual(len([line for line in lines if f"{folder / name}: " in line
                                  and reason in line]), 1, (name, lines))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
