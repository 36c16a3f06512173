#pragma once

#include "core/error.h"
#include "model/step_scorer.h"
#include "nmt/vocabulary.h"

namespace nmt {

/// Error (failed): the scorer has another number of output tokens than its target vocabulary.
inline void require_same_size(const StepScorer& scorer, const Vocabulary& target) {
  NMT_CHECK(scorer.vocabulary() == target.size(),
            "the model has {} output tokens, but its target vocabulary has {}", scorer.vocabulary(),
            target.size());
}

}  // namespace nmt
