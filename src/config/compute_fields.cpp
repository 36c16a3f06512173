#include "config/fields.h"

namespace nmt::config {
namespace {

std::vector<Option> list(ComputeSpec& s) {
  return in_group(
      "compute",
      {
          Option("device", &s.device,
                 "cpu, cuda, cuda:N or N (N-th GPU, from 0), or auto (GPU if available)")
              .alias({"d", "devices"})
              .with_form(Form::device)
              .meta("DEVICE")
              .with_role(Role::location)
              .differs_by_rank(),
          Option("cpu-threads", &s.cpu_threads, "compute threads; 0: one per processor")
              .alias({"threads"})
              .range(0, 1024)
              .with_role(Role::location)
              .differs_by_rank(),
          Option("workers", &s.workers,
                 "concurrent batches; N: of --cpu-threads threads each; auto: one per thread")
              .range(1, 1024)
              .chosen_by_default()
              .with_role(Role::location),
          Option("precision", &s.precision,
                 "matmul input precision; auto: that of the model; int8: CPU; tf32: GPU")
              .with_role(Role::compute),
          Option("recurrences", &s.recurrences,
                 "GPU recurrent implementation; persistent, cudnn: supported layers only")
              .with_role(Role::compute),
          Option("cuda-graphs", &s.cuda_graphs, "launch recurring GPU work as CUDA graphs")
              .with_role(Role::compute),
          Option("products", &s.products,
                 "GEMM of CPU training; auto: the fastest; own: this project's own tiles")
              .with_role(Role::compute),
          Option("rank-timeout", &s.rank_timeout,
                 "abort when a rank does not respond in this time; 0: never")
              .range(0, 1e9)
              .meta("SECONDS")
              .with_role(Role::location),
      });
}

}  // namespace

std::vector<Option> fields(ComputeSpec& spec, const ComputeSpec& defaults) {
  return with_defaults(
      spec, [](auto& s) { return list(s); }, defaults);
}

std::vector<Option> training_fields(ComputeSpec& spec) {
  std::vector<Option> options = fields(spec);
  named(options, "workers").help = "concurrent validation batches on the CPU; auto: one per thread";
  named(options, "precision").words = {"auto", "float32", "tf32", "bfloat16"};
  named(options, "precision").help =
      "matmul input precision; auto: bfloat16 where it is faster; tf32: GPU";
  return options;
}

std::vector<Option> decoding_fields(ComputeSpec& spec) {
  return without({"products", "rank-timeout"}, fields(spec));
}

}  // namespace nmt::config
