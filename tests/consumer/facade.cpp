// What the programs print, by the library alone: facade translate|score|bleu|info|errors MODEL ...

#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <nmt/nmt.h>

namespace {

std::vector<std::string> read_lines(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void print_alignment(const std::vector<nmt::AlignmentLink>& links) {
  const char* space = "";
  for (const nmt::AlignmentLink& link : links) {
    std::printf("%s%d-%d", space, link.source, link.target);
    space = " ";
  }
}

void print_output(std::size_t id, const nmt::Translation& output) {
  std::printf("%zu ||| %s ||| ", id, output.text.c_str());
  print_alignment(output.alignment);
  std::printf(" ||| F0= %.6f ||| %.6f\n", output.log_prob, output.score);
}

/// An n-best list of two models with word alignments, as nmt-translate prints it.
void translate(const char* model, const char* other, const char* input) {
  nmt::TranslatorOptions options;
  options.n_best = true;
  options.beam_size = 3;
  options.alignment = "word";
  options.cpu_threads = 1;
  options.weights = {0.75, 0.25};
  options.settings = {{"max-length-offset", "5"}};
  const nmt::Translator loaded =
      nmt::Translator::ensemble({model, other}, {.cpu_threads = 1, .weights = {0.75, 0.25}});
  nmt::Translator translator = loaded.with(options);
  const std::vector<nmt::Translation> results = translator.translate(read_lines(input));
  for (std::size_t i = 0; i < results.size(); ++i) {
    print_output(i, results[i]);
    for (const nmt::Translation& each : results[i].alternatives) print_output(i, each);
  }
}

void score(const char* model, const char* source, const char* target) {
  nmt::Scorer scorer(model, {.alignment = "subword", .cpu_threads = 1});
  for (const nmt::PairProbability& pair : scorer.score(read_lines(source), read_lines(target))) {
    std::printf("%.6f ||| ", pair.score);
    print_alignment(pair.alignment);
    std::printf("\n");
  }
}

void measure(const char* hypotheses, const char* references) {
  const nmt::Sentences system = read_lines(hypotheses), reference = read_lines(references);
  std::printf("%.4f\n%.4f\n%s\n", nmt::bleu(system, {reference}).score,
              nmt::chrf(system, {reference}), nmt::signature(nmt::BleuOptions{}, 1).c_str());
  for (const nmt::PairedResult& result : nmt::compare_bleu({system, reference}, {reference}))
    std::printf("%.4f %.4f\n", result.score, result.p_value);
}

void describe(const char* model) {
  const nmt::ModelInfo info = nmt::model_info(model);
  nmt::Translator translator(model);
  const nmt::Vocabulary& vocabulary = translator.source_vocabulary();
  const std::string text = vocabulary.decode(vocabulary.encode("the dog"));
  std::printf("%s %s %d %lld %d %s\n", info.type.c_str(), info.encoder_unit.c_str(), info.dim_rnn,
              static_cast<long long>(info.parameters), vocabulary.size(), text.c_str());
}

/// Prints the status of each call that must fail.
void fail(const char* model) {
  const auto status = [](auto call) {
    try {
      call();
      std::puts("nothing was thrown");
    } catch (const nmt::Error& error) {
      std::printf("%d %s\n", static_cast<int>(error.status()), error.what());
    }
  };
  status([&] { nmt::Translator("no-such-model"); });
  status([&] { nmt::Translator(model, {.beam_size = 0}); });
  status([&] { nmt::Translator(model, {.settings = {{"beam-sise", "3"}}}); });
  status([&] { nmt::Translator(model, {.settings = {{"input", "file"}}}); });
  status([&] { nmt::Translator(model, {.beam_size = 3, .settings = {{"beam-size", "3"}}}); });
  status([&] { nmt::Translator(model).translate({"two\nlines"}); });
  status([&] { nmt::Scorer(model).score({"one"}, {}); });
  status([&] { nmt::bleu({"a"}, {{"a", "b"}}); });
  status([&] { nmt::train_model({.train_sets = {"missing.a", "missing.b"}}); });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string task = argc > 1 ? argv[1] : "";
  if (task == "translate" && argc == 5)
    translate(argv[2], argv[3], argv[4]);
  else if (task == "score" && argc == 5)
    score(argv[2], argv[3], argv[4]);
  else if (task == "metrics" && argc == 4)
    measure(argv[2], argv[3]);
  else if (task == "info" && argc == 3)
    describe(argv[2]);
  else if (task == "errors" && argc == 3)
    fail(argv[2]);
  else
    std::puts(nmt::version());
}
