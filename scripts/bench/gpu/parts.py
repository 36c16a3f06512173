"""The five parts. Each fits 10 minutes on one H100 or H200; docs/design/checking-a-gpu.md says how
to run them."""
import bench
import gtests
import profiles
import tools
import training

# Tests for racecheck, initcheck and synccheck: one case per kind of kernel; memcheck runs all.
SANITIZED = ":".join(f"*CpuAndCudaAgree/{kind}" for kind in (
    "persistent_units", "persistent_sizes", "beam_step", "beam_step_of_parts", "recurrence",
    "recurrence_normalized", "matrix_recurrence", "transition", "conditional", "conditional_guided",
    "attention_*ward", "self_attention_softmax*", "softmax_loss", "log_sum_exp", "label_loss",
    "crf_loss", "layer_norm*", "residual_norm*", "top_k", "top_k_of_parts", "scatter_add_rows",
    "sum_rows", "gradient_norm_squared", "adam", "convolution", "gemm", "gemm_packed*"))
# Rows of nmt-bench, the most important first. Those of the goals (goals.py) are measured
# before all others.
GOAL_ROWS = {"bfloat16": ("^step/wmt14-en-de-lrn (olrn|gru) B 128 ",
                          "^decoding/wmt14-en-de-lrn olrn .* batch (1|128) beam 4$"),
             "float32": ("^recurrences/lrn activation=tanh (forward|backward) T 32 ",
                         "^decoding/wmt14-en-de-lrn olrn .* batch (1|128) beam 4$")}
FLOAT32_ROWS = ("^step/wmt14-en-de-lrn olrn B 128",
                "^recurrences/(lrn activation=tanh|olrn|gru reset=after|lstm) ",
                "^recurrences/(ssru|mingru) .*T (128|512|2048) ",
                "^matrix-states/(gla|gdn) .*T 2048 ",
                "^layers/(lrn activation=tanh|olrn|gru reset=after|lstm) ",
                "^groups/gru reset=after groups (1|4)$",
                "^step/(wmt14-en-de-lrn gru B 32|gnmt lstm|multi30k gru recurrent)",
                "^decoding/(wmt14-en-de-lrn olrn|multi30k gru)", "^softmax/loss and gradients",
                "^optimizer/adam ", "^pointwise/(add|tanh_forward|layer_norm|layer_norm_backward) ",
                "^attention/(additive|dot) .* S 32 ", "^products/A B M (128|4096) N 1024 K 1024$",
                "^growth/batch")
BFLOAT16_ROWS = ("^step/wmt14-en-de-lrn (olrn|gru) B 128",
                 "^recurrences/(gru reset=(after|before)|lstm input=xh|rnn|ran activation=tanh) ",
                 "^layers/(lrn activation=tanh|olrn|gru reset=after|lstm) ",
                 "^groups/gru reset=after groups (1|4)$",
                 "^step/(gnmt lstm|multi30k gru recurrent)",
                 "^decoding/wmt14-en-de-lrn olrn", "^softmax/loss and gradients R 1024 E 1024",
                 "^products/A B M (128|4096) N 1024 K 1024$")
SMALL = "*top_k*-*parts*"  # kernels that the emulator runs quickly
EMULATED_ROWS = ("^pointwise/(fill|add) ", "^recurrences/lrn activation=tanh ")


def tests(check):
    some = check.options.emulated and not check.options.all
    emulated = "_emulated" if check.options.emulated else ""
    gtests.test(check, "parity of kernels", f"cuda{emulated}_tests",
                f"*softmax*:{SMALL}" if some else "*", limit=120)
    gtests.test(check, "parity of models", f"device{emulated}_tests",
                "*Memory*" if some else "*", limit=120)


def sanitizer(check, kind, program, wanted, group, name=""):
    name, options = name or kind, ["--error-exitcode", "9"]
    if check.state.is_done(name):
        return
    why = tools.why_not(check, "compute-sanitizer", ["--tool", "memcheck", *options],
                        tools.sanitizer_works)
    if why:
        check.state.finish(name, f"not run: {why}", True, 0)
    else:
        gtests.test(check, name, program, wanted,
                    [check.tool("compute-sanitizer"), "--tool", kind, *options], 500, group)


def benchmarks(check):
    if check.options.emulated:
        bench.measure(check, "nmt-bench, goals, float32", EMULATED_ROWS[1:], "float32",
                      ["--quick", "--cpu-threads", "1"])
        bench.measure(check, "nmt-bench, float32", EMULATED_ROWS, "float32",
                      ["--quick", "--cpu-threads", "1"])
        bench.measure(check, "nmt-bench, bfloat16", EMULATED_ROWS[:1], "bfloat16",
                      ["--quick", "--cpu-threads", "1"])
        return
    quick = ["--min-time", "0.05"] if check.options.quick else []
    for precision, rows in GOAL_ROWS.items():
        bench.measure(check, f"nmt-bench, goals, {precision}", rows, precision, quick)
    bench.measure(check, "nmt-bench, float32", FLOAT32_ROWS, "float32", quick)
    bench.measure(check, "nmt-bench, bfloat16", BFLOAT16_ROWS, "bfloat16", quick)


def memory_checks(check):
    some = check.options.emulated and not check.options.all
    emulated = "_emulated" if check.options.emulated else ""
    sanitizer(check, "racecheck", f"cuda{emulated}_tests", SMALL if some else SANITIZED, 8)
    sanitizer(check, "memcheck", f"cuda{emulated}_tests", SMALL if some else "*", 8)
    sanitizer(check, "initcheck", f"cuda{emulated}_tests", SMALL if some else SANITIZED, 8)
    sanitizer(check, "synccheck", f"cuda{emulated}_tests", SMALL if some else SANITIZED, 8)
    sanitizer(check, "memcheck", f"device{emulated}_tests", "*Memory*" if some else "*gru*", 4,
              "memcheck of whole models")


# Part -> (what it measures, what to do, whether it does anything without a GPU).
PARTS = {
    1: ("parity tests of kernels and whole models against the CPU", tests, False),
    2: ("rows of nmt-bench: recurrences, layers, training steps and decoding in float32 and "
        "bfloat16, beside predictions", benchmarks, False),
    3: ("layers of torch.nn and a loop in PyTorch, the same model trained by PyTorch in float32 "
        "and under bfloat16 autocast, and Nsight Compute's times of all kernels of a step and its "
        "counters of six kernels", profiles.part, False),
    4: ("Multi30k on CPU and GPU: float32, tf32, bfloat16, without graphs, LSTM with our layers "
        "and cuDNN's; loss and BLEU", training.part, True),
    5: ("with compute-sanitizer: memcheck of all kernels and of models with GRU; racecheck, "
        "initcheck and synccheck of one case per kind of kernel", memory_checks, False),
}
