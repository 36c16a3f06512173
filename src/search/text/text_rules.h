#pragma once

#include "config/enum_names.h"
#include "text/glossary.h"
#include "text/spans.h"

#include <string>
#include <vector>

namespace nmt {

/// A kind of spans that stays as it is (SpanKind), or all kinds.
enum class Preserved { all, placeholders, urls, emails, numbers, marked };
template <>
struct EnumNames<Preserved> {
  static constexpr std::array<std::string_view, 6> names{"all",    "placeholders", "urls",
                                                         "emails", "numbers",      "marked"};
};

/// What a translation must keep and must not do, as options.
struct TextSpec {
  std::vector<Preserved> preserve;
  std::string glossary;  ///< file; "": none
  bool repetition_guard = false;
  bool recase = false;

  /// Whether spans between <keep> and </keep> stay as they are.
  bool keeps_marked() const;
};

/// The same with its glossary read.
struct TextRules {
  SpanKinds preserve;
  Glossary glossary;
  bool repetition_guard = false;
  bool recase = false;

  /// Errors: as Glossary::load.
  static TextRules load(const TextSpec& spec);
  /// Whether there is any rule.
  bool any() const { return preserve.any() || glossary.size() > 0 || repetition_guard || recase; }
};

}  // namespace nmt
