#pragma once

namespace nmt {

/// Where the sentences of a part are in their full batch: sentence b of the part is sentence
/// first + b * stride of `whole` sentences.
struct BatchSlice {
  int first = 0, stride = 1, whole = 0;
  bool operator==(const BatchSlice&) const = default;
};

}  // namespace nmt
