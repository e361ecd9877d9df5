# Example programs: each capi/examples/<name>.c is one C11 program, example_<name>, that sees only the public headers.
#
# They are registered as tests from DtgTests.cmake (an example that does not run is worse than none).
file(GLOB dtg_examples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/capi/examples/*.c")
set(DTG_EXAMPLE_TARGETS)
foreach(source IN LISTS dtg_examples)
  cmake_path(GET source STEM name)
  dtg_add_c_program(example_${name} "${source}")
  list(APPEND DTG_EXAMPLE_TARGETS example_${name})
endforeach()
add_custom_target(examples DEPENDS ${DTG_EXAMPLE_TARGETS})
