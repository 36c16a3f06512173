#!/usr/bin/env python3
"""End-to-end tests of nmt-train: resuming, signals, stopping, bad input, and validation against the other programs.
Usage: test_train.py BIN_DIR [test names]"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import zlib

BIN = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "build/bin").resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ["--dim-emb", "16", "--dim-rnn", "16", "--enc-depth", "1", "--dec-depth", "1", "--dim-vocabs", "200", "--mini-batch-words", "200",
         "--cpu-threads", "2", "--disp-freq", "10u", "--valid-freq", "10u", "--save-freq", "10u", "--valid-max-sentences", "20",
         "--early-stopping", "0", "--exponential-smoothing", "0.01"]


def run(*args, status=0, tool="nmt-train", stdin=None):
    done = subprocess.run([BIN / tool, *map(str, args)], capture_output=True, text=True, timeout=300, input=stdin)
    if status is not None and done.returncode != status:
        raise AssertionError(f"{tool} {' '.join(map(str, args))}: status {done.returncode}, not {status}\n{done.stdout}{done.stderr}")
    return done


def make_corpus(folder, pairs=300, seed=1):
    subprocess.run([sys.executable, ROOT / "scripts/data/make_toy_corpus.py", "--pairs", str(pairs), "--valid", "60", "--test", "10", "--seed", str(seed), folder],
                   check=True)
    return folder / "train.en", folder / "train.de"


def weights(model):
    return (model / "latest" / "model.safetensors").read_bytes()


def events(model, kind):
    lines = (model / "train.jsonl").read_text(encoding="utf-8").splitlines()
    return [e for e in map(json.loads, lines) if e["event"] == kind]


class TrainTest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="nmt-train-test-"))
        self.en, self.de = make_corpus(self.dir)

    def tearDown(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def train(self, name, *more, status=0):
        return run(self.en, self.de, "--model", self.dir / name, *SMALL, *more, status=status)

    def start(self, name, *more):
        return subprocess.Popen([BIN / "nmt-train", self.en, self.de, "--model", self.dir / name, *SMALL, *more], stderr=subprocess.PIPE,
                                stdout=subprocess.DEVNULL, text=True)

    @staticmethod
    def wait_for(process, text):
        for line in process.stderr:
            if text in line:
                return
        raise AssertionError(f"the program ended before '{text}'")

    def test_resume_is_bit_exact(self):
        self.train("whole", "--after", "40u")
        self.train("parts", "--after", "20u")
        self.train("parts", "--after", "40u")
        self.assertEqual(weights(self.dir / "whole"), weights(self.dir / "parts"))
        figures = [[{k: e[k] for k in ("updates", "loss", "perplexity", "learn_rate", "gradient_norm")} for e in events(self.dir / name, "display")]
                   for name in ("whole", "parts")]
        self.assertEqual(*figures)
        # and killed without a chance to save
        process = self.start("killed", "--after", "40u")
        self.wait_for(process, "validation at update 20")
        process.kill()
        process.wait()
        process.stderr.close()
        self.train("killed", "--after", "40u")
        self.assertEqual(weights(self.dir / "whole"), weights(self.dir / "killed"))

    def test_resume_needs_the_same_links(self):
        links = self.dir / "links"
        pairs = len(self.en.read_text(encoding="utf-8").splitlines())
        links.write_text("0-0\n" * pairs, encoding="utf-8")
        guided = ("--guided-alignment", links)
        self.train("guided", *guided, "--after", "2u")
        self.train("guided", *guided, "--after", "3u")
        links.write_text("0-0\n" * (pairs - 1) + "\n", encoding="utf-8")
        error = self.train("guided", *guided, "--after", "4u", status=2).stderr
        self.assertIn(f"{links}: the links differ", error)
        self.assertIn("another file name", error)
        self.train("guided", *guided, "--guided-alignment-weight", "0", "--after", "4u")
        self.train("guided", *guided, "--after", "5u", status=2)  # not forgotten meanwhile
        other = self.dir / "other"
        shutil.copy(links, other)
        done = self.train("guided", "--guided-alignment", other, "--after", "5u")
        self.assertIn("override guided-alignment", done.stderr)
        self.train("guided", "--guided-alignment", other, "--after", "6u")
        with open(self.en, "a", encoding="utf-8") as text, open(self.de, "a", encoding="utf-8") as target, open(other, "a", encoding="utf-8") as more:
            text.write("a house\n")
            target.write("ein haus\n")
            more.write("0-0\n")  # new text has new links
        done = self.train("guided", "--guided-alignment", other, "--after", "7u")
        self.assertIn("the training text is not the checkpoint's; restarting the corpus", done.stderr)

    def test_noise_is_drawn_alike_by_a_resumed_training(self):
        # A vocabulary of its own, so that only the noise of the training pairs tells the runs apart.
        self.train("v", "--after", "1u", "--noise", "0")
        vocabulary = self.dir / "v" / "vocab.spm"
        noise = ["--vocabs", vocabulary, "--noise-upper", "0.3", "--noise-title", "0.2", "--noise-typos", "0.4", "--noise-punctuation", "0.5",
                 "--bpe-dropout", "0.1", "--mini-batch-words", "700"]
        self.train("whole", *noise, "--after", "60u")
        for after in ("23u", "47u", "60u"):  # in several epochs
            self.train("parts", *noise, "--after", after)
        self.assertGreater(events(self.dir / "whole", "display")[-1]["epochs"], 2)
        self.assertEqual(weights(self.dir / "whole"), weights(self.dir / "parts"))
        self.train("threads", *noise, "--after", "60u", "--cpu-threads", "1")
        figures = [[(e["labels"], e["updates"]) for e in events(self.dir / name, "display")] for name in ("whole", "threads")]
        self.assertEqual(*figures)  # the same batches
        for name, more in (("clean", ["--noise", "0"]), ("merged", [*noise[2:], "--bpe-dropout", "0"]), ("seed", [*noise[2:], "--seed", "3"])):
            self.train(name, "--vocabs", vocabulary, *more, "--after", "60u")
            self.assertNotEqual(weights(self.dir / "whole"), weights(self.dir / name))
        done = self.train("whole", *noise, "--noise-typos", "0.1", "--after", "61u")
        self.assertIn("override noise-typos: 0.4 -> 0.1", done.stderr)
        self.assertIn("sum is above 1", run(self.en, self.de, "--noise-upper", "0.7", "--noise-title", "0.4", status=2).stderr)

    def test_resume_in_bfloat16_is_bit_exact(self):
        mixed, own = ("--precision", "bfloat16"), ("--products", "own")
        self.train("mixed", *mixed, "--after", "20u")
        self.train("mixed parts", *mixed, "--after", "10u")
        self.train("mixed parts", *mixed, "--after", "20u")
        self.assertEqual(weights(self.dir / "mixed"), weights(self.dir / "mixed parts"))
        # Without AVX-512 BF16, and in float32, the losses are the same up to rounding.
        with unittest.mock.patch.dict(os.environ, NMT_BF16="0"):
            told = self.train("emulated", *mixed, "--after", "20u").stderr
        self.assertIn("without AVX-512 BF16 this is slower", told)
        # Without AMX, which adds in another order, too.
        with unittest.mock.patch.dict(os.environ, NMT_AMX="0"):
            told = self.train("without tiles", *mixed, "--after", "20u").stderr
        self.assertNotIn("by AMX", told)
        self.train("single", *own, "--after", "20u")
        last = {name: events(self.dir / name, "display")[-1]["loss"] for name in ("mixed", "emulated", "without tiles", "single")}
        self.assertNotEqual(last["mixed"], last["single"])
        for name in ("emulated", "without tiles", "single"):
            self.assertAlmostEqual(last["mixed"] / last[name], 1, delta=2**-7, msg=str(last))
        # auto: bfloat16 where the processor multiplies it faster, by a measurement that is stored.
        with unittest.mock.patch.dict(os.environ, NMT_BF16="0", XDG_CACHE_HOME=str(self.dir / "cache")):
            self.train("auto without", *own, "--precision", "auto", "--after", "20u")
        self.assertEqual(weights(self.dir / "auto without"), weights(self.dir / "single"))
        if "avx512_bf16" not in pathlib.Path("/proc/cpuinfo").read_text():
            return
        with unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.dir / "cache")):
            self.train("auto measured", *own, "--precision", "auto", "--after", "20u")
            stored = self.dir / "cache/nmt/products.json"
            choices = json.loads(stored.read_text(encoding="utf-8"))
            (key,) = [key for key in choices if "bfloat16" in key]
            measured = choices[key]
            for faster in (True, False):
                stored.write_text(json.dumps(choices | {key: [faster]}), encoding="utf-8")
                self.train(f"auto {faster}", *own, "--precision", "auto", "--after", "20u")
                self.assertEqual(weights(self.dir / f"auto {faster}"), weights(self.dir / ("mixed" if faster else "single")))
                # Without the option, a line says that it would be faster.
                told = self.train(f"default {faster}", *own, "--after", "1u").stderr
                self.assertEqual("see --precision auto" in told, faster)
        self.assertEqual(weights(self.dir / "auto measured"), weights(self.dir / f"auto {measured[0]}"))

    def test_what_an_older_version_saved_goes_on(self):
        """Settings that it did not have, and those whose default came later: attention-query auto, embeddings tied."""
        self.train("whole", "--after", "40u", "--no-tied-embeddings-all", "--noise", "0")
        self.train("older", "--after", "20u", "--no-tied-embeddings-all", "--noise", "0")
        checkpoint = self.dir / "older" / "latest"
        state, manifest = (json.loads((checkpoint / name).read_text(encoding="utf-8")) for name in ("state.json", "manifest.json"))
        lines = state["settings"].splitlines(True)
        unknown = ("groups:", "rearrange:", "dropout-variational:", "positions:", "init-scale:",
                   "noise-upper:", "noise-title:", "noise-typos:", "noise-punctuation:", "bpe-dropout:")
        older = [line for line in lines if not line.startswith(unknown)]
        self.assertEqual(len(older), len(lines) - len(unknown))
        for query, said in (("auto", []), ("auto", ["recurrent"]), ("recurrent", ["auto"]), ("recurrent", [])):
            state["settings"] = "".join(re.sub(r"^(attention-query:).*", rf"\1 {query}", line) for line in older)
            self.assertIn(f"attention-query: {query}\n", state["settings"])
            text = json.dumps(state)
            (checkpoint / "state.json").write_text(text, encoding="utf-8")
            manifest["files"]["state.json"] = {"bytes": len(text.encode()), "crc32": zlib.crc32(text.encode())}
            (checkpoint / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
            with self.subTest(query=query, said=said):
                shutil.copytree(self.dir / "older", self.dir / "on", symlinks=True)
                done = self.train("on", "--after", "40u", *(["--attention-query", *said] if said else []))
                self.assertEqual(re.findall(r"override (\S+):", done.stdout + done.stderr), ["after"])
                self.assertEqual(weights(self.dir / "whole"), weights(self.dir / "on"))
            shutil.rmtree(self.dir / "on", ignore_errors=True)
        done = self.train("older", "--after", "40u", "--attention-query", "first-layer", status=2)
        self.assertIn("attention-query is recurrent there", done.stdout + done.stderr)

    def test_older_blocks_keep_their_embeddings(self):
        """embedding-scale came later; their models have none, new ones sqrt."""
        block = ("--type", "block", "--unit", "ssru", "--feed-forward-width", "8", "--products", "own")
        self.train("whole", *block, "--embedding-scale", "none", "--after", "20u")
        self.train("older", *block, "--embedding-scale", "none", "--after", "10u")
        checkpoint = self.dir / "older" / "latest"
        state, manifest = (json.loads((checkpoint / name).read_text(encoding="utf-8")) for name in ("state.json", "manifest.json"))
        lines = state["settings"].splitlines(True)
        state["settings"] = "".join(line for line in lines if not line.startswith("embedding-scale:"))
        self.assertNotEqual(state["settings"], "".join(lines))
        text = json.dumps(state)
        (checkpoint / "state.json").write_text(text, encoding="utf-8")
        manifest["files"]["state.json"] = {"bytes": len(text.encode()), "crc32": zlib.crc32(text.encode())}
        (checkpoint / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        done = self.train("older", *block, "--after", "20u")
        self.assertEqual(re.findall(r"override (\S+):", done.stdout + done.stderr), ["after"])
        self.assertEqual(weights(self.dir / "whole"), weights(self.dir / "older"))
        self.train("new", *block, "--after", "20u")
        self.assertNotEqual(weights(self.dir / "whole"), weights(self.dir / "new"))

    def test_older_srn_is_rnn(self):
        """Version 0.2 and before called rnn srn. A model directory of then: no gate-init, and the old name."""
        plain = ["--valid-metrics", "cross-entropy", "--valid-freq", "2u", "--save-freq", "2u"]
        self.train("whole", *plain, "--unit", "rnn", "--after", "4u")
        self.train("older", *plain, "--unit", "rnn", "--after", "2u")
        older = self.dir / "older"
        config = json.loads((older / "config.json").read_text(encoding="utf-8"))
        self.assertEqual(config["model"].pop("enc-cell"), "rnn")
        for name in ("gate-init", "gate-bias", "gate-steps"):
            del config["model"][name]
        config["model"] |= {"enc-cell": "srn", "dec-cell": "srn"}
        (older / "config.json").write_text(json.dumps(config), encoding="utf-8")
        checkpoint = older / "latest"
        state, manifest = (json.loads((checkpoint / name).read_text(encoding="utf-8")) for name in ("state.json", "manifest.json"))
        state["settings"] = re.sub(r"^gate-.*\n", "", re.sub(r"cell: rnn", "cell: srn", state["settings"]), flags=re.M)
        text = json.dumps(state)
        (checkpoint / "state.json").write_text(text, encoding="utf-8")
        manifest["files"]["state.json"] = {"bytes": len(text.encode()), "crc32": zlib.crc32(text.encode())}
        (checkpoint / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        self.assertIn('"name": "rnn"', run("--model", older, "--json", tool="nmt-info").stdout)
        done = self.train("older", *plain, "--unit", "srn", "--after", "4u", status=2)
        self.assertIn("enc-cell is rnn there, not srn", done.stderr)
        done = self.train("older", *plain, "--unit", "rnn", "--after", "4u")
        self.assertEqual(re.findall(r"override (\S+):", done.stderr), ["after"])
        self.assertEqual(weights(self.dir / "whole"), weights(older))

    def test_every_unit_goes_on(self):
        """The same command, with a later end; elstm1 and elstm2 have position vectors, whose number is chosen."""
        units = re.search(r"^units: (.*)", run("--build-info").stdout, re.M)[1].split()
        self.assertGreaterEqual(len(units), 12)
        for unit in units:
            with self.subTest(unit=unit):
                often = [o for name in ("--valid-freq", "--save-freq") for o in (name, "2u")]
                same = ["--unit", unit, "--valid-metrics", "cross-entropy", *often]
                self.train(unit, *same, "--after", "2u")
                done = self.train(unit, *same, "--after", "4u")
                self.assertEqual(re.findall(r"override (\S+):", done.stderr), ["after"])
                self.assertEqual(events(self.dir / unit, "end")[-1]["updates"], 4)
        self.train("elstm1", *same, "--unit", "elstm1", "--after", "6u", "--positions", "0")
        done = self.train("elstm1", *same, "--unit", "elstm1", "--after", "8u", "--positions", "7", status=2)
        self.assertIn("positions is 100 there, not 7", done.stderr)

    def test_the_unit_is_chosen_once(self):
        """A resumed training keeps its unit, whether it was chosen or given; one side may be named alone."""
        often = [o for name in ("--valid-freq", "--save-freq") for o in (name, "2u")]
        plain = ["--valid-metrics", "cross-entropy", *often]
        for name, options, units in (("chosen", [], ["gru", "gru"]), ("given", ["--unit", "lrn"], ["lrn", "lrn"]), ("one", ["--dec-cell", "sru"], ["lrn", "sru"])):
            done = self.train(name, *plain, *options, "--after", "2u")
            self.assertEqual("unit: gru (chosen: " in done.stderr, name == "chosen")
            spec = json.loads((self.dir / name / "config.json").read_text(encoding="utf-8"))["model"]
            self.assertEqual([spec["enc-cell"], spec["dec-cell"]], units)
            done = self.train(name, *plain, "--after", "4u")
            self.assertEqual(re.findall(r"override (\S+):", done.stderr), ["after"])
        done = self.train("chosen", *plain, "--dec-cell", "sru", "--after", "6u", status=2)
        self.assertIn("dec-cell is gru there, not sru", done.stderr)
        self.assertNotIn("enc-cell", done.stderr)

    def test_a_full_dump_still_chooses(self):
        """What nmt-train chooses unless it is set is a comment in the dump of all settings; a side that is given is not."""
        dump = self.train("d", "--dump-config", "full", "--dec-cell", "sru").stdout
        self.assertRegex(dump, r"(?m)^# enc-cell: ")
        self.assertRegex(dump, r"(?m)^dec-cell: sru$")
        self.assertRegex(dump, r"(?m)^# tied-embeddings-all: ")
        dump = self.train("d", "--dump-config", "full", "--after", "2u").stdout
        (self.dir / "full.yml").write_text(dump, encoding="utf-8")
        done = run("--config", self.dir / "full.yml")
        for choice in ("unit: gru", "tied-embeddings-all: true"):
            self.assertIn(f"{choice} (chosen: ", done.stderr)

    def test_options_without_effect_are_those_of_the_chosen_unit(self):
        options = {"--dropout-state": "0.1", "--activation": "identity", "--positions": "9", "--rearrange": "true", "--bias": "true", "--upper-context": "false"}
        typed = [word for option in options.items() for word in ("=".join(option),)]
        said = ("options without effect: activation (unit gru has no such variant), positions (unit gru has no position vectors), "
                "bias (layer-normalization has one), rearrange (groups is 1), upper-context (dec-depth is 1)")
        done = self.train("typed", "--after", "2u", *typed, status=2)
        self.assertEqual(done.stderr.splitlines()[-1], f"error: {said}; leave them out")
        self.assertFalse((self.dir / "typed").exists())
        # A configuration file may serve several models.
        (self.dir / "c.yml").write_text("".join(f"{name[2:]}: {value}\n" for name, value in options.items()), encoding="utf-8")
        done = self.train("file", "--after", "2u", "--config", self.dir / "c.yml")
        self.assertIn(f"warning: {said}\n", done.stderr)
        self.train("positions", "--after", "2u", "--unit", "elstm1", "--positions", "9")

    def test_gates_start_as_said(self):
        """--gate-init is kept when a training resumes; what it does not do is said."""
        plain = ["--unit", "lrn", "--no-layer-normalization", "--valid-metrics", "cross-entropy", "--valid-freq", "2u", "--save-freq", "2u"]
        weights_of = {}
        for name, options in {"none": ["--gate-init", "none"], "constant": [], "chrono": ["--gate-init", "chrono"]}.items():
            done = self.train(name, *plain, *options, "--after", "2u")
            self.assertNotRegex(done.stderr, "without effect: .*gate")
            weights_of[name] = int(re.search(r" ([\d,]+) weights", done.stderr)[1].replace(",", ""))
            done = self.train(name, *plain, "--after", "4u")
            self.assertEqual(re.findall(r"override (\S+):", done.stderr), ["after"])
        spec = json.loads((self.dir / "chrono" / "config.json").read_text(encoding="utf-8"))["model"]
        self.assertEqual((spec["gate-init"], spec["gate-steps"]), ("chrono", 30))
        usual = json.loads((self.dir / "constant" / "config.json").read_text(encoding="utf-8"))["model"]
        self.assertEqual(usual["gate-init"], "constant")  # the default
        # forward, backward, and the two units of the conditional layer have a bias of 3 planes each
        self.assertEqual(weights_of["constant"] - weights_of["none"], 4 * 3 * spec["dim-rnn"])
        self.assertEqual(weights_of["chrono"], weights_of["constant"])
        for options, said in ((["--gate-init", "none", "--gate-bias", "1"], "gate-bias (gate-init is none)"),
                              (["--gate-init", "chrono", "--gate-bias", "1"], "gate-bias (gate-init is chrono)"),
                              (["--gate-init", "constant", "--gate-steps", "9"], "gate-steps (gate-init is constant)"),
                              (["--gate-init", "chrono", "--unit", "srn"], "gate-init (no gate of unit srn has a bias)")):
            with self.subTest(said=said):
                done = self.train("idle", *plain, *options, "--after", "1u", "--no-reload", status=2)
                self.assertRegex(done.stderr, "options without effect: .*" + re.escape(said))

    def test_signals_save_and_leave(self):
        self.train("whole", "--after", "60u")
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 143)):
            name = f"signal{number}"
            process = self.start(name, "--after", "60u")
            self.wait_for(process, "update 10 ")
            process.send_signal(number)
            rest = process.stderr.read()
            self.assertEqual(process.wait(), status, rest)
            self.assertIn(signal.Signals(number).name, rest)
            process.stderr.close()
            run("-m", self.dir / name, tool="nmt-translate", stdin="three cats.\n")
            self.train(name, "--after", "60u")
            self.assertEqual(weights(self.dir / "whole"), weights(self.dir / name))

    def test_the_reader_of_the_log_may_leave(self):
        process = self.start("left", "--after", "60u")
        self.wait_for(process, "update 10 ")
        process.stderr.close()
        self.assertEqual(process.wait(), 0)
        self.assertTrue((self.dir / "left" / "checkpoints" / "60").exists())

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_directory_that_cannot_be_made_is_told_first(self):
        closed = self.dir / "closed"
        closed.mkdir(mode=0o500)
        done = run(self.en, self.de, "--model", closed / "a" / "b", *SMALL, status=2)
        self.assertIn(f"error: model: {closed}/a/b cannot be made in {closed}: Permission denied", done.stderr)
        self.assertNotIn("vocabulary", done.stderr)

    def test_dumped_config_trains_the_same_model(self):
        self.train("a", "--after", "20u")
        dump = self.train("b", "--after", "20u", "--dump-config").stdout
        self.assertFalse((self.dir / "b").exists())
        (self.dir / "c.yml").write_text(dump, encoding="utf-8")
        run("-c", self.dir / "c.yml", "--model", self.dir / "b")
        self.assertEqual(weights(self.dir / "a"), weights(self.dir / "b"))

    def test_validation_equals_the_programs(self):
        development = self.dir / "valid.en", self.dir / "valid.de"
        make_corpus(self.dir, 1000)
        self.train("m", "--after", "160u", "--valid-freq", "80u", "--no-tied-embeddings-all", "--learn-rate", "0.01", "--lr-warmup", "20u", "--dim-emb", "48", "--dim-rnn", "48",
                   "--mini-batch-words", "600", "--dropout", "0", "--valid-max-sentences", "0", "--valid-sets", *development)
        told = events(self.dir / "m", "validation")[-1]
        hypotheses = self.dir / "hyp"
        run("-m", self.dir / "m", "-i", development[0], "-o", hypotheses, tool="nmt-translate")
        for metric in ("bleu", "chrf"):
            score = run(development[1], "-i", hypotheses, "-m", metric, "-b", "-w", "10", tool="nmt-bleu").stdout
            self.assertAlmostEqual(float(score), told[metric], places=9)
        self.assertGreater(told["chrf"], 10)
        score = run("-m", self.dir / "m", "-t", *development, "--summary", "perplexity", tool="nmt-score").stdout
        self.assertAlmostEqual(float(score.split()[-1]), told["perplexity"], delta=1e-3 * told["perplexity"])

    def dir_in(self, name):
        (self.dir / name).mkdir()
        return self.dir / name

    def test_learns(self):
        done = self.train("m", "--after", "150u", "--learn-rate", "0.01", "--dropout-emb", "0", "--dropout-rnn", "0", "--dropout-readout", "0")
        first, last = (events(self.dir / "m", "display")[i]["perplexity"] for i in (0, -1))
        self.assertLess(last, first / 4)
        self.assertIn("nmt-translate -m", done.stdout + done.stderr)

    def test_nothing_but_two_files(self):
        done = subprocess.run([BIN / "nmt-train", self.en, self.de, "--after", "12u"], cwd=self.dir, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("dim-rnn: 128 (chosen: ", done.stderr)
        self.assertIn("unit: gru (chosen: ", done.stderr)
        self.assertIn("tied-embeddings-all: true (chosen: one vocabulary for both sides)", done.stderr)
        self.assertTrue((self.dir / "model" / "best" / "model.safetensors").exists())

    def test_finished_says_so(self):
        self.train("m", "--after", "10u")
        done = self.train("m", "--after", "10u")
        self.assertIn("update 10 of 10", done.stderr)
        before = weights(self.dir / "m")
        self.assertEqual(before, weights(self.dir / "m"))

    def test_finished_keeps_its_last_validation(self):
        """It comes after the save of the same update, and is not the best."""
        same = ["--save-freq", "5u", "--learn-rate", "1e-12", "--valid-metrics", "bleu"]
        self.train("m", *same, "--after", "15u")
        before = (self.dir / "m" / "train.jsonl").read_bytes()
        self.assertEqual([e["updates"] for e in events(self.dir / "m", "validation")], [10, 15])
        self.train("m", *same, "--after", "15u")
        self.assertEqual((self.dir / "m" / "train.jsonl").read_bytes(), before)

    def test_changed_options_are_listed(self):
        self.train("m", "--after", "10u")
        done = self.train("m", "--after", "12u", "--learn-rate", "0.5")
        self.assertRegex(done.stderr, r"learn-rate: .* -> 0\.5")
        done = self.train("m", "--after", "14u", "--dim-rnn", "32", status=2)
        self.assertIn("dim-rnn", done.stderr)
        self.assertIn("16", done.stderr)

    def test_another_corpus_starts_at_its_beginning(self):
        self.train("m", "--after", "10u")
        make_corpus(self.dir, 200, seed=9)
        done = self.train("m", "--after", "14u")
        self.assertIn("restarting the corpus", done.stderr)

    def test_more_epochs_of_other_text_count_from_its_beginning(self):
        rarely = ["--valid-freq", "1000u", "--save-freq", "1000u", "--valid-metrics", "cross-entropy"]
        self.train("m", "--after", "2e", *rarely)
        done = self.train("m", "--after", "+1e", *rarely)
        self.assertIn("after: +1e is 3e here", done.stderr)
        self.assertEqual(events(self.dir / "m", "end")[-1]["epochs"], 3)
        make_corpus(self.dir, 200, seed=9)
        done = self.train("m", "--after", "+1e", *rarely)
        self.assertIn("after: +1e is 1e here", done.stderr)
        self.assertIn("held out from other text than before", done.stderr)
        self.assertEqual(events(self.dir / "m", "end")[-1]["epochs"], 1)

    def test_development_pairs_are_never_trained_on(self):
        given = ["--valid-sets", self.dir / "valid.en", self.dir / "valid.de"]
        self.train("given", "--after", "10u", *given)
        done = self.train("given", "--after", "12u", status=2)
        self.assertRegex(done.stderr, r"valid-sets is \S+ \S+ there, not none")
        done = self.train("given", "--after", "12u", *given, "--seed", "7")  # of no hold-out
        self.assertIn("override seed: 1234 -> 7", done.stderr)
        self.train("held", "--after", "10u")
        for more in (["--seed", "7"], ["--valid-lines", "20"]):
            self.assertIn("it decides which pairs are held out", self.train("held", "--after", "12u", *more, status=2).stderr)
        self.train("held", "--after", "12u", *given)
        self.assertIn("not none", self.train("held", "--after", "14u", status=2).stderr)

    def test_a_vocabulary_may_have_another_name(self):
        self.train("first", "--after", "2u")
        here, other = self.dir / "v.spm", self.dir / "other.spm"
        shutil.copy(self.dir / "first" / "vocab.spm", here)
        run("train", self.en, "--model", other, "--size", "150", tool="nmt-vocab")
        self.train("m", "--after", "2u", "--vocabs", here)
        for updates, name in ((4, [f"{self.dir}/./v.spm"]), (6, [here]), (8, []), (10, [self.dir / "m" / "vocab.spm"])):
            self.train("m", "--after", f"{updates}u", *(["--vocabs", *name] if name else []))
        self.assertIn("embeddings depend on the vocabulary", self.train("m", "--after", "12u", "--vocabs", other, status=2).stderr)
        here.unlink()
        self.train("m", "--after", "12u", "--vocabs", self.dir / "m" / "vocab.spm")

    def test_what_has_no_effect_is_told_once(self):
        search = ["--beam-size", "2", "--valid-max-sentences", "3"]
        told = "warning: options without effect: valid-max-sentences (no metric of valid-metrics translates), beam-size (no metric of valid-metrics translates)"
        self.assertIn(told, self.train("ce", "--after", "2u", *search, "--valid-metrics", "perplexity", "cross-entropy").stderr)
        self.assertNotIn("without effect", self.train("bleu", "--after", "2u", *search, "--valid-metrics", "chrf", "cross-entropy").stderr)
        done = self.train("m", "--after", "2u", "--schedule", "rnmt+", "--lr-warmup", "10u", "--lr-decay-inv-sqrt", "20u", "--lr-decay-start", "2", "1", "--valid-lines", "20",
                          "--valid-sets", self.dir / "valid.en", self.dir / "valid.de")
        told = [line for line in done.stderr.splitlines() if "without effect" in line]
        self.assertEqual(told, ["warning: options without effect: valid-lines (valid-sets are given), lr-warmup (schedule rnmt+ has its own warm-up), "
                                "lr-decay-inv-sqrt (schedule is rnmt+), lr-decay-start (lr-decay is 0)"])
        shutil.copy(self.dir / "m" / "vocab.spm", self.dir / "v.spm")
        done = self.train("v", "--after", "2u", "--vocabs", self.dir / "v.spm", "--no-joint-vocab", "--lr-decay", "0.5", "--lr-decay-start", "2", "1", "--rnmt-schedule", "4", "5", "6", "7")
        self.assertIn("options without effect: dim-vocabs (vocabs are given), joint-vocab (vocabs are given), rnmt-schedule (schedule is inv-sqrt)\n", done.stderr)
        dump = self.train("d", "--dump-config").stdout  # every setting, most of them at their defaults
        (self.dir / "c.yml").write_text(dump, encoding="utf-8")
        self.assertNotIn("without effect", run("-c", self.dir / "c.yml", "--model", self.dir / "d", "--after", "2u").stderr)

    def test_keeping_all_checkpoints_needs_no_room_for_a_hundred_thousand(self):
        done = self.train("m", "--keep-last", "100000", "--after", "10u")
        self.assertNotIn("keep-last", done.stderr)

    def test_starting_anew_says_how_to_go_on(self):
        process = self.start("m", "--after", "60u", "--no-reload")
        self.wait_for(process, "update 10 ")
        process.send_signal(signal.SIGTERM)
        self.assertIn("run the same command without --no-reload to resume", process.stderr.read())
        self.assertEqual(process.wait(), 143)
        process.stderr.close()

    def test_lines_too_long_for_the_vocabulary_are_told(self):
        for path in (self.en, self.de):
            with path.open("a", encoding="utf-8") as file:
                file.write("word " * 1000 + "\n")
        done = self.train("m", "--after", "2u", "--valid-lines", "10")
        self.assertRegex(done.stderr, r"joint vocabulary: 200 pieces from \d+ lines, 2 lines over 4096 bytes skipped")

    def test_checkpoints_are_never_removed_by_a_resumed_training(self):
        self.train("m", "--after", "30u", "--save-freq", "10u", "--keep-last", "9")
        model, copy = self.dir / "m", self.dir / "copy"
        there = sorted(path.name for path in (model / "checkpoints").iterdir())
        shutil.copytree(model, copy)  # follows links
        self.assertFalse((copy / "latest").is_symlink())
        self.train("copy", "--after", "40u", "--save-freq", "10u", "--keep-last", "9")
        self.assertEqual(sorted(path.name for path in (copy / "checkpoints").iterdir()), sorted([*there, "40"]))
        self.train("m", "--after", "40u", "--save-freq", "10u", "--keep-last", "9")
        self.assertEqual(weights(model), weights(copy))
        (copy / "latest").unlink()
        self.train("copy", "--after", "50u", "--save-freq", "10u", "--keep-last", "9")
        self.assertLessEqual({*there, "40", "50"}, {path.name for path in (copy / "checkpoints").iterdir()})
        (copy / "config.json").unlink()
        done = self.train("copy", "--after", "60u", status=3)
        self.assertIn("has checkpoints but no config.json", done.stderr)
        self.assertTrue((copy / "checkpoints" / "50").exists())
        self.train("copy", "--after", "10u", "--no-reload")

    def test_damage_of_the_latest_checkpoint_names_a_sound_one(self):
        self.train("m", "--after", "20u", "--save-freq", "10u", "--keep-last", "9")
        model = self.dir / "m"
        with open(model / "checkpoints" / "20" / "state.safetensors", "r+b") as file:
            file.truncate(100)
        done = self.train("m", "--after", "30u", status=3)
        self.assertIn("checkpoint 10 is intact", done.stderr)
        manifest = model / "checkpoints" / "20" / "manifest.json"
        for damage, said in ((lambda: os.truncate(manifest, 100), "it ends after 100 bytes"), (lambda: os.truncate(manifest, 0), "is empty"), (manifest.unlink, "is missing")):
            damage()
            done = self.train("m", "--after", "30u", status=3)
            self.assertIn(f"{said}; checkpoint 10 is intact: remove {model}/checkpoints/20 and {model}/latest,", done.stderr)
        shutil.rmtree(model / "checkpoints" / "20")  # as the message says
        (model / "latest").unlink()
        self.train("m", "--after", "30u")

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which("setpriv"), "root can write everywhere")
    def test_a_directory_that_cannot_be_written_is_an_error_at_the_start(self):
        self.train("m", "--after", "10u")
        os.chmod(self.dir, 0o755)
        user = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
        if subprocess.run([*user, BIN / "nmt-train", "--version"], capture_output=True).returncode != 0:
            self.skipTest("the programs are in a private folder, and root can write everywhere")
        for folder in (self.dir / "m", self.dir / "m" / "checkpoints"):
            os.chmod(folder, 0o555)
            command = [*user, BIN / "nmt-train", self.en, self.de, "--model", self.dir / "m", *SMALL, "--after", "20u"]
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            os.chmod(folder, 0o755)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("cannot be written", done.stderr)
            self.assertNotIn("update 1", done.stderr)

    def test_starting_anew_and_foreign_folders(self):
        self.train("m", "--after", "10u")
        self.train("m", "--after", "10u", "--no-reload")
        foreign = self.dir_in("foreign")
        (foreign / "thesis.tex").write_text("years of work")
        for more in ([], ["--no-reload"]):
            done = self.train("foreign", "--after", "10u", *more, status=2)
            self.assertIn("foreign", done.stderr)
        self.assertEqual(sorted(p.name for p in foreign.iterdir()), ["thesis.tex"])

    def test_bad_input_is_one_line(self):
        empty = self.dir / "empty"
        empty.write_text("")
        short = self.dir / "short"
        short.write_text("a\nb\n")
        typo = self.dir / "typo.yml"
        typo.write_text("dim-embb: 32\n")
        kind = self.dir / "kind.yml"
        kind.write_text("dim-emb: wide\n")
        broken = self.dir / "broken.yml"
        broken.write_text("dim-emb: [\n")
        m = ["--model", self.dir / "bad"]
        cases = [
            (2, [self.dir / "missing.en", self.de, *m], "missing.en"),
            (2, [self.dir, self.de, *m], str(self.dir)),
            (3, [empty, empty, *m], "empty"),
            (3, [self.en, short, *m], "short"),
            (2, [self.en, *m], "train-sets"),
            (2, [self.en, self.de, *m, "--dim-embb", "32"], "dim-emb"),
            (2, [self.en, self.de, *m, "--dim-emb", "wide"], "wide"),
            (2, [self.en, self.de, *m, "-c", typo], "dim-emb"),
            (2, [self.en, self.de, *m, "-c", kind], "wide"),
            (2, [self.en, self.de, *m, "-c", broken], "broken.yml"),
            (2, [self.en, self.de, *m, "--after", "10x"], "10x"),
            (2, [self.en, self.de, *m, "--schedule", "cosine"], "cosine"),
            (2, [self.en, self.de, *m, "--valid-metrics", "meteor"], "meteor"),
            (2, [self.en, self.de, *m, "--enc-cell", "lstmm"], "lstm"),
        ]
        for status, args, word in cases:
            with self.subTest(args=[str(a) for a in args]):
                done = run(*args, status=status)
                errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
                self.assertEqual(len(errors), 1, done.stderr)
                self.assertIn(word, errors[0])
                self.assertFalse((self.dir / "bad").exists())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
