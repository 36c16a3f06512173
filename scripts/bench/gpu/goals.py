"""The goals for one GPU, and what the reports of the parts say of each. A goal is a ratio of two
times of one report, or a share of a rate that nmt-bench measured beside its row."""

OLRN = "step/wmt14-en-de-lrn olrn B 128 T 32: whole step"
GRU = "step/wmt14-en-de-lrn gru B 128 T 32: whole step"
LRN = "recurrences/lrn activation=tanh {} T 32 B 128 H 1024"
DECODING = "decoding/wmt14-en-de-lrn olrn {} batch {} beam 4"
LAYERS = "layers and torch.nn, {}"
LOOP = "LRN and a compiled loop, bfloat16"
TRAINED = "training: cuda"  # GRU of part 4, in float32


def row(state, name, precision):
    """A measured row of nmt-bench, or None."""
    for step in state.data["steps"].values():
        found = step.get("rows", {}).get(name)
        if found and "error" not in found and step.get("precision") == precision:
            return found
    return None


def share(name, precision):
    def of(state):
        found = row(state, name, precision)
        return found and found["share"] or None

    return of


def over(name, other, precision):
    """How many times the first row's time the other row takes."""

    def of(state):
        a, b = row(state, name, precision), row(state, other, precision)
        return b["ms"] / a["ms"] if a and b else None

    return of


def over_roofline(name, precision):
    def of(state):
        found = row(state, name, precision)
        return found["ms"] / found["floor_ms"] if found and found["floor_ms"] else None

    return of


def torch_over(step, ours, *theirs):
    """The time of the fastest of PyTorch's layers over that of one of ours, both from
    compare_layers.py."""

    def of(state):
        times = state.data["steps"].get(step, {}).get("times", {})
        found = [times["torch"][name] for name in theirs if name in times.get("torch", {})]
        return min(found) / times["ours"][ours] if found and ours in times["ours"] else None

    return of


def memory(state):
    found = state.data["steps"].get(TRAINED, {}).get("memory")
    return found["peak_mb"] / found["model_mb"] if found and found["model_mb"] else None


def layers_of(kind, *types):
    return [f"torch.nn.{kind} {name}" for name in types]


def cudnn(what, kind, unit, must, aim):
    """A layer of ours over cuDNN's, in 16 bits and in float32."""
    for precision, types in (("bfloat16", ("float16", "bfloat16")), ("float32", ("float32",))):
        theirs = "faster of float16 and bfloat16" if len(types) > 1 else precision
        yield (f"{what}, {precision}, over cuDNN's {kind} ({theirs})", must, aim, 3,
               torch_over(LAYERS.format(precision), unit, *layers_of(kind, *types)))


# (goal, must, aim, part, function of its report); "at most": less is better.
GOALS = (
    ("LRN recurrence, forward, share of the copy rate", "70 %", "85 %", 2,
     share(LRN.format("forward"), "float32")),
    ("LRN recurrence, backward, share of the copy rate", "65 %", "80 %", 2,
     share(LRN.format("backward"), "float32")),
    ("LRN layer, bfloat16, over the fastest torch.nn.GRU", "2.5x", "5x", 3,
     torch_over(LAYERS.format("bfloat16"), "lrn activation=tanh",
                *layers_of("GRU", "float32", "float16", "bfloat16"))),
    ("LRN layer, bfloat16, over torch.nn.LSTM in float16", "1.5x", "2.5x", 3,
     torch_over(LAYERS.format("bfloat16"), "lrn activation=tanh", "torch.nn.LSTM float16")),
    ("LRN layer, bfloat16, over a loop in PyTorch, eager", "20x", "50x", 3,
     torch_over(LAYERS.format("bfloat16"), "lrn activation=tanh", "LRN loop, eager")),
    ("LRN layer, bfloat16, over a loop in PyTorch, compiled", "3x", "6x", 3,
     torch_over(LOOP, "lrn activation=tanh", "LRN loop, compiled")),
    *cudnn("GRU layer", "GRU", "gru reset=after", "0.9x", "1.3x"),
    *cudnn("LSTM layer", "LSTM", "lstm input=xh", "0.5x", "0.9x"),
    *cudnn("GRU layer with 4 groups", "GRU", "gru reset=after groups 4", "2x", "4x"),
    ("training step of deep oLRN, bfloat16, share of the product peak", "20 %", "30 %", 2,
     share(OLRN, "bfloat16")),
    ("training step, oLRN over GRU, bfloat16", "1.6x", "2.3x", 2, over(OLRN, GRU, "bfloat16")),
    *((f"decoding step over its roofline, batch {batch}, beam 4, {precision}", f"at most {must}x",
       f"at most {aim}x", 2, over_roofline(DECODING.format(precision, batch), precision))
      for batch, must, aim in ((128, 4, 2), (1, 6, 3)) for precision in ("bfloat16", "float32")),
    ("decoding, tensors at peak over the model's bytes", "at most 2x", "at most 1.4x", 4, memory),
)


def rows(reports):
    """(goal, must, aim, measured) of each goal; reports: (part, state). With several devices a
    value names its own."""
    devices = {state.data["machine"].get("device", "") for _, state in reports} - {""}
    for goal, must, aim, part, value in GOALS:
        values = [(value(state), state.data["machine"].get("device", "").split(",")[0])
                  for number, state in reports if number == part]
        text = [(f"{100 * v:.0f} %" if must.endswith("%") else f"{v:.2f}x")
                + (f" ({device})" if len(devices) > 1 else "") for v, device in values if v]
        yield goal, must, aim, "; ".join(text) or "not measured"
