#include "app/benchmark/report.h"

#include "core/error.h"
#include "core/nlohmann.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace nmt::app::bench {
namespace {

class Writer : public Report {
 public:
  explicit Writer(std::FILE* file) : file_(file) {}

 protected:
  void write(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0)
      fail(ExitStatus::failed, "the report cannot be written: {}", std::strerror(errno));
  }

 private:
  std::FILE* file_;
};

std::string milliseconds(double seconds) {
  const double ms = 1e3 * seconds;
  return ms == 0     ? ""
         : ms < 0.01 ? fmt::format("{:.6f}", ms)
         : ms < 10   ? fmt::format("{:.4f}", ms)
                     : fmt::format("{:.1f}", ms);
}
std::string giga(double rate) {
  return rate == 0 ? "" : fmt::format("{:.1f}", 1e-9 * rate);
}
std::string per_cent(double share) {
  return share == 0 ? "" : fmt::format("{:.0f} %", 100 * share);
}
std::string number(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

class Text : public Writer {
 public:
  Text(std::FILE* file, const Facts& facts) : Writer(file) {
    std::string text;
    for (const auto& [name, value] : facts) text += fmt::format("{}: {}\n", name, value);
    write(text);
  }
  void row(const Result& r) override {
    if (r.table != table_ || (r.error.empty() && names_of(r) != extras_)) head(r);
    if (!r.error.empty()) return write(fmt::format("| {} | {} |\n", r.name, r.error));
    const double rate = r.work.flops > 0 ? r.work.flops / r.seconds : 0;
    const double bytes = r.work.bytes > 0 ? r.work.bytes / r.seconds : 0;
    std::string text = fmt::format("| {} | {} | {} | {} | {} | {} | {} |", r.name,
                                   milliseconds(r.seconds), giga(rate), giga(bytes),
                                   milliseconds(r.floor()), r.bound(), per_cent(r.share()));
    if (r.repetitions > 1)
      text += fmt::format(" {} | {} |", milliseconds(r.median), per_cent(r.deviation / r.median));
    for (const auto& [name, value] : r.extras) text += fmt::format(" {} |", number(value));
    write(text + "\n");
  }

 private:
  static std::vector<std::string> names_of(const Result& r) {
    std::vector<std::string> names;
    for (const auto& [name, value] : r.extras) names.push_back(name);
    return names;
  }
  // Rows of one table may have different extras: their columns get another head.
  void head(const Result& r) {
    const std::string title = r.table == table_ ? "" : fmt::format("\n{}\n", r.table);
    table_ = r.table;
    extras_ = names_of(r);
    std::string names = "| row | ms | GFLOP/s | GB/s | floor, ms | bound by | share |",
                rule = "|---|---|---|---|---|---|---|";
    if (r.repetitions > 1) names += " median, ms | deviation |", rule += "---|---|";
    for (const std::string& name : extras_) names += fmt::format(" {} |", name), rule += "---|";
    write(fmt::format("{}\n{}\n{}\n", title, names, rule));
  }
  std::vector<std::string> extras_;
  std::string table_;
};

class Csv : public Writer {
 public:
  Csv(std::FILE* file, const Facts& facts) : Writer(file) {
    std::string text;
    for (const auto& [name, value] : facts) text += fmt::format("# {}: {}\n", name, value);
    write(text +
          "table,name,ms,median_ms,deviation_ms,repetitions,runs,flops,bytes,floor_ms,bound,share,"
          "peak_flops_per_s,"
          "copied_bytes_per_s,read_bytes_per_s,extras,error\n");
  }
  void row(const Result& r) override {
    std::string extras;
    for (const auto& [name, value] : r.extras)
      extras += fmt::format("{}{}={}", extras.empty() ? "" : ";", name, value);
    write(fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", quoted(r.table),
                      quoted(r.name), 1e3 * r.seconds, 1e3 * r.median, 1e3 * r.deviation,
                      r.repetitions, r.runs, r.work.flops, r.work.bytes, 1e3 * r.floor(), r.bound(),
                      r.share(), r.bounds.flops, r.bounds.copied, r.bounds.read, quoted(extras),
                      quoted(r.error)));
  }

 private:
  // RFC 4180.
  static std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
  }
};

class Json : public Writer {
 public:
  Json(std::FILE* file, const Facts& facts) : Writer(file) {
    for (const auto& [name, value] : facts) document_["context"][name] = value;
    document_["benchmarks"] = nlohmann::ordered_json::array();
  }
  void row(const Result& r) override {
    nlohmann::ordered_json row{{"table", r.table}, {"name", r.name}};
    if (!r.error.empty()) {
      row["error_occurred"] = true;
      row["error_message"] = r.error;
    } else {
      row.update({{"time_unit", "ms"},
                  {"real_time", 1e3 * r.seconds},
                  {"median", 1e3 * r.median},
                  {"stddev", 1e3 * r.deviation},
                  {"repetitions", r.repetitions},
                  {"iterations", r.runs},
                  {"flops", r.work.flops},
                  {"bytes", r.work.bytes},
                  {"floor", 1e3 * r.floor()},
                  {"bound", r.bound()},
                  {"share", r.share()},
                  {"peak_flops_per_second", r.bounds.flops},
                  {"copied_bytes_per_second", r.bounds.copied},
                  {"read_bytes_per_second", r.bounds.read}});
      for (const auto& [name, value] : r.extras) row["extras"][name] = value;
    }
    document_["benchmarks"].push_back(row);
  }
  void finish() override { write(dump_json(document_, 2) + "\n"); }

 private:
  nlohmann::ordered_json document_;
};

}  // namespace

std::unique_ptr<Report> Report::make(const std::string& format, std::FILE* file,
                                     const Facts& facts) {
  if (format == "json") return std::make_unique<Json>(file, facts);
  if (format == "csv") return std::make_unique<Csv>(file, facts);
  NMT_CHECK(format == "text", "no report format '{}'", format);
  return std::make_unique<Text>(file, facts);
}

}  // namespace nmt::app::bench
