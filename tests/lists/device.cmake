# Models, training and search on a device: the library over the emulator, and over the GPU
# where there is one.
file(GLOB sources CONFIGURE_DEPENDS device/*_test.cpp)
if(NOT NMT_CUDA_KIND STREQUAL "OFF")
  add_library(device_cases OBJECT ${sources})
  target_include_directories(device_cases PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(device_cases PRIVATE ${test_optimization})
  target_link_libraries(device_cases PRIVATE nmt_base GTest::gtest)
endif()
function(nmt_add_device_tests target backend)
  add_executable(${target} $<TARGET_OBJECTS:device_cases>)
  target_link_libraries(${target} PRIVATE "$<LINK_GROUP:RESCAN,nmt_base,${backend}>" GTest::gtest
                        GTest::gtest_main)
endfunction()
if(TARGET nmt_emulated AND NOT NMT_CUDA_KIND STREQUAL "OFF")
  nmt_add_device_tests(device_emulated_tests nmt_emulated)
  # The release build runs all of them, some with late streams. Under sanitizers those are left out
  # that take long in kernels, which sanitizers do not see, or in code that the others run too.
  set(late "*GraphsChangeNoBit*:*NotFinite*:*WaitsOnce*:*StepsAreReplayed*")
  set(device_filter "--gtest_filter=-${late}")
  if(NMT_SANITIZE)
    set(device_filter
        "--gtest_filter=-*persistent:Persistent*:*MorePaddingAgreesWithTheCpu*:\
*UpdatesAgreeWithTheCpu*:*EightTokensAreOneGraph*:*GraphsChangeNoBitInBfloat16:*WhereCallsDiffer:\
*StayNearFloat32*:*ChoosesOnTheDeviceAsTheHostDoes*:*LongSearches/deep*:*LongSearches/gnmt*")
  endif()
  add_test(NAME device.emulated COMMAND device_emulated_tests ${device_filter})
  if(NOT NMT_SANITIZE)
    add_executable(step_counts device/step_counts.cpp)
    target_include_directories(step_counts PRIVATE ${CMAKE_SOURCE_DIR})
    target_link_libraries(step_counts PRIVATE "$<LINK_GROUP:RESCAN,nmt_app,nmt_base,nmt_emulated>")
    add_test(NAME device.step_counts COMMAND step_counts --totals --max-launches 588
             --max-gigabytes 24.9)
    set(search_counts step_counts --totals --beam 4 --width 64 --vocabulary 64 --sentences 2
        --steps 8)
    add_test(NAME device.search_counts COMMAND ${search_counts} --max-launches 39)
    add_test(NAME device.search_counts_float32 COMMAND ${search_counts} --max-launches 39
             --precision float32)
    add_test(NAME device.search_memory
             COMMAND step_counts --memory --max-memory 1.9 --beam 4 --unit gru --layers 2
                     --width 256 --vocabulary 8000 --tied-embeddings-all --sentences 64 --steps 30
                     --context-aware=off --attention additive --precision float32)
  endif()
  set_tests_properties(device.emulated PROPERTIES COST 2000)  # the longest: first
  if(NOT NMT_SANITIZE)
    add_test(NAME device.late COMMAND device_emulated_tests "--gtest_filter=${late}:DeviceMemory*")
    set_tests_properties(device.late PROPERTIES ENVIRONMENT NMT_EMULATED_STREAMS=late)
  endif()
endif()
if(NMT_CUDA_KIND STREQUAL "ON")
  nmt_add_device_tests(device_tests nmt_cuda)
  add_test(NAME device.device COMMAND device_tests)
  set_tests_properties(device.device PROPERTIES SKIP_REGULAR_EXPRESSION "no CUDA device to test")
endif()
if(NMT_CUDA_KIND STREQUAL "ON" AND TARGET nmt_emulated)
  # The programs once more over the emulator, for the tests of --device below.
  set(tools nmt-train nmt-translate nmt-score nmt-explain nmt-bench)
  if(NMT_SERVER)
    list(APPEND tools nmt-serve)
  endif()
  foreach(tool ${tools})
    add_executable(emulated-${tool} ${CMAKE_SOURCE_DIR}/tools/${tool}.cpp)
    set_target_properties(emulated-${tool} PROPERTIES OUTPUT_NAME ${tool}
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/emulated)
    set(server "")
    if(tool STREQUAL "nmt-serve")
      set(server nmt_http,nmt_server,)
    endif()
    target_link_libraries(emulated-${tool}
                          PRIVATE "$<LINK_GROUP:RESCAN,${server}nmt_app,nmt_base,nmt_emulated>")
    if(tool STREQUAL "nmt-explain")
      target_sources(emulated-${tool} PRIVATE $<TARGET_OBJECTS:nmt_explain>)
    elseif(tool STREQUAL "nmt-bench")
      target_sources(emulated-${tool} PRIVATE $<TARGET_OBJECTS:nmt_benchmarks>)
      target_link_libraries(emulated-${tool} PRIVATE nmt_peak)
    endif()
  endforeach()
endif()

# Tests of the programs on a device: those over the emulator.
if(TARGET nmt_emulated AND NOT NMT_CUDA_KIND STREQUAL "OFF")
  set(programs ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}$<$<STREQUAL:${NMT_CUDA_KIND},ON>:/emulated>)
  file(GLOB scripts CONFIGURE_DEPENDS device/test_*.py)
  foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME device.${name} COMMAND ${NMT_PYTHON} ${script} ${programs})
    set_tests_properties(device.${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS programs)
  endforeach()
endif()
