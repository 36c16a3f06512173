#pragma once

#include "app/labels/labeling.h"
#include "config/option.h"

#include <vector>

namespace nmt::app {

/// Specification of nmt-tag. Its input has one sentence per line.
struct TagSpec : LabelingSpec {};

/// The options of nmt-tag.
std::vector<config::Option> fields(TagSpec& spec);

/// Tags every line of the input, whose words white space separates, and writes as many lines of
/// tags; or, with `evaluate`, scores the tags of a file of columns and writes the score. Errors: as
/// Labeling, LoadedTagger, LineReader::open, read_columns and LineWriter.
void tag(const TagSpec& spec);

}  // namespace nmt::app
