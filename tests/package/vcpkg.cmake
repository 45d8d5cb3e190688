# Runs a port as vcpkg does: the functions that the port calls, in few lines. Nothing is compiled: what would be built is
# configured, and what would be installed is taken from the build tree BUILT.
#
#   cmake -DPORT=... -DBOX=... -DLINKAGE=static|dynamic -DBUILT=... -P vcpkg.cmake
cmake_minimum_required(VERSION 3.25)
set(PORT_DIR ${PORT})
set(PORT holdfast)
set(CURRENT_PORT_DIR ${PORT_DIR})
set(CURRENT_PACKAGES_DIR ${BOX}/packages)
set(VCPKG_LIBRARY_LINKAGE ${LINKAGE})

function(vcpkg_cmake_configure)
  cmake_parse_arguments(arg "" "SOURCE_PATH" "OPTIONS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "vcpkg_cmake_configure does not know ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(shared OFF)
  if(VCPKG_LIBRARY_LINKAGE STREQUAL "dynamic")
    set(shared ON)
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${arg_SOURCE_PATH} -B ${BOX}/build
    -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=${shared} ${arg_OPTIONS} -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}
    COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
  # One kind of library, and no program.
  execute_process(COMMAND ninja -C ${BOX}/build -n install OUTPUT_VARIABLE steps COMMAND_ERROR_IS_FATAL ANY)
  if(steps MATCHES "src/cli/" OR (shared AND steps MATCHES "libholdfast\\.a") OR (NOT shared AND steps MATCHES "libholdfast\\.so"))
    message(FATAL_ERROR "more is built than the port needs")
  endif()
endfunction()

function(vcpkg_cmake_install)
  foreach(component IN ITEMS holdfast_development holdfast_runtime)
    execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILT} --prefix ${CURRENT_PACKAGES_DIR} --component ${component}
      COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
  endforeach()
  set(libraries ${CURRENT_PACKAGES_DIR}/lib)
  if(VCPKG_LIBRARY_LINKAGE STREQUAL "dynamic")
    file(GLOB others ${libraries}/*.a ${libraries}/cmake/holdfast/holdfast-static*)
  else()
    file(GLOB others ${libraries}/*.so* ${libraries}/cmake/holdfast/holdfast-shared*)
  endif()
  file(REMOVE ${others})
endfunction()

# Moves the CMake package to share/holdfast, one folder nearer to the prefix, and corrects how it finds the prefix.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(arg "" "PACKAGE_NAME;CONFIG_PATH" "" ${ARGN})
  set(share ${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME})
  file(COPY ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/ DESTINATION ${share})
  file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH})
  file(GLOB files ${share}/*.cmake)
  foreach(file IN LISTS files)
    file(READ ${file} text)
    string(REPLACE [[${CMAKE_CURRENT_LIST_DIR}/../../../]] [[${CMAKE_CURRENT_LIST_DIR}/../../]] text "${text}")
    string(REGEX REPLACE
      "get_filename_component\\(_IMPORT_PREFIX \"\\\${CMAKE_CURRENT_LIST_FILE}\" PATH\\)(\nget_filename_component\\(_IMPORT_PREFIX \"\\\${_IMPORT_PREFIX}\" PATH\\))+"
      "get_filename_component(_IMPORT_PREFIX \"\${CMAKE_CURRENT_LIST_FILE}\" PATH)\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)"
      text "${text}")
    file(WRITE ${file} "${text}")
  endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
  if(NOT EXISTS ${CURRENT_PACKAGES_DIR}/lib/pkgconfig/holdfast.pc)
    message(FATAL_ERROR "no pkg-config file")
  endif()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(arg "" "" "FILE_LIST" ${ARGN})
  file(MAKE_DIRECTORY ${CURRENT_PACKAGES_DIR}/share/${PORT})
  file(COPY_FILE ${arg_FILE_LIST} ${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright)
endfunction()

# The port asks where it is itself.
file(READ ${PORT_DIR}/portfile.cmake port)
file(WRITE ${BOX}/portfile.cmake "set(CMAKE_CURRENT_LIST_DIR \"${PORT_DIR}\")\n${port}")
include(${BOX}/portfile.cmake)
