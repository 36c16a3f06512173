# Templates over all units in double: half a minute each to optimize, no time to run.
if(NMT_SANITIZE)
  set_source_files_properties(kernels/unit_test.cpp autograd/probe_test.cpp
                              PROPERTIES COMPILE_OPTIONS -O0 SKIP_PRECOMPILE_HEADERS ON)
endif()
set_source_files_properties(kernels/matrix_state_unit_test.cpp autograd/matrix_op_rows.cpp
    PROPERTIES COMPILE_OPTIONS -fopenmp-simd SKIP_PRECOMPILE_HEADERS ON)

# Kernels over emulated instructions of AMX and AVX-512 BF16. Without -fexpensive-optimizations, g++
# leaves the upper halves of vectors in use when it calls SSE code, which makes the emulation 20
# times slower; -O2 takes five times as long to compile.
set(tile_options -O1 -fexpensive-optimizations -fopenmp-simd -ffp-contract=off)
set_source_files_properties(kernels/amx/emulated_tiles.cpp kernels/amx/tiled_dots_test.cpp
                            PROPERTIES COMPILE_OPTIONS "${tile_options}" SKIP_PRECOMPILE_HEADERS ON)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND tile_options -march=x86-64-v4)
endif()
set_source_files_properties(kernels/amx/emulated_products.cpp
    PROPERTIES COMPILE_OPTIONS "${tile_options}" SKIP_PRECOMPILE_HEADERS ON)

# The kernels once more as an older processor would load them: the dynamic loader takes only the
# variants it is told.
if(TARGET kernels_tests AND NOT NMT_SANITIZE AND EXISTS /lib64/ld-linux-x86-64.so.2
   AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # TiledProduct has its own copy of the kernels.
  foreach(level x86-64-v2 x86-64-v3)
    add_test(NAME kernels.${level} COMMAND /lib64/ld-linux-x86-64.so.2 --glibc-hwcaps-mask ${level}
             $<TARGET_FILE:kernels_tests> --gtest_filter=-TiledProduct.*)
  endforeach()
  # Operands that begin at protected pages (kernels/guarded_memory.h); above they end there. Without
  # tests of numbers alone.
  foreach(level x86-64-v2 x86-64-v3 x86-64-v4)
    add_test(NAME kernels.begin.${level} COMMAND /lib64/ld-linux-x86-64.so.2
             --glibc-hwcaps-mask ${level} $<TARGET_FILE:kernels_tests>
             "--gtest_filter=-Math.*:*Library*:*EqualsDoublePrecision*:LongSentences.*:\
GemmBatched.The*:TiledProduct.*Long*:TiledProduct.The*")
    set_tests_properties(kernels.begin.${level} PROPERTIES ENVIRONMENT NMT_TEST_GUARD=begin)
  endforeach()
  # AVX-512 of the first generation (Skylake-X): neither VNNI nor BF16.
  add_test(NAME kernels.plain COMMAND kernels_tests
           --gtest_filter=*Int8*:*Rounded*:*Quantized*:*Bf16*:SelectColumns*)
  set_tests_properties(kernels.plain PROPERTIES ENVIRONMENT "NMT_VNNI=0;NMT_BF16=0;NMT_AMX=0")
  # AVX-512 with VNNI and BF16, without AMX (Zen 4, Cooper Lake).
  add_test(NAME kernels.pairs COMMAND kernels_tests
           --gtest_filter=*Rounded*:*Bf16*:SelectColumns*:PairInstructions.*)
  set_tests_properties(kernels.pairs PROPERTIES ENVIRONMENT "NMT_AMX=0;NMT_BF16=1"
                       SKIP_REGULAR_EXPRESSION "this processor has no AVX-512 BF16")
endif()
