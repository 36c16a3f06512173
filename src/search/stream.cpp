#include "search/stream.h"

#include "core/error.h"

#include <vector>

namespace nmt {

std::int64_t translate_stream(LineTranslator& translator, LineSource& source, LineWriter& writer,
                              bool responsive) {
  std::int64_t read = 0, answered = 0;
  DocumentContext document(translator.options().context_sentences);
  std::vector<std::string> lines;
  std::vector<ContextSentences> contexts;
  for (bool more = true; more;) {
    lines.clear();
    contexts.clear();
    while (more && lines.size() < translator.window()) {
      if (responsive && !lines.empty() && !source.ready()) break;
      std::string line;
      more = source.next(line);
      if (!more) break;
      contexts.push_back(document.next(line));
      lines.push_back(std::move(line));
    }
    read += static_cast<std::int64_t>(lines.size());
    for (const LineTranslation& translation : translator.translate(lines, answered + 1, contexts)) {
      writer.write(format_translation(translation, answered, translator.options()));
      ++answered;
    }
    if (responsive) writer.flush();
  }
  writer.flush();
  NMT_CHECK(read == answered, "read {} lines but wrote {} translations: the output is incomplete",
            read, answered);
  return answered;
}

}  // namespace nmt
