// nmt-explain: what a model does inside while it translates, as one HTML page.

#include "app/common_options.h"
#include "app/compute.h"
#include "app/explain/explanation.h"
#include "app/page.h"
#include "app/program.h"
#include "config/fields.h"
#include "core/log.h"
#include "text/lines.h"

#include <optional>

#include <nlohmann/json.hpp>

namespace nmt::app {
namespace {

// Pages of longer sentences are hard to read.
SearchSpec explained_search() {
  SearchSpec search;
  search.max_length = 100;
  return search;
}

struct Request {
  std::string model, input, output, json, gates;
  std::vector<std::string> text;  // given on the command line, in place of an input
  int sentences = 50;
  SearchSpec search = explained_search();
  ComputeSpec compute;
};

std::vector<std::string> read_lines(const Request& request) {
  std::vector<std::string> lines;
  if (!request.text.empty()) {
    if (!request.input.empty())
      fail(ExitStatus::usage, "input is '{}' and text is given too: give one of them",
           request.input);
    for (const std::string& text : request.text) {
      const std::vector<std::string> parts = split_lines(text);
      lines.insert(lines.end(), parts.begin(), parts.end());
    }
  } else {
    LineReader reader = LineReader::open(request.input);
    for (std::string line; reader.next(line);) lines.push_back(line);
    reader.notes().warn(reader.name());
  }
  if (lines.empty())
    fail(ExitStatus::data, "the input holds no line; one sentence a line was expected");
  const auto most = static_cast<std::size_t>(request.sentences);
  if (lines.size() > most) {
    log::warn("only the first {} of {} lines are shown (--sentences)", most, lines.size());
    lines.resize(most);
  }
  return lines;
}

ExitStatus explain(const Request& request) {
  if (request.model.empty()) fail(ExitStatus::usage, "no model: say which with -m DIR");
  Compute compute(request.compute);
  log::info("{}", compute.describe("nmt-explain"));
  const std::unique_ptr<Arena> arena = compute.new_arena();
  const Context context = compute.context(*arena);
  const std::unique_ptr<LoadedModel> model = LoadedModel::load(request.model, context);
  const std::vector<std::string> lines = read_lines(request);
  PageOutput output(request.output, request.json);

  BatchTranslator translator(model->scorer(), model->source_vocabulary(),
                             model->target_vocabulary(),
                             translator_options(request.search, context.cpu));
  Explanation explanation(*model, translator, request.model, !request.gates.empty());
  for (std::size_t i = 0; i < lines.size(); ++i)
    explanation.add(lines[i], static_cast<std::int64_t>(i) + 1);

  const nlohmann::ordered_json json = explanation.json();
  if (!request.gates.empty()) explanation.save_gates(request.gates);
  output.write(make_page("explain.html", json), json);
  return ExitStatus::ok;
}

}  // namespace
}  // namespace nmt::app

int main(int argc, char** argv) {
  using nmt::config::Option;
  nmt::app::Request r;
  nmt::config::Settings settings(
      "nmt-explain", "[OPTIONS] [MODEL] [-- TEXT...]",
      "shows attention, gates and memory of a model that translates, as one HTML page");
  settings
      .add(nmt::config::in_group(
          "files",
          {Option("model", &r.model, "the model directory").alias({"m"}).meta("DIR"),
           Option("input", &r.input,
                  "what to translate, a sentence a line; standard input when not given")
               .alias({"i"})
               .meta("FILE"),
           nmt::app::output_option(&r.output, "the page goes"),
           Option("text", &r.text, "lines to translate, in place of an input")
               .meta("TEXT")
               .never_dumped(),
           Option("json", &r.json, "writes the page's numbers there too").meta("FILE"),
           Option("gates", &r.gates, "writes every gate of every channel there, as safetensors")
               .meta("FILE"),
           Option("sentences", &r.sentences, "show so many lines at most").range(1, 10000)}))
      .add(nmt::config::only({"beam-size", "length-penalty", "max-length"},
                             nmt::config::fields(r.search, nmt::app::explained_search())))
      .add(nmt::config::only({"cpu-threads", "device"}, nmt::config::fields(r.compute)))
      .positionals({"model", "text"});
  return nmt::app::run_tool(argc, argv, settings, [&] {
    if (nmt::app::dump_if_asked(settings)) return nmt::ExitStatus::ok;
    return nmt::app::explain(r);
  });
}
