#pragma once

#include "text/spans.h"

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace nmt {

/// Terms of the source language and what a translation must have for them.
class Glossary {
 public:
  /// Reads a file with one term per line: the source and, behind a tab, the target; without a
  /// target the term stays as it is. Blank lines are skipped. Errors: (usage) it cannot be opened;
  /// (data) more than two columns, an empty or over-long term, two targets for a source, more than
  /// a million terms; each with its line.
  static Glossary load(const std::string& path);
  /// The same from lines; `name` is for messages.
  static Glossary from_lines(const std::vector<std::string>& lines, const std::string& name);

  /// Adds the terms of a line to `spans`, which stay sorted: whole words, case-sensitive, the
  /// longest term at each place. A term that overlaps a span of `spans` is left out.
  void add_terms(std::string_view line, std::vector<TextSpan>& spans) const;
  std::size_t size() const { return targets_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>> targets_;
  std::array<std::vector<std::size_t>, 256> lengths_;  // of terms by first byte, longest first
};

}  // namespace nmt
