#include "app/report/training_history.h"

#include "app/models/model_text.h"
#include "app/report/development_report.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/log.h"
#include "core/nlohmann.h"
#include "model/directory/model_directory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::array figures = {"updates",
                                "epochs",
                                "seconds",
                                "loss",
                                "perplexity",
                                "learn_rate",
                                "gradient_norm",
                                "source_tokens_per_second",
                                "target_tokens_per_second"};
constexpr std::array metrics = {"bleu", "chrf", "cross-entropy", "perplexity"};
constexpr int deepest = 16;

// Reads the complete lines of the log. A killed process can leave an incomplete last line, which is
// ignored.
std::vector<Json> read_log(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    fail(ExitStatus::data, "{}: is missing; nmt-train writes it into its model directory", path);
  const std::string text = read_file(path);
  std::vector<Json> lines;
  std::int64_t number = 0, damaged = 0, first_damaged = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    ++number;
    bool too_deep = false;  // for the recursion of copies
    const auto watch = [&](int depth, Json::parse_event_t, Json&) {
      too_deep = too_deep || depth > deepest;
      return !too_deep;
    };
    Json line = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                            text.begin() + static_cast<std::ptrdiff_t>(end), watch, false);
    begin = end + 1;
    const bool whole = !too_deep && line.is_object() && line.contains("event") &&
                       line["event"].is_string() && line.contains("updates") &&
                       line["updates"].is_number();
    if (whole) {
      lines.push_back(std::move(line));
    } else if (damaged++ == 0) {
      first_damaged = number;
    }
  }
  if (lines.empty()) fail(ExitStatus::data, "{}: has no lines of a training log", path);
  if (damaged > 0)
    log::warn(
        "{}: skipped {} of {} lines that are not lines of a training log; the first is line {}",
        path, damaged, number, first_damaged);
  return lines;
}

bool is_event(const Json& line, std::string_view name) {
  return line["event"].get_ref<const std::string&>() == name;
}

// A training resumed from a checkpoint repeats the updates after it; their earlier lines are
// dropped.
void drop_undone(std::vector<Json>& lines) {
  double first = std::numeric_limits<double>::infinity();  // update of later returns
  std::vector<Json> kept;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const double updates = (*line)["updates"].get<double>();
    if (is_event(*line, "recovery") || is_event(*line, "resume"))
      first = std::min(first, updates);
    else if ((is_event(*line, "display") || is_event(*line, "validation")) && updates > first)
      continue;
    kept.push_back(std::move(*line));
  }
  std::reverse(kept.begin(), kept.end());
  lines = std::move(kept);
}

Json number_of(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? *found : Json();
}

Json columns(const std::vector<Json>& lines) {
  Json displays = Json::object();
  for (const char* name : figures) {
    Json& column = displays[name] = Json::array();
    for (const Json& line : lines)
      if (is_event(line, "display")) column.push_back(number_of(line, name));
  }
  // Only lines of guided alignment have it.
  Json alignment = Json::array();
  for (const Json& line : lines)
    if (is_event(line, "display")) alignment.push_back(number_of(line, "alignment"));
  if (std::any_of(alignment.begin(), alignment.end(), [](const Json& v) { return !v.is_null(); }))
    displays["alignment"] = std::move(alignment);
  return displays;
}

Json validations(const std::vector<Json>& lines) {
  Json result{{"updates", Json::array()},
              {"epochs", Json::array()},
              {"took", Json::array()},
              {"metrics", Json::object()}};
  for (const Json& line : lines) {
    if (!is_event(line, "validation")) continue;
    for (const char* name : {"updates", "epochs", "took"})
      result[name].push_back(number_of(line, name));
  }
  for (const char* name : metrics) {
    Json column = Json::array();
    bool any = false;
    for (const Json& line : lines) {
      if (!is_event(line, "validation")) continue;
      column.push_back(number_of(line, name));
      any = any || !column.back().is_null();
    }
    if (any) result["metrics"][name] = std::move(column);
  }
  return result;
}

// The best value of the first metric.
Json best(const std::vector<Json>& lines) {
  Json result;
  for (const Json& line : lines) {
    if (!is_event(line, "validation") || !line.contains("best") || line["best"] != true) continue;
    for (const auto& [key, value] : line.items())
      if (std::find(metrics.begin(), metrics.end(), key) != metrics.end()) {
        result = {{"metric", key}, {"value", value}, {"updates", line["updates"]}};
        break;
      }
  }
  return result;
}

// Tokens divided by time. A mean over log lines would give slow periods too little weight.
Json mean_speed(const std::vector<Json>& lines) {
  double tokens = 0, seconds = 0, before = 0;
  for (const Json& line : lines) {
    if (!is_event(line, "display")) continue;
    const Json labels = number_of(line, "labels"),
               speed = number_of(line, "target_tokens_per_second");
    if (labels.is_null() || speed.is_null() || speed.get<double>() <= 0) continue;
    tokens += labels.get<double>() - before;
    seconds += (labels.get<double>() - before) / speed.get<double>();
    before = labels.get<double>();
  }
  return seconds > 0 ? Json(tokens / seconds) : Json();
}

}  // namespace

Json training_report(const std::string& directory, int worst) {
  const ModelDirectory model = ModelDirectory::open(directory);
  const Task task = model.spec().task;
  model.require({Task::translation, Task::language_model});
  std::vector<Json> lines = read_log(directory + "/train.jsonl");
  drop_undone(lines);
  Json report{{"format", "nmt-report"}, {"version", 1}, {"nmt", NMT_VERSION}};
  report["task"] = name_of(task);
  report["model"] = {{"name", directory_name(directory)}, {"summary", model_summary(model.spec())}};
  report["progress"] = {{"updates", lines.back()["updates"]},
                        {"epochs", number_of(lines.back(), "epochs")}};
  report["displays"] = columns(lines);
  report["validations"] = validations(lines);
  report["best"] = best(lines);
  report["speed"] = mean_speed(lines);
  report["runs"] = Json::array();
  report["events"] = Json::array();
  for (Json& line : lines) {
    const std::string event = line["event"].get<std::string>();
    if (event == "run") {
      line.erase("event");
      report["runs"].push_back(line);
    } else if (line.contains("text") && line["text"].is_string()) {
      report["events"].push_back(
          {{"event", event}, {"updates", line["updates"]}, {"text", line["text"]}});
    }
  }
  report["development"] = development_report(directory + "/development.json", worst);
  return report;
}

}  // namespace nmt::app
