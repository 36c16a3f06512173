# Python and shell tests of the finished programs and of the scripts; each gets the folder
# of the programs.
file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tools/test_*.py
     ${CMAKE_CURRENT_SOURCE_DIR}/tools/test_*.sh ${CMAKE_CURRENT_SOURCE_DIR}/eval/test_*.py
     ${CMAKE_CURRENT_SOURCE_DIR}/tasks/test_*.py ${CMAKE_CURRENT_SOURCE_DIR}/model/test_*.py
     ${CMAKE_CURRENT_SOURCE_DIR}/train/test_*.py
     ${CMAKE_CURRENT_SOURCE_DIR}/scripts/test_*.py)
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  if(script MATCHES "\\.py$")
    add_test(NAME tools.${name} COMMAND ${NMT_PYTHON} ${script} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  else()
    add_test(NAME tools.${name} COMMAND bash ${script} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  endif()
  set_tests_properties(tools.${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS programs)
endforeach()
