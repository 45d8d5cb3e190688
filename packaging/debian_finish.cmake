# What Debian wants of a package and `cmake --install` does not do: run by CPack when the files of all components are in
# place, before they are packed. Manual pages are compressed, and every package says
# under /usr/share/doc what its licence is.
cmake_minimum_required(VERSION 3.25)

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX})
  string(TOUPPER ${component} key)
  configure_file(${CPACK_RESOURCE_FILE_LICENSE}
    ${root}/share/doc/${CPACK_DEBIAN_${key}_PACKAGE_NAME}/copyright COPYONLY)

  file(GLOB_RECURSE pages ${root}/share/man/*.1)
  if(pages)
    execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
