#include "model/directory/model_directory.h"

#include "core/error.h"
#include "core/files/file.h"
#include "model/directory/write_model.h"
#include "text/vocabulary/train_vocabulary.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace nmt {
namespace {

namespace fs = std::filesystem;

Vocabulary vocabulary(int size) {
  const std::vector<std::string> lines{"the small dog sees a house", "a woman likes the old river",
                                       "my brother paints an apple"};
  return train_vocabulary(
             static_cast<std::int64_t>(lines.size()),
             [&](std::int64_t i) { return std::string_view(lines[static_cast<std::size_t>(i)]); },
             {.size = size}, "test")
      .vocabulary;
}

ModelSpec small_spec() {
  ModelSpec spec;
  spec.dim_emb = spec.dim_rnn = 8;
  spec.enc_depth = spec.dec_depth = 1;
  spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = 0;
  spec.enc_cell = "gru";
  return spec;
}

// A folder in memory where there is one: syncing costs nothing there, and a kill is a kill.
struct Folder {
  Folder() {
    const std::string memory = "/dev/shm";
    path = (::access(memory.c_str(), W_OK) == 0 ? memory : testing::TempDir()) +
           "/nmt_model_directory_" + std::to_string(::getpid());
    fs::remove_all(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string path;
};

// A checkpoint whose every number is its update.
struct Filled {
  explicit Filled(std::int64_t updates, std::size_t n = 20000)
      : values(n, static_cast<float>(updates)) {
    checkpoint.updates = updates;
    checkpoint.info = "{\"updates\": " + std::to_string(updates) + "}";
    const std::vector<std::int64_t> shape{static_cast<std::int64_t>(n)};
    checkpoint.model = {{"a", safetensors::FileDtype::f32, shape, values.data()}};
    checkpoint.state = {{"m", safetensors::FileDtype::f32, shape, values.data()},
                        {"v", safetensors::FileDtype::f32, shape, values.data()}};
  }
  std::vector<float> values;
  CheckpointContents checkpoint;
};

void expect_whole(const StoredCheckpoint& stored) {
  EXPECT_EQ(stored.read_info(), "{\"updates\": " + std::to_string(stored.updates()) + "}");
  for (const auto& file : {stored.open_model(), stored.open_state()}) {
    for (const safetensors::View& view : file.tensors()) {
      const float* values = reinterpret_cast<const float*>(view.data);
      for (std::size_t i = 0; i < view.bytes() / sizeof(float); i += 97)
        ASSERT_EQ(values[i], static_cast<float>(stored.updates()));
    }
  }
}

std::string error_of(const std::function<void()>& body, ExitStatus status) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ModelDirectory, KeepsSpecAndVocabularies) {
  const Folder folder;
  const Vocabulary one = vocabulary(40), other = vocabulary(50);
  EXPECT_FALSE(ModelDirectory::is_there(folder.path));
  ModelDirectory::create(folder.path, small_spec(), one, other);
  EXPECT_TRUE(ModelDirectory::is_there(folder.path));
  const ModelDirectory separate = ModelDirectory::open(folder.path);
  EXPECT_EQ(separate.spec().enc_cell, "gru");
  EXPECT_EQ(separate.spec().dim_rnn, 8);
  EXPECT_EQ(separate.load_vocabularies().source->bytes(), one.bytes());
  EXPECT_EQ(separate.load_vocabularies().target->bytes(), other.bytes());
  ModelDirectory::create(folder.path, small_spec(), one, one);
  const VocabularyPair joint = ModelDirectory::open(folder.path).load_vocabularies();
  EXPECT_EQ(joint.source, joint.target);
  EXPECT_FALSE(fs::exists(folder.path + "/src.spm"));
}

TEST(ModelDirectory, KeepsTheNewestAndTheBest) {
  const Folder folder;
  const Vocabulary v = vocabulary(40);
  ModelDirectory directory = ModelDirectory::create(folder.path, small_spec(), v, v);
  EXPECT_FALSE(directory.latest());
  EXPECT_TRUE(
      has(error_of([&] { directory.published(); }, ExitStatus::data), "has no checkpoint yet"));
  directory.save(Filled(10).checkpoint, false, 2, 1);
  EXPECT_FALSE(directory.best());
  EXPECT_EQ(directory.published().updates(), 10);
  for (const std::int64_t updates : {20, 30, 40, 50, 60})
    directory.save(Filled(updates).checkpoint, updates == 20 || updates == 30, 2, 1);
  EXPECT_EQ(directory.checkpoints(), (std::vector<std::int64_t>{30, 50, 60}));
  EXPECT_EQ(directory.best()->updates(), 30);
  EXPECT_EQ(directory.latest()->updates(), 60);
  EXPECT_EQ(directory.published().updates(), 30);
  for (const std::int64_t updates : {70, 80, 90})
    directory.save(Filled(updates).checkpoint, updates == 70, 1, 2);
  EXPECT_EQ(directory.checkpoints(), (std::vector<std::int64_t>{30, 70, 90}));
  // The same update once more: the links never name nothing, and one copy stays.
  directory.save(Filled(90).checkpoint, true, 1, 1);
  EXPECT_EQ(directory.checkpoints(), (std::vector<std::int64_t>{90}));
  expect_whole(*directory.best());
  expect_whole(*directory.latest());
  EXPECT_EQ(
      std::distance(fs::directory_iterator(folder.path + "/checkpoints"), fs::directory_iterator()),
      1);
}

TEST(ModelDirectory, DamageOfAnOlderCheckpointStopsNoSave) {
  const Folder folder;
  const Vocabulary v = vocabulary(40);
  ModelDirectory directory = ModelDirectory::create(folder.path, small_spec(), v, v);
  for (const std::int64_t updates : {10, 20})
    directory.save(Filled(updates).checkpoint, updates == 10, 2, 2);
  write_file(directory.best()->folder() + "/manifest.json", "{\"format\": \"nmt-check");
  for (const std::int64_t updates : {30, 40})
    directory.save(Filled(updates).checkpoint, updates == 30, 1, 2);
  EXPECT_EQ(directory.checkpoints(), (std::vector<std::int64_t>{30, 40}));
  EXPECT_EQ(directory.best()->updates(), 30);
  expect_whole(*directory.latest());
}

TEST(ModelDirectory, StartingAnewForgetsTheOldModel) {
  const Folder folder;
  const Vocabulary v = vocabulary(40);
  ModelDirectory::create(folder.path, small_spec(), v, v).save(Filled(10).checkpoint, true, 2, 1);
  const ModelDirectory directory = ModelDirectory::create(folder.path, small_spec(), v, v);
  EXPECT_FALSE(directory.latest() || directory.best());
  EXPECT_TRUE(directory.checkpoints().empty());
}

TEST(ModelDirectory, ACopyThatFollowsLinksIsAModel) {
  const Folder folder;
  const Vocabulary v = vocabulary(40);
  ModelDirectory directory = ModelDirectory::create(folder.path, small_spec(), v, v);
  for (const std::int64_t updates : {10, 20})
    directory.save(Filled(updates).checkpoint, updates == 10, 5, 1);
  const auto dereference = [&](const char* link) {
    const std::string path = folder.path + "/" + link;
    const fs::path target = fs::canonical(path);
    fs::remove(path);
    fs::copy(target, path, fs::copy_options::recursive);
    ASSERT_TRUE(fs::is_directory(fs::symlink_status(path)));
  };
  dereference("latest");
  dereference("best");
  ModelDirectory copy = ModelDirectory::open(folder.path);
  EXPECT_EQ(copy.latest()->updates(), 20);
  EXPECT_EQ(copy.published().updates(), 10);
  expect_whole(*copy.best());
  copy.clean_up();
  EXPECT_EQ(copy.checkpoints(), (std::vector<std::int64_t>{10, 20}));
  EXPECT_TRUE(fs::is_symlink(folder.path + "/latest"));
  EXPECT_TRUE(fs::is_symlink(folder.path + "/best"));
  EXPECT_EQ(copy.published().updates(), 10);
  dereference("latest");
  dereference("best");
  copy.save(Filled(30).checkpoint, true, 5, 1);
  EXPECT_EQ(copy.latest()->updates(), 30);
  EXPECT_EQ(copy.best()->updates(), 30);
  // The checkpoints themselves were not copied: there is enough to translate.
  dereference("best");
  fs::remove_all(folder.path + "/checkpoints");
  fs::remove(folder.path + "/latest");
  expect_whole(ModelDirectory::open(folder.path).published());
}

TEST(ModelDirectory, ACopyOfTheLatestCheckpointAloneGoesOn) {
  const Folder folder;
  const Vocabulary v = vocabulary(40);
  ModelDirectory directory = ModelDirectory::create(folder.path, small_spec(), v, v);
  directory.save(Filled(10).checkpoint, false, 5, 1);
  const std::string latest = folder.path + "/latest";
  fs::remove(latest);
  fs::rename(folder.path + "/checkpoints/10", latest);
  directory.clean_up();
  EXPECT_TRUE(fs::is_symlink(latest));
  EXPECT_EQ(directory.checkpoints(), (std::vector<std::int64_t>{10}));
  expect_whole(*ModelDirectory::open(folder.path).latest());
}

TEST(ModelDirectory, ANewOneMayEndInASlash) {
  const Folder folder;
  fs::create_directory(folder.path);
  expect_new(folder.path + "/new");
  expect_new(folder.path + "/new/");
  EXPECT_THROW(expect_new(folder.path + "/nowhere/new"), Error);
}

TEST(ModelDirectory, WithoutALinkTheNewestCheckpointIsTheLatest) {
  const Folder folder;
  const Vocabulary v = vocabulary(40);
  ModelDirectory directory = ModelDirectory::create(folder.path, small_spec(), v, v);
  for (const std::int64_t updates : {10, 20, 30})
    directory.save(Filled(updates).checkpoint, updates == 10, 5, 1);
  fs::remove(folder.path + "/latest");
  EXPECT_EQ(directory.latest()->updates(), 30);
  directory.clean_up();
  EXPECT_EQ(directory.checkpoints(), (std::vector<std::int64_t>{10, 20, 30}));
  EXPECT_TRUE(fs::is_symlink(folder.path + "/latest"));
  EXPECT_EQ(ModelDirectory::open(folder.path).latest()->updates(), 30);
}

TEST(ModelDirectory, ReturnsToAnOlderCheckpoint) {
  const Folder folder;
  const Vocabulary v = vocabulary(40);
  ModelDirectory directory = ModelDirectory::create(folder.path, small_spec(), v, v);
  for (const std::int64_t updates : {10, 20, 30, 40})
    directory.save(Filled(updates).checkpoint, updates == 30, 5, 1);
  directory.return_to(20);
  expect_whole(*directory.latest());
  EXPECT_EQ(directory.latest()->updates(), 20);
  EXPECT_EQ(directory.checkpoints(), (std::vector<std::int64_t>{10, 20, 30}));
  EXPECT_EQ(directory.best()->updates(), 30);
  EXPECT_THROW(directory.return_to(15), Error);
  directory.save(Filled(25).checkpoint, false, 1, 1);
  EXPECT_EQ(directory.latest()->updates(), 25);
  EXPECT_EQ(ModelDirectory::open(folder.path).checkpoints(), (std::vector<std::int64_t>{25, 30}));
}

TEST(ModelDirectory, AChangedVocabularyIsNoticed) {
  const Folder folder;
  const Vocabulary one = vocabulary(40), other = vocabulary(50);
  ModelDirectory::create(folder.path, small_spec(), one, other);
  const auto loaded = [&] { ModelDirectory::open(folder.path).load_vocabularies(); };
  // The score of a piece: still a vocabulary of the same size.
  std::string bytes = one.bytes();
  const std::size_t piece = bytes.find("\x15", bytes.find("\xe2\x96\x81", 40));
  ASSERT_NE(piece, std::string::npos);
  bytes[piece + 3] = static_cast<char>(bytes[piece + 3] ^ 1);
  write_file(folder.path + "/src.spm", bytes);
  EXPECT_TRUE(has(error_of(loaded, ExitStatus::data), "src.spm: has changed"));
  write_file(folder.path + "/src.spm", one.bytes());
  loaded();
  // Models of older versions have no checksums.
  std::string config = read_file(folder.path + "/config.json");
  const std::size_t at = config.find("\"vocabulary-crc32\"");
  ASSERT_NE(at, std::string::npos);
  config.erase(at, config.find("},", at) + 2 - at);
  write_file(folder.path + "/config.json", config);
  write_file(folder.path + "/src.spm", bytes);
  loaded();
}

TEST(ModelDirectory, DamageIsNamed) {
  const Folder folder;
  const Vocabulary v = vocabulary(40);
  EXPECT_TRUE(has(error_of([&] { ModelDirectory::open(folder.path); }, ExitStatus::usage),
                  "does not exist"));
  ModelDirectory directory = ModelDirectory::create(folder.path, small_spec(), v, v);
  directory.save(Filled(10).checkpoint, false, 2, 1);
  const StoredCheckpoint stored = *directory.latest();
  const std::string model = stored.folder() + "/model.safetensors", bytes = read_file(model);
  write_file(model, bytes.substr(0, bytes.size() - 1));
  EXPECT_TRUE(has(error_of([&] { stored.open_model(); }, ExitStatus::data), "were written"));
  std::string flipped = bytes;
  flipped[flipped.size() - 3] ^= 4;
  write_file(model, flipped);
  EXPECT_TRUE(
      has(error_of([&] { stored.open_model(); }, ExitStatus::data), "is damaged: its CRC-32 is"));
  fs::remove(model);
  EXPECT_TRUE(has(error_of([&] { stored.open_model(); }, ExitStatus::data),
                  "model.safetensors: is missing"));
  const std::string manifest = stored.folder() + "/manifest.json";
  std::string large = read_file(manifest);
  const std::size_t digits = large.find_first_of("0123456789", large.find("\"crc32\":") + 8);
  const std::size_t end = large.find_first_not_of("0123456789", digits);
  large.replace(digits, end - digits,
                std::to_string(std::stoull(large.substr(digits, end - digits)) + (1ULL << 32)));
  write_file(manifest, large);  // the same to 32 bits
  EXPECT_TRUE(has(error_of([&] { directory.latest(); }, ExitStatus::data), "bytes and crc32"));
  write_file(manifest, "{\"format\": \"nmt-check");
  EXPECT_TRUE(has(error_of([&] { directory.latest(); }, ExitStatus::data),
                  "manifest.json: is truncated or not JSON"));

  const std::string config = folder.path + "/config.json", text = read_file(config);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    write_file(config, other);
    return error_of([&] { ModelDirectory::open(folder.path); }, ExitStatus::data);
  };
  EXPECT_TRUE(has(changed("nmt-model", "other"), "is not of the format nmt-model"));
  EXPECT_TRUE(has(changed("\"version\": 1", "\"version\": 99"), "has version 99"));
  EXPECT_TRUE(has(changed("\"source-vocabulary\": 40", "\"source-vocabulary\": -1"),
                  "source-vocabulary: invalid value, expected a whole number of at least 1"));
  EXPECT_TRUE(has(changed("dim-emb", "dim-embd"), "dim-embd"));
  write_file(config, text);
  fs::remove(folder.path + "/vocab.spm");
  EXPECT_TRUE(has(
      error_of([&] { ModelDirectory::open(folder.path).load_vocabularies(); }, ExitStatus::data),
      "vocab.spm: is missing"));
  fs::remove(config);
  EXPECT_TRUE(has(error_of([&] { ModelDirectory::open(folder.path); }, ExitStatus::usage),
                  "contains no model"));
  write_file(folder.path + "/file", "");
  EXPECT_TRUE(has(error_of([&] { ModelDirectory::open(folder.path + "/file"); }, ExitStatus::usage),
                  "is a file"));
}

// Saves until it is killed, going on from what it finds, as nmt-train does.
[[noreturn]] void save_until_killed(const std::string& path) {
  try {
    ModelDirectory directory = ModelDirectory::open(path);
    directory.clean_up();
    std::int64_t updates = directory.latest() ? directory.latest()->updates() : 0;
    for (;;) {
      ++updates;
      directory.save(Filled(updates).checkpoint, updates % 3 == 0, 2, 1);
    }
  } catch (...) {
    ::_exit(1);
  }
}

TEST(ModelDirectory, AKillAtAnyMomentLeavesAWholeCheckpoint) {
  const Folder folder;
  const Vocabulary v = vocabulary(40);
  ModelDirectory::create(folder.path, small_spec(), v, v).save(Filled(0).checkpoint, true, 2, 1);
  // Moments in the first saves, however slow the disk and the machine are.
  const auto begin = std::chrono::steady_clock::now();
  ModelDirectory::open(folder.path).save(Filled(0).checkpoint, true, 2, 1);
  const std::chrono::duration<double, std::micro> one = std::chrono::steady_clock::now() - begin;
  const auto longest = static_cast<useconds_t>(std::max(12000.0, 4 * one.count()));
  std::mt19937 random(7);
  std::int64_t before = 0, kills_in_a_save = 0;
  for (int round = 0; round < 100; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) save_until_killed(folder.path);
    ::usleep(std::uniform_int_distribution<useconds_t>(0, longest)(random));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child failed";
    for (const auto& entry : fs::directory_iterator(folder.path + "/checkpoints"))
      kills_in_a_save += is_temporary_name(entry.path().filename().string());
    const ModelDirectory directory = ModelDirectory::open(folder.path);
    ASSERT_TRUE(directory.latest() && directory.best());
    expect_whole(*directory.latest());
    expect_whole(directory.published());
    EXPECT_GE(directory.latest()->updates(), before);
    before = directory.latest()->updates();
  }
  EXPECT_GT(before, 0);
  EXPECT_GT(kills_in_a_save, 0);  // else the moments were not random enough
  ModelDirectory directory = ModelDirectory::open(folder.path);
  directory.clean_up();
  for (const auto& entry : fs::directory_iterator(folder.path + "/checkpoints"))
    EXPECT_FALSE(is_temporary_name(entry.path().filename().string()));
  for (const auto& entry : fs::directory_iterator(folder.path))
    EXPECT_FALSE(is_temporary_name(entry.path().filename().string())) << entry.path();
}

TEST(ModelDirectory, AFullDiskLeavesTheOldCheckpoint) {
  const Folder folder;
  const Vocabulary v = vocabulary(40);
  ModelDirectory directory = ModelDirectory::create(folder.path, small_spec(), v, v);
  directory.save(Filled(1).checkpoint, true, 1, 1);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{}, limit{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  limit = before;
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{1000}, rlim_t{50000},
                             rlim_t{100000}}) {  // model 80,000 bytes, state twice that
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string message =
        error_of([&] { directory.save(Filled(2).checkpoint, true, 1, 1); }, ExitStatus::failed);
    ::setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_TRUE(has(message, bytes < 80000 ? "model.safetensors" : "state.safetensors")) << message;
    EXPECT_TRUE(has(message, "bytes needed")) << message;
    EXPECT_EQ(directory.checkpoints(), (std::vector<std::int64_t>{1}));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path + "/checkpoints"),
                            fs::directory_iterator()),
              1);
    expect_whole(*directory.latest());
  }
  directory.save(Filled(2).checkpoint, true, 1, 1);
  expect_whole(*directory.best());
  EXPECT_EQ(directory.latest()->updates(), 2);
}

}  // namespace
}  // namespace nmt
