#include "data/columns.h"

#include "core/error.h"
#include "core/log.h"
#include "text/lines.h"
#include "text/vocabulary/sentencepiece_check.h"

#include <algorithm>
#include <string_view>

namespace nmt {
namespace {

using Fields = std::vector<std::string_view>;

Fields split(std::string_view line, char separator) {
  Fields fields;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(line.find(separator, begin), line.size());
    if (separator == '\t' || end > begin) fields.push_back(line.substr(begin, end - begin));
    if (end == line.size()) return fields;
    begin = end + 1;
  }
}

// A word number of CoNLL-U: 7; of a range 7-8; of an empty node 7.1.
bool is_number(std::string_view text, std::string_view separators) {
  return !text.empty() && text[0] >= '0' && text[0] <= '9' &&
         text.find_first_not_of(std::string("0123456789").append(separators)) ==
             std::string_view::npos;
}

class ColumnReader {
 public:
  ColumnReader(const std::string& path, const ColumnChoice& choice)
      : reader_(LineReader::open(path)), choice_(choice) {}

  ColumnFile read() {
    for (std::string line; reader_.next(line);) {
      if (columns_ == 0 && (is_blank(line) || line[0] == '#')) {
        early_.push_back({line, reader_.lines()});
        continue;
      }
      if (columns_ == 0) begin(line);
      take(line, reader_.lines());
    }
    end_sentence();
    if (file_.sentences.empty())
      fail(ExitStatus::data, "{}: has no words in columns", reader_.name());
    reader_.notes().warn(reader_.name());
    return std::move(file_);
  }

 private:
  void end_sentence() {
    if (!sentence_.words.empty()) file_.sentences.push_back(std::move(sentence_));
    sentence_ = {};
  }

  void take(std::string_view line, std::int64_t number) {
    if (is_blank(line))
      end_sentence();
    else
      add(line, number);
  }

  void add(std::string_view line, std::int64_t number) {
    const Fields fields = split(line, separator_);
    if (fields.size() != columns_) {
      if (line[0] == '#') return;
      fail(ExitStatus::data, "{}: line {} has {} columns, not {} as line {}", reader_.name(),
           number, fields.size(), columns_, first_line_);
    }
    if (file_.is_conllu && is_number(fields[0], "-.") && !is_number(fields[0], "")) return;
    const std::string_view word = field(fields, file_.columns.word, number),
                           tag = field(fields, file_.columns.tag, number);
    if (tag.size() > max_label_bytes)
      fail(ExitStatus::data, "{}: line {}: the tag has {} bytes; at most {} are possible",
           reader_.name(), number, tag.size(), max_label_bytes);
    if (tag.find_first_of(" \t\v\f\r") != std::string_view::npos)
      fail(ExitStatus::data, "{}: line {}: column {} is a tag with a space: {}", reader_.name(),
           number, file_.columns.tag, tag);
    if (!file_.is_conllu && word == "-DOCSTART-") return;
    if (sentence_.words.empty()) sentence_.line = number;
    sentence_.words.emplace_back(word);
    sentence_.tags.emplace_back(tag);
    ++file_.words;
  }

  // The form of the file, from its first line that cannot be a comment; then the lines before it.
  void begin(std::string_view line) {
    separator_ = line.find('\t') == std::string_view::npos ? ' ' : '\t';
    const Fields fields = split(line, separator_);
    columns_ = fields.size();
    first_line_ = reader_.lines();
    file_.is_conllu = separator_ == '\t' && columns_ == 10 && is_number(fields[0], "-.");
    file_.columns = choice_;
    if (choice_.word == 0) file_.columns.word = file_.is_conllu ? 2 : 1;
    if (choice_.tag == 0) file_.columns.tag = file_.is_conllu ? 4 : static_cast<int>(columns_);
    for (const int column : {file_.columns.word, file_.columns.tag})
      if (column < 1 || static_cast<std::size_t>(column) > columns_)
        fail(ExitStatus::data, "{}: line {} has {} columns, no column {}", reader_.name(),
             reader_.lines(), columns_, column);
    if (columns_ < 2)
      fail(ExitStatus::data,
           "{}: line {} has one column; expected a word and its tag, separated by a tab or space",
           reader_.name(), reader_.lines());
    // Words of a comment are like columns where spaces separate them.
    if (separator_ == '\t')
      for (const Early& early : early_) take(early.line, early.number);
    else
      warn_of_comments_like_words();
  }

  void warn_of_comments_like_words() const {
    const auto is_like_a_word = [this](const Early& early) {
      return !is_blank(early.line) && split(early.line, separator_).size() == columns_;
    };
    const auto first = std::find_if(early_.begin(), early_.end(), is_like_a_word);
    if (first == early_.end()) return;
    log::warn(
        "{}: line {} begins with # and has as many columns as the first word, in line {}, but is "
        "read as a comment (such lines: {}); if it is a word, separate the columns by tabs",
        reader_.name(), first->number, first_line_,
        std::count_if(first, early_.end(), is_like_a_word));
  }

  std::string_view field(const Fields& fields, int column, std::int64_t number) const {
    const std::string_view text = fields[static_cast<std::size_t>(column - 1)];
    if (is_blank(text))
      fail(ExitStatus::data, "{}: line {}: column {} is empty", reader_.name(), number, column);
    return text;
  }

  // A blank line or one with # before the form of the file is known.
  struct Early {
    std::string line;
    std::int64_t number;
  };

  LineReader reader_;
  ColumnChoice choice_;
  ColumnFile file_;
  TaggedSentence sentence_;
  std::vector<Early> early_;
  char separator_ = '\t';
  std::size_t columns_ = 0;  // 0: no word yet
  std::int64_t first_line_ = 0;
};

}  // namespace

ColumnFile read_columns(const std::string& path, const ColumnChoice& choice) {
  return ColumnReader(path, choice).read();
}

}  // namespace nmt
