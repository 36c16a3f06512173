#pragma once

#include "serve/batcher.h"
#include "serve/html_text.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nmt::serve {

enum class TextFormat { text, html };

/// A text of a request as sentences and what stands between them.
class Document {
 public:
  /// `text` is valid UTF-8. With `keeps_marked`, a marked span (<keep>...</keep>) of a text is
  /// never split, and no sentence of HTML has one: there the markers are text that stays as it is.
  Document(std::string_view text, TextFormat format, const std::string& language,
           std::size_t max_characters, bool keeps_marked = true);

  const std::vector<std::string>& sentences() const { return sentences_; }
  /// The text from the k-th hypothesis of each sentence, or the best where a sentence has fewer.
  std::string join(std::span<const Hypotheses> translations, std::size_t k) const;

  struct Piece {
    std::string text;       ///< as it stands in the result
    bool sentence = false;  ///< the next of sentences(); the text is empty
    /// Those that stay in the translation; null where it is no text of an HTML document.
    std::shared_ptr<const HtmlReferences> references;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  void add_text(std::string_view text, const std::string& language, std::size_t max_characters,
                bool keeps_marked);
  void add_html(std::string_view html, const std::string& language, std::size_t max_characters,
                bool keeps_marked);

  std::vector<Piece> pieces_;
  std::vector<std::string> sentences_;
};

}  // namespace nmt::serve
