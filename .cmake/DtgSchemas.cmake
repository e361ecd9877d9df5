# FlatBuffers schemas: internal/wire/schema/<name>.fbs becomes <build>/generated/wire/schema/<name>_generated.h.
#
# dtg_wire_private(SOURCES) hands the generated headers, and the guard against flatbuffers' assert, to the given sources. Only
# internal/wire and its tests get them: nothing else may know the encoding (design 6.6).
file(GLOB dtg_schemas CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/internal/wire/schema/*.fbs")
set(DTG_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")
set(DTG_GENERATED_HEADERS)
if(dtg_schemas)
  find_program(DTG_FLATC flatc REQUIRED)
  mark_as_advanced(DTG_FLATC)
  foreach(schema IN LISTS dtg_schemas)
    cmake_path(GET schema STEM name)
    set(header "${DTG_GENERATED_DIR}/wire/schema/${name}_generated.h")
    add_custom_command(OUTPUT "${header}"
      COMMAND ${DTG_FLATC} --cpp --scoped-enums --cpp-std c++17 --no-includes
        -I "${PROJECT_SOURCE_DIR}/internal/wire/schema" -o "${DTG_GENERATED_DIR}/wire/schema" "${schema}"
      # A schema may include another; regenerating all is cheaper than tracking which.
      DEPENDS ${dtg_schemas}
      COMMENT "flatc ${name}.fbs" VERBATIM)
    list(APPEND DTG_GENERATED_HEADERS "${header}")
  endforeach()
endif()
add_custom_target(dtg_schemas DEPENDS ${DTG_GENERATED_HEADERS})

function(dtg_wire_private)
  set(options "-isystem${DTG_GENERATED_DIR}")
  # flatbuffers asserts on bad input in places; ours turns that into an error (no abort on foreign bytes, design 6.1).
  set(guard "${PROJECT_SOURCE_DIR}/internal/wire/flatbuffers_assert.h")
  if(EXISTS "${guard}")
    list(APPEND options -include "${guard}")
  endif()
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${options})
  set_property(SOURCE ${ARGN} APPEND PROPERTY OBJECT_DEPENDS "${DTG_GENERATED_HEADERS}")
endfunction()
