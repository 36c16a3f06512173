#include "bindings.h"
#include "calls.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nmt/vocabulary.h>

namespace nb = nanobind;

namespace nmt::python {
namespace {

/// The path in a str, bytes or os.PathLike.
std::string path_of(const nb::object& path) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(path.ptr(), &bytes)) {
    PyErr_Clear();
    nb::raise_type_error("path: %s; expected a str or os.PathLike without NUL",
                         Py_TYPE(path.ptr())->tp_name);
  }
  return nb::steal<nb::bytes>(bytes).c_str();
}

void load(Vocabulary* self, const nb::object& path) {
  const std::string name = path_of(path);
  const Released released;
  new (self) Vocabulary(Vocabulary::load(name));
}

void save(const Vocabulary& self, const nb::object& path) {
  const std::string name = path_of(path);
  const Released released;
  self.save(name);
}

std::vector<std::string> pieces(const Vocabulary& self, const std::string& line) {
  std::vector<std::string> result;
  for (const std::int32_t id : self.encode(line)) result.push_back(self.piece(id));
  return result;
}

Vocabulary train(const std::vector<std::string>& lines, int size, std::int64_t max_lines) {
  VocabularyTraining training;
  training.size = size;
  training.max_lines = max_lines;
  return Vocabulary::train(lines, training);
}

}  // namespace

void bind_vocabulary(nb::module_& module) {
  const VocabularyTraining usual;
  nb::class_<Vocabulary>(module, "Vocabulary",
                         "A SentencePiece model: raw text to ids of pieces and back. Ids: <unk> 0, "
                         "<s> 1, </s> 2.")
      .def("__init__", &load, nb::arg("path").none(),
           nb::sig("def __init__(self, path: str | os.PathLike[str]) -> None"),
           "Reads a .spm or .model file.")
      .def_static("train", &train, nb::arg("lines"), nb::arg("size") = usual.size,
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
      .def(
          "decode",
          [](const Vocabulary& self, const std::vector<std::int32_t>& ids) {
            return self.decode(ids);
          },
          nb::arg("ids"), "The text of ids; <s> and </s> are skipped.")
      .def("piece", &Vocabulary::piece, nb::arg("id"), "A piece; U+2581 stands for a space.")
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
