#include "core/dynamic_library.h"

#include "core/error.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

namespace nmt {
namespace {

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST(DynamicLibrary, OpensTheFirstThatIsThere) {
  DynamicLibrary library({"libnmt_no_such.so.1", soname("libm", 6)});
  double (*cosine)(double) = nullptr;
  library.find("cos", cosine);
  EXPECT_EQ(library.error(), "");
  library.require("a test");
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0.0), 1.0);
}

TEST(DynamicLibrary, SaysWhatItTried) {
  DynamicLibrary library({"libnmt_no_such.so.2", "libnmt_no_such.so.1"});
  int (*function)() = nullptr;
  library.find("function", function);
  EXPECT_EQ(function, nullptr);
  EXPECT_TRUE(contains(library.error(), "libnmt_no_such.so.2: ")) << library.error();
  EXPECT_TRUE(contains(library.error(), "libnmt_no_such.so.1: ")) << library.error();
  try {
    library.require("--device test");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::usage);
    EXPECT_TRUE(contains(error.what(), "--device test: libnmt_no_such.so.2")) << error.what();
    EXPECT_TRUE(contains(error.what(), "LD_LIBRARY_PATH")) << error.what();
  }
}

TEST(DynamicLibrary, SaysWhatALibraryLacks) {
  DynamicLibrary library({"libm.so.6"});
  double (*function)(double) = std::cos;
  library.find_optional("nmt_no_such_function", function);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(library.error(), "");
  library.find("nmt_no_such_function", function);
  library.find("cos", function);
  EXPECT_NE(function, nullptr);
  EXPECT_EQ(library.error(), "libm.so.6 has no nmt_no_such_function");
  EXPECT_THROW(library.require("a test"), Error);
}

}  // namespace
}  // namespace nmt
