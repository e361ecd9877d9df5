# dtg_unite(LIST PREFIX): replaces the sources in the list by few units that include them (.cmake/unity.py), with DTG_UNITY only.
#
# Nine tenths of a file's compilation are its headers. Units are made anew whenever CMake runs, which every make target sees to; a
# file that takes a name which another in its unit has is an error of the compiler until then.
option(DTG_UNITY "Compile sources in batches: a fifth of the time for a whole build, more for one changed file" ON)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

function(dtg_unite list prefix)
  if(NOT DTG_UNITY OR NOT ${list})
    return()
  endif()
  set(large)
  # Where nobody changes a file and builds again, batches are three times as large.
  if(DTG_QUICK OR DTG_SANITIZE)
    set(large --large)
  endif()
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/.cmake/unity.py" --root "${PROJECT_SOURCE_DIR}"
      --out "${PROJECT_BINARY_DIR}/generated/unity" --prefix ${prefix} ${large} ${${list}}
    OUTPUT_VARIABLE units COMMAND_ERROR_IS_FATAL ANY)
  set(${list} ${units} PARENT_SCOPE)
endfunction()
