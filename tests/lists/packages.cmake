# The Python module, installed in a temporary prefix.
if(NMT_PYTHON_MODULE)
  add_test(NAME python COMMAND ${NMT_PYTHON} ${CMAKE_SOURCE_DIR}/python/tests/run_tests.py
                               ${CMAKE_BINARY_DIR})
  set_tests_properties(python PROPERTIES LABELS "programs;python" SKIP_RETURN_CODE 77)
endif()

# A program of somebody else's, built against an installed and moved prefix.
if(NOT NMT_SANITIZE)
  add_test(NAME consumer COMMAND ${NMT_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/consumer/test_consumer.py
           ${CMAKE_BINARY_DIR})
  add_test(NAME consumer.extra_units COMMAND ${NMT_PYTHON}
           ${CMAKE_CURRENT_SOURCE_DIR}/consumer/test_extra_units.py ${CMAKE_CXX_COMPILER})
  set_tests_properties(consumer consumer.extra_units PROPERTIES LABELS programs)
endif()
