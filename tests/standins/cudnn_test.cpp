// cuda/libraries/cudnn_library.cpp against a stand-in under cuDNN's name. The parity table's layers
// run here too.

#include "core/error.h"
#include "cuda/libraries/cudnn_library.h"

#include <string>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace nmt::cuda {
namespace {

TEST(Cudnn, EveryFunctionIsOfTheLibrary) {
  std::string why = "not opened";
  const CudnnLibrary* const library = CudnnLibrary::open(why);
  ASSERT_TRUE(library) << why;
  EXPECT_EQ(why, "");
  EXPECT_EQ(library, &CudnnLibrary::get());
  int functions = 0;
  const auto check = [&](const char* name, auto* function) {
    Dl_info found{};
    ASSERT_NE(dladdr(reinterpret_cast<void*>(function), &found), 0) << name;
    EXPECT_STREQ(found.dli_sname, name);
    EXPECT_NE(std::string(found.dli_fname).find("standins/libcudnn.so.9"), std::string::npos)
        << found.dli_fname;
    ++functions;
  };
#define NMT_CHECK_FUNCTION(name) check(#name, library->name)
  NMT_CUDNN_FUNCTIONS(NMT_CHECK_FUNCTION);
#undef NMT_CHECK_FUNCTION
  EXPECT_EQ(functions, 23);
}

TEST(Cudnn, FailuresNameTheCall) {
  std::string why;
  ASSERT_TRUE(CudnnLibrary::open(why)) << why;
  const CudnnLibrary& library = CudnnLibrary::get();
  cudnnTensorDescriptor_t tensor = nullptr;
  NMT_CUDA_CHECK(library.cudnnCreateTensorDescriptor(&tensor));
  const int sizes[] = {1};
  try {
    NMT_CUDA_CHECK(library.cudnnSetTensorNdDescriptor(tensor, CUDNN_DATA_FLOAT, 1, sizes, sizes));
    FAIL();
  } catch (const OutOfMemory&) {
    FAIL() << "not a matter of memory";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cudnnSetTensorNdDescriptor: CUDNN_STATUS_BAD_PARAM");
  }
  NMT_CUDA_CHECK(library.cudnnDestroyTensorDescriptor(tensor));
  EXPECT_THROW(check(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, "cudnnCreate()"),
               OutOfMemory);
}

// What a handle may answer on a full device; an error elsewhere.
TEST(Cudnn, ThatCannotBeInitializedIsOutOfMemory) {
  std::string why;
  ASSERT_TRUE(CudnnLibrary::open(why)) << why;
  EXPECT_THROW(check(CUDNN_STATUS_NOT_INITIALIZED, "library.cudnnCreate(&made)"), OutOfMemory);
  try {
    check(CUDNN_STATUS_NOT_INITIALIZED, "library.cudnnRNNForward()");
    FAIL();
  } catch (const OutOfMemory&) {
    FAIL() << "not a matter of memory";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("cudnnRNNForward: "), 0u) << error.what();
  }
}

}  // namespace
}  // namespace nmt::cuda
