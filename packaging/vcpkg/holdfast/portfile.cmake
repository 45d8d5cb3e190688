# An overlay port: it builds the tree that it is a part of.
#
#   vcpkg install holdfast --overlay-ports=HOLDFAST/packaging/vcpkg
#
# In a registry of your own, replace the next line by vcpkg_from_git() with the tag of a release.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)

# vcpkg says dynamic, CMake says shared.
string(REPLACE dynamic shared kind "${VCPKG_LIBRARY_LINKAGE}")
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DHOLDFAST_LIBRARY=${kind}
    -DHOLDFAST_CLI=OFF
    -DHOLDFAST_TESTS=OFF
    -DHOLDFAST_EXAMPLES=OFF
    -DHOLDFAST_WERROR=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME holdfast CONFIG_PATH lib/cmake/holdfast)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
