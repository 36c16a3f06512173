#pragma once

#include "app/distill/distill_enums.h"
#include "core/nlohmann.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nmt::app {

/// The work directory of nmt-distill:
///   translate/part-N.nbest   n-best lists of the teacher
///   select/part-N.tsv        backward score and target of each line
///   distilled.source, distilled.target   the student's training text
///   align/part-N.links       word alignment of the teacher
///   distilled.links          all of it, for nmt-train --guided-alignment
///   student/                 model directory of the training
///   shortlist.txt            for nmt-translate --shortlist
///   student-int8/            model directory
///   table.txt, table.json    the models compared
///   steps/STEP.json          settings of a step, whether it is finished, its result
class WorkDirectory {
 public:
  using Json = nlohmann::ordered_json;

  /// Creates nothing.
  explicit WorkDirectory(std::string path) : path_(std::move(path)) {}
  ~WorkDirectory();
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;

  /// Errors (usage): the path is not a directory, or the directory has other files and no steps of
  /// nmt-distill.
  void check() const;
  /// Creates the directory and locks it until this object ends. Errors: as check(); (usage):
  /// another process has locked it; (failed): it cannot be created.
  void open();

  std::string at(const std::string& name) const { return path_ + "/" + name; }
  std::string part(DistillStep step, std::int64_t number) const;
  std::string source() const { return at("distilled.source"); }
  std::string target() const { return at("distilled.target"); }
  std::string links() const { return at("distilled.links"); }
  std::string student() const { return at("student"); }
  std::string shortlist() const { return at("shortlist.txt"); }
  std::string converted() const { return at("student-int8"); }

  struct Record {
    Json settings;
    bool finished = false;
    Json result;
  };
  /// The record of a step; none: it has not begun. Error (data): the file is damaged.
  std::optional<Record> read(DistillStep step) const;
  /// Error (data): the record of the step is damaged, and the step can be repeated.
  [[noreturn]] void refuse_record(DistillStep step) const;
  void write(DistillStep step, const Record& record) const;
  /// Whether an interrupted step continues from its results. The others begin again.
  static bool continues(DistillStep step);
  /// Whether the directory has results of the step, complete or not; temporary files are none.
  bool has_results(DistillStep step) const;
  /// The first result of a finished step that does not exist; "": none. `parts`: of steps whose
  /// results are parts.
  std::string missing(DistillStep step, std::int64_t parts) const;
  /// Whether the path is a result of the step, or lies in one.
  bool contains(DistillStep step, const std::string& path) const;
  /// Removes the record and the results of a step.
  void remove(DistillStep step) const;
  /// Removes the results of a step that cannot be continued, and temporary files of killed
  /// processes.
  void clean(DistillStep step) const;

 private:
  std::string record_path(DistillStep step) const;
  std::string path_;
  int lock_ = -1;
};

}  // namespace nmt::app
