#include "search/text/text_rules.h"

#include <algorithm>

namespace nmt {

bool TextSpec::keeps_marked() const {
  return std::any_of(preserve.begin(), preserve.end(), [](Preserved kind) {
    return kind == Preserved::all || kind == Preserved::marked;
  });
}

TextRules TextRules::load(const TextSpec& spec) {
  TextRules rules;
  for (const Preserved kind : spec.preserve) {
    const bool all = kind == Preserved::all;
    rules.preserve.placeholders |= all || kind == Preserved::placeholders;
    rules.preserve.urls |= all || kind == Preserved::urls;
    rules.preserve.emails |= all || kind == Preserved::emails;
    rules.preserve.numbers |= all || kind == Preserved::numbers;
    rules.preserve.marked |= all || kind == Preserved::marked;
  }
  if (!spec.glossary.empty()) rules.glossary = Glossary::load(spec.glossary);
  rules.repetition_guard = spec.repetition_guard;
  rules.recase = spec.recase;
  return rules;
}

}  // namespace nmt
