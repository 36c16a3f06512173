#include "dry/symbols.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <unordered_map>
#include <vector>

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>

namespace nmt::emulator {
namespace {

// Mangled names of the program's functions, local ones too, by their offset from its base.
std::unordered_map<std::uint64_t, std::string> read_symbols() {
  std::unordered_map<std::uint64_t, std::string> names;
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto at = [&]<class T>(std::uint64_t offset, T& value) {
    if (offset + sizeof(T) > bytes.size()) return false;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return true;
  };
  Elf64_Ehdr header;
  if (!at(0, header)) return names;
  const auto section = [&](std::uint32_t number, Elf64_Shdr& to) {
    return at(header.e_shoff + std::uint64_t{number} * header.e_shentsize, to);
  };
  for (std::uint32_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table, strings;
    if (!section(i, table) || table.sh_type != SHT_SYMTAB || !section(table.sh_link, strings))
      continue;
    Elf64_Sym symbol;
    for (std::uint64_t offset = 0; offset + sizeof(symbol) <= table.sh_size;
         offset += sizeof(symbol)) {
      if (!at(table.sh_offset + offset, symbol)) break;
      const std::uint64_t name = strings.sh_offset + symbol.st_name;
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && name < bytes.size())
        names.emplace(symbol.st_value, bytes.data() + name);
    }
  }
  return names;
}

}  // namespace

std::string short_name(const std::string& name) {
  static const std::regex clone(R"( \[clone [^\]]*\])"), result("^void "),
      scope(R"((\(anonymous namespace\)|[A-Za-z_][A-Za-z_0-9]*)::(?!\{))");
  std::string text = std::regex_replace(name, clone, "");
  text = std::regex_replace(text, result, "");
  // The function that has the lambda of each() or add_columns().
  static const std::regex lambda(
      R"(^[^<(]*\b(each|column_parts)_kernel<(?:[^<(]|\(anonymous namespace\))*?([A-Za-z_0-9]+)(?:<[^(]*>)?\()");
  std::smatch found;
  if (std::regex_search(text, found, lambda))
    return (found[1] == "each" ? "each: " : "columns: ") + found[2].str();
  text = std::regex_replace(text, scope, "");
  // Without the parameters: up to the first '(' outside of template arguments.
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '<';
    depth -= text[i] == '>';
    if (text[i] == '(' && depth == 0) return text.substr(0, i);
  }
  return text;
}

std::string kernel_name(const void* address) {
  static const std::unordered_map<std::uint64_t, std::string> names = read_symbols();
  Dl_info info{};
  if (!dladdr(address, &info)) return "unknown";
  const auto offset = static_cast<std::uint64_t>(static_cast<const char*>(address) -
                                                 static_cast<const char*>(info.dli_fbase));
  const auto found = names.find(offset);
  if (found == names.end()) return "unknown";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(found->second.c_str(), nullptr, nullptr, &status), std::free);
  return short_name(readable ? readable.get() : found->second);
}

}  // namespace nmt::emulator
