# Embeds src/wire/scripts/**/*.lua in the library, each with the SHA1 that Redis will know it by.
#
# A line `--@include path` is replaced by that file (path relative to the scripts folder), so that what several
# scripts share is written once. The table is sorted by name: mutex/acquire, mutex/release, ...
# Files in a folder called `common` are only ever included.

set(HOLDFAST_EMBED_TOOL ${CMAKE_CURRENT_LIST_DIR}/embed_scripts_tool.cmake)

function(holdfast_embed_scripts)
  cmake_parse_arguments(arg "" "ROOT;OUTPUT" "" ${ARGN})
  file(GLOB_RECURSE lua_files CONFIGURE_DEPENDS ${arg_ROOT}/*.lua)
  add_custom_command(
    OUTPUT ${arg_OUTPUT}
    COMMAND ${CMAKE_COMMAND} -DROOT=${arg_ROOT} -DOUTPUT=${arg_OUTPUT} -P ${HOLDFAST_EMBED_TOOL}
    DEPENDS ${lua_files} ${HOLDFAST_EMBED_TOOL}
    COMMENT "Embedding Lua scripts"
    VERBATIM)
endfunction()
