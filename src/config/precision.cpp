#include "config/precision.h"

#include "core/error.h"

#include <string>

namespace nmt {

Precision parse_precision(std::string_view text) {
  for (const Precision precision :
       {Precision::float32, Precision::tf32, Precision::bfloat16, Precision::int8})
    if (text == name_of(precision)) return precision;
  fail(ExitStatus::usage, "precision: '{}' is not float32, tf32, bfloat16 or int8",
       std::string(text));
}

}  // namespace nmt
