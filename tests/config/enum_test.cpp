#include "config/json.h"
#include "config/precision.h"
#include "config/settings.h"
#include "core/nlohmann.h"

#include <gtest/gtest.h>

namespace nmt {
namespace {

enum class Direction { none, up, down };

}  // namespace

template <>
struct EnumNames<Direction> {
  static constexpr std::array<std::string_view, 3> names{"", "up", "down"};
};

namespace config {
namespace {

struct Spec {
  Direction direction = Direction::down;
  std::optional<Precision> precision;
  std::vector<Direction> path{Direction::up};
  Precision limited = Precision::float32;
};

std::vector<Option> fields(Spec& s) {
  return in_group("enums", {Option("direction", &s.direction, "direction").value_alone("up"),
                            Option("precision", &s.precision, "precision"),
                            Option("path", &s.path, "path").meta("NAME..."),
                            Option("limited", &s.limited, "fewer").one_of({"float32", "int8"})});
}

struct Program {
  Program() : settings("test", "[OPTIONS]", "is a test") { settings.add(fields(spec)); }
  explicit Program(const std::vector<std::string>& arguments) : Program() {
    settings.read(arguments);
  }
  Spec spec;
  Settings settings;
};

std::string refused(const std::vector<std::string>& arguments) {
  try {
    Program program(arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::usage);
    return error.what();
  }
  return "no error";
}

TEST(Enums, NamesAndEnumerators) {
  EXPECT_EQ(name_of(Precision::tf32), "tf32");
  EXPECT_EQ(parse_enum<Precision>("int8", "precision"), Precision::int8);
  EXPECT_EQ(find_enum<Precision>("int4"), std::nullopt);
  try {
    parse_enum<Direction>("left", "direction", ExitStatus::data);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::data);
    EXPECT_STREQ(error.what(), "direction: 'left' is not one of: up, down");
  }
}

TEST(Enums, CommandLine) {
  const Program given({"--direction", "--precision", "bfloat16", "--path", "up", "down", "--path",
                       "up", "--limited=int8"});
  EXPECT_EQ(given.spec.direction, Direction::up);
  EXPECT_EQ(given.spec.precision, Precision::bfloat16);
  EXPECT_EQ(given.spec.path,
            (std::vector<Direction>{Direction::up, Direction::down, Direction::up}));
  EXPECT_EQ(given.spec.limited, Precision::int8);
  EXPECT_EQ(Program({"--precision", "int8", "--precision", "auto"}).spec.precision, std::nullopt);
  EXPECT_EQ(refused({"--direction=left"}), "--direction: 'left' is not one of: up, down");
  EXPECT_EQ(refused({"--precision", "x"}),
            "--precision: 'x' is not one of: auto, float32, tf32, bfloat16, int8");
  EXPECT_EQ(refused({"--path", "up", "left"}), "--path: 'left' is not one of: up, down");
  EXPECT_EQ(refused({"--limited", "tf32"}), "--limited: 'tf32' is not one of: float32, int8");
}

TEST(Enums, Yaml) {
  Program given({"--direction", "up", "--precision", "tf32", "--path", "down", "up"});
  Program read;
  read.settings.read_yaml(given.settings.yaml(), "dump.yml");
  EXPECT_EQ(read.settings.yaml(), given.settings.yaml());
  EXPECT_EQ(read.spec.path, given.spec.path);
  EXPECT_EQ(read.spec.precision, Precision::tf32);
}

TEST(Enums, Json) {
  Program given({"--direction", "up", "--path", "down", "up"});
  const nlohmann::ordered_json json = to_json(fields(given.spec));
  EXPECT_EQ(json.dump(),
            R"({"direction":"up","precision":"auto","path":["down","up"],"limited":"float32"})");
  Spec read;
  from_json(json, fields(read), "config.json");
  EXPECT_EQ(to_json(fields(read)), json);
  const auto message = [&](const char* text) -> std::string {
    try {
      from_json(nlohmann::ordered_json::parse(text), fields(read), "config.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(R"({"direction": "left"})"),
            "config.json: direction: 'left' is not one of: up, down");
  EXPECT_EQ(message(R"({"direction": 1})"), "config.json: direction: '1' is not one of: up, down");
  EXPECT_EQ(message(R"({"path": "up"})"), "config.json: path: not a list");
}

TEST(Enums, Help) {
  const std::string help = Program().settings.help();
  EXPECT_NE(help.find("--direction [up|down]"), std::string::npos) << help;
  EXPECT_NE(help.find("--precision auto|float32|tf32|bfloat16|int8"), std::string::npos) << help;
  EXPECT_NE(help.find("(default: auto)"), std::string::npos) << help;
}

}  // namespace
}  // namespace config
}  // namespace nmt
