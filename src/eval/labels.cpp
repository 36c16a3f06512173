#include "eval/labels.h"

#include "core/error.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

namespace nmt {
namespace {

// O, or B, I, E, S and a type.
struct SpanLabel {
  char position = 'O';
  std::string_view type;
};

SpanLabel parse(std::string_view label) {
  if (label.size() < 2 || label[1] != '-') return {label.empty() ? 'O' : label[0], {}};
  char position = label[0];
  if (position == 'M') position = 'I';
  if (position == 'L') position = 'E';
  if (position == 'U') position = 'S';
  return {position, label.substr(2)};
}

bool begins(const SpanLabel& before, const SpanLabel& label) {
  if (label.position == 'O') return false;
  return label.position == 'B' || label.position == 'S' || before.position == 'O' ||
         before.position == 'E' || before.position == 'S' || before.type != label.type;
}

std::vector<std::string> labels_of(const std::string& line) {
  std::vector<std::string> labels;
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    if (end > begin) labels.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return labels;
}

// The labels of both lines, of which there are equally many.
struct Pair {
  std::vector<std::string> hypothesis, reference;
  Pair(const std::string& h, const std::vector<std::string>& r)
      : hypothesis(labels_of(h)), reference(labels_of(r.at(0))) {
    if (hypothesis.size() != reference.size())
      fail(ExitStatus::data, "a line has {} labels, its reference has {}: \"{}\"",
           hypothesis.size(), reference.size(), r[0].substr(0, 60));
  }
};

std::string label_signature(const std::string& trials) {
  return fmt::format("nrefs:1|{}version:nmt-{}", trials, NMT_VERSION);
}

// Row: correct labels, labels.
class Accuracy : public Metric {
 public:
  explicit Accuracy(bool errors) : errors_(errors) {}
  std::string name() const override { return errors_ ? "error rate" : "accuracy"; }
  std::string signature(int, const std::string& trials) const override {
    return label_signature(trials);
  }
  std::string verbose(const std::vector<std::int64_t>& sum) const override {
    return fmt::format("({} of {})", errors_ ? sum[1] - sum[0] : sum[0], sum[1]);
  }
  std::vector<std::int64_t> row(const std::string& hypothesis,
                                const std::vector<std::string>& references) const override {
    const Pair pair(hypothesis, references);
    std::int64_t correct = 0;
    for (std::size_t i = 0; i < pair.reference.size(); ++i)
      correct += pair.hypothesis[i] == pair.reference[i];
    return {correct, static_cast<std::int64_t>(pair.reference.size())};
  }
  double score(const std::vector<std::int64_t>& sum) const override {
    return percent(static_cast<double>(sum[0]), static_cast<double>(sum[1]));
  }
  SampleScore score_of_floats(const std::vector<float>& sum) const override {
    return {percent(sum[0], sum[1]), false};
  }

 private:
  double percent(double correct, double all) const {
    if (all == 0) return 0;
    return 100 * (errors_ ? all - correct : correct) / all;
  }
  bool errors_;
};

// Row: correct spans, spans of the hypothesis, spans of the reference.
class SpanF1 : public Metric {
 public:
  std::string name() const override { return "span F1"; }
  std::string signature(int, const std::string& trials) const override {
    return label_signature(trials);
  }
  std::string verbose(const std::vector<std::int64_t>& sum) const override {
    const auto percent = [](std::int64_t part, std::int64_t all) {
      return all == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(all);
    };
    return fmt::format("(P = {:.2f} R = {:.2f} spans = {})", percent(sum[0], sum[1]),
                       percent(sum[0], sum[2]), sum[2]);
  }
  std::vector<std::int64_t> row(const std::string& hypothesis,
                                const std::vector<std::string>& references) const override {
    const Pair pair(hypothesis, references);
    const auto mine = spans_of(pair.hypothesis), other = spans_of(pair.reference);
    std::vector<LabelSpan> both;
    std::set_intersection(mine.begin(), mine.end(), other.begin(), other.end(),
                          std::back_inserter(both));
    return {std::ssize(both), std::ssize(mine), std::ssize(other)};
  }
  double score(const std::vector<std::int64_t>& sum) const override {
    return f1(static_cast<double>(sum[0]), static_cast<double>(sum[1] + sum[2]));
  }
  SampleScore score_of_floats(const std::vector<float>& sum) const override {
    return {f1(sum[0], static_cast<double>(sum[1]) + static_cast<double>(sum[2])), false};
  }

 private:
  static double f1(double correct, double spans) { return spans == 0 ? 0 : 200 * correct / spans; }
};

}  // namespace

bool are_span_labels(std::span<const std::string> labels) {
  constexpr std::string_view positions = "BIESMLU";
  bool any = false;
  for (const std::string& label : labels) {
    if (label == "O") continue;
    if (label.size() < 3 || label[1] != '-' || positions.find(label[0]) == std::string_view::npos)
      return false;
    any = true;
  }
  return any;
}

std::vector<LabelSpan> spans_of(std::span<const std::string> labels) {
  std::vector<LabelSpan> spans;
  SpanLabel before;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const SpanLabel label = parse(labels[i]);
    const auto at = static_cast<std::int64_t>(i);
    if (begins(before, label))
      spans.push_back({at, at + 1, std::string(label.type)});
    else if (label.position != 'O')
      spans.back().end = at + 1;
    before = label;
  }
  return spans;
}

std::vector<UnknownLabel> unknown_labels(std::span<const std::string> known,
                                         std::span<const std::string> lines, bool exact) {
  const bool are_spans = !exact && are_span_labels(known);
  const auto compared = [are_spans](const std::string& label) {
    return are_spans && label != "O" ? std::string(parse(label).type) : label;
  };
  std::set<std::string> expected{are_spans ? "O" : ""};
  for (const std::string& label : known) expected.insert(compared(label));
  std::map<std::string, std::int64_t> counts;
  for (const std::string& line : lines)
    for (const std::string& label : labels_of(line))
      if (!expected.contains(compared(label))) ++counts[label];
  std::vector<UnknownLabel> unknown;
  for (const auto& [label, count] : counts) unknown.push_back({label, count});
  std::stable_sort(unknown.begin(), unknown.end(),
                   [](const UnknownLabel& a, const UnknownLabel& b) { return a.count > b.count; });
  return unknown;
}

std::unique_ptr<Metric> accuracy_metric() {
  return std::make_unique<Accuracy>(false);
}
std::unique_ptr<Metric> span_f1_metric() {
  return std::make_unique<SpanF1>();
}
std::unique_ptr<Metric> error_rate_metric() {
  return std::make_unique<Accuracy>(true);
}

}  // namespace nmt
