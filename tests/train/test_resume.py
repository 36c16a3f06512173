#!/usr/bin/env python3
"""Training that goes on: bit for bit, from older versions, with every unit, with other settings and
other text. Usage: test_resume.py BIN_DIR [test names]"""
import json
import os
import pathlib
import re
import shutil
import unittest
import unittest.mock
import zlib

from training_case import change_state, events, make_corpus, run, weights, TrainingCase


class ResumeTest(TrainingCase):
    def test_resume_is_bit_exact(self):
        self.train("whole", "--after", "40u")
        self.train("parts", "--after", "20u")
        self.train("parts", "--after", "40u")
        self.assertEqual(weights(self.dir / "whole"), weights(self.dir / "parts"))
        figures = (
            [[{k: e[k] for k in ("updates", "loss", "perplexity", "learn_rate", "gradient_norm")}
              for e in events(self.dir / name, "display")] for name in ("whole", "parts")])
        self.assertEqual(*figures)
        # and killed without a chance to save
        process = self.start("killed", "--after", "40u")
        self.wait_for(process, "validation at update 20")
        process.kill()
        process.wait()
        process.stderr.close()
        self.train("killed", "--after", "40u")
        self.assertEqual(weights(self.dir / "whole"), weights(self.dir / "killed"))

    def test_the_same_command_resumes_to_the_same_relative_end(self):
        self.train("m", "--after", "10u")
        process = self.start("m", "--after", "+30u")
        self.wait_for(process, "validation at update 20")
        process.kill()
        process.wait()
        process.stderr.close()
        self.train("m", "--after", "+30u")
        self.assertEqual(events(self.dir / "m", "validation")[-1]["updates"], 40)
        self.train("m", "--after", "+30u")  # it was reached: counted anew
        self.assertEqual(events(self.dir / "m", "validation")[-1]["updates"], 70)

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
        with open(self.en, "a",
                  encoding="utf-8") as text, open(self.de, "a", encoding="utf-8") as target, open(
                          other, "a", encoding="utf-8") as more:
            text.write("a house\n")
            target.write("ein haus\n")
            more.write("0-0\n")  # new text has new links
        done = self.train("guided", "--guided-alignment", other, "--after", "7u")
        self.assertIn("the training text is not the checkpoint's; restarting the corpus",
                      done.stderr)

    def test_noise_is_drawn_alike_by_a_resumed_training(self):
        # A vocabulary of its own, so that only the noise of the training pairs tells the
        # runs apart.
        self.train("v", "--after", "1u", "--noise", "0")
        vocabulary = self.dir / "v" / "vocab.spm"
        noise = ["--vocabs", vocabulary, "--noise-upper", "0.3", "--noise-title", "0.2",
                 "--noise-typos", "0.4", "--noise-punctuation", "0.5",
                 "--bpe-dropout", "0.1", "--mini-batch-words", "700"]
        self.train("whole", *noise, "--after", "60u")
        for after in ("23u", "47u", "60u"):  # in several epochs
            self.train("parts", *noise, "--after", after)
        self.assertGreater(events(self.dir / "whole", "display")[-1]["epochs"], 2)
        self.assertEqual(weights(self.dir / "whole"), weights(self.dir / "parts"))
        self.train("threads", *noise, "--after", "60u", "--cpu-threads", "1")
        figures = [[(e["labels"], e["updates"]) for e in events(self.dir / name, "display")]
                   for name in ("whole", "threads")]
        self.assertEqual(*figures)  # the same batches
        for name, more in (("clean", ["--noise", "0"]),
                           ("merged", [*noise[2:], "--bpe-dropout", "0"]),
                           ("seed", [*noise[2:], "--seed", "3"])):
            self.train(name, "--vocabs", vocabulary, *more, "--after", "60u")
            self.assertNotEqual(weights(self.dir / "whole"), weights(self.dir / name))
        done = self.train("whole", *noise, "--noise-typos", "0.1", "--after", "61u")
        self.assertIn("override noise-typos: 0.4 -> 0.1", done.stderr)
        self.assertIn("sum is above 1", run(self.en, self.de, "--noise-upper", "0.7",
                                            "--noise-title", "0.4", status=2).stderr)

    def test_a_finished_training_goes_on(self):
        idle = ["--learn-rate", "1e-12", "--early-stopping", "2",
                "--valid-metrics", "cross-entropy"]
        self.train("m", *idle, "--after", "200u")
        ended = events(self.dir / "m", "validation")[-1]["updates"]
        self.assertLess(ended, 200)
        done = self.train("m", *idle, "--after", "200u")
        self.assertIn("has already finished (2 validations without a better cross-entropy "
                      "(early-stopping)); extend it (after=+10e", done.stderr)
        for n in (1, 2):  # the second time it has ended early again
            self.train("m", *idle, "--after", "+100u")
            self.assertEqual(events(self.dir / "m", "validation")[-1]["updates"], ended + 20 * n)
        done = self.train("m", *idle, "--max-minutes", "0.0001", "--early-stopping", "0",
                          "--after", "200u")
        self.assertIn("(max-minutes)); give a larger max-minutes", done.stderr)

    def test_a_validation_of_more_sentences_is_another_measure(self):
        common = ["--learn-rate", "0.01", "--valid-metrics", "bleu"]
        self.train("m", *common, "--after", "20u", "--valid-max-sentences", "2")
        done = self.train("m", *common, "--after", "30u", "--valid-max-sentences", "0")
        self.assertIn("validations differ from the checkpoint's (valid-max-sentences); "
                      "discarding the best value so far", done.stderr)
        self.assertEqual(os.readlink(self.dir / "m" / "best"), "checkpoints/30")
        done = self.train("m", *common, "--after", "40u", "--valid-max-sentences", "0",
                          "--beam-size", "2")
        self.assertIn("validations differ from the checkpoint's (beam-size)", done.stderr)
        done = self.train("m", *common, "--after", "50u", "--valid-max-sentences", "0",
                          "--beam-size", "2")
        self.assertNotIn("validations differ", done.stderr)

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
        self.train("single", *own, "--precision", "float32", "--after", "20u")
        last = {name: events(self.dir / name, "display")[-1]["loss"]
                for name in ("mixed", "emulated", "without tiles", "single")}
        self.assertNotEqual(last["mixed"], last["single"])
        # The log tells the precision that was taken.
        for name, precision in (("mixed", "bfloat16"), ("single", "float32")):
            self.assertEqual(events(self.dir / name, "run")[0]["precision"], precision)
        for name in ("emulated", "without tiles", "single"):
            self.assertAlmostEqual(last["mixed"] / last[name], 1, delta=2**-7, msg=str(last))
        # The default: bfloat16 where the processor multiplies it faster, by a measurement
        # that is stored.
        with unittest.mock.patch.dict(os.environ, NMT_BF16="0",
                                      XDG_CACHE_HOME=str(self.dir / "cache")):
            self.train("auto without", *own, "--after", "20u")
        self.assertEqual(weights(self.dir / "auto without"), weights(self.dir / "single"))
        if "avx512_bf16" not in pathlib.Path("/proc/cpuinfo").read_text():
            return
        with unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.dir / "cache")):
            self.train("auto measured", *own, "--after", "20u")
            stored = self.dir / "cache/nmt/products.json"
            choices = json.loads(stored.read_text(encoding="utf-8"))
            (key,) = [key for key in choices if "bfloat16" in key]
            measured = choices[key]
            for faster in (True, False):
                stored.write_text(json.dumps(choices | {key: [faster]}), encoding="utf-8")
                self.train(f"auto {faster}", *own, "--precision", "auto", "--after", "20u")
                self.assertEqual(weights(self.dir / f"auto {faster}"),
                                 weights(self.dir / ("mixed" if faster else "single")))
        self.assertEqual(weights(self.dir / "auto measured"),
                         weights(self.dir / f"auto {measured[0]}"))

    def test_what_an_older_version_saved_goes_on(self):
        """Settings that it did not have, and those whose default came later: attention-query auto,
        embeddings tied."""
        self.train("whole", "--after", "40u", "--no-tied-embeddings-all", "--noise", "0")
        self.train("older", "--after", "20u", "--no-tied-embeddings-all", "--noise", "0")
        checkpoint = self.dir / "older" / "latest"
        state, manifest = (json.loads((checkpoint / name).read_text(encoding="utf-8"))
                           for name in ("state.json", "manifest.json"))
        lines = state["settings"].splitlines(True)
        unknown = ("groups:", "rearrange:", "dropout-variational:", "positions:", "init-scale:",
                   "noise-upper:", "noise-title:", "noise-typos:", "noise-punctuation:",
                   "bpe-dropout:")
        older = [line for line in lines if not line.startswith(unknown)]
        self.assertEqual(len(older), len(lines) - len(unknown))
        for query, said in (("auto", []), ("auto", ["recurrent"]), ("recurrent", ["auto"]),
                            ("recurrent", [])):
            state["settings"] = "".join(re.sub(r"^(attention-query:).*", rf"\1 {query}", line)
                                        for line in older)
            self.assertIn(f"attention-query: {query}\n", state["settings"])
            text = json.dumps(state)
            (checkpoint / "state.json").write_text(text, encoding="utf-8")
            manifest["files"]["state.json"] = {"bytes": len(text.encode()),
                                               "crc32": zlib.crc32(text.encode())}
            (checkpoint / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
            with self.subTest(query=query, said=said):
                shutil.copytree(self.dir / "older", self.dir / "on", symlinks=True)
                done = self.train("on", "--after", "40u",
                                  *(["--attention-query", *said] if said else []))
                self.assertEqual(re.findall(r"override (\S+):", done.stdout + done.stderr),
                                 ["after"])
                self.assertEqual(weights(self.dir / "whole"), weights(self.dir / "on"))
            shutil.rmtree(self.dir / "on", ignore_errors=True)
        done = self.train("older", "--after", "40u", "--attention-query", "first-layer", status=2)
        self.assertIn("attention-query is recurrent there", done.stdout + done.stderr)

    def test_older_blocks_keep_their_embeddings(self):
        """embedding-scale came later; their models have none, new ones sqrt."""
        block = ("--type", "block", "--unit", "ssru", "--feed-forward-width", "8",
                 "--products", "own")
        self.train("whole", *block, "--embedding-scale", "none", "--after", "20u")
        self.train("older", *block, "--embedding-scale", "none", "--after", "10u")
        checkpoint = self.dir / "older" / "latest"
        state, manifest = (json.loads((checkpoint / name).read_text(encoding="utf-8"))
                           for name in ("state.json", "manifest.json"))
        lines = state["settings"].splitlines(True)
        state["settings"] = "".join(line
                                    for line in lines if not line.startswith("embedding-scale:"))
        self.assertNotEqual(state["settings"], "".join(lines))
        text = json.dumps(state)
        (checkpoint / "state.json").write_text(text, encoding="utf-8")
        manifest["files"]["state.json"] = {"bytes": len(text.encode()),
                                           "crc32": zlib.crc32(text.encode())}
        (checkpoint / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        done = self.train("older", *block, "--after", "20u")
        self.assertEqual(re.findall(r"override (\S+):", done.stdout + done.stderr), ["after"])
        self.assertEqual(weights(self.dir / "whole"), weights(self.dir / "older"))
        self.train("new", *block, "--after", "20u")
        self.assertNotEqual(weights(self.dir / "whole"), weights(self.dir / "new"))

    def test_older_srn_is_rnn(self):
        """Version 0.2 and before called rnn srn. A model directory of then: no gate-init,
        and the old name."""
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
        state, manifest = (json.loads((checkpoint / name).read_text(encoding="utf-8"))
                           for name in ("state.json", "manifest.json"))
        state["settings"] = re.sub(r"^gate-.*\n", "",
                                   re.sub(r"cell: rnn", "cell: srn", state["settings"]), flags=re.M)
        text = json.dumps(state)
        (checkpoint / "state.json").write_text(text, encoding="utf-8")
        manifest["files"]["state.json"] = {"bytes": len(text.encode()),
                                           "crc32": zlib.crc32(text.encode())}
        (checkpoint / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        self.assertIn('"name": "rnn"', run("--model", older, "--json", tool="nmt-info").stdout)
        done = self.train("older", *plain, "--unit", "srn", "--after", "4u", status=2)
        self.assertIn("enc-cell is rnn there, not srn", done.stderr)
        done = self.train("older", *plain, "--unit", "rnn", "--after", "4u")
        self.assertEqual(re.findall(r"override (\S+):", done.stderr), ["after"])
        self.assertEqual(weights(self.dir / "whole"), weights(older))

    def test_every_unit_goes_on(self):
        """The same command, with a later end; elstm1 and elstm2 have position vectors,
        whose number is chosen."""
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
        done = self.train("elstm1", *same, "--unit", "elstm1", "--after", "8u",
                          "--positions", "7", status=2)
        self.assertIn("positions is 100 there, not 7", done.stderr)

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

    def test_an_interrupted_last_validation_is_done(self):
        for due in (True, False):
            m = self.dir / f"due {due}"
            self.train(m.name, "--after", "10u", *([] if due else ["--valid-freq", "30u"]))
            done = [events(m, "validation")[0]["updates"], (m / "development.json").read_bytes()]
            change_state(m,
                         lambda state: [state.update(validation_due=due, validated_update=-1,
                                                     best_due=None, history=-1), state.pop("best")])
            (m / "best").unlink()
            (m / "development.json").unlink()
            (m / "train.jsonl").unlink()
            self.train(m.name, "--after", "10u", *([] if due else ["--valid-freq", "30u"]))
            self.assertEqual([events(m, "validation")[0]["updates"],
                              (m / "development.json").read_bytes()], done)
            self.assertTrue((m / "best").exists())
            self.assertIn("already finished",
                          self.train(m.name, "--after", "10u",
                                     *([] if due else ["--valid-freq", "30u"])).stderr)

    def test_changed_options_are_listed(self):
        self.train("m", "--after", "10u")
        done = self.train("m", "--after", "12u", "--learn-rate", "0.5")
        self.assertRegex(done.stderr, r"learn-rate: .* -> 0\.5")
        done = self.train("m", "--after", "14u", "--dim-rnn", "32", status=2)
        self.assertIn("dim-rnn", done.stderr)
        self.assertIn("16", done.stderr)

    def test_the_unit_of_an_encoder_without_one_may_change(self):
        block = ["--type", "block", "--encoder-mixer", "attention", "--dec-cell", "ssru"]
        self.train("m", *block, "--after", "2u")
        done = self.train("m", *block[:-2], "--unit", "ssru", "--after", "3u")
        self.assertNotIn("override enc-cell", done.stderr)
        self.assertNotIn("override dec-cell", done.stderr)
        self.assertIn("dec-cell is ssru there, not gru",
                      self.train("m", *block[:-2], "--unit", "gru", "--after", "4u",
                                 status=2).stderr)

    def test_another_corpus_starts_at_its_beginning(self):
        self.train("m", "--after", "10u")
        make_corpus(self.dir, 200, seed=9)
        done = self.train("m", "--after", "14u")
        self.assertIn("restarting the corpus", done.stderr)

    def test_more_epochs_of_other_text_count_from_its_beginning(self):
        rarely = ["--valid-freq", "1000u", "--save-freq", "1000u",
                  "--valid-metrics", "cross-entropy"]
        self.train("m", "--after", "2e", *rarely)
        done = self.train("m", "--after", "+1e", *rarely)
        self.assertIn("after: +1e is 3e here", done.stderr)
        self.assertEqual(events(self.dir / "m", "end")[-1]["epochs"], 3)
        # other batches
        done = self.train("m", "--after", "+1e", *rarely, "--mini-batch-words", "300")
        self.assertIn("after: +1e is 4e here", done.stderr)
        self.assertIn("restarting the corpus after 3 epochs", done.stderr)
        self.assertEqual(events(self.dir / "m", "end")[-1]["epochs"], 4)
        make_corpus(self.dir, 200, seed=9)
        done = self.train("m", "--after", "+1e", *rarely)
        self.assertIn("after: +1e is 1e here", done.stderr)
        self.assertIn("held out from other text than before", done.stderr)
        self.assertEqual(events(self.dir / "m", "end")[-1]["epochs"], 1)

    def test_a_stopped_training_counts_more_epochs_of_other_text_from_its_beginning(self):
        self.train("m", "--after", "2e")
        updates = events(self.dir / "m", "end")[-1]["updates"]
        process = self.start("m", "--after", "+8e,+100Ku")
        self.wait_for(process, f"validation at update {updates // 10 * 10 + 10} ")
        process.terminate()
        process.communicate()
        make_corpus(self.dir, 200, seed=9)
        done = self.train("m", "--after", "+8e,+100Ku")
        self.assertIn(f"after: +8e,{updates + 100000}u is 8e,{updates + 100000}u here", done.stderr)
        self.assertEqual(events(self.dir / "m", "end")[-1]["epochs"], 8)

    def test_a_vocabulary_may_have_another_name(self):
        self.train("first", "--after", "2u")
        here, other = self.dir / "v.spm", self.dir / "other.spm"
        shutil.copy(self.dir / "first" / "vocab.spm", here)
        run("train", self.en, "--model", other, "--size", "150", tool="nmt-vocab")
        self.train("m", "--after", "2u", "--vocabs", here)
        # A dump has the names that the run is given, not those of the first run.
        for model, name, dumped in (("m", self.dir / "m" / "vocab.spm", self.dir / "m/vocab.spm"),
                                    ("first", here, "")):  # learned
            self.assertIn(f"\nvocabs: [{dumped}]\n",
                          self.train(model, "--after", "4u", "--vocabs", name,
                                     "--dump-config").stdout)
        for updates, name in ((4, [f"{self.dir}/./v.spm"]), (6, [here]), (8, []),
                              (10, [self.dir / "m" / "vocab.spm"])):
            self.train("m", "--after", f"{updates}u", *(["--vocabs", *name] if name else []))
        self.assertIn("embeddings depend on the vocabulary",
                      self.train("m", "--after", "12u", "--vocabs", other, status=2).stderr)
        # Two files with one vocabulary are still one vocabulary.
        copy = self.dir / "copy.spm"
        shutil.copy(here, copy)
        self.train("m", "--after", "12u", "--vocabs", here, copy)
        here.unlink()
        self.train("m", "--after", "14u", "--vocabs", self.dir / "m" / "vocab.spm")


if __name__ == "__main__":
    unittest.main()
