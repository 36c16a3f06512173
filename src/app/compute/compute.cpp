#include "app/compute/compute.h"

#include "app/compute/product_choice.h"
#include "app/compute/weight_type.h"
#include "core/log.h"
#include "core/number_text.h"
#include "kernels/instruction_set.h"
#include "kernels/products/bf16/bf16_products.h"
#include "kernels/products/product_method.h"

#include <algorithm>

#include <fmt/format.h>

namespace nmt::app {

namespace {

// `why_not`: written if `auto` selects the CPU.
bool selects_gpu(const DeviceChoice& choice, std::string& why_not) {
  if (choice.kind != DeviceChoice::Kind::automatic) return choice.kind == DeviceChoice::Kind::cuda;
  return CudaDevice::is_usable(0, why_not);
}

// Threads of the pool: of one worker if --workers is given, but for training, all of them.
int pool_threads(const ComputeSpec& spec, ComputeUse use) {
  if (spec.cpu_threads > 0 || spec.workers < 2 || use == ComputeUse::training)
    return spec.cpu_threads;
  return std::max(1, allowed_processors() / spec.workers);
}

bool needs_float32(ProductChoice products) {
  return products == ProductChoice::onednn || products == ProductChoice::bfloat16x3;
}

struct AutomaticPrecision {
  Precision precision = Precision::float32;
  std::string reason;  // for the log; "" where there was no choice
};

// The precision on the CPU where none is given.
AutomaticPrecision automatic_precision(ProductChoice products, ComputeUse use, ThreadPool& pool) {
  if (use != ComputeUse::training || needs_float32(products) || !kernels::bf16_products().is_native)
    return {};
  if (bfloat16_is_faster({&pool})) return {Precision::bfloat16, "auto: faster than float32 here"};
  return {Precision::float32, "auto: bfloat16 is not faster here"};
}

}  // namespace

Compute::Compute(const ComputeSpec& spec, ComputeUse use)
    : pool_(pool_threads(spec, use)),
      workers_(spec.workers > 0 ? spec.workers : pool_.size()),
      shares_threads_(spec.workers == 0),
      products_(spec.products),
      use_(use) {
  const DeviceChoice choice = parse_device(spec.device, "device");
  if (selects_gpu(choice, why_))
    use_gpu(spec, choice);
  else
    use_cpu(spec);
}

void Compute::use_cpu(const ComputeSpec& spec) {
  if (spec.precision || spec.stored_precision) {
    precision_ = spec.precision ? *spec.precision : *spec.stored_precision;
  } else {
    AutomaticPrecision automatic = automatic_precision(products_, use_, pool_);
    precision_ = automatic.precision;
    precision_reason_ = std::move(automatic.reason);
  }
  const auto refuse = [&](const char* what) {
    fail(ExitStatus::usage, "{} is for a GPU (device=cuda), not for the CPU{}", what,
         why_.empty() ? "" : "; " + why_);
  };
  if (spec.recurrences == RecurrenceChoice::cudnn) refuse("recurrences: cudnn");
  if (spec.recurrences == RecurrenceChoice::persistent) refuse("recurrences: persistent");
  if (precision_ == Precision::tf32) refuse("precision: tf32");
  if (spec.cuda_graphs == GraphUse::on) refuse("cuda-graphs: on");
  if (precision_ == Precision::bfloat16 && needs_float32(products_))
    fail(ExitStatus::usage,
         "products: {} is for precision: float32; with bfloat16 expected auto or own",
         name_of(products_));
}

void Compute::use_gpu(const ComputeSpec& spec, const DeviceChoice& choice) {
  if (spec.precision == Precision::int8)
    fail(
        ExitStatus::usage,
        "precision: int8 is for the CPU, not for device={}; use precision=float32 for int8 weights",
        spec.device);
  if (spec.workers > 1)
    fail(ExitStatus::usage, "workers: {} are for the CPU; with device={} expected 1 or auto",
         spec.workers, spec.device);
  workers_ = 1;
  const bool wants_cudnn = spec.recurrences == RecurrenceChoice::cudnn;
  // cuDNN's layers are not for bfloat16.
  const bool device_chooses = use_ == ComputeUse::training && !spec.precision && !wants_cudnn;
  const bool widens = !spec.precision && spec.stored_precision == Precision::int8;
  const Precision usual =
      widens ? Precision::float32 : spec.stored_precision.value_or(Precision::float32);
  cuda_ = std::make_unique<CudaDevice>(
      choice.index, device_chooses ? std::nullopt : std::optional(spec.precision.value_or(usual)));
  precision_ = cuda_->precision();
  if (device_chooses) precision_reason_ = "auto";
  if (widens) precision_reason_ = "auto: int8 is for the CPU";
  cuda_->set_graphs(spec.cuda_graphs != GraphUse::off);
  if (spec.recurrences == RecurrenceChoice::persistent) cuda_->set_persistent(PersistentUse::on);
  if (spec.recurrences == RecurrenceChoice::automatic)
    cuda_->set_persistent(PersistentUse::automatic);
  std::string why;
  if (wants_cudnn && !(cudnn_ = kernels::Cudnn::open(cuda_->handle(), why)))
    fail(ExitStatus::usage, "recurrences: cudnn cannot be used: {}; use recurrences=own", why);
}

std::unique_ptr<Arena> Compute::new_arena() {
  if (!cuda_) return std::make_unique<Arena>();
  // Driver allocations are slow.
  const std::size_t growth =
      std::clamp(cuda_->memory().total / 1024, std::size_t{1} << 20, std::size_t{64} << 20);
  return std::make_unique<Arena>(growth, cuda_->memory_source());
}

std::unique_ptr<Arena> Compute::new_training_arena() {
  constexpr std::size_t growth = std::size_t{1} << 30;
  return cuda_ ? new_arena() : std::make_unique<Arena>(growth);
}

Context Compute::context(Arena& arena) {
  Context context = make_context(arena, cpu(), cuda_.get(), cudnn_.get());
  if (context.backend->low_precision_weights && use_ == ComputeUse::inference) {
    if (precision_ == Precision::bfloat16) set_weight_type(context, Dtype::bf16);
    if (precision_ == Precision::int8) set_weight_type(context, Dtype::i8);
  }
  return context;
}

Context Compute::training_context(Arena& arena, const kernels::ProductMethod* products) {
  Context result = context(arena);
  set_weight_type(result, Dtype::f32);
  result.cpu.products = products;
  return result;
}

void Compute::check_products() const {
  if (cuda_ && needs_float32(products_))
    fail(ExitStatus::usage, "products: {} is for the CPU, not for cuda:{}", name_of(products_),
         cuda_->index());
  if (products_ == ProductChoice::bfloat16x3 && !kernels::ProductMethod::bfloat16x3())
    fail(ExitStatus::usage,
         "products: bfloat16x3 needs a processor with AMX and Linux 5.16 or later; expected auto, "
         "own or onednn");
  std::string why;
  if (products_ == ProductChoice::onednn && !kernels::ProductMethod::one_dnn(&why))
    fail(ExitStatus::usage, "products: onednn cannot be used: {}", why);
}

const kernels::ProductMethod* Compute::open_products() {
  check_products();
  if (cuda_) return nullptr;
  if (precision_ == Precision::bfloat16) {
    const kernels::ProductMethod& rounding = kernels::ProductMethod::bfloat16();
    log::info("matrix products of training: {}", rounding.name());
    return &rounding;
  }
  if (products_ == ProductChoice::own) return nullptr;
  if (products_ != ProductChoice::onednn) {
    const kernels::ProductMethod* const split = kernels::ProductMethod::bfloat16x3();
    if (split && (products_ == ProductChoice::bfloat16x3 || bfloat16x3_is_faster({&pool_}))) {
      log::info("matrix products: {}", split->name());
      return split;
    }
  }
  std::string why;
  const kernels::ProductMethod* const library = kernels::ProductMethod::one_dnn(&why);
  if (!library) {
    log::info("matrix products: own tiles; {}", why);
  } else if (products_ == ProductChoice::onednn) {
    library->use_for(kernels::all_kinds);
    log::info("matrix products: {}; own tiles for packed weights and small products",
              library->name());
  } else {
    log::info("matrix products: {} and own tiles, each where it is faster ({})", library->name(),
              choose_products({&pool_, library}));
  }
  return library;
}

int Compute::worker_threads() const {
  if (shares_threads_) return 1;
  return use_ == ComputeUse::training ? std::max(1, pool_.size() / workers_) : pool_.size();
}

std::string Compute::memory_used(const Arena& arena) const {
  if (!cuda_) return "";
  const auto megabytes = [](std::size_t bytes) { return 1e-6 * static_cast<double>(bytes); };
  const CudaDevice::Memory memory = cuda_->memory();
  const GraphCounts graphs = cuda_->graph_counts();
  std::string text = fmt::format(
      "GPU memory: {:.0f} MB of tensors at peak, {:.0f} MB reserved, {:.0f} of {:.0f} MB of "
      "the device in use",
      megabytes(arena.statistics().peak), megabytes(arena.statistics().reserved),
      megabytes(memory.total - memory.free), megabytes(memory.total));
  if (graphs.replayed > 0)
    text += fmt::format("; {} of {} repeated work items ran as CUDA graphs", graphs.replayed,
                        graphs.replayed + graphs.plain + graphs.recorded + graphs.updated);
  return text;
}

std::string Compute::describe(const std::string& program) const {
  const std::string name = cuda_ ? cuda_->name() : processor();
  const std::string place = cuda_ ? fmt::format("cuda:{}", cuda_->index()) : "cpu";
  std::string threads = counted(pool_.size(), "thread");
  if (!shares_threads_ && use_ == ComputeUse::inference)
    threads = counted(workers_, "worker") + " of " + threads;
  const auto in_brackets = [](const std::string& text) {
    return text.empty() ? "" : " (" + text + ")";
  };
  const std::size_t colon = std::min(program.find(": "), program.size());
  return fmt::format("{} {}{} on {}{}, {}, {}, {}{}{}", program.substr(0, colon), NMT_VERSION,
                     program.substr(colon), place, in_brackets(name), threads,
                     kernels::instruction_set(), name_of(precision_),
                     in_brackets(precision_reason_), why_.empty() ? "" : "; no GPU: " + why_);
}

}  // namespace nmt::app
