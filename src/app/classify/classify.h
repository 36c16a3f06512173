#pragma once

#include "app/labels/labeling.h"
#include "config/option.h"

#include <vector>

namespace nmt::app {

/// Specification of nmt-classify. Its input has one text, or two separated by a tab, per line.
struct ClassifySpec : LabelingSpec {};

/// The options of nmt-classify.
std::vector<config::Option> fields(ClassifySpec& spec);

/// Classifies every line of the input and writes as many labels; or, with `evaluate`, prints the
/// error rate on a file of labeled texts. Errors: as Labeling, LoadedClassifier, LineReader::open,
/// read_labeled_text and LineWriter.
void classify(const ClassifySpec& spec);

}  // namespace nmt::app
