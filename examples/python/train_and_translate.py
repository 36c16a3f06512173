"""Trains a model and translates: train_and_translate.py SOURCE TARGET MODEL [AFTER]"""
import sys

import nmt


def progress(now: nmt.TrainProgress) -> None:
    print(f"update {now.updates}, loss {now.loss:.3f}, {now.target_tokens_per_second:.0f} tokens/s")


if len(sys.argv) < 4:
    sys.exit(__doc__)
source, target, model = sys.argv[1:4]
nmt.train(train_sets=[source, target], model=model, after=(sys.argv[4:] or ["10e"])[0],
          progress=progress)
with open(source, encoding="utf-8") as lines, open(target, encoding="utf-8") as references:
    lines, references = ([line.rstrip("\n") for _, line in zip(range(100), file)]
                         for file in (lines, references))
translator = nmt.Translator(model)
results = translator.translate_batch(lines, beam_size=4, return_scores=True)
for line, result in list(zip(lines, results))[:5]:
    print(f"{line} -> {result.hypotheses[0]} ({result.scores[0]:.2f})")
print(nmt.bleu([result.hypotheses[0] for result in results], references))
