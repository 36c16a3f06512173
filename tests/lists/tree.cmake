# The source tree itself, and the simulation of CUDA graphs.
add_test(NAME floors COMMAND ${NMT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/tree/check_floors.py
         ${CMAKE_SOURCE_DIR})
foreach(check architectures format docs includes tree places)
  add_test(NAME ${check} COMMAND ${NMT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/tree/check_${check}.py
                                 ${CMAKE_SOURCE_DIR})
  set_tests_properties(${check} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
foreach(ranks 1 2)
  add_test(NAME cuda.replays_${ranks} COMMAND ${NMT_PYTHON}
                                              ${CMAKE_SOURCE_DIR}/scripts/bench/simulate_graphs.py
                                              --ranks ${ranks} --check 95)
endforeach()
# The texts of planted faults are still in the kernels.
add_test(NAME cuda.faults COMMAND ${NMT_PYTHON} ${CMAKE_SOURCE_DIR}/scripts/dev/plant_faults.py
         --list)
add_test(NAME cuda.rules COMMAND ${NMT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/tree/check_kernels.py
         ${CMAKE_SOURCE_DIR})
# The toolkits that the build accepts.
add_test(NAME cuda.versions
         COMMAND ${NMT_PYTHON} ${CMAKE_SOURCE_DIR}/tests/tree/check_cuda_versions.py
                 ${CMAKE_SOURCE_DIR} ${CMAKE_COMMAND})
