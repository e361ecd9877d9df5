# The dtg command: bindings/cli/*.cc, a C++20 program that links libdtg.so and sees only the public headers.
#
# Its one private library is the JSON reader, headers only. Beside an installed library it finds that by a relative path.
file(GLOB dtg_cli_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bindings/cli/*.cc")
dtg_unite(dtg_cli_sources cli)
add_executable(dtg_cli ${dtg_cli_sources})
set_target_properties(dtg_cli PROPERTIES OUTPUT_NAME dtg RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
target_link_libraries(dtg_cli PRIVATE dtg dtg_strict_flags dtg_json Threads::Threads)
if(DTG_QUICK)
  target_compile_options(dtg_cli PRIVATE -O1)
endif()
include(GNUInstallDirs)
file(RELATIVE_PATH dtg_cli_to_library "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
set_target_properties(dtg_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${dtg_cli_to_library}")
