#pragma once

#include "eval/metric.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// A span of labels: words [begin, end) and its type.
struct LabelSpan {
  std::int64_t begin = 0, end = 0;
  std::string type;
  auto operator<=>(const LabelSpan&) const = default;
};

/// Whether all labels are O or a letter of a span scheme, a hyphen and a type, and at least one has
/// a type: IOB, IOB2, IOBES, BILOU, BMES.
bool are_span_labels(std::span<const std::string> labels);
/// The spans of a sentence as conlleval defines chunks (CoNLL-2000): B and S begin a span, and so
/// does any label after O, E, S or another type; E and S end it. M reads as I, L as E, U as S.
std::vector<LabelSpan> spans_of(std::span<const std::string> labels);

/// A label that a model does not have, and how often it occurs.
struct UnknownLabel {
  std::string label;
  std::int64_t count = 0;
  auto operator<=>(const UnknownLabel&) const = default;
};
/// The labels of `lines`, separated by spaces, that can never be right for a model with the labels
/// `known`; the most frequent first, then alphabetically. Of span labels only the types count,
/// since spans_of() reads all schemes; `exact`: of them too, the whole label.
std::vector<UnknownLabel> unknown_labels(std::span<const std::string> known,
                                         std::span<const std::string> lines, bool exact = false);

// Metrics of lines of labels, separated by spaces; hypothesis and reference have equally many. The
// first reference counts. Error (data): their numbers differ.

/// Percent of correct labels.
std::unique_ptr<Metric> accuracy_metric();
/// F1 of spans: those of which begin, end and type are correct (CoNLL-2000), in percent.
std::unique_ptr<Metric> span_f1_metric();
/// Percent of wrong labels.
std::unique_ptr<Metric> error_rate_metric();

}  // namespace nmt
