#include "dry/symbols.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
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

// Removes a prefix; whether it was there.
bool skip(std::string& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.erase(0, prefix.size());
  return true;
}

// Without the namespaces and classes before names; lambdas keep the function that has them.
std::string without_scopes(const std::string& text) {
  constexpr std::string_view anonymous = "(anonymous namespace)::";
  const auto in_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, anonymous.size(), anonymous) == 0) {
      at += anonymous.size();
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && in_name(text[end])) ++end;
    const bool is_scope =
        end > at && text.compare(end, 2, "::") == 0 && text.compare(end, 3, "::{") != 0;
    if (is_scope) {
      at = end + 2;
      continue;
    }
    end = std::max(end, at + 1);
    result.append(text, at, end - at);
    at = end;
  }
  return result;
}

}  // namespace

std::string short_name(const std::string& name) {
  std::string text = without_scopes(name.substr(0, name.find(" [clone")));
  skip(text, "void ");
  // The function that has the lambda of each(), each_of_rows() or add_columns().
  for (const auto& [kernel, kind] :
       {std::pair{"each_kernel<", "each: "}, std::pair{"each_of_rows_kernel<", "each: "},
        std::pair{"column_parts_kernel<", "columns: "}})
    if (skip(text, kernel)) {
      skip(text, "void ");
      return kind + text.substr(0, text.find_first_of("<("));
    }
  // Without the parameters: up to the first '(' outside of template arguments.
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    depth += text[at] == '<';
    depth -= text[at] == '>';
    if (text[at] == '(' && depth == 0) return text.substr(0, at);
  }
  return text;
}

namespace {

// Empty where the program has no such symbol.
std::string readable_name(const void* address) {
  static const std::unordered_map<std::uint64_t, std::string> names = read_symbols();
  Dl_info info{};
  if (!dladdr(address, &info)) return "";
  const auto offset = static_cast<std::uint64_t>(static_cast<const char*>(address) -
                                                 static_cast<const char*>(info.dli_fbase));
  const auto found = names.find(offset);
  if (found == names.end()) return "";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(found->second.c_str(), nullptr, nullptr, &status), std::free);
  return readable ? readable.get() : found->second;
}

}  // namespace

std::string kernel_name(const void* address) {
  const std::string name = readable_name(address);
  return name.empty() ? "unknown" : short_name(name);
}

void note_launch(const void* kernel) {
  static const char* const path = std::getenv("NMT_EMULATED_KERNELS");
  if (!path) return;
  static std::set<const void*> seen;
  if (!seen.insert(kernel).second) return;
  std::string name = without_scopes(readable_name(kernel));
  skip(name, "void ");
  std::ofstream(path, std::ios::app) << name.substr(0, name.find_first_of("<(")) << '\n';
}

}  // namespace nmt::emulator
