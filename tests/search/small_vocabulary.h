#pragma once

#include "core/error.h"
#include "nmt/vocabulary.h"

#include <string>
#include <vector>

#include <sentencepiece_trainer.h>

namespace nmt {

/// A vocabulary of single characters and a few merges, trained on first use.
inline const Vocabulary& small_vocabulary() {
  class Sentences : public sentencepiece::SentenceIterator {
   public:
    bool done() const override { return at_ == 200; }
    void Next() override { line_ = text_ + std::to_string(++at_); }
    const std::string& value() const override { return line_; }
    sentencepiece::util::Status status() const override { return {}; }

   private:
    int at_ = 0;
    std::string text_ = "the quick brown fox jumps over a lazy dog mixing other letters ",
                line_ = text_;
  };
  static const Vocabulary trained = [] {
    Sentences sentences;
    std::string model;
    const auto status = sentencepiece::SentencePieceTrainer::Train(
        "--model_type=bpe --vocab_size=60 --unk_id=0 --bos_id=1 --eos_id=2 --minloglevel=2 "
        "--hard_vocab_limit=false",
        &sentences, &model);
    NMT_CHECK(status.ok(), "{}", status.ToString());
    return Vocabulary::from_bytes(model, "test");
  }();
  return trained;
}

}  // namespace nmt
