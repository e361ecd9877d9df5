# What `make install` puts where: the libraries, the headers, the dtg command, licences, a CMake package (dtg::dtg, dtg::dtg_static) and a pkg-config file.
#
# Nothing installed holds an absolute path, so a staged tree can be moved. The components are the packages of DtgPackage.cmake.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(dtg_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/dtg")

install(TARGETS dtg EXPORT dtgTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT development
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  install(FILES "${DTG_ARCHIVE}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
endif()
if(DTG_CLI)
  install(TARGETS dtg_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
endif()
# The pages and programs of the first hour, and what they learn from: they compile where they lie, against what is installed.
install(FILES "${PROJECT_SOURCE_DIR}/capi/FIRST_HOUR.md" "${PROJECT_SOURCE_DIR}/capi/RECIPES.md" "${PROJECT_SOURCE_DIR}/capi/ELASTIC.md" "${PROJECT_SOURCE_DIR}/capi/PREDICT.md" "${PROJECT_SOURCE_DIR}/capi/WHEN_SOMETHING_DIES.md" "${PROJECT_SOURCE_DIR}/capi/TWO_MACHINES.md"
  "${PROJECT_SOURCE_DIR}/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT development)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/capi/examples/" DESTINATION "${CMAKE_INSTALL_DATADIR}/dtg/examples" COMPONENT development
  FILES_MATCHING PATTERN "*.c" PATTERN "*.h")
install(FILES "${PROJECT_SOURCE_DIR}/tests/data/digits.csv.gz" DESTINATION "${CMAKE_INSTALL_DATADIR}/dtg/examples" COMPONENT development)
# Whose code is inside: the licences that binaries must carry along, under the name of each part.
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT runtime)
file(GLOB dtg_mimalloc_licence "${DTG_MIMALLOC_HOME}/../sources-*/libmimalloc-sys/c_src/mimalloc/v3/LICENSE")
foreach(part IN ITEMS
    "libuv=${DTG_UV_HOME}/share/doc/libuv/LICENSE" "libuv-extra=${DTG_UV_HOME}/share/doc/libuv/LICENSE-extra" "mimalloc=${dtg_mimalloc_licence}"
    "flatbuffers=/usr/share/doc/libflatbuffers-dev/copyright" "highway=/usr/share/doc/libhwy-dev/copyright"
    "nlohmann-json=/usr/share/doc/nlohmann-json3-dev/copyright" "eigen=/usr/share/doc/libeigen3-dev/copyright")
  string(REGEX MATCH "^([^=]+)=(.+)$" dtg_known "${part}")
  if(dtg_known AND EXISTS "${CMAKE_MATCH_2}")
    file(REAL_PATH "${CMAKE_MATCH_2}" dtg_licence)
    install(FILES "${dtg_licence}" DESTINATION "${CMAKE_INSTALL_DOCDIR}/third_party" RENAME "${CMAKE_MATCH_1}.txt" COMPONENT runtime)
  endif()
endforeach()
install(EXPORT dtgTargets NAMESPACE dtg:: DESTINATION "${dtg_package_dir}" COMPONENT development)

configure_package_config_file("${PROJECT_SOURCE_DIR}/.cmake/dtgConfig.cmake.in" "${PROJECT_BINARY_DIR}/generated/dtgConfig.cmake"
  INSTALL_DESTINATION "${dtg_package_dir}" PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
# 0.x: a new minor may break, so only the same minor is compatible.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/generated/dtgConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/generated/dtgConfig.cmake" "${PROJECT_BINARY_DIR}/generated/dtgConfigVersion.cmake"
  DESTINATION "${dtg_package_dir}" COMPONENT development)

# The prefix is found from where the .pc file lies: up as many steps as its folder is deep.
cmake_path(SET dtg_pc_dir NORMALIZE "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH DTG_PC_PREFIX "/${dtg_pc_dir}" "/")
string(REGEX REPLACE "/$" "" DTG_PC_PREFIX "${DTG_PC_PREFIX}")
configure_file("${PROJECT_SOURCE_DIR}/pkgconfig/dtg.pc.in" "${PROJECT_BINARY_DIR}/generated/dtg.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/generated/dtg.pc" DESTINATION "${dtg_pc_dir}" COMPONENT development)
