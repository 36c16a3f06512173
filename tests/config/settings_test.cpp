#include "config/settings.h"

#include "config/fields.h"
#include "config/messages/nearest.h"
#include "text/noise.h"

#include <filesystem>
#include <memory>

#include <gtest/gtest.h>

namespace nmt::config {
namespace {

/// All specs of nmt-train in one place.
struct All {
  ModelSpec model;
  DataSpec data;
  NoiseSpec noise;
  TrainSpec train;
  SearchSpec search;
  ComputeSpec compute;
  Settings settings{"nmt-train", "[OPTIONS] [SOURCE TARGET]", "trains a translation model"};
  All() {
    settings.add(fields(data)).add(fields(model)).add(fields(train)).add(validation_fields(search));
    settings.add(fields(noise)).add(training_fields(compute));
    settings.positionals({"train-sets"});
  }
  explicit All(const std::vector<std::string>& arguments) : All() { settings.read(arguments); }
};

struct Translate {
  SearchSpec search;
  ComputeSpec compute;
  std::string model, input;
  Settings settings{"nmt-translate", "[OPTIONS] [DIR]", "translates"};
  Translate() {
    settings.add(fields(search)).add(decoding_fields(compute));
    settings.add({Option("model", &model, "the model").alias({"m"}),
                  Option("input", &input, "text").alias({"i"}).meta("FILE")});
    settings.positionals({"model", "input"});
  }
  explicit Translate(const std::vector<std::string>& arguments) : Translate() {
    settings.read(arguments);
  }
};

TEST(Settings, WordsAfterDashesAreText) {
  std::string model;
  std::vector<std::string> text;
  const auto read = [&](const std::vector<std::string>& arguments) {
    model.clear(), text.clear();
    Settings settings("nmt-translate", "[MODEL] [-- TEXT...]", "translates");
    settings.add({Option("model", &model, "the model"), Option("text", &text, "lines")});
    settings.positionals({"model"}).after_dashes("text").read(arguments);
  };
  read({"m", "--", "a", "--model", "--", "-x"});
  EXPECT_EQ(model, "m");
  EXPECT_EQ(text, (std::vector<std::string>{"a", "--model", "--", "-x"}));
  read({"--model", "m", "--"});
  EXPECT_EQ(model, "m");
  EXPECT_TRUE(text.empty());
  try {
    read({"m", "stray", "--", "a"});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "'stray': unexpected argument; text follows --");
  }
  try {
    Settings("test", "", "").read({"stray"});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "'stray': unexpected argument; --help lists all options");
  }
}

std::string message(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::usage);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "no error";
}
std::string refused(const std::vector<std::string>& arguments) {
  return message([&] { All all(arguments); });
}
std::string refused_yaml(const std::string& yaml) {
  return message([&] { All().settings.read_yaml(yaml, "c.yml"); });
}

TEST(CommandLine, LongShortAliasesUnderscores) {
  const All all({"-m", "dir", "--dim_emb", "96", "-e", "5", "--lr=0.01", "-b2", "--batch-size",
                 "32", "--beam-size=3", "--valid-freq", "2Ku"});
  EXPECT_EQ(all.train.model, "dir");
  EXPECT_EQ(all.model.dim_emb, 96);
  EXPECT_EQ(all.train.after, "5e");
  EXPECT_EQ(all.train.learn_rate, 0.01);
  EXPECT_EQ(all.data.mini_batch, 32);
  EXPECT_EQ(all.search.beam_size, 3);  // the last one
  EXPECT_EQ(all.train.valid_freq, "2Ku");
}

TEST(CommandLine, FlagsInEveryForm) {
  EXPECT_FALSE(All({"--no-layer-normalization"}).model.layer_normalization);
  EXPECT_FALSE(All({"--layer-normalization=false"}).model.layer_normalization);
  EXPECT_FALSE(All({"--layer-normalization", "false"}).model.layer_normalization);
  EXPECT_TRUE(All({"--bias"}).model.bias);
  EXPECT_TRUE(All({"--bias=yes", "a", "b"}).model.bias);
  EXPECT_TRUE(All({"--no-reload"}).train.overwrite);  // a name of its own, not the negation of one
  EXPECT_EQ(refused({"--bias=maybe"}), "--bias: 'maybe' is not true or false");
  EXPECT_EQ(refused({"--no-bias=true"}),
            "--no-bias: takes no value; give --no-bias or --bias=false");
}

TEST(CommandLine, ListsAndPositionals) {
  const All lists({"--train-sets", "a.en", "a.de", "--lr-decay-start", "3", "2",
                   "--optimizer-params", "0.9", ".98", "1e-8"});
  EXPECT_EQ(lists.data.train_sets, (std::vector<std::string>{"a.en", "a.de"}));
  EXPECT_EQ(lists.train.lr_decay_start, (std::vector<int>{3, 2}));
  EXPECT_EQ(lists.train.optimizer_params, (std::vector<double>{0.9, 0.98, 1e-8}));
  EXPECT_EQ(All({"--seed", "7", "a.en", "a.de"}).data.train_sets,
            (std::vector<std::string>{"a.en", "a.de"}));
  EXPECT_EQ(All({"-t", "a.en", "-t", "a.de"}).data.train_sets,
            (std::vector<std::string>{"a.en", "a.de"}));
  EXPECT_EQ(All({"--src", "a.en", "--tgt", "a.de"}).data.train_sets,
            (std::vector<std::string>{"a.en", "a.de"}));

  const Translate by_name({"-m", "dir", "--", "-hi"});
  EXPECT_EQ(by_name.model, "dir");
  EXPECT_EQ(by_name.input, "-hi");
  const Translate by_place({"dir", "-"});
  EXPECT_EQ(by_place.model, "dir");
  EXPECT_EQ(by_place.input, "-");
  EXPECT_EQ(message([] {
              Translate({"a", "b", "c"});
            }),
            "'c': unexpected argument; --input names a file");
}

TEST(CommandLine, ValuesThatMayBeLeftOut) {
  EXPECT_EQ(Translate({"--normalize"}).search.normalize, 1.0);
  EXPECT_EQ(Translate({"-n", "0.5"}).search.normalize, 0.5);
  const Translate alignment({"--alignment", "dir"});  // "dir" is no kind of alignment: the model
  EXPECT_EQ(alignment.search.alignment, AlignmentKind::word);
  EXPECT_EQ(alignment.model, "dir");
  EXPECT_EQ(All({"--exponential-smoothing"}).train.exponential_smoothing, 1e-4);
  EXPECT_EQ(All({"--keep-best", "3"}).train.keep_best, 3);
}

TEST(CommandLine, UnknownOptionsAllAtOnceWithTheNearestName) {
  EXPECT_EQ(refused({"--dim-enb", "5", "--laern-rate=1", "--xyzzy", "-q"}),
            "unknown options --dim-enb (did you mean --dim-emb?), --laern-rate (did you mean "
            "--learn-rate?), --xyzzy, "
            "-q; --help lists all");
  EXPECT_EQ(refused({"--no-byas"}),
            "unknown option --no-byas (did you mean --no-bias?); --help lists all");
  EXPECT_EQ(refused({"--no-reloda"}),
            "unknown option --no-reloda (did you mean --no-reload?); --help lists all");
  // Boost's own message of an empty value takes for ever to write this name.
  EXPECT_EQ(refused({"--i%option%="}), "unknown option --i%option%; --help lists all");
  EXPECT_EQ(refused({"--byas="}), "unknown option --byas (did you mean --bias?); --help lists all");
}

TEST(CommandLine, WrongValuesNameOptionValueAndWhatWasExpected) {
  EXPECT_EQ(refused({"--beam-size", "four"}),
            "--beam-size: 'four' is not an integer from 1 to 1024");
  EXPECT_EQ(refused({"--beam-size", "2.5"}), "--beam-size: '2.5' is not an integer from 1 to 1024");
  EXPECT_EQ(refused({"-b", "0"}), "-b: '0' is not an integer from 1 to 1024");
  EXPECT_EQ(refused({"--beam-size"}),
            "--beam-size: has no value, expected an integer from 1 to 1024");
  EXPECT_EQ(refused({"--optimizer", "sdg"}),
            "--optimizer: 'sdg' is not one of: adam, adamw, adadelta, adagrad, sgd");
  EXPECT_EQ(refused({"--label-smoothing", "nan"}),
            "--label-smoothing: 'nan' is not a number from 0 to 0.99");
  EXPECT_EQ(refused({"--seed", "0"}), "--seed: '0' is not an integer of at least 1");
  EXPECT_EQ(refused({"--after", "10x"}).substr(0, 13), "--after: '10x");
  EXPECT_EQ(All({"--after-batches", "+1.5K"}).train.after, "+1.5Ku");
  for (const char* wrong : {"3,600", "1e2", "-1", "3e", ""})
    EXPECT_EQ(refused({"--after-epochs", wrong}).substr(0, 16), "--after-epochs: ") << wrong;
  for (const char* wrong : {"gpu", "cuda:", "cuda:-1", "cuda:1x", "", "cpu:0"})
    EXPECT_EQ(refused({"--device", wrong}),
              fmt::format("--device: '{}' is not cpu, cuda, cuda:N or auto", wrong));
}

TEST(Shorthands, UnitSetsBothCellsUnlessTheyAreSet) {
  const All both({"--unit", "gru"});
  EXPECT_EQ(both.model.enc_cell, "gru");
  EXPECT_EQ(both.model.dec_cell, "gru");
  const All one({"--dec-cell", "lstm", "--cell", "gru"});
  EXPECT_EQ(one.model.enc_cell, "gru");
  EXPECT_EQ(one.model.dec_cell, "lstm");
  All later;  // the command line wins over a file, also through a shorthand
  later.settings.read_yaml("enc-cell: lstm\ndropout: 0.3\n", "c.yml");
  later.settings.read({"--unit", "olrn", "--dropout-emb", "0.1"});
  EXPECT_EQ(later.model.enc_cell, "olrn");
  EXPECT_EQ(later.model.dropout_emb, 0.1);
  EXPECT_EQ(later.model.dropout_rnn, 0.3);
  EXPECT_EQ(refused({"-e", "3", "-a", "5e"}), "-e and -a set the same option; give one of them");
}

TEST(Shorthands, TheCommandLineWinsOverFilesWhicheverNameIsUsed) {
  const auto read = [](const std::vector<std::string>& files,
                       const std::vector<std::string>& arguments) {
    auto all = std::make_unique<All>();
    for (const std::string& file : files) all->settings.read_yaml(file, "c.yml");
    all->settings.read(arguments);
    return all;
  };
  using Files = std::vector<std::string>;
  const std::string both = "src: u.en\ntgt: u.de\n";
  EXPECT_EQ(read({both}, {"-t", "a.en", "a.de"})->data.train_sets, (Files{"a.en", "a.de"}));
  EXPECT_EQ(read({both}, {"a.en", "a.de"})->data.train_sets, (Files{"a.en", "a.de"}));
  EXPECT_EQ(read({both, "train-sets: [b.en, b.de]"}, {})->data.train_sets, (Files{"b.en", "b.de"}));
  EXPECT_EQ(read({"train-sets: [b.en, b.de]", both}, {})->data.train_sets, (Files{"u.en", "u.de"}));
  EXPECT_EQ(read({"train-sets: [b.en, b.de]"}, {"--src", "a.en"})->data.train_sets,
            (Files{"a.en", "b.de"}));
  EXPECT_EQ(read({"src: u.en"}, {"--tgt", "a.de"})->data.train_sets, (Files{"u.en", "a.de"}));
  EXPECT_EQ(read({"tgt: u.de"}, {"--src", "a.en"})->data.train_sets, (Files{"a.en", "u.de"}));
  EXPECT_EQ(refused({"a.en", "a.de", "--src", "b.en"}),
            "--src and train-sets set the same option; give one of them");

  EXPECT_EQ(read({"after-epochs: 10"}, {"--after", "20e"})->train.after, "20e");
  EXPECT_EQ(read({"after: 10e"}, {"--after-epochs", "20"})->train.after, "20e");
  EXPECT_EQ(read({"after-batches: 10"}, {"--after-epochs", "20"})->train.after, "20e");
  EXPECT_EQ(read({"after-epochs: 10"}, {"--after-batches", "20"})->train.after, "20u");
  EXPECT_EQ(refused({"--after-epochs", "10", "--after-batches", "20"}),
            "--after-batches and --after-epochs set the same option; give one of them");

  const auto dropped = read({"dropout: 0.3"}, {"--dropout-rnn", "auto"});
  EXPECT_EQ(dropped->model.dropout_emb, 0.3);
  EXPECT_EQ(dropped->model.dropout_rnn, -1.0);
  EXPECT_FALSE(dropped->settings.is_set("dropout-rnn"));
  EXPECT_EQ(read({"dropout-rnn: auto"}, {"--dropout", "0.3"})->model.dropout_rnn, 0.3);
}

TEST(Shorthands, SayWhatTheyExpect) {
  EXPECT_EQ(refused({"--dropout", "2"}), "--dropout: '2' is not a number from 0 to 0.99");
  EXPECT_EQ(refused({"--dropout"}), "--dropout: has no value, expected a number from 0 to 0.99");
  All all;
  all.settings.allow("unit", {"lrn", "gru"}).allow("enc-cell", {"lrn", "gru"});
  EXPECT_EQ(message([&] {
              all.settings.read({"--unit", "grou"});
            }),
            "--unit: 'grou' is not one of: lrn, gru");
}

TEST(Shorthands, OneNameSetsEverySpecThatHasIt) {
  const All all({"--seed", "99"});
  EXPECT_EQ(all.data.seed, 99u);
  EXPECT_EQ(all.train.seed, 99u);
}

TEST(Yaml, KebabAndSnakeLaterFilesAndCommandLineWin) {
  All all;
  all.settings.read_yaml("dim-emb: 64\ndim_rnn: 128\ntrain-sets: [a, b]\nbias: yes\nafter: 3e\n",
                         "a.yml");
  all.settings.read_yaml("dim-emb: 96\n", "b.yml");
  all.settings.read({"--dim-rnn", "256"});
  EXPECT_EQ(all.model.dim_emb, 96);
  EXPECT_EQ(all.model.dim_rnn, 256);
  EXPECT_TRUE(all.model.bias);
  EXPECT_EQ(all.data.train_sets.size(), 2u);
  EXPECT_EQ(all.settings.level("bias"), 1);
  EXPECT_EQ(all.settings.level("dim-emb"), 2);
  EXPECT_EQ(all.settings.level("dim-rnn"), 3);
  EXPECT_FALSE(all.settings.is_set("heads"));
}

TEST(Yaml, UnknownKeysAllAtOnce) {
  EXPECT_EQ(refused_yaml("dim-enb: 5\nbias: true\n  \nlaern_rate: 1\n"),
            "c.yml: unknown settings 'dim-enb' (line 1; did you mean dim-emb?), 'laern_rate' (line "
            "4; did you mean "
            "learn-rate?)");
  EXPECT_EQ(refused_yaml("help: true\n"), "c.yml: unknown setting 'help' (line 1)");
}

TEST(Yaml, WrongTypesNameFileAndLine) {
  EXPECT_EQ(refused_yaml("bias: true\nheads: many\n"),
            "c.yml:2: heads: 'many' is not an integer from 1 to 1024");
  EXPECT_EQ(refused_yaml("heads: [1, 2]\n"),
            "c.yml:1: heads: a list is not an integer from 1 to 1024");
  EXPECT_EQ(refused_yaml("heads: {a: 1}\n"),
            "c.yml:1: heads: a map is not an integer from 1 to 1024");
  EXPECT_EQ(refused_yaml("heads:\n"),
            "c.yml:1: heads: has no value, expected an integer from 1 to 1024");
  EXPECT_EQ(refused_yaml("bias: 2\n"), "c.yml:1: bias: '2' is not true or false");
  EXPECT_EQ(refused_yaml("lr-decay-start: [1, x]\n"),
            "c.yml:1: lr-decay-start: 'x' is not an integer of at least 1");
  EXPECT_EQ(refused_yaml("heads: 1\nheads: 2\n"), "c.yml:2: heads: given twice in this file");
  EXPECT_EQ(refused_yaml("- a\n"), "c.yml: not a list of settings 'name: value'");
  EXPECT_EQ(refused_yaml("heads: 1\n---\nheads: 2\n"), "c.yml: more than one YAML document");
  EXPECT_EQ(refused_yaml("heads: [1\n"), "c.yml:1: not YAML: a quotation or bracket is not closed");
  for (const char* open : {"vocabs: \"a\nheads: 2\n", "vocabs: 'a\nheads: 2\n"})
    EXPECT_EQ(refused_yaml(open), "c.yml:2: not YAML: a quotation or bracket is not closed");
  EXPECT_EQ(refused_yaml("a: 1\n-9]\nb: [c, {d: e").substr(0, 6),
            "c.yml:");  // yaml-cpp 0.7 reads documents from it for ever
  for (const char* text : {"type: deep\n\tunit: gru\n", "vocabs:\n \t- a.spm\n"})
    EXPECT_EQ(refused_yaml(text), "c.yml:2: not YAML: indented by a tab; indent by spaces");
  EXPECT_EQ(refused_yaml(std::string(5000, '[')).substr(0, 18), "c.yml:1: not YAML:");
}

TEST(LengthRules, TheLaterGivenWinsAndBothAreRefused) {
  const auto rules = [](const std::string& yaml, const std::vector<std::string>& arguments) {
    Translate t;
    t.settings.read_yaml(yaml, "c.yml");
    t.settings.read(arguments);
    check(t.search);
    return std::pair(t.search.normalize, t.search.length_penalty);
  };
  EXPECT_EQ(rules("", {}), std::pair(0.0, 0.6));
  EXPECT_EQ(rules("", {"--normalize", "0.7"}), std::pair(0.7, 0.0));
  EXPECT_EQ(rules("", {"--normalize", "0"}), std::pair(0.0, 0.0));
  EXPECT_EQ(rules("length-penalty: 1", {"--normalize", "0.7"}), std::pair(0.7, 0.0));
  EXPECT_EQ(rules("normalize: 0.7", {"--length-penalty", "1"}), std::pair(0.0, 1.0));
  EXPECT_EQ(rules("normalize: 0.7", {"--length-penalty", "0"}), std::pair(0.7, 0.0));
  EXPECT_EQ(rules("length-penalty: 1", {"--normalize", "0"}), std::pair(0.0, 1.0));
  EXPECT_EQ(message([&] {
              rules("", {"--normalize", "1", "--length-penalty", "1"});
            }),
            "normalize 1 and length-penalty 1 exclude each other; give one of them");
}

TEST(Dump, ReadsBackToTheSame) {
  const All given({"--unit",        "gru",
                   "--train-sets",  "a b.en",
                   "x: \"y\".de",   "--after",
                   "10e,1Gt",       "--normalize",
                   "0.6",           "--learn-rate",
                   "0.0003",        "--dropout",
                   "0.25",          "--valid-metrics",
                   "chrf",          "--optimizer-params",
                   "0.9",           "0.999",
                   "--max-minutes", "1e-7"});
  All full;
  full.settings.read_yaml(given.settings.yaml(true), "dump.yml");
  full.settings.read({});
  EXPECT_EQ(full.settings.yaml(true), given.settings.yaml(true));
  EXPECT_EQ(full.data.train_sets, given.data.train_sets);
  EXPECT_EQ(full.train.learn_rate, 0.0003);
  EXPECT_EQ(full.train.max_minutes, 1e-7);
  EXPECT_EQ(full.model.dec_cell, "gru");
  EXPECT_EQ(full.model.dim_emb, 0);  // "auto" stays to be chosen
  EXPECT_FALSE(full.settings.is_set("dim-emb"));
  EXPECT_EQ(full.search.length_penalty, 0.0);
  All minimal;
  minimal.settings.read_yaml(given.settings.yaml(false), "dump.yml");
  minimal.settings.read({});
  EXPECT_EQ(minimal.settings.yaml(true), given.settings.yaml(true));
  EXPECT_LT(given.settings.yaml(false).size(), 600u);
}

TEST(Dump, IsAskedFor) {
  EXPECT_EQ(All({"--dump-config"}).settings.asks_dump(), "full");
  EXPECT_EQ(All({"--dump-config", "minimal"}).settings.asks_dump(), "minimal");
  EXPECT_EQ(All({"--quiet"}).settings.log_level(), "warn");
  EXPECT_EQ(All({"--quiet", "--log-level", "error"}).settings.log_level(), "error");
  EXPECT_NE(All({"--quiet"}).settings.yaml(false).find("log-level: warn"), std::string::npos);
}

TEST(Configs, EveryShippedFileIsUnderstood) {
  const auto folder = std::filesystem::path(NMT_SOURCE_DIR) / "configs";
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const All all({"--config", entry.path().string(), "--train-sets", "a", "b"});
    check(all.data);
    check(all.model, all.data);
    check(all.search);
    ++files;
  }
  EXPECT_GE(files, 13);
}

TEST(Help, NamesEveryOptionWithDefaultAndMeaning) {
  const All all({"--beam-size", "7"});
  const std::string help = all.settings.help();
  for (const std::string& name : all.settings.names())
    EXPECT_NE(help.find("--" + name), std::string::npos) << name;
  EXPECT_NE(help.find("-b --beam-size, --beam N"), std::string::npos) << help;
  std::string flat;  // without line breaks
  for (const char c : help)
    if (c != '\n' && (c != ' ' || flat.empty() || flat.back() != ' ')) flat += c;
  EXPECT_NE(flat.find("greedy search (from 1 to 1024; default: 4)"), std::string::npos) << help;
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = help.find('\n', at);
    EXPECT_LE(end - at, 110u) << help.substr(at, end - at);
    at = end + 1;
  }
}

TEST(Specs, ContradictionsAreNamed) {
  const auto data = [](const std::vector<std::string>& arguments) {
    return message([&] {
      const All all(arguments);
      check(all.data);
      check(all.model, all.data);
    });
  };
  EXPECT_EQ(data({"--train-sets", "a"}),
            "train-sets: 1 file given, expected two: source and target");
  EXPECT_EQ(data({"--tgt", "a"}), "train-sets: no source file given");
  EXPECT_EQ(
      data({"--dim-vocabs", "8000", "4000"}),
      "dim-vocabs: 8000 and 4000 for one joint vocabulary; give one size, or joint-vocab=false");
  EXPECT_EQ(data({"--tied-embeddings-all", "--no-joint-vocab"}),
            "tied-embeddings-all: needs one vocabulary for both sides, but joint-vocab is false");
  EXPECT_EQ(data({"--tied-embeddings-src", "--vocabs", "a.spm", "b.spm"}),
            "tied-embeddings-src: needs one vocabulary for both sides, but vocabs names two");
  EXPECT_EQ(data({"--tied-embeddings-all", "--vocabs", "a.spm"}), "no error");
}

TEST(WithoutEffect, IsToldBySource) {
  All all({"--groups", "1", "--no-rearrange", "--dense-first-decoder-layer", "--beam-size", "7"});
  EXPECT_EQ(all.settings.without_effect(true), "dense-first-decoder-layer (groups is 1)");
  EXPECT_EQ(all.settings.without_effect(false), "");
  EXPECT_TRUE(all.settings.is_typed("beam-size"));
  EXPECT_FALSE(all.settings.is_typed("normalize"));
  EXPECT_EQ(All({"--rearrange", "--groups", "2"}).settings.without_effect(true), "");

  All file;
  file.settings.read_yaml("rearrange: true\ndropout: 0.5\n", "c.yml");
  file.settings.read({"--bias"});
  EXPECT_EQ(file.settings.without_effect(false), "c.yml:1: rearrange (groups is 1)");
  EXPECT_EQ(file.settings.without_effect(true), "bias (layer-normalization has one)");
  EXPECT_TRUE(file.settings.is_by_shorthand("dropout-rnn"));
  EXPECT_FALSE(file.settings.is_by_shorthand("dropout"));
  EXPECT_FALSE(
      All({"--dropout-rnn", "0.5", "--dropout", "0.1"}).settings.is_by_shorthand("dropout-rnn"));
}

TEST(Yaml, LaterErrorsNameFileAndLine) {
  All all;
  all.settings.read_yaml("\nheads: 3\nnormalize: 1\nunit: gru\n", "c.yml");
  all.settings.read({"--dim-emb", "7", "--beam-size", "2"});
  EXPECT_EQ(all.settings.with_source("heads: 3 must divide 8"), "c.yml:2: heads: 3 must divide 8");
  EXPECT_EQ(all.settings.with_source("normalize 1 and length-penalty 2 exclude each other"),
            "c.yml:3: normalize 1 and length-penalty 2 exclude each other");
  EXPECT_EQ(all.settings.with_source("enc-cell: x"), "c.yml:4: unit: x");
  for (const char* message : {"dim-emb: 7 is odd", "dim-rnn: not set", "nothing", "", ": heads"})
    EXPECT_EQ(all.settings.with_source(message), message);
  // Neither an alias nor the name of a file is the name of an option.
  all.settings.read_yaml("beam-size: 3\nafter: 1e\n", "c.yml");
  EXPECT_EQ(all.settings.with_source("b: cannot be opened"), "b: cannot be opened");
  EXPECT_EQ(all.settings.with_source("after: is wrong"), "c.yml:2: after: is wrong");
  all.settings.read({"--train-sets", "after"});
  EXPECT_EQ(all.settings.with_source("after: cannot be opened"), "after: cannot be opened");

  const auto unnamed = [](const std::string& text) {
    return message([&] { All().settings.read_yaml(text, ""); });
  };
  EXPECT_EQ(unnamed("beam-size: 0"), "beam-size: '0' is not an integer from 1 to 1024");
  EXPECT_EQ(unnamed("beam-siz: 0"), "unknown setting 'beam-siz' (did you mean beam-size?)");
}

TEST(Nearest, EditDistanceWithSwaps) {
  EXPECT_EQ(nearest("laern-rate", {"learn-rate", "lr-warmup"}), "learn-rate");
  EXPECT_EQ(nearest("zzzzzzzz", {"learn-rate"}), "");
  EXPECT_EQ(nearest("", {"learn-rate"}), "");
  EXPECT_EQ(nearest("b", {"lm"}), "");
  EXPECT_EQ(nearest("uit", {"unit"}), "unit");
}

}  // namespace
}  // namespace nmt::config
