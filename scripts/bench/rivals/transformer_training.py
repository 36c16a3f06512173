"""Trains the Transformer of compare_transformer.py in PyTorch and converts it to CTranslate2."""
import copy
import itertools
import json
import random
import sys

from common import inputs
from common.system import Clock

BOS, EOS, UNK = 1, 2, 3


def log(text):
    print(text, file=sys.stderr, flush=True)


def lines(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def digests(args):
    """Of the training and the development text."""
    try:
        return [inputs.digest(args.data / f"{name}.{side}") for name in ("train", "val")
                for side in ("en", "de")]
    except OSError as error:
        sys.exit(f"--data: {error.filename}: {error.strerror}")


def check_settings(made, before, wanted):
    """Ends the script if the settings or the text differ. Records of older versions do not
    have the text."""
    names = inputs.differences(before, wanted)
    if names == ["data"] and "data" not in before:
        inputs.warn(made)
    elif names:
        sys.exit(f"{made} was made with other settings ({', '.join(names)}): take another --work")


def train_vocabulary(args):
    prefix = args.work / "pieces"
    made, record, wanted = (prefix.with_suffix(".model"), args.work / "pieces.json",
                            {"pieces": args.pieces, "data": digests(args)[:2]})
    if made.exists():
        check_settings(made, json.loads(record.read_text()) if record.exists()
                             else {"pieces": args.pieces}, wanted)
    else:
        inputs.keep(record, wanted)
    import sentencepiece as spm
    if not made.exists():
        spm.SentencePieceTrainer.train(
            input=[str(args.data / "train.en"), str(args.data / "train.de")],
            model_prefix=str(prefix), vocab_size=args.pieces, model_type="bpe",
            character_coverage=1.0, num_threads=args.threads,
            pad_id=0, bos_id=BOS, eos_id=EOS, unk_id=UNK, minloglevel=2)
    return spm.SentencePieceProcessor(model_file=str(made))


class Corpus:
    """Pairs of id sequences in batches of about equal lengths, as padded tensors."""

    def __init__(self, vocabulary, source, target):
        self.pairs = [(s + [EOS], t) for s, t in zip(vocabulary.encode(lines(source)),
                                                     vocabulary.encode(lines(target)))
                                            if 0 < len(s) <= 100 and 0 < len(t) <= 100]

    def batches(self, words, rng):
        """Source [B,S], decoder input [B,T] and labels [B,T] of an epoch, in random order."""
        import torch
        order = sorted(range(len(self.pairs)),
                       key=lambda i: (len(self.pairs[i][1]), len(self.pairs[i][0]), rng.random()))
        groups, group = [], []
        for i in order:
            if group and (len(self.pairs[i][1]) + 1) * (len(group) + 1) > words:
                groups.append(group)
                group = []
            group.append(i)
        groups.append(group)
        rng.shuffle(groups)

        def padded(rows):
            width = max(map(len, rows))
            return torch.tensor([row + [0] * (width - len(row)) for row in rows])
        for group in groups:
            targets = [self.pairs[i][1] for i in group]
            yield (padded([self.pairs[i][0] for i in group]), padded([[BOS] + t for t in targets]),
                   padded([t + [EOS] for t in targets]))


def loss_of(model, batch, smoothing):
    import torch.nn.functional as F
    source, inputs, labels = batch
    logits = model(source, inputs)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=0,
                           label_smoothing=smoothing, reduction="sum"), int((labels != 0).sum())


def evaluate(model, corpus):
    """Cross-entropy per piece of the development text."""
    import torch
    model.eval()
    total = count = 0
    with torch.no_grad():
        for batch in corpus.batches(4096, random.Random(1)):
            loss, tokens = loss_of(model, batch, 0.0)
            total, count = total + float(loss), count + tokens
    return total / count


def train(args, vocabulary, corpus, development, rate, words, minutes):
    """Returns the averaged model, its development cross-entropy, target tokens per second and the
    number of updates."""
    import torch
    from transformer import Transformer
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    clock = Clock(args)
    start = clock()
    model = Transformer(vocabulary.get_piece_size(), args)
    average = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98),
                                 eps=1e-9, fused=True)
    update = seen = 0
    while clock() - start < 60 * minutes:
        for batch in corpus.batches(words, rng):
            update += 1
            for group in optimizer.param_groups:
                group["lr"] = rate * min(update / args.warmup, (args.warmup / update) ** 0.5)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bfloat16):
                loss, tokens = loss_of(model, batch, 0.1)
            (loss / tokens).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            weight = max(0.001, 1 - (update + 1) / (update + 10))
            with torch.no_grad():
                for mean, now in zip(average.parameters(), model.parameters()):
                    mean.lerp_(now, weight)
            seen += tokens
            if update % 500 == 0:
                log(f"  update {update}, loss {float(loss) / tokens:.3f}, "
                    f"{seen / (clock() - start):,.0f} target tokens/s")
            if clock() - start >= 60 * minutes:
                break
    seconds = clock() - start
    return average, evaluate(average, development), seen / seconds, update


def check_conversion(args, model, vocabulary, folder):
    """Both programs give the same log-probabilities to eight pairs of the development text."""
    import ctranslate2
    import torch
    names = lines(args.data / "val.en")[:8], lines(args.data / "val.de")[:8]
    source, target = (vocabulary.encode(text, out_type=str) for text in names)
    scores = ctranslate2.Translator(str(folder), compute_type="float32").score_batch(
        [s + ["</s>"] for s in source], target)
    for s, t, score in zip(*(vocabulary.encode(text) for text in names), scores):
        with torch.no_grad():
            logits = model(torch.tensor([s + [EOS]]), torch.tensor([[BOS] + t]))
        of_words = torch.log_softmax(logits, -1)[0]
        expected = float(of_words.gather(1, torch.tensor(t + [EOS])[:, None]).sum())
        if abs(sum(score.log_probs) - expected) > 1e-3 * max(1.0, abs(expected)):
            sys.exit(f"the conversion to CTranslate2 changes a log-probability: {expected} to "
                     f"{sum(score.log_probs)}")


def trained_transformer(args, vocabulary):
    """Trains the Transformer and converts it to CTranslate2; returns the record of the training."""
    record, converted = args.work / "transformer.json", args.work / "ctranslate2"
    wanted = {name: getattr(args, name)
              for name in ("minutes", "tune_minutes", "learn_rates", "batches", "threads", "width",
                           "ff", "heads", "layers", "dropout", "warmup", "pieces", "bfloat16",
                           "seed")}
    wanted["data"] = digests(args)
    if record.exists():
        result = json.loads(record.read_text())
        check_settings(record, result["settings"], wanted)
        return result
    import torch
    torch.set_num_threads(args.threads)
    corpus = Corpus(vocabulary, args.data / "train.en", args.data / "train.de")
    development = Corpus(vocabulary, args.data / "val.en", args.data / "val.de")
    grid = list(itertools.product(args.learn_rates, args.batches))
    best, tried = None, []
    for rate, words in grid if len(grid) > 1 else []:
        trained = train(args, vocabulary, corpus, development, rate, words, args.tune_minutes)
        _, entropy, speed, updates = trained
        tried.append({"rate": rate, "words": words, "entropy": entropy, "speed": speed,
                      "updates": updates})
        log(f"learning rate {rate:g}, {words} tokens: cross-entropy {entropy:.3f} after "
            f"{args.tune_minutes:g} minutes, {updates:,} updates, {speed:,.0f} target tokens/s")
        if best is None or entropy < best[2][1]:
            best = rate, words, trained
    rate, words = best[:2] if best else grid[0]
    if best and args.tune_minutes == args.minutes:
        model, entropy, speed, updates = best[2]
    else:
        model, entropy, speed, updates = train(args, vocabulary, corpus, development, rate, words,
                                               args.minutes)
    from transformer import to_ctranslate2
    pieces = [vocabulary.id_to_piece(i) for i in range(vocabulary.get_piece_size())]
    to_ctranslate2(model, pieces, converted)
    check_conversion(args, model, vocabulary, converted)
    result = {"settings": wanted, "rate": rate, "words": words, "entropy": entropy, "speed": speed,
              "updates": updates, "parameters": sum(p.numel() for p in model.parameters()),
              "tried": tried}
    record.write_text(json.dumps(result) + "\n")
    return result
