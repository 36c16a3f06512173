#include "train/parallel/communicator.h"

#include "core/error.h"

#include <cstdlib>

namespace nmt::train {
namespace {

class Alone : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void barrier() override {}
  void all_reduce_sum(double*, std::int64_t) override {}
  void all_reduce_sum(float*, std::int64_t) override {}
  std::vector<std::vector<std::int32_t>> all_gather(
      const std::vector<std::int32_t>& mine) override {
    return {mine};
  }
  void broadcast(void*, std::size_t) override {}
  void broadcast(float*, std::int64_t) override {}
  void abort(int status) override { std::_Exit(status); }
};

}  // namespace

Communicator& alone() {
  static Alone one;
  return one;
}

void broadcast(Communicator& communicator, std::string& text) {
  auto size = static_cast<std::uint64_t>(text.size());
  communicator.broadcast(&size, sizeof size);
  text.resize(size);
  communicator.broadcast(text.data(), size);
}

void require_same(Communicator& communicator, const std::string& text, const std::string& what) {
  std::string first = text;
  broadcast(communicator, first);
  if (first == text) return;
  const auto line = [](const std::string& from, std::size_t begin) {
    return begin < from.size() ? from.substr(begin, from.find('\n', begin) - begin) : std::string();
  };
  std::size_t begin = 0;
  while (begin < text.size() && line(first, begin) == line(text, begin))
    begin += line(text, begin).size() + 1;
  fail(ExitStatus::usage, "{}: here '{}', at rank 0 '{}'", what, line(text, begin),
       line(first, begin));
}

}  // namespace nmt::train
