# The readers of foreign files, over seeds and their mutations; fuzz/CMakeLists.txt builds the same
# entries for libFuzzer.
file(GLOB sources CONFIGURE_DEPENDS fuzz/*.cpp)
if(NOT NMT_SERVER)
  list(FILTER sources EXCLUDE REGEX "/(html|http_body)\\.cpp$")
endif()
add_executable(fuzz_tests ${sources})
target_include_directories(fuzz_tests PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_options(fuzz_tests PRIVATE -O1)
target_compile_definitions(fuzz_tests PRIVATE NMT_WITH_SERVER=$<BOOL:${NMT_SERVER}>)
target_link_libraries(fuzz_tests PRIVATE $<$<BOOL:${NMT_SERVER}>:nmt_server> nmt GTest::gtest
                      GTest::gtest_main)
# An entry per target, so that they run side by side. They come first: with NMT_FUZZ_SECONDS
# they are long.
file(STRINGS fuzz/targets.def lines REGEX "^NMT_FUZZ")
if(NOT NMT_SERVER)
  list(FILTER lines EXCLUDE REGEX "html|http_body")
endif()
foreach(line ${lines})
  string(REGEX REPLACE "NMT_FUZZ\\((.*)\\)" "\\1" name ${line})
  add_test(NAME fuzz.${name} COMMAND fuzz_tests --gtest_filter=*/${name})
  set_tests_properties(fuzz.${name} PROPERTIES COST 1000)
endforeach()
