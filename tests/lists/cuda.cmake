# CPU against CUDA, kernel by kernel, of one table: on the emulator, and on a GPU where there is
# one. Kernels alone: nothing of nmt is linked, so they build quickly.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda/*.cpp
     ${CMAKE_CURRENT_SOURCE_DIR}/cuda/precision/*.cpp
     ${CMAKE_CURRENT_SOURCE_DIR}/cuda/recurrent/*.cpp)
add_library(parity_table OBJECT ${sources})
target_include_directories(parity_table PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_options(parity_table PRIVATE ${test_optimization})
target_link_libraries(parity_table PRIVATE nmt_core nmt_kernels GTest::gtest)
nmt_precompile("<gtest/gtest.h>" parity_table)
function(nmt_add_parity_tests target backend)
  add_executable(${target} $<TARGET_OBJECTS:parity_table> ${ARGN})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${target} PRIVATE ${test_optimization})
  target_link_libraries(${target} PRIVATE ${backend} GTest::gtest GTest::gtest_main)
endfunction()
if(TARGET nmt_emulated)
  nmt_add_parity_tests(cuda_emulated_tests nmt_emulated)
  # What the host and the device share: all that sanitizers see, and once more with a device as late
  # as possible (tests/emulator/include/emulator.h).
  set(of_host "--gtest_filter=RecurringWork*:Device*:*adam*:*combine_scores*:*cudnn*")
  if(NMT_SANITIZE)
    add_test(NAME cuda.emulated COMMAND cuda_emulated_tests ${of_host})
  else()
    add_test(NAME cuda.emulated COMMAND cuda_emulated_tests --gtest_filter=-*CpuBounds*)
    # The kernels of the CPU with the operands of the parity table, beside protected pages
    # (kernels/guarded_memory.h).
    if(EXISTS /lib64/ld-linux-x86-64.so.2 AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
      foreach(level x86-64-v3 x86-64-v4)
        add_test(NAME kernels.bounds.${level} COMMAND /lib64/ld-linux-x86-64.so.2
                 --glibc-hwcaps-mask ${level} $<TARGET_FILE:cuda_emulated_tests>
                 --gtest_filter=*CpuBounds*)
      endforeach()
    endif()
  endif()
  add_test(NAME cuda.late COMMAND cuda_emulated_tests ${of_host})
  set_tests_properties(cuda.late PROPERTIES ENVIRONMENT NMT_EMULATED_STREAMS=late)
  add_test(NAME emulator COMMAND emulator_tests)
  add_subdirectory(standins)
endif()
if(NMT_CUDA_KIND STREQUAL "ON")
  nmt_add_parity_tests(cuda_tests nmt_cuda)
  add_test(NAME cuda.device COMMAND cuda_tests)
  set_tests_properties(cuda.device PROPERTIES SKIP_REGULAR_EXPRESSION "no CUDA device to test")
  add_test(NAME cuda.registers COMMAND ${NMT_PYTHON}
           ${CMAKE_SOURCE_DIR}/scripts/dev/kernel_registers.py ${CMAKE_BINARY_DIR})
  set_tests_properties(cuda.registers PROPERTIES SKIP_RETURN_CODE 77)
endif()
