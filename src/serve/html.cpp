#include "serve/html.h"

#include <algorithm>
#include <unordered_map>

namespace nmt::serve {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) { return lower(c); });
  return result;
}

bool is_raw_text(std::string_view element) {  // ends at its own end tag alone
  return element == "script" || element == "style";
}
bool is_preformatted(std::string_view element) {
  return element == "pre" || element == "textarea" || element == "listing";
}
bool is_hidden(std::string_view element) {
  for (const std::string_view name :
       {"code", "kbd", "samp", "var", "svg", "math", "template", "keep"})
    if (element == name) return true;
  return is_raw_text(element);
}
bool is_void(std::string_view element) {
  for (const std::string_view name : {"area", "base", "br", "col", "embed", "hr", "img", "input",
                                      "link", "meta", "source", "track", "wbr"})
    if (element == name) return true;
  return false;
}

/// An element that may lack its end tag, and what ends it then (HTML Standard, section 13.1.2.4).
struct OptionalEnd {
  std::string_view elements, start_tags, end_tags;  ///< names between spaces
};
constexpr OptionalEnd optional_ends[] = {
    {" li ", " li ", " ul ol menu "},
    {" dt dd ", " dt dd ", " dl div "},
    {" rt rp ", " rt rp ", " ruby "},
    {" option ", " option optgroup hr ", " select datalist optgroup "},
    {" optgroup ", " optgroup hr ", " select "},
    {" td th ", " td th tr tbody thead tfoot ", " tr tbody thead tfoot table "},
    {" tr ", " tr tbody thead tfoot ", " tbody thead tfoot table "},
    {" tbody thead tfoot ", " tbody thead tfoot ", " table "},
    {" caption colgroup ", " colgroup tr tbody thead tfoot ", " table "},
    {" p ",
     " address article aside blockquote center details dialog dir div dl fieldset figcaption "
     "figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre search "
     "section table td th dt dd ul ",
     " address article aside blockquote body center details dialog dir div dl fieldset figcaption "
     "figure footer form header hgroup html li main menu nav ol search section table td th dt dd "
     "ul "}};
bool is_among(std::string_view names, const std::string& name) {
  return names.find(' ' + name + ' ') != std::string_view::npos;
}
/// Whether an element, open within another one, keeps start tags from ending that: formatting
/// elements do not.
bool is_container(const std::string& element) {
  constexpr std::string_view formatting =
      " a b big code em font i nobr s small span strike strong tt u ";
  return !is_among(formatting, element);
}
/// Null: the element needs its end tag.
const OptionalEnd* optional_end_of(const std::string& element) {
  for (const OptionalEnd& end : optional_ends)
    if (is_among(end.elements, element)) return &end;
  return nullptr;
}

/// A piece of markup.
struct Markup {
  std::size_t end = 0;    ///< behind it; 0: the "<" is text
  std::string element;    ///< lower case; "": a comment or a declaration
  bool closes = false;    ///< an end tag
  bool is_empty = false;  ///< <br>, <x/>
  bool untranslated = false;
};

// The end of the tag whose name ends at `at`, and what its attributes say. As in browsers, a tag
// without an end takes the rest; so every byte is read once.
void read_attributes(std::string_view html, std::size_t at, Markup& markup) {
  markup.end = html.size();
  while (at < html.size()) {
    bool ends_in_slash = false;
    while (at < html.size() && (is_space(html[at]) || html[at] == '/'))
      ends_in_slash = html[at++] == '/';
    if (at == html.size()) return;
    if (html[at] == '>') {
      markup.is_empty |= ends_in_slash;
      markup.end = at + 1;
      return;
    }
    const std::size_t name_begin = at++;
    while (at < html.size() && !is_space(html[at]) && html[at] != '=' && html[at] != '>' &&
           html[at] != '/')
      ++at;
    const std::string name = lower(html.substr(name_begin, at - name_begin));
    while (at < html.size() && is_space(html[at])) ++at;
    if (at == html.size() || html[at] != '=') continue;
    ++at;
    while (at < html.size() && is_space(html[at])) ++at;
    if (at == html.size()) return;
    std::size_t begin = at;
    if (html[at] == '"' || html[at] == '\'') {
      begin = at + 1;
      at = html.find(html[at], begin);
      if (at == std::string_view::npos) return;
    } else {
      while (at < html.size() && !is_space(html[at]) && html[at] != '>') ++at;
    }
    const std::string value = lower(html.substr(begin, at - begin));
    if (at < html.size() && html[at] != '>') ++at;
    if (name == "translate" && value == "no") markup.untranslated = true;
    if (name == "class")
      for (std::size_t found = 0; (found = value.find("notranslate", found)) != std::string::npos;
           found += 11)
        if ((found == 0 || is_space(value[found - 1])) &&
            (found + 11 == value.size() || is_space(value[found + 11])))
          markup.untranslated = true;
  }
}

// `last_close`: the last ">" of the HTML.
Markup read_markup(std::string_view html, std::size_t at, std::size_t last_close) {
  Markup markup;
  const std::string_view rest = html.substr(at);
  const auto until = [&](std::string_view what, std::size_t from) {
    const std::size_t found = html.find(what, at + from);
    markup.end = found == std::string_view::npos ? html.size() : found + what.size();
  };
  if (rest.starts_with("<!-->") || rest.starts_with("<!--->")) {  // comments without text
    until(">", 4);
  } else if (rest.starts_with("<!--")) {  // "--!>" ends it too (HTML Standard, comment end bang)
    markup.end = html.size();
    for (std::size_t end = at + 4; (end = html.find("--", end)) != std::string_view::npos; ++end) {
      const std::string_view close = html.substr(end);
      if (!close.starts_with("-->") && !close.starts_with("--!>")) continue;
      markup.end = end + (close[2] == '>' ? 3 : 4);
      break;
    }
  } else if (last_close == std::string_view::npos || at > last_close) {
    return markup;
  } else if (rest.starts_with("<![CDATA[")) {
    until("]]>", 9);
  } else if (rest.starts_with("<!") || rest.starts_with("<?")) {
    until(">", 2);
  } else {
    markup.closes = rest.starts_with("</");
    const std::size_t name = at + (markup.closes ? 2 : 1);
    if (name >= html.size() || !is_letter(html[name])) return markup;
    std::size_t end = name;
    while (end < html.size() && !is_space(html[end]) && html[end] != '>' && html[end] != '/') ++end;
    markup.element = lower(html.substr(name, end - name));
    read_attributes(html, end, markup);
    markup.is_empty |= is_void(markup.element);
  }
  return markup;
}

// Behind the end tag of a raw-text element whose start tag ends at `at`: only "</" and the name of
// the element are looked for, so every byte is read once. The end of the HTML where there is none.
std::size_t end_of_raw_text(std::string_view html, std::size_t at, const std::string& element,
                            std::size_t last_close) {
  while ((at = html.find("</", at)) != std::string_view::npos) {
    const std::size_t end = at + 2 + element.size();
    if (end < html.size() && (is_space(html[end]) || html[end] == '/' || html[end] == '>') &&
        lower(html.substr(at + 2, element.size())) == element) {
      const Markup markup = read_markup(html, at, last_close);
      return markup.end == 0 ? html.size() : markup.end;
    }
    at += 2;
  }
  return html.size();
}

// The elements that are open within another one.
class OpenElements {
 public:
  void open(const std::string& element) {
    elements_.push_back(element);
    ++counts_[element];
    containers_ += is_container(element) && !optional_end_of(element);
  }
  bool has(const std::string& element) const {
    const auto found = counts_.find(element);
    return found != counts_.end() && found->second > 0;
  }
  // The element has(), and those within it.
  void close(const std::string& element) {
    for (std::string last; last != element; elements_.pop_back()) {
      last = elements_.back();
      --counts_[last];
      containers_ -= is_container(last) && !optional_end_of(last);
    }
  }
  bool has_container() const { return containers_ > 0; }

 private:
  std::vector<std::string> elements_;
  std::unordered_map<std::string, int> counts_;
  int containers_ = 0;
};

// end_of_element() of one that `optional` describes: where it ends without an end tag, the tag that
// ends it is not a part of it.
std::size_t end_of_optional(std::string_view html, std::size_t at, const std::string& element,
                            const OptionalEnd& optional, std::size_t last_close) {
  OpenElements within;
  while ((at = html.find('<', at)) != std::string_view::npos) {
    const Markup markup = read_markup(html, at, last_close);
    const std::size_t begin = at;
    at = markup.end == 0 ? at + 1 : markup.end;
    if (markup.element.empty()) continue;
    if (markup.closes) {
      if (within.has(markup.element)) {
        within.close(markup.element);
        continue;
      }
      if (markup.element == element) return at;
      if (is_among(optional.end_tags, markup.element)) return begin;
    } else {
      if (!within.has_container() && is_among(optional.start_tags, markup.element)) return begin;
      if (markup.is_empty) continue;
      if (is_raw_text(markup.element))
        at = end_of_raw_text(html, at, markup.element, last_close);
      else
        within.open(markup.element);
    }
  }
  return html.size();
}

// Behind the end tag of an element whose start tag ends at `at`; nested elements of the same name
// count. The end of the HTML where there is none.
std::size_t end_of_element(std::string_view html, std::size_t at, const std::string& element,
                           std::size_t last_close) {
  if (is_raw_text(element)) return end_of_raw_text(html, at, element, last_close);
  if (const OptionalEnd* optional = optional_end_of(element))
    return end_of_optional(html, at, element, *optional, last_close);
  for (int depth = 1; at < html.size();) {
    at = html.find('<', at);
    if (at == std::string_view::npos) break;
    const Markup markup = read_markup(html, at, last_close);
    if (markup.end == 0) {
      ++at;
      continue;
    }
    at = markup.end;
    if (!markup.closes && !markup.is_empty && is_raw_text(markup.element)) {
      at = end_of_raw_text(html, at, markup.element, last_close);
      continue;
    }
    if (markup.element != element) continue;
    if (markup.closes && --depth == 0) return at;
    if (!markup.closes && !markup.is_empty) ++depth;
  }
  return html.size();
}

}  // namespace

std::vector<HtmlPart> split_html(std::string_view html) {
  const std::size_t last_close = html.rfind('>');
  std::vector<HtmlPart> parts;
  int preformatted = 0;  // such elements that are open
  const auto add = [&](std::string_view source, bool is_text) {
    if (source.empty()) return;
    if (!parts.empty() && parts.back().is_text == is_text)
      parts.back().source += source;
    else
      parts.push_back({std::string(source), is_text, is_text && preformatted > 0});
  };
  std::size_t text = 0;  // where the present text begins
  for (std::size_t at = 0; (at = html.find('<', at)) != std::string_view::npos;) {
    const Markup markup = read_markup(html, at, last_close);
    if (markup.end == 0) {
      ++at;
      continue;
    }
    std::size_t end = markup.end;
    const bool skips =
        !markup.closes && !markup.is_empty && (markup.untranslated || is_hidden(markup.element));
    if (skips) end = end_of_element(html, end, markup.element, last_close);
    add(html.substr(text, at - text), true);
    add(html.substr(at, end - at), false);
    if (!skips && is_preformatted(markup.element))
      preformatted = std::max(preformatted + (markup.closes ? -1 : 1), 0);
    at = text = end;
  }
  add(html.substr(text), true);
  return parts;
}

}  // namespace nmt::serve
