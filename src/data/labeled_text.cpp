#include "data/labeled_text.h"

#include "core/error.h"
#include "core/number_text.h"
#include "text/lines.h"
#include "text/vocabulary/sentencepiece_check.h"

#include <algorithm>

namespace nmt {
namespace {

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find('\t', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return fields;
}

}  // namespace

LabeledTexts read_labeled_text(const std::string& path) {
  LineReader reader = LineReader::open(path);
  LabeledTexts file;
  std::size_t expected = 0;
  for (std::string line; reader.next(line);) {
    if (is_blank(line)) continue;
    std::vector<std::string> fields = fields_of(line);
    if (expected == 0 && (fields.size() == 2 || fields.size() == 3)) expected = fields.size();
    if (fields.size() != expected)
      fail(ExitStatus::data, "{}: line {} has {}, not {} (label TAB text{})", reader.name(),
           reader.lines(), counted(std::ssize(fields), "field"),
           expected == 0 ? "2 or 3" : std::to_string(expected), expected == 2 ? "" : " TAB text");
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (is_blank(fields[i]))
        fail(ExitStatus::data, "{}: line {}: the {} is empty", reader.name(), reader.lines(),
             i == 0 ? "label" : "text");
    if (fields[0].size() > max_label_bytes)
      fail(ExitStatus::data, "{}: line {}: the label has {} bytes; at most {} are possible",
           reader.name(), reader.lines(), fields[0].size(), max_label_bytes);
    if (fields[0].find_first_of(" \v\f\r") != std::string::npos)
      fail(ExitStatus::data, "{}: line {}: the label '{}' has a space", reader.name(),
           reader.lines(), fields[0].substr(0, 80));
    LabeledText& example = file.examples.emplace_back();
    example.label = std::move(fields[0]);
    example.text = std::move(fields[1]);
    if (expected == 3) example.second = std::move(fields[2]);
    example.line = reader.lines();
  }
  if (file.examples.empty()) fail(ExitStatus::data, "{}: has no labeled texts", reader.name());
  file.has_pairs = expected == 3;
  reader.notes().warn(reader.name());
  return file;
}

}  // namespace nmt
