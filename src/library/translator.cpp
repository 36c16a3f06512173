#include "app/files/line_input.h"
#include "app/files/outputs.h"
#include "core/error.h"
#include "library/lines.h"
#include "library/options.h"
#include "library/translator_impl.h"
#include "search/beam/shortlist.h"
#include "search/stream.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace nmt {
namespace {

// Standard input and output are those of the program that uses the library.
void expect_file(const char* what, const std::string& path) {
  if (path.empty() || path == "-")
    fail(ExitStatus::usage, "{} '{}'; expected the name of a file", what, path);
}

app::TranslateSpec spec_of(const std::vector<std::string>& models,
                           const TranslatorOptions& options) {
  app::TranslateSpec spec;
  spec.models.models = models;  // first: what has no effect on one model is refused
  config::Settings settings("nmt::Translator", "", "");
  settings.add(config::without({"model", "input", "output", "text"}, app::fields(spec)));
  library::read(library::members(options), library::members(TranslatorOptions{}), options.settings,
                settings);
  spec.attention = options.attention;
  if (!spec.text_rules.glossary.empty()) expect_file("glossary:", spec.text_rules.glossary);
  if (const auto shortlist = ShortlistOptions::parse(spec.search.shortlist))
    expect_file("shortlist:", shortlist->path);
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
  result.attention = library::public_attention(std::move(output.attention), output.ids.size() + 1);
  return result;
}

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).string();
}

// Calls may run in another current directory.
app::JobInputs absolute_inputs(const app::TranslateSpec& spec) {
  app::JobInputs inputs = app::inputs_of(spec);
  for (std::string& file : inputs.files)
    if (!file.empty()) file = absolute(file);
  for (std::string& model : inputs.models) model = absolute(model);
  return inputs;
}

}  // namespace

namespace library {

std::function<void(std::int64_t)> stop_between_batches(const ShouldStop& stop) {
  if (!stop) return {};
  return [&stop](std::int64_t) {
    if (stop()) fail(ExitStatus::interrupted, "stopped by the caller");
  };
}

Attention public_attention(std::vector<float> weights, std::size_t rows) {
  if (weights.empty()) return {};
  return {static_cast<int>(rows), static_cast<int>(weights.size() / rows), std::move(weights)};
}

}  // namespace library

Translator::Impl::Impl(const app::TranslateSpec& spec)
    : open(spec, "nmt::Translator"),
      inputs(absolute_inputs(spec)),
      shared(std::make_shared<library::SharedModels>()) {
  app::TranslateSpec copy = spec;
  shared->models = open.models();
  // Translators with other options may be made in another current directory.
  for (const std::string& directory : spec.models.models)
    shared->directories.push_back(absolute(directory));
  shared->inputs = inputs.models;
  shared->settings = library::loading_settings(app::fields(copy));
}

Translator::Impl::Impl(const app::TranslateSpec& spec,
                       std::shared_ptr<library::SharedModels> models)
    : open(spec, "nmt::Translator", models->models),
      inputs{absolute_inputs(spec).files, models->inputs},
      shared(std::move(models)) {}

std::vector<Translation> Translator::Impl::translate(std::span<const std::string> lines,
                                                     DocumentContext& document, std::int64_t first,
                                                     const ShouldStop& stop) {
  const std::vector<std::string> texts = library::clean(lines, "translate", first);
  std::vector<ContextSentences> contexts;
  for (const std::string& text : texts) contexts.push_back(document.next(text));
  std::vector<LineTranslation> translated;
  {
    const auto lock = shared->lock_call(stop);
    open.on_batch(library::stop_between_batches(stop));
    translated = open.translator().translate(texts, first, contexts);
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

Translator::Translator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Translator::Translator(const std::string& model, const TranslatorOptions& options)
    : impl_(std::make_unique<Impl>(spec_of({model}, options))) {}
Translator Translator::ensemble(const std::vector<std::string>& models,
                                const TranslatorOptions& options) {
  return Translator(std::make_unique<Impl>(spec_of(models, options)));
}
Translator Translator::with(const TranslatorOptions& options) const {
  app::TranslateSpec spec = spec_of(impl_->shared->directories, options);
  app::TranslateSpec fresh;
  library::adopt_loading_settings(impl_->shared->settings, app::fields(spec),
                                  library::loading_settings(app::fields(fresh)));
  return Translator(std::make_unique<Impl>(spec, impl_->shared));
}
Translator::Translator(Translator&&) noexcept = default;
Translator& Translator::operator=(Translator&&) noexcept = default;
Translator::~Translator() = default;

std::vector<Translation> Translator::translate(const std::vector<std::string>& lines,
                                               const ShouldStop& stop, std::int64_t first) {
  std::vector<Translation> result;
  result.reserve(lines.size());
  const std::span<const std::string> all(lines);
  DocumentContext document = impl_->document();
  for (std::size_t begin = 0; begin < lines.size(); begin += window())
    for (Translation& each :
         impl_->translate(all.subspan(begin, std::min(window(), lines.size() - begin)), document,
                          first + static_cast<std::int64_t>(begin), stop))
      result.push_back(std::move(each));
  return result;
}

Translation Translator::translate_line(const std::string& line) {
  return translate(std::vector<std::string>{line}).front();
}

std::int64_t Translator::translate(const ReadLine& read, const WriteTranslation& write) {
  std::int64_t done = 0;
  DocumentContext document = impl_->document();
  std::vector<std::string> lines;
  for (bool more = true; more;) {
    lines.clear();
    for (std::string line; lines.size() < window() && (more = read(line));)
      lines.push_back(std::move(line));
    for (const Translation& each : impl_->translate(lines, document, done + 1, {})) write(each);
    done += static_cast<std::int64_t>(lines.size());
  }
  return done;
}

std::int64_t Translator::translate_file(const std::string& input, const std::string& output,
                                        const ShouldStop& stop) {
  expect_file("translate_file: input", input);
  expect_file("translate_file: output", output);
  app::LineInput lines(input, {});
  app::JobInputs inputs = impl_->inputs;
  inputs.files.push_back(input);
  app::check_outputs(inputs, {{"output", output}});
  LineWriter writer(output);
  const auto lock = impl_->shared->lock_call(stop);
  impl_->open.on_batch(library::stop_between_batches(stop));
  const std::int64_t done =
      translate_stream(impl_->open.translator(), lines, writer, !lines.is_file());
  writer.commit();
  lines.warn();
  return done;
}

int Translator::context_sentences() const {
  return impl_->open.translator().options().context_sentences;
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
