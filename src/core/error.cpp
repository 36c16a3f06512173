#include "core/error.h"

namespace nmt {

std::string one_line(std::string message) {
  for (char& c : message)
    if (c >= '\t' && c <= '\r')
      c = ' ';
    else if (static_cast<unsigned char>(c) < ' ' || c == 0x7F)
      c = '?';
  return message;
}

}  // namespace nmt
