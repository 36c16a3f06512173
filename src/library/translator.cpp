#include "nmt/translator.h"

#include "app/translate/translate.h"
#include "library/lines.h"
#include "library/log_level.h"
#include "library/options.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <span>

namespace nmt {
namespace {

app::TranslateSpec spec_of(const std::vector<std::string>& models,
                           const TranslatorOptions& options) {
  library::use_default_log_level();
  app::TranslateSpec spec;
  config::Settings settings("nmt::Translator", "", "");
  settings.add(library::without(app::fields(spec), {"model", "input", "output", "text"}));
  library::read(library::members(options), library::members(TranslatorOptions{}), options.settings,
                settings);
  spec.models.models = models;
  return spec;
}

Translation public_translation(Output&& output, const Vocabulary& vocabulary) {
  Translation result;
  result.text = std::move(output.text);
  result.tokens.reserve(output.ids.size());
  for (const std::int32_t id : output.ids)
    if (id != vocabulary.eos()) result.tokens.push_back(vocabulary.piece(id));
  result.log_prob = output.log_prob;
  result.score = output.score;
  for (const AlignmentPoint& point : output.alignment)
    result.alignment.push_back({point.source, point.target});
  return result;
}

}  // namespace

struct Translator::Impl {
  explicit Impl(const app::TranslateSpec& spec) : open(spec, "nmt::Translator") {}

  /// Translates at most a window of lines.
  std::vector<Translation> translate(std::span<const std::string> lines, std::int64_t first) {
    const std::vector<std::string> texts = library::clean(lines, "translate", first);
    std::vector<LineTranslation> translated;
    {
      const std::lock_guard lock(one_call);
      translated = open.translator().translate(texts, first);
    }
    const Vocabulary& target = open.inference().models.target_vocabulary();
    std::vector<Translation> result;
    result.reserve(translated.size());
    for (LineTranslation& line : translated) {
      Translation& best = result.emplace_back();
      if (!line.outputs.empty()) best = public_translation(std::move(line.outputs.front()), target);
      for (std::size_t i = 1; i < line.outputs.size(); ++i)
        best.alternatives.push_back(public_translation(std::move(line.outputs[i]), target));
    }
    return result;
  }

  app::OpenTranslator open;
  std::mutex one_call;
};

Translator::Translator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Translator::Translator(const std::string& model, const TranslatorOptions& options)
    : impl_(std::make_unique<Impl>(spec_of({model}, options))) {}
Translator Translator::ensemble(const std::vector<std::string>& models,
                                const TranslatorOptions& options) {
  return Translator(std::make_unique<Impl>(spec_of(models, options)));
}
Translator::Translator(Translator&&) noexcept = default;
Translator& Translator::operator=(Translator&&) noexcept = default;
Translator::~Translator() = default;

std::vector<Translation> Translator::translate(const std::vector<std::string>& lines) {
  std::vector<Translation> result;
  result.reserve(lines.size());
  const std::span<const std::string> all(lines);
  for (std::size_t begin = 0; begin < lines.size(); begin += window())
    for (Translation& each :
         impl_->translate(all.subspan(begin, std::min(window(), lines.size() - begin)),
                          static_cast<std::int64_t>(begin) + 1))
      result.push_back(std::move(each));
  return result;
}

Translation Translator::translate_line(const std::string& line) {
  return translate(std::vector<std::string>{line}).front();
}

std::int64_t Translator::translate(const ReadLine& read, const WriteTranslation& write) {
  std::int64_t done = 0;
  std::vector<std::string> lines;
  for (bool more = true; more;) {
    lines.clear();
    for (std::string line; lines.size() < window() && (more = read(line));)
      lines.push_back(std::move(line));
    for (const Translation& each : impl_->translate(lines, done + 1)) write(each);
    done += static_cast<std::int64_t>(lines.size());
  }
  return done;
}

std::size_t Translator::window() const {
  return impl_->open.translator().window();
}
const Vocabulary& Translator::source_vocabulary() const {
  return impl_->open.inference().models.source_vocabulary();
}
const Vocabulary& Translator::target_vocabulary() const {
  return impl_->open.inference().models.target_vocabulary();
}

}  // namespace nmt
