# Example programs: each capi/examples/<name>.c is one C11 program, example_<name>, and so is each folder
# capi/examples/<name>/ with all its .c files. They see only the public headers.
#
# They are registered as tests from DtgTests.cmake (an example that does not run is worse than none).
file(GLOB dtg_examples CONFIGURE_DEPENDS LIST_DIRECTORIES true "${PROJECT_SOURCE_DIR}/capi/examples/*")
set(DTG_EXAMPLE_TARGETS)
foreach(source IN LISTS dtg_examples)
  cmake_path(GET source STEM name)
  if(IS_DIRECTORY "${source}")
    file(GLOB sources CONFIGURE_DEPENDS "${source}/*.c")
  elseif(source MATCHES "\\.c$")
    set(sources "${source}")
  else()
    continue()
  endif()
  dtg_add_c_program(example_${name} ${sources})
  list(APPEND DTG_EXAMPLE_TARGETS example_${name})
endforeach()
add_custom_target(examples DEPENDS ${DTG_EXAMPLE_TARGETS})
