#!/usr/bin/env python3
"""The programs with --device cuda against the CPU: training, going on with a training on the other
device, translating, scoring, auto, and too little memory. Usage: test_programs.py
FOLDER_OF_PROGRAMS [test names]; the programs may have the emulator inside. With NMT_TEST_GPU set
the GPU is used; else only programs with the emulator are tested, and others are skipped."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ["--type", "rnnsearch", "--enc-cell", "lrn", "--dec-cell", "lrn", "--dim-emb", "12",
         "--dim-rnn", "12", "--dim-vocabs", "80", "--mini-batch-words", "60", "--max-length", "40",
         "--cpu-threads", "1", "--disp-freq", "1u", "--save-freq", "100u", "--valid-freq", "1000u",
         "--valid-metrics", "cross-entropy", "--valid-max-sentences", "2", "--early-stopping", "0",
         "--learn-rate", "0.003", "--exponential-smoothing", "0.01", "--lr-warmup", "0"]


def run(tool, *args, status=0, env=None, stdin=None):
    done = subprocess.run([BIN / tool, *map(str, args)], capture_output=True, text=True,
                          timeout=600, input=stdin, env={**os.environ, **(env or {})})
    if done.returncode != status:
        raise AssertionError(f"{tool} {' '.join(map(str, args))}: status {done.returncode}, "
                             f"not {status}\n{done.stdout}{done.stderr}")
    return done


def has_device():
    first = subprocess.run([BIN / "nmt-score", "--device", "cuda", "-m", "/nonexistent", __file__,
                            __file__], capture_output=True, text=True).stderr.splitlines()[0]
    return " on cuda:0 (" in first and ("emulator" in first or os.environ.get("NMT_TEST_GPU"))


class DeviceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="nmt-device-test-"))
        subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", "120",
                        "--valid", "10", "--test", "8", "--seed", "3", cls.dir], check=True)
        cls.files = [cls.dir / "train.en", cls.dir / "train.de"]
        for side in ("en", "de"):  # short sentences: the emulator takes its time
            for part, count in (("train", 120), ("valid", 4), ("test", 3)):
                path = cls.dir / f"{part}.{side}"
                lines = path.read_text(encoding="utf-8").splitlines()[:count]
                path.write_text("".join(" ".join(line.split()[:3]) + "\n" for line in lines),
                                encoding="utf-8")
        cls.train("cpu", "cpu")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir, ignore_errors=True)

    @classmethod
    def train(cls, name, device, *more, cell="lrn", after="8u", status=0, env=None):
        model = [cell if word == "lrn" else word for word in MODEL]
        # the same on both devices
        precision = [] if "--precision" in more else ["--precision", "float32"]
        return run("nmt-train", *cls.files, "--model", cls.dir / name, "--device", device,
                   "--valid-sets", cls.dir / "valid.en", cls.dir / "valid.de", *model, *precision,
                   "--after", after, *more, status=status, env=env)

    def losses(self, name):
        lines = (self.dir / name / "train.jsonl").read_text(encoding="utf-8").splitlines()
        return [e["loss"] for e in map(json.loads, lines) if e["event"] == "display"]

    def assert_close(self, a, b, relative):
        self.assertEqual(len(a), len(b))
        for x, y in zip(a, b):
            self.assertLessEqual(abs(x - y), relative * max(1.0, abs(x)), f"{a} and {b}")

    @unittest.skipIf(os.environ.get("NMT_TEST_GPU"), "a GPU has memory")
    def test_too_little_memory_names_options_that_the_program_has(self):
        long = self.dir / "long.de"
        long.write_text((self.dir / "train.de").read_text(encoding="utf-8") * 4, encoding="utf-8")
        little = {"NMT_EMULATED_MEMORY_MB": "1"}
        lm = ["--task", "language-model", "--precision", "float32", "--unit", "lstm",
              "--dim-emb", "44", "--dim-rnn", "44", "--dim-vocabs", "80",
              "--valid-freq", "0", "--after", "2u", "--optimizer", "sgd", "--mini-batch", "4"]
        done = run("nmt-train", long, "--model", self.dir / "little", *lm, "--bptt", "300",
                   "-d", "cuda", status=4, env=little)
        self.assertRegex(done.stderr, r"warning: out of memory in a batch of 4 streams of \d+ "
                                      r"steps: .*a lower mini-batch avoids this")
        self.assertRegex(done.stderr.splitlines()[-1],
                         r"error: out of memory in a single stream of \d+ steps; lower bptt \(CUDA "
                         r"device .* MB free\)$")
        big = ["--dim-emb", "128", "--dim-rnn", "128", "--after", "1u"]
        self.train("big", "cpu", *big)
        for tool, arguments in (("nmt-translate", ["-i", self.dir / "test.en"]),
                                ("nmt-score", ["-t", self.dir / "test.en", self.dir / "test.de"]),
                                ("nmt-explain", ["-i", self.dir / "test.en"])):
            error = run(tool, "-m", self.dir / "big", "-d", "cuda", *arguments, status=4,
                        env=little).stderr.splitlines()[-1]
            self.assertIn("MB free; reduce --", error)
            known = run(tool, "--help").stdout
            for option in re.findall(r"--[a-z-]+", error):
                self.assertIn(option, known)

    @unittest.skipIf(os.environ.get("NMT_TEST_GPU"), "a GPU is not lost on purpose")
    def test_a_lost_device(self):
        lost = ("an illegal memory access was encountered (cudaErrorIllegalAddress); "
                "this process can no longer use the GPU: start it again")
        env = {"NMT_EMULATED_LOSS": "20"}
        translation = run("nmt-translate", "-m", self.dir / "cpu", "-d", "cuda",
                          "-i", self.dir / "test.en", status=1, env=env)
        self.assertEqual(translation.stdout, "")
        self.assertIn(lost, translation.stderr.splitlines()[-1])
        for loss in ("60", "120"):  # also while dropout of weights has exchanged them
            training = run("nmt-train", self.dir / "train.en", "--model", self.dir / f"lost-{loss}",
                           "--task", "language-model", "-d", "cuda", "--precision", "float32",
                           "--unit", "lstm", "--dim-emb", "8", "--dim-rnn", "8",
                           "--dim-vocabs", "60", "--bptt", "5", "--mini-batch", "8",
                           "--valid-freq", "0", "--after", "3u", "--dropout-weights", "0.3",
                           status=1, env={"NMT_EMULATED_LOSS": loss})
            self.assertIn(lost, training.stderr.splitlines()[-1])
        if not (BIN / "nmt-serve").exists():
            return
        with subprocess.Popen([BIN / "nmt-serve", "--port", "0", "-d", "cuda",
                               f"en-de={self.dir / 'cpu'}"], stderr=subprocess.PIPE, text=True,
                              env={**os.environ, **env}) as server:
            try:
                port = next(int(found[1]) for line in server.stderr if (
                    found := re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)))
                with self.assertRaises(urllib.error.HTTPError) as answer:
                    urllib.request.urlopen(
                        f"http://127.0.0.1:{port}/translate?q=house&source=en&target=de",
                        b"", timeout=60)
                self.assertEqual(answer.exception.code, 500)
                log = server.stderr.read().splitlines()
                self.assertEqual(server.wait(60), 1, log)
                self.assertIn("error: ", log[-1])
                self.assertIn(lost, log[-1])
            finally:
                server.kill()

    def test_training_translating_and_scoring(self):
        done = self.train("cuda", "cuda")
        self.assertIn(" on cuda:0 (", done.stderr.splitlines()[0])
        self.assertEqual(len(self.losses("cuda")), 8)
        self.assert_close(self.losses("cpu"), self.losses("cuda"), 1e-4)
        scores, texts = {}, {}
        for device in ("cpu", "cuda"):
            out = run("nmt-translate", "-m", self.dir / "cpu", "-d", device, "--n-best", "-b", "2",
                      "--max-length-factor", "1", "-i", self.dir / "test.en").stdout.splitlines()
            texts[device] = [line.split(" ||| ")[1] for line in out]
            scores[device] = [float(line.split(" ||| ")[3]) for line in out]
        self.assertEqual(texts["cpu"], texts["cuda"])
        refused = run("nmt-translate", "-m", self.dir / "cpu", "-d", "cuda", "--workers", "2",
                      status=2, stdin="")
        self.assertIn("workers: 2 are for the CPU; with device=cuda expected 1 or auto",
                      refused.stderr)
        self.assert_close(scores["cpu"], scores["cuda"], 1e-4)
        # One model and an ensemble of two.
        for models in (["cpu"], ["cpu", "cuda"]):
            models = [self.dir / m for m in models]
            cpu, cuda = ([float(line) for line in run("nmt-score", "-m", *models, "-d", device,
                                                      "-t", self.dir / "test.en",
                                                      self.dir / "test.de").stdout.split()]
                         for device in ("cpu", "cuda"))
            self.assertEqual(len(cpu), 3)
            self.assert_close(cpu, cuda, 1e-4)

    def test_a_model_in_int8_is_widened(self):
        convert = next((folder / "nmt-convert"
                        for folder in (BIN, BIN.parent) if (folder / "nmt-convert").exists()), None)
        if not convert:
            self.skipTest("there is no nmt-convert beside the programs")
        run(convert, "-m", self.dir / "cpu", "-o", self.dir / "int8", "--no-check")
        wide = run("nmt-translate", "-m", self.dir / "int8", "-d", "cuda", "--precision", "float32",
                   "-i", self.dir / "test.en").stdout
        for device in ("cuda", "auto"):
            done = run("nmt-translate", "-m", self.dir / "int8", "-d", device,
                       "-i", self.dir / "test.en")
            self.assertIn("float32 (auto: int8 is for the CPU)", done.stderr.splitlines()[0])
            self.assertEqual(done.stdout, wide)
        refused = run("nmt-translate", "-m", self.dir / "int8", "-d", "cuda", "--precision", "int8",
                      status=2, stdin="")
        self.assertIn("precision: int8 is for the CPU", refused.stderr)

    def test_rows_of_the_benchmark_are_listed_without_work_of_the_device(self):
        kernels = self.dir / "listed_kernels"
        names = run("nmt-bench", "--device", "cuda", "--list",
                    env={"NMT_EMULATED_KERNELS": str(kernels)}).stdout.splitlines()
        self.assertIn("recurrences/srn forward T 32 B 128 H 512", names)
        self.assertFalse(kernels.exists())

    def test_rounded_products_of_the_benchmark_are_right(self):
        done = run("nmt-bench", "--device", "cuda", "--precision", "bfloat16", "--quick",
                   "--filter", "^products/")
        self.assertIn("A^T B", done.stdout)

    def test_training_on_a_gpu_is_in_bfloat16_unless_something_else_is_asked_for(self):
        def first_line(device, *more, cell="lrn"):
            model = [cell if word == "lrn" else word for word in MODEL]
            return run("nmt-train", *self.files, "--model", self.dir / "default",
                       "--device", device, "--after", "1u", *model, *more,
                       "--no-reload").stderr.splitlines()[0]

        # On a processor the measurement decides.
        self.assertRegex(first_line("cpu"), "(float32|bfloat16)( \\(auto: .*here\\))?;")
        self.assertIn("bfloat16 (auto)", first_line("cuda"))
        self.assertIn("bfloat16 (auto)", first_line("auto"))
        self.assertIn("float32;", first_line("cuda", "--precision", "float32"))
        # cuDNN's layers are not for bfloat16.
        self.assertIn("float32;", first_line("cuda", "--recurrences", "cudnn",
                                             "--no-layer-normalization", cell="lstm"))

    def test_going_on_with_a_training_on_the_other_device(self):
        for first, second in (("cpu", "cuda"), ("cuda", "cpu")):
            name = f"{first}-{second}"
            self.train(name, first, after="4u")
            done = self.train(name, second)
            self.assertIn("resuming at update 4", done.stderr)
            self.assert_close(self.losses("cpu"), self.losses(name), 1e-4)

    def test_auto_takes_the_gpu_where_there_is_one(self):
        first = run("nmt-score", "-m", "/nonexistent", __file__, __file__, "-d", "auto",
                    status=2).stderr.splitlines()[0]
        self.assertIn(" on cuda:0 (", first)
        if "emulator" not in first:
            return
        first = run("nmt-score", "-m", "/nonexistent", __file__, __file__, "-d", "auto", status=2,
                    env={"NMT_EMULATED_DEVICES": "0"}).stderr.splitlines()[0]
        self.assertRegex(first, r" on cpu.*; no GPU: there is no CUDA device")

    def test_layers_by_cudnn(self):
        # Which layers run where is said; on the CPU, without cuDNN, in bfloat16 and for a model of
        # other units it is refused.
        self.train("lstm", "cpu", "--no-layer-normalization", cell="lstm")
        done = self.train("lstm-cudnn", "cuda", "--no-layer-normalization",
                          "--recurrences", "cudnn", cell="lstm")
        self.assertIn("recurrences: cuDNN runs encoder.layer_0.forward, encoder.layer_0.backward; "
                      "own kernels run decoder.layer_0 (attention between two "
                      "units)", done.stderr)
        self.assert_close(self.losses("lstm"), self.losses("lstm-cudnn"), 1e-3)
        texts = [run("nmt-translate", "-m", self.dir / "lstm", *options,
                     "-i", self.dir / "test.en").stdout
                 for options in ((), ("-d", "cuda"), ("-d", "cuda", "--recurrences", "cudnn"))]
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(texts[0], texts[2])
        score = ["nmt-score", "-m", self.dir / "lstm", "-t", self.dir / "test.en",
                 self.dir / "test.de"]
        self.assert_close(*[[float(line) for line in run(*score, *options).stdout.split()]
                            for options in ((), ("-d", "cuda", "--recurrences", "cudnn"))], 1e-4)
        for options, env, why in (
                ((), None, "not for the CPU"),
                (("-d", "auto"), {"NMT_EMULATED_DEVICES": "0"}, "not for the CPU"),
                (("-d", "cuda"), {"NMT_EMULATED_CUDNN": "0"}, "cudnn cannot be used: libcudnn"),
                (("-d", "cuda", "--precision", "bfloat16"), None, "not in bfloat16")):
            if env and not self.emulated():
                continue
            self.assertIn(why,
                          run(*score, *options, "--recurrences", "cudnn", status=2, env=env).stderr)
        self.assertIn("recurrences: cudnn can run no layer of this model: encoder.layer_0.forward "
                      "(the unit lrn activation=tanh)",
                      run("nmt-translate", "-m", self.dir / "cpu", "-d", "cuda",
                          "--recurrences", "cudnn", stdin="a\n", status=2).stderr)

    def test_persistent_recurrences(self):
        # Which layers are persistent is said; on the CPU and for a model without a recurrent
        # product it is refused.
        self.train("gru-own", "cuda", cell="gru")
        losses = self.losses("gru-own")
        for choice, text in (("persistent", "persistent kernels run"),
                             ("auto",
                              "persistent kernels, where measured or predicted to be faster, run")):
            done = self.train(f"gru-{choice}", "cuda", "--recurrences", choice, cell="gru")
            self.assertIn(f"recurrences: {text} encoder.layer_0.forward, encoder.layer_0.backward; "
                          "a launch per product and step: decoder.layer_0 (attention "
                          "between two units)", done.stderr)
            self.assert_close(losses, self.losses(f"gru-{choice}"), 1e-3)
        own, persistent = (run("nmt-translate", "-m", self.dir / "gru-own", "-d", "cuda",
                               "--recurrences", choice, "-i", self.dir / "test.en").stdout
                           for choice in ("own", "persistent"))
        self.assertEqual(own, persistent)
        score = ["nmt-score", "-m", self.dir / "gru-own", "-t", self.dir / "test.en",
                 self.dir / "test.de", "--recurrences", "persistent"]
        self.assertIn("recurrences: persistent is for a GPU (device=cuda), not for the CPU",
                      run(*score, status=2).stderr)
        self.assertIn("recurrences: persistent can run no layer of this model: "
                      "encoder.layer_0.forward (the unit has no recurrent product)",
                      run("nmt-translate", "-m", self.dir / "cpu", "-d", "cuda",
                          "--recurrences", "persistent", stdin="a\n", status=2).stderr)

    def emulated(self):
        return "emulator" in run("nmt-score", "-m", "/nonexistent", __file__, __file__,
                                 "-d", "auto", status=2).stderr.splitlines()[0]

    def test_graphs_change_nothing(self):
        # The same with and without; refused on the CPU; the memory used is told last.
        for name in ("with", "without"):
            done = self.train(name, "cuda", "--cuda-graphs", "on" if name == "with" else "off",
                              "--valid-freq", "4u")
            self.assertRegex(done.stderr, r"GPU memory: \d+ MB of tensors at peak, "
                                          r"\d+ MB reserved, \d+ of \d+ MB of the device in use")
            self.assertEqual("ran as CUDA graphs" in done.stderr, name == "with", done.stderr)
        self.assertEqual(self.losses("with"), self.losses("without"))
        texts = [run("nmt-translate", "-m", self.dir / "cpu", "-d", "cuda", "--cuda-graphs", choice,
                     "-i", self.dir / "test.en", "--n-best").stdout for choice in ("on", "off")]
        self.assertEqual(texts[0], texts[1])
        self.assertIn("cuda-graphs: on is for a GPU (device=cuda), not for the CPU",
                      run("nmt-translate", "-m", self.dir / "cpu", "--cuda-graphs", "on",
                          stdin="a\n", status=2).stderr)

    def test_explain(self):
        pages = {}
        for device in ("cpu", "cuda"):
            path = self.dir / f"{device}.json"
            run("nmt-explain", "-m", self.dir / "cpu", "-d", device, "--json", path, "--", "a b")
            sentence = json.loads(path.read_text(encoding="utf-8"))["sentences"][0]
            pages[device] = [sentence["attention"][0][0],
                             *(u["input"] for u in sentence["units"] if u)]
        for a, b in zip(pages["cpu"], pages["cuda"]):
            self.assert_close(a, b, 1e-3)


if __name__ == "__main__":
    if not has_device():
        print("skipped: these programs have no emulator, and NMT_TEST_GPU is not set or there is "
              "no GPU")
        sys.exit(77)
    unittest.main(verbosity=2)
