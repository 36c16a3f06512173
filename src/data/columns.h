#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nmt {

/// Which columns of a file are read, counted from 1; 0: chosen by the file.
struct ColumnChoice {
  int word = 0;  ///< 0: 2 in CoNLL-U, else 1
  int tag = 0;   ///< 0: 4 (UPOS) in CoNLL-U, else the last
};

/// A sentence of a column file: one tag per word.
struct TaggedSentence {
  std::vector<std::string> words, tags;
  std::int64_t line = 0;  ///< of its first word, from 1
};

/// A file with one word per line and its annotations in columns.
struct ColumnFile {
  std::vector<TaggedSentence> sentences;
  ColumnChoice columns;    ///< as read
  bool is_conllu = false;  ///< 10 columns, the first is a word number
  std::int64_t words = 0;
};

/// Reads columns as the CoNLL shared tasks define them. Tabs separate the columns, or spaces if the
/// first word's line has no tab. Blank lines separate sentences. A line that starts with # and has
/// not as many columns as the first other line is a comment; where spaces separate the columns, so
/// are all lines with # before that, with a warning if one has as many columns. In CoNLL-U, ranges
/// (1-2) and empty nodes (1.1) are skipped; elsewhere lines of the word -DOCSTART-. Errors: (usage)
/// as LineReader::open; (data), with the number of the line: another number of columns than before,
/// an empty field, a tag with white space, no such column; no word in the file.
ColumnFile read_columns(const std::string& path, const ColumnChoice& choice = {});

}  // namespace nmt
