#!/usr/bin/env python3
"""Measures what a language model adds to translation, in two experiments, and prints Markdown
tables of BLEU.

    language_model_uses.py fusion --data DATA --work DIR
        Multi30k: 5,000 pairs and 29,000 lines of German
    language_model_uses.py ranking --data DATA --work DIR
        Tatoeba: 10,000 pairs chosen for Multi30k, and 10,000 at random

fusion: a translation model of few pairs, and a language model of more text in its target language
(Gulcehre et al. 2015). The weight is chosen by BLEU of the development set. ranking: two language
models choose the pairs (Moore & Lewis 2010) whose English resembles the first 5,000 lines of
Multi30k; models trained on both choices translate test2016. DATA has the folders multi30k and
tatoeba. Trainings are of a number of updates, not of time. A model in DIR that is complete is not
trained again; other updates or texts need another DIR."""
import argparse
import json
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts/bench"))
from common import arguments, inputs  # noqa: E402

# Of each experiment, below --data.
TEXTS = {"fusion": [f"multi30k/{part}.{side}" for part in ("train", "val", "test2016")
                    for side in ("en", "de")]}
TEXTS["ranking"] = [*TEXTS["fusion"], "tatoeba/train.en", "tatoeba/train.de", "tatoeba/valid.en"]
WEIGHTS = (0, 0.1, 0.2, 0.3, 0.4, 0.5)


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=["fusion", "ranking"])
    parser.add_argument("--data", type=arguments.folder, required=True)
    parser.add_argument("--work", type=arguments.new_folder, required=True)
    parser.add_argument("--programs", type=arguments.folder, default=ROOT / "build/bin")
    parser.add_argument("--threads", type=arguments.whole(), default=1,
                        help="CPU threads (%(default)s)")
    parser.add_argument("--updates", type=arguments.whole(), default=1200,
                        help="updates of a translation model (%(default)s)")
    parser.add_argument("--lm-updates", type=arguments.whole(), default=1500,
                        help="updates of a language model (%(default)s)")
    args = parser.parse_args()
    arguments.need(parser, "--data", *(args.data / name for name in TEXTS[args.experiment]))
    arguments.need_programs(args.programs, "nmt-train", "nmt-translate", "nmt-bleu",
                            *(["nmt-score"] if args.experiment == "ranking" else []))
    args.work.mkdir(parents=True, exist_ok=True)
    return args


class Experiment:
    def __init__(self, args):
        self.args = args
        self.multi30k, self.tatoeba = args.data / "multi30k", args.data / "tatoeba"

    def run(self, program, *arguments):
        done = subprocess.run([self.args.programs / program, *map(str, arguments),
                               "--cpu-threads", str(self.args.threads)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{program} failed: {done.stderr.strip().splitlines()[-1]}")
        return done

    def train(self, name, *arguments):
        """The model DIR/name."""
        model, log = self.args.work / name, self.args.work / f"{name}.log"
        try:
            inputs.reuse(self.args.work / f"{name}.json", inputs.of_command(arguments), model)
        except inputs.Changed as error:
            raise SystemExit(f"language_model_uses: {error}") from None
        if not log.exists():
            log.write_text(self.run("nmt-train", *arguments, "--precision", "float32",
                                    "--model", model).stderr)
        return model

    def text(self, name, lines):
        path = self.args.work / name
        path.write_text("".join(lines), encoding="utf-8")
        return path

    def translation_model(self, name, source, target):
        valid = [self.multi30k / f"val.{side}" for side in ("en", "de")]
        return self.train(name, "--train-sets", source, target, "--valid-sets", *valid,
                          "--after", f"{self.args.updates}u",
                          "--valid-freq", f"{self.args.updates}u")

    def language_model(self, name, text, valid, *arguments):
        return self.train(name, "--task", "language-model", text, "--valid-sets", valid,
                          "--unit", "gru", "--dec-depth", 1, "--dim-emb", 256,
                          "--dim-rnn", 256, "--after", f"{self.args.lm_updates}u",
                          "--valid-freq", f"{self.args.lm_updates}u", *arguments)

    def translate(self, model, side, *arguments):
        output = self.args.work / "-".join([model.name, side, *map(str, arguments[-1:])])
        self.run("nmt-translate", "-m", model, "-i", self.multi30k / f"{side}.en",
                 "-o", output, *arguments)
        return output

    def bleu(self, side, *outputs, flags=()):
        done = subprocess.run([self.args.programs / "nmt-bleu", self.multi30k / f"{side}.de", "-i",
                               *outputs, *flags], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)


def lines_of(path):
    return [line + "\n" for line in arguments.read_lines(path)]


def fusion(experiment):
    pairs = [experiment.text(f"small.{side}",
                             lines_of(experiment.multi30k / f"train.{side}")[:5000])
             for side in ("en", "de")]
    model = experiment.translation_model("translation", *pairs)
    lm = experiment.language_model("language", experiment.multi30k / "train.de",
                                   experiment.multi30k / "val.de", "--vocabs", model / "vocab.spm")
    outputs, scores = {}, {}
    print("| weight | BLEU of val |\n|---|---|", flush=True)
    for weight in WEIGHTS:
        outputs[weight] = experiment.translate(model, "val", *(["--lm", lm, "--lm-weight", weight]
                                                               if weight else []))
        scores[weight] = experiment.bleu("val", outputs[weight])["score"]
        print(f"| {weight} | {scores[weight]:.1f} |", flush=True)
    best = max(WEIGHTS[1:], key=scores.get)
    plain = experiment.translate(model, "test2016")
    fused = experiment.translate(model, "test2016", "--lm", lm, "--lm-weight", best)
    report(experiment, "without", plain, f"weight {best}", fused)


def ranking(experiment):
    texts = [experiment.tatoeba / f"train.{side}" for side in ("en", "de")]
    english, german = map(lines_of, texts)
    arguments.check_lengths((texts[0], len(english)), (texts[1], len(german)))
    order = list(range(len(english)))
    random.Random(1).shuffle(order)
    general = experiment.text("general.en", [english[i] for i in order[:5000]])
    domain = experiment.text("domain.en", lines_of(experiment.multi30k / "train.en")[:5000])
    of_domain = experiment.language_model("lm-domain", domain, experiment.multi30k / "val.en",
                                          "--dim-vocabs", 4000)
    of_general = experiment.language_model("lm-general", general, experiment.tatoeba / "valid.en",
                                           "--vocabs", of_domain / "vocab.spm")
    scores = experiment.args.work / "scores"
    experiment.run("nmt-score", "-m", of_domain, of_general, "-t", experiment.tatoeba / "train.en",
                   "--output", scores)
    values = [float(line) for line in lines_of(scores)]
    chosen = {"random": order[5000:15000],
              "ranked": sorted(order[5000:], key=lambda i: -values[i])[:10000]}
    outputs = {}
    for name, places in chosen.items():
        source, target = (experiment.text(f"{name}.{side}", [text[i] for i in places])
                          for side, text in (("en", english), ("de", german)))
        outputs[name] = experiment.translate(experiment.translation_model(f"model-{name}", source,
                                                                          target), "test2016")
    report(experiment, "10,000 random pairs", outputs["random"], "10,000 pairs ranked first",
           outputs["ranked"])


def report(experiment, first, base, second, other):
    """Both systems on test2016, with the paired bootstrap."""
    found = experiment.bleu("test2016", base, other, flags=["--paired-bs", "--format", "json"])
    print(f"\ntest2016: {first}, then {second}\n{json.dumps(found, indent=1)}")


def main():
    args = options()
    {"fusion": fusion, "ranking": ranking}[args.experiment](Experiment(args))


if __name__ == "__main__":
    arguments.call(main)
