# The tests that a build for another processor runs, in its emulator: those of the kernels, whose loops are other code there.
# tests/arm64/ runs programs of all languages on the whole library (`make arm64`).
add_library(dtg_kernels STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:dtg_kernel_objects>)
target_include_directories(dtg_kernels PUBLIC "${PROJECT_SOURCE_DIR}/internal" "${PROJECT_SOURCE_DIR}")
target_link_libraries(dtg_kernels PUBLIC dtg_third_party)
set(DTG_RESULTS "${PROJECT_BINARY_DIR}/results")
file(MAKE_DIRECTORY "${DTG_RESULTS}")
foreach(rung device ops)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${rung}/*.cc")
  list(FILTER sources EXCLUDE REGEX "/ops/looks_test")  # it measures time
  dtg_unite(sources test_${rung})
  add_executable(test_${rung} ${sources})
  target_include_directories(test_${rung} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(test_${rung} PRIVATE dtg_kernels dtg_gtest dtg_flags)
  add_test(NAME test_${rung} COMMAND test_${rung} --gtest_brief=1 "--gtest_output=json:${DTG_RESULTS}/test_${rung}.json")
  set_tests_properties(test_${rung} PROPERTIES ENVIRONMENT "DTG_SOURCE_DIR=${PROJECT_SOURCE_DIR}" TIMEOUT 300 LABELS ${rung})
endforeach()
