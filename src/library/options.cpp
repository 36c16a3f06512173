#include "library/options.h"

#include "core/error.h"

#include <algorithm>
#include <concepts>
#include <sstream>

#include <fmt/ranges.h>

namespace nmt::library {
namespace {

std::string word(const std::string& value) {
  return value;
}
std::string word(bool value) {
  return value ? "true" : "false";
}
template <class Number>
requires std::integral<Number> || std::floating_point<Number> std::string word(Number value) {
  return fmt::format("{}", value);
}

template <class T>
NamedValue named(const char* name, const T& value) {
  return {name, {word(value)}, false};
}
template <class T>
NamedValue named(const char* name, const std::vector<T>& values) {
  NamedValue result{name, {}, true};
  for (const T& value : values) result.words.push_back(word(value));
  return result;
}

/// A text as a scalar of YAML that keeps invalid UTF-8 and noncharacters, which YAML::Emitter
/// replaces.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 0x7f || c == '"' || c == '\\')
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result + '"';
}

std::vector<std::string> split(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string each; stream >> each;) words.push_back(each);
  return words;
}

// Members that TranslatorOptions and ScorerOptions share.
template <class Options>
std::vector<NamedValue> inference_members(const Options& o) {
  return {named("length-penalty", o.length_penalty),
          named("normalize", o.normalize),
          named("coverage-penalty", o.coverage_penalty),
          named("max-length", o.max_length),
          named("alignment", o.alignment),
          named("no-spm-encode", o.pieces_in),
          named("mini-batch", o.mini_batch),
          named("maxi-batch", o.maxi_batch),
          named("device", o.device),
          named("workers", o.workers),
          named("cpu-threads", o.cpu_threads),
          named("precision", o.precision),
          named("weights", o.weights),
          named("ensemble", o.ensemble)};
}

bool is_list(const config::Settings& settings, const std::string& name) {
  for (const config::Option* option : settings.options())
    if (option->name == name) return option->is_list();
  return true;  // unknown: the message shows what was given
}

}  // namespace

std::vector<NamedValue> members(const TranslatorOptions& o) {
  std::vector<NamedValue> all = inference_members(o);
  all.insert(all.end(),
             {named("beam-size", o.beam_size), named("max-length-factor", o.max_length_factor),
              named("n-best", o.n_best), named("allow-unk", o.allow_unk),
              named("shortlist", o.shortlist), named("no-spm-decode", o.pieces_out)});
  return all;
}

std::vector<NamedValue> members(const ScorerOptions& o) {
  return inference_members(o);
}

std::vector<NamedValue> members(const TrainOptions& o) {
  return {named("train-sets", o.train_sets),
          named("valid-sets", o.valid_sets),
          named("vocabs", o.vocabs),
          named("dim-vocabs", o.dim_vocabs),
          named("model", o.model),
          named("unit", o.unit),
          named("dim-emb", o.dim_emb),
          named("dim-rnn", o.dim_rnn),
          named("enc-depth", o.enc_depth),
          named("dec-depth", o.dec_depth),
          named("learn-rate", o.learn_rate),
          named("mini-batch-words", o.mini_batch_words),
          named("after", o.after),
          named("disp-freq", o.disp_freq),
          named("valid-freq", o.valid_freq),
          named("early-stopping", o.early_stopping),
          named("seed", o.seed),
          named("device", o.device),
          named("cpu-threads", o.cpu_threads),
          named("precision", o.precision)};
}

void read(const std::vector<NamedValue>& values, const std::vector<NamedValue>& defaults,
          const Settings& extra, config::Settings& settings) {
  std::vector<NamedValue> given;
  for (const NamedValue& value : values)
    if (std::find(defaults.begin(), defaults.end(), value) == defaults.end())
      given.push_back(value);
  for (const auto& [written, text] : extra) {
    std::string name = written;
    std::replace(name.begin(), name.end(), '_', '-');
    if (name == "log-level")
      fail(ExitStatus::usage,
           "log-level: the level is that of the whole process; call nmt::set_log_level() "
           "(nmt.set_log_level() in Python)");
    for (const NamedValue& value : given)
      if (value.name == name)
        fail(ExitStatus::usage, "{}: set as a member and in settings too; set it once", name);
    std::vector<std::string> words = split(text);
    if (words.empty() || !is_list(settings, name)) words = {text};
    const bool list = words.size() > 1;
    given.push_back({std::move(name), std::move(words), list});
  }
  std::string yaml;
  for (const NamedValue& value : given) {
    std::vector<std::string> words;
    for (const std::string& each : value.words) words.push_back(quoted(each));
    yaml += fmt::format("? {}\n: {}{}{}\n", quoted(value.name), value.list ? "[" : "",
                        fmt::join(words, ", "), value.list ? "]" : "");
  }
  settings.read_yaml(yaml, "");
  settings.read({});
  if (settings.has_effects_checked_later()) return;
  if (const std::string idle = settings.without_effect(false); !idle.empty())
    fail(ExitStatus::usage, "options without effect: {}; leave them out", idle);
}

}  // namespace nmt::library
