# Three Debian packages by CPack: `cpack -G DEB` in the build tree, or ./dev package.
#
#   libholdfast0.2    the shared object. Named after its soname, so that two of them can be installed side by side
#   libholdfast-dev   headers, archive, CMake package, pkg-config file
#   holdfast          the command, its man page, completion for the shells
#
# Dependencies on libraries are found by dpkg-shlibdeps from what the files are linked with.
set(runtime_package libholdfast${HOLDFAST_SOVERSION})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The holdfast authors <maintainers@holdfast.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Distributed locks on Redis")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL holdfast_runtime holdfast_development)
if(HOLDFAST_CLI)
  list(APPEND CPACK_COMPONENTS_ALL holdfast_tool)
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_HOLDFAST_RUNTIME_PACKAGE_NAME ${runtime_package})
set(CPACK_DEBIAN_HOLDFAST_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_HOLDFAST_RUNTIME_DESCRIPTION
  "This package has the shared library: first come, first served locks that hold across
machines, with leases that renew themselves and fencing tokens.")

set(CPACK_DEBIAN_HOLDFAST_DEVELOPMENT_PACKAGE_NAME libholdfast-dev)
set(CPACK_DEBIAN_HOLDFAST_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_HOLDFAST_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_HOLDFAST_DEVELOPMENT_PACKAGE_DEPENDS
  "${runtime_package} (= ${PROJECT_VERSION}), libboost1.81-dev, libssl-dev (>= 3.0)")
set(CPACK_COMPONENT_HOLDFAST_DEVELOPMENT_DESCRIPTION
  "This package has what C++20 programs that use holdfast are compiled with: headers,
static library, CMake package and pkg-config file.")

set(CPACK_DEBIAN_HOLDFAST_TOOL_PACKAGE_NAME holdfast)
set(CPACK_DEBIAN_HOLDFAST_TOOL_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_HOLDFAST_TOOL_PACKAGE_RECOMMENDS redis-server)
set(CPACK_COMPONENT_HOLDFAST_TOOL_DESCRIPTION
  "This package has the command, which runs commands under locks that hold across
machines, as flock does on one.")

set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/debian_finish.cmake)
include(CPack)
