#include "core/shell_word.h"

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

TEST(ShellWord, IsQuotedOnlyWhereNeeded) {
  for (const char* word : {"model", "a/b-c_d.e", "en-de=model", "+10e", "1,5:2@x%"})
    EXPECT_EQ(shell_word(word), word);
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("my model"), "'my model'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("modèle"), "'modèle'");
  EXPECT_EQ(shell_command({"nmt-train", "my file.en", "-o", "x"}), "nmt-train 'my file.en' -o x");
}

TEST(ShellWord, IsReadBackByAShell) {
  const std::vector<std::string> words{"plain", "two words", "it's", "a\"b",   "$HOME `id`",
                                       "~",     "*",         "a;b",  "a\nb\\", ""};
  std::vector<std::string> command{"printf", "%s|"};
  command.insert(command.end(), words.begin(), words.end());
  std::string expected;
  for (const std::string& word : words) expected += word + "|";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(
      ::popen(shell_command(command).c_str(), "r"), ::pclose);
  ASSERT_NE(pipe, nullptr);
  std::array<char, 256> buffer{};
  const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe.get());
  EXPECT_EQ(std::string(buffer.data(), count), expected);
}

}  // namespace
}  // namespace nmt
