#include "bindings.h"
#include "calls.h"

#include <limits>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nmt/error.h>
#include <nmt/vocabulary.h>

namespace nb = nanobind;

namespace nmt::python {
namespace {

/// The path in a str, bytes or os.PathLike.
std::string path_of(const nb::object& path) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(path.ptr(), &bytes)) {
    const bool is_type = PyErr_ExceptionMatches(PyExc_TypeError) != 0;
    PyErr_Clear();
    if (is_type)
      nb::raise_type_error("path: %s; expected a str or os.PathLike", Py_TYPE(path.ptr())->tp_name);
    throw Error(ExitStatus::usage,
                std::string("path=") + nb::repr(path).c_str() +
                    "; expected a str or os.PathLike without NUL and surrogates");
  }
  return nb::steal<nb::bytes>(bytes).c_str();
}

/// Takes any arguments, since nanobind's message for others than a path has several lines.
void load(Vocabulary* self, const nb::args& given, const nb::kwargs& named) {
  const bool is_named = given.size() == 0 && named.size() == 1 && named.contains("path");
  if (!is_named && (given.size() != 1 || named.size() != 0))
    nb::raise_type_error("Vocabulary: %zu positional and %zu named arguments; expected path",
                         given.size(), named.size());
  const std::string name = path_of(is_named ? nb::object(named["path"]) : nb::object(given[0]));
  const Released released;
  new (self) Vocabulary(Vocabulary::load(name));
}

void save(const Vocabulary& self, const nb::object& path) {
  const std::string name = path_of(path);
  const Released released;
  self.save(name);
}

std::int32_t id_of(const Vocabulary& self, std::int64_t id) {
  if (id >= 0 && id < self.size()) return static_cast<std::int32_t>(id);
  throw Error(ExitStatus::failed, "vocabulary: id " + std::to_string(id) + " is outside 0.." +
                                      std::to_string(self.size() - 1));
}

std::vector<std::string> pieces(const Vocabulary& self, const std::string& line) {
  std::vector<std::string> result;
  for (const std::int32_t id : self.encode(line)) result.push_back(self.piece(id));
  return result;
}

std::string decode(const Vocabulary& self, const std::vector<std::int64_t>& ids) {
  std::vector<std::int32_t> checked;
  for (const std::int64_t id : ids) checked.push_back(id_of(self, id));
  return self.decode(checked);
}

Vocabulary train(const std::vector<std::string>& lines, std::int64_t size, std::int64_t max_lines) {
  constexpr int largest = std::numeric_limits<int>::max();
  if (size > largest)
    throw Error(ExitStatus::usage, "vocabulary size " + std::to_string(size) + ": at most " +
                                       std::to_string(largest) + " is possible");
  VocabularyTraining training;
  training.size = static_cast<int>(std::max<std::int64_t>(size, 0));  // 0: too few
  training.max_lines = max_lines;
  return Vocabulary::train(lines, training);
}

}  // namespace

void bind_vocabulary(nb::module_& module) {
  const VocabularyTraining usual;
  nb::class_<Vocabulary>(module, "Vocabulary",
                         "A SentencePiece model: raw text to ids of pieces and back. Ids: <unk> 0, "
                         "<s> 1, </s> 2.")
      .def("__init__", &load, nb::sig("def __init__(self, path: str | os.PathLike[str]) -> None"),
           "Reads a .spm or .model file.")
      .def_static("train", &train, nb::arg("lines"), nb::arg("size") = std::int64_t{usual.size},
                  nb::arg("max_lines") = usual.max_lines, nb::call_guard<Released>(),
                  "Learns byte-pair encoding. The same lines give the same vocabulary.")
      .def("save", &save, nb::arg("path").none(),
           nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
           "Writes a .spm file, whole or not at all.")
      .def(
          "encode",
          [](const Vocabulary& self, const std::string& line) { return self.encode(line); },
          nb::arg("line"), "Ids of the pieces of a line, without <s> and </s>.")
      .def("encode_as_pieces", &pieces, nb::arg("line"), "The pieces of a line.")
      .def("decode", &decode, nb::arg("ids"), "The text of ids; <s> and </s> are skipped.")
      .def(
          "piece",
          [](const Vocabulary& self, std::int64_t id) { return self.piece(id_of(self, id)); },
          nb::arg("id"), "A piece; U+2581 stands for a space.")
      .def_prop_ro("unk", &Vocabulary::unk)
      .def_prop_ro("bos", &Vocabulary::bos)
      .def_prop_ro("eos", &Vocabulary::eos)
      .def(
          "copy",
          [](const Vocabulary& self) { return Vocabulary::from_bytes(self.bytes(), "copy"); },
          "The same vocabulary in memory of its own.")
      .def("__len__", &Vocabulary::size);
}

}  // namespace nmt::python
