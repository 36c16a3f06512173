#include "app/train/run_record.h"

#include "app/compute.h"
#include "kernels/instruction_set.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <map>

#include <gnu/libc-version.h>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>
#include <unistd.h>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::int64_t max_sampled =
    10000;  // pairs: less than a second of encoding; the standard error of a 1 % bin is 0.1 %

Json machine(const ThreadPool& pool) {
  utsname system{};
  ::uname(&system);
  const double bytes = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  return Json{{"processor", processor()},
              {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
              {"memory_gb", std::round(bytes * 1e-8) / 10},
              {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
              {"threads", pool.size()},
              {"instruction_set", kernels::instruction_set()}};
}

Json pairs_of(const std::map<std::int64_t, std::int64_t>& counts) {
  Json list = Json::array();
  for (const auto& [length, count] : counts) list.push_back({length, count});
  return list;
}

// Lengths in pieces of evenly spaced training pairs.
Json lengths(const TrainingText& text, const Vocabulary& source, const Vocabulary& target) {
  const ParallelCorpus& corpus = *text.corpus;
  const std::int64_t step = (corpus.pairs() + max_sampled - 1) / max_sampled;
  std::map<std::int64_t, std::int64_t> counts[2];
  std::int64_t sampled = 0;
  std::string storage;
  for (std::int64_t i = 0; i < corpus.pairs(); i += step) {
    if (std::binary_search(text.excluded.begin(), text.excluded.end(), i)) continue;
    ++counts[0][std::ssize(source.encode(corpus.line(Side::source, i, storage)))];
    ++counts[1][std::ssize(target.encode(corpus.line(Side::target, i, storage)))];
    ++sampled;
  }
  return Json{{"pairs", sampled}, {"source", pairs_of(counts[0])}, {"target", pairs_of(counts[1])}};
}

}  // namespace

std::string shell_quoted(const std::vector<std::string>& words) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@%";
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

std::string utc_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

Json run_record(const std::vector<std::string>& command, const std::string& settings,
                const ThreadPool& pool, const TrainingText& text, const DataSpec& data,
                const Vocabulary& source, const Vocabulary& target, Model& model) {
  std::error_code error;
  Json json;
  json["time"] = utc_time();
  json["command"] = shell_quoted(command);
  json["folder"] = std::filesystem::current_path(error).string();
  json["versions"] = {{"nmt", NMT_VERSION},
                      {"compiler", __VERSION__},
                      {"c_library", std::string("glibc ") + ::gnu_get_libc_version()}};
  json["machine"] = machine(pool);
  json["settings"] = settings;
  json["data"] = {{"files", data.train_sets},
                  {"pairs", text.corpus->pairs()},
                  {"held_out", std::ssize(text.excluded)},
                  {"development_files", data.valid_sets},
                  {"development_pairs", std::ssize(text.development.sources)},
                  {"max_length", data.max_length},
                  {"source_pieces", source.size()},
                  {"target_pieces", target.size()},
                  {"weights", model.parameters().elements()}};
  json["lengths"] = lengths(text, source, target);
  return json;
}

}  // namespace nmt::app
