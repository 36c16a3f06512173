# Models of released versions, and the kernels of all instruction sets.
add_test(NAME golden COMMAND ${NMT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/golden/test_golden.py
                               ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
add_executable(kernel_checksums golden/kernel_checksums.cpp)
target_link_libraries(kernel_checksums PRIVATE nmt_core nmt_kernels)
add_test(NAME golden.levels COMMAND ${NMT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/golden/test_levels.py
                                      ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set_tests_properties(golden golden.levels PROPERTIES LABELS programs)
set_tests_properties(golden PROPERTIES ENVIRONMENT "NMT_SANITIZE=${NMT_SANITIZE}")
