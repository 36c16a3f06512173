#include "app/compute/product_choice.h"

#include "core/error.h"
#include "core/files/file.h"
#include "core/log.h"
#include "core/nlohmann.h"
#include "core/threads/thread_pool.h"
#include "kernels/instruction_set.h"
#include "kernels/products/bf16/bf16_products.h"
#include "kernels/products/gemm.h"
#include "kernels/products/product_method.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace nmt::app {
namespace {

using kernels::LibraryKinds;

// One typical product of every kind, in the order of ProductKind: sizes of configs/multi30k.yaml
// and of layers of width 1,024.
struct Shape {
  bool transpose_a;
  std::int64_t m, n, k;
};
constexpr Shape shapes[kernels::product_kinds] = {{true, 256, 768, 2048},
                                                  {false, 1024, 512, 1024},
                                                  {false, 256, 768, 256},
                                                  {false, 2048, 768, 256}};

// The CPU time of this thread in ns, which other programs prolong less than the time on the
// clock. In a product, a thread that has finished its part spins for the others, so this is the
// time of the whole product. The time of a process does not do: the system updates the shares of
// its other threads once in a few milliseconds.
double thread_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

// A function that computes one product and returns its thread_time().
std::function<double()> timed_product(const Cpu& cpu, const Shape& s) {
  const std::vector<float> a(static_cast<std::size_t>(s.m * s.k), 0.5f),
      b(static_cast<std::size_t>(s.k * s.n), 0.5f);
  return [cpu, s, a, b, c = std::vector<float>(static_cast<std::size_t>(s.m * s.n))]() mutable {
    const double start = thread_time();
    kernels::gemm(cpu, s.transpose_a, false, s.m, s.n, s.k, a.data(), s.transpose_a ? s.m : s.k,
                  b.data(), s.n, 0.0f, c.data(), s.n);
    return thread_time() - start;
  };
}

std::string line_of_cpuinfo(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name + '\t') || line.starts_with(name + ' '))
      return line.substr(std::min(line.size(), line.find(':') + 2));
  return "";
}

std::string cache_file() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::string folder = variable("XDG_CACHE_HOME");
  if (folder.empty() && !variable("HOME").empty()) folder = variable("HOME") + "/.cache";
  return folder.empty() ? "" : folder + "/nmt/products.json";
}

nlohmann::ordered_json read_choices(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  bool too_deep = false;
  const auto watch = [&](int depth, nlohmann::ordered_json::parse_event_t,
                         nlohmann::ordered_json&) {
    too_deep = too_deep || depth > 3;
    return !too_deep;
  };
  try {
    nlohmann::ordered_json choices = nlohmann::ordered_json::parse(read_file(path), watch);
    return too_deep ? nlohmann::ordered_json() : choices;
  } catch (const std::exception&) {
    return {};  // damaged: it is written again
  }
}

std::optional<std::vector<bool>> answers_of(const nlohmann::ordered_json& stored,
                                            std::size_t count) {
  if (!stored.is_array() || stored.size() != count) return std::nullopt;
  std::vector<bool> answers;
  for (const nlohmann::ordered_json& answer : stored) {
    if (!answer.is_boolean()) return std::nullopt;
    answers.push_back(answer.get<bool>());
  }
  return answers;
}

// "48, 2048 and 266240 KB", of the first, second and third level; 0: not known.
std::string cache_sizes() {
  return fmt::format("{}, {} and {} KB", ::sysconf(_SC_LEVEL1_DCACHE_SIZE) / 1024,
                     ::sysconf(_SC_LEVEL2_CACHE_SIZE) / 1024,
                     ::sysconf(_SC_LEVEL3_CACHE_SIZE) / 1024);
}

std::string key_of(const Cpu& cpu, const std::string& what) {
  return fmt::format("nmt " NMT_VERSION
                     ": {}, family {}, model {}, stepping {}; {}; caches {}; {}; {}; {} threads",
                     processor(), line_of_cpuinfo("cpu family"), line_of_cpuinfo("model"),
                     line_of_cpuinfo("stepping"), product_features(line_of_cpuinfo("flags")),
                     cache_sizes(), kernels::instruction_set(), what, cpu.pool->size());
}

// Held by one process at a time. Error (failed): the file cannot be opened.
class Lock {
 public:
  explicit Lock(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (file_ < 0) fail(ExitStatus::failed, "{}: {}", path, std::strerror(errno));
    while (::flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Lock() { ::close(file_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int file_;
};

// Whether products are faster than own tiles in float32 by a fifth; `otherwise`: where the answer
// cannot be stored.
bool is_faster_than_own(const Cpu& cpu, const kernels::ProductMethod& products, bool otherwise) {
  const auto measure = [&]() -> std::vector<bool> {
    const Shape& s = shapes[static_cast<std::size_t>(kernels::ProductKind::many_rows)];
    Cpu own = cpu, other = cpu;
    own.products = nullptr;
    other.products = &products;
    return {is_faster(timed_product(other, s), timed_product(own, s), 1.2)};
  };
  const auto answers = stored_choice(cache_file(), key_of(cpu, products.name()), 1, measure);
  return answers ? answers->front() : otherwise;
}

}  // namespace

std::string measured_class() {
  const bool zen4 =
      line_of_cpuinfo("vendor_id") == "AuthenticAMD" && line_of_cpuinfo("cpu family") == "25" &&
      std::string_view(kernels::instruction_set()).find("AVX-512") != std::string_view::npos;
  return zen4 ? "AMD Zen 4" : "";
}

std::string product_features(const std::string& flags) {
  std::string found;
  std::istringstream words(flags);
  for (std::string word; words >> word;)
    if (word == "avx2" || word == "fma" || word == "avx_vnni" || word.starts_with("avx512") ||
        word.starts_with("amx"))
      found += (found.empty() ? "" : " ") + word;
  return found;
}

bool is_faster(const std::function<double()>& candidate, const std::function<double()>& present,
               double factor) {
  constexpr int pairs = 11;
  candidate(), present();  // caches, packed buffers and clock rates
  std::vector<double> ratios;
  for (int pair = 0; pair < pairs; ++pair) {
    double times[2];
    for (const int side : {pair % 2, 1 - pair % 2})
      times[side] = side == 0 ? candidate() : present();
    ratios.push_back(times[1] / times[0]);
  }
  std::nth_element(ratios.begin(), ratios.begin() + pairs / 2, ratios.end());
  return ratios[pairs / 2] > factor;
}

LibraryKinds measure_products(const Cpu& cpu) {
  Cpu own = cpu;
  own.products = nullptr;
  cpu.products->use_for(kernels::all_kinds);
  LibraryKinds faster{};
  for (std::size_t kind = 0; kind < faster.size(); ++kind)
    faster[kind] =
        is_faster(timed_product(cpu, shapes[kind]), timed_product(own, shapes[kind]), 1.03);
  return faster;
}

std::optional<std::vector<bool>> stored_choice(const std::string& path, const std::string& key,
                                               std::size_t count,
                                               const std::function<std::vector<bool>()>& measure) {
  if (path.empty()) return std::nullopt;
  try {
    make_directories(std::filesystem::path(path).parent_path());
    const Lock lock(path + ".lock");
    nlohmann::ordered_json choices = read_choices(path);
    if (choices.is_object() && choices.contains(key))
      if (auto answers = answers_of(choices[key], count)) return answers;
    if (!choices.is_object()) choices = nlohmann::ordered_json::object();
    std::vector<bool> answers = measure();
    choices[key] = answers;
    write_file(path, choices.dump(1) + "\n");
    return answers;
  } catch (const Error& error) {
    log::debug("{}", error.what());
    return std::nullopt;
  }
}

std::string choose_products(const Cpu& cpu) {
  const kernels::ProductMethod& library = *cpu.products;
  const std::string known = measured_class();
  if (!known.empty() && library.name() == kernels::zen4_library) {
    library.use_for(kernels::zen4_kinds);
    return "measured for " + known;
  }
  const std::string path = cache_file();
  bool measured = false;
  LibraryKinds kinds{};
  const auto answers = stored_choice(path, key_of(cpu, library.name()), kinds.size(), [&] {
    measured = true;
    const LibraryKinds faster = measure_products(cpu);
    return std::vector<bool>(faster.begin(), faster.end());
  });
  if (answers) std::copy(answers->begin(), answers->end(), kinds.begin());
  library.use_for(kinds);
  if (!answers) return "own tiles: the cache directory cannot be written";
  return measured ? "measured now" : "measured before, " + path;
}

bool bfloat16_is_faster(const Cpu& cpu) {
  return kernels::bf16_products().is_native &&
         is_faster_than_own(cpu, kernels::ProductMethod::bfloat16(),
                            kernels::fast_bf16_products() != nullptr);
}

bool bfloat16x3_is_faster(const Cpu& cpu) {
  const kernels::ProductMethod* const products = kernels::ProductMethod::bfloat16x3();
  return products && is_faster_than_own(cpu, *products, true);
}

}  // namespace nmt::app
