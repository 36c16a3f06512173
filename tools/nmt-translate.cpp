// nmt-translate: text to text by a trained model.

#include "app/ensemble.h"
#include "app/program.h"
#include "app/progress.h"
#include "config/fields.h"
#include "config/settings.h"
#include "core/log.h"
#include "search/stream.h"
#include "search/translator.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nmt::app {
namespace {

struct Request {
  EnsembleRequest models;
  std::string input, output;
  std::vector<std::string> text;  // given on the command line, in place of an input
  bool pieces_in = false, pieces_out = false;
};

/// What is to be translated: the lines of a file, of a pipe, or of the command line.
class Input : public LineSource {
 public:
  explicit Input(const Request& request) {
    if (request.text.empty()) {
      reader_.emplace(LineReader::open(request.input));
      return;
    }
    if (!request.input.empty())
      fail(ExitStatus::usage, "input is '{}' and text is given too: give one of them",
           request.input);
    for (const std::string& text : request.text) {
      std::vector<std::string> lines = split_lines(text);
      if (lines.empty()) lines.emplace_back();
      given_.insert(given_.end(), lines.begin(), lines.end());
    }
  }
  bool next(std::string& line) override {
    if (reader_ ? !reader_->next(line) : lines_ == static_cast<std::int64_t>(given_.size()))
      return false;
    if (!reader_) line = given_[static_cast<std::size_t>(lines_)];
    ++lines_;
    bytes_ += static_cast<std::int64_t>(line.size()) + 1;
    return true;
  }
  bool ready() override { return !reader_ || reader_->available(); }

  bool is_file() const { return reader_ && reader_->is_regular_file(); }
  std::int64_t lines() const { return lines_; }
  std::int64_t bytes() const { return bytes_; }
  void warn() const {
    if (reader_) reader_->notes().warn(reader_->name());
  }

 private:
  std::optional<LineReader> reader_;
  std::vector<std::string> given_;
  std::int64_t lines_ = 0, bytes_ = 0;
};

void translate(const Request& request, const SearchSpec& spec) {
  Input input(request);
  LineWriter writer(request.output);
  Inference inference("nmt-translate", request.models, spec, request.pieces_in);
  LoadedEnsemble& models = inference.models;
  const Cpu cpu = inference.compute.cpu();
  TranslatorOptions options = translator_options(spec, cpu);
  options.pieces_in = request.pieces_in;
  options.pieces_out = request.pieces_out;
  options.tell_repetitions = true;
  std::optional<Shortlist> shortlist;
  if (!spec.shortlist.empty()) {
    shortlist = Shortlist::load(ShortlistOptions::parse(spec.shortlist), models.source_vocabulary(),
                                models.target_vocabulary());
    log::info("shortlist {}: {} translations of source pieces", spec.shortlist.front(),
              shortlist->size());
    options.search.shortlist = &*shortlist;
  }

  ProgressLine progress(request.input);
  std::int64_t done = 0;
  options.on_batch = [&](std::int64_t sentences) {
    done += sentences;
    if (input.is_file()) progress.show(input.lines(), input.bytes(), done);
  };
  Translator translator(models.scorer(), models.source_vocabulary(), models.target_vocabulary(),
                        options);
  const std::int64_t lines = translate_stream(translator, input, writer, !input.is_file());
  writer.commit();
  input.warn();
  const Translator::Statistics& statistics = translator.statistics();
  if (statistics.cropped > 1)
    log::warn("{} lines were longer than {} tokens and cropped (--max-length)", statistics.cropped,
              spec.max_length);
  if (statistics.repeating > 1)
    log::warn("{} lines' translations repeat something {} times in a row or more",
              statistics.repeating, repetitions_told);
  const double seconds = progress.seconds();
  log::info(
      "{} lines in {:.2f} s ({:.3f} s of processor time): {:.1f} sentences/s, {:.0f} source and "
      "{:.0f} target tokens/s",
      lines, seconds, progress.processor_seconds(),
      static_cast<double>(statistics.sentences) / seconds,
      static_cast<double>(statistics.source_tokens) / seconds,
      static_cast<double>(statistics.target_tokens) / seconds);
  if (inference.compute.cuda()) log::info("{}", inference.compute.memory_used(*inference.arena));
}

}  // namespace
}  // namespace nmt::app

int main(int argc, char** argv) {
  using nmt::config::Option;
  nmt::app::Request request;
  nmt::SearchSpec search;
  nmt::config::Settings settings(
      "nmt-translate", "[OPTIONS] [MODEL] [-- TEXT...]",
      "translates lines of text, from a file, standard input or the command line");
  settings.add(nmt::app::fields(request.models))
      .add(nmt::config::in_group(
          "files",
          {Option("input", &request.input, "what to translate; standard input when not given")
               .alias({"i"})
               .meta("FILE"),
           nmt::app::output_option(&request.output, "translations go, written whole or not at all"),
           Option("text", &request.text, "lines to translate, in place of an input")
               .meta("TEXT")
               .never_dumped(),
           Option("no-spm-encode", &request.pieces_in,
                  "the input is in pieces of the vocabulary already"),
           Option("no-spm-decode", &request.pieces_out,
                  "leave translations in pieces of the vocabulary")}))
      .add(nmt::config::fields(search))
      .positionals({"model", "text"});
  return nmt::app::run_tool(argc, argv, settings, [&] {
    nmt::config::check(search);
    if (nmt::app::dump_if_asked(settings)) return nmt::ExitStatus::ok;
    if (request.models.models.empty())
      nmt::fail(nmt::ExitStatus::usage, "no model: say which with -m DIR");
    nmt::app::translate(request, search);
    return nmt::ExitStatus::ok;
  });
}
