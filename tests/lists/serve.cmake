# nmt-serve: texts, batches and requests, without models; serve/test_serve.py has the program.
if(NMT_SERVER)
  file(GLOB sources CONFIGURE_DEPENDS serve/*.cpp)
  add_executable(serve_tests ${sources})
  target_include_directories(serve_tests PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(serve_tests PRIVATE ${test_optimization})
  target_link_libraries(serve_tests PRIVATE nmt_server nmt_text GTest::gtest GTest::gtest_main)
  add_test(NAME serve COMMAND serve_tests)
  set_tests_properties(serve PROPERTIES LABELS threads)
endif()

# The page's readers of files, where node is installed.
find_program(NMT_NODE NAMES node nodejs)
if(NMT_SERVER AND NMT_NODE)
  add_test(NAME serve.files COMMAND ${NMT_NODE} ${CMAKE_CURRENT_SOURCE_DIR}/serve/files_test.js)
endif()

# The finished program and its web page.
if(NMT_SERVER)
  add_test(NAME tools.test_serve COMMAND ${NMT_PYTHON}
           ${CMAKE_CURRENT_SOURCE_DIR}/serve/test_serve.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  add_test(NAME tools.test_http COMMAND ${NMT_PYTHON}
           ${CMAKE_CURRENT_SOURCE_DIR}/serve/test_http.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  add_test(NAME tools.test_models COMMAND ${NMT_PYTHON}
           ${CMAKE_CURRENT_SOURCE_DIR}/serve/test_models.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  add_test(NAME tools.test_page COMMAND ${NMT_PYTHON}
           ${CMAKE_CURRENT_SOURCE_DIR}/serve/test_page.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  add_test(NAME tools.test_libretranslate COMMAND ${NMT_PYTHON}
           ${CMAKE_CURRENT_SOURCE_DIR}/serve/test_libretranslate.py
           ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  set_tests_properties(tools.test_serve tools.test_http tools.test_models tools.test_page
                       tools.test_libretranslate PROPERTIES LABELS programs)
  set_tests_properties(tools.test_page PROPERTIES SKIP_RETURN_CODE 77)
endif()
