# Embeds ROOT/**/*.lua in the library, each with the SHA1 by which Redis will know it.
#
# A line `--@include path` is replaced by that file (path relative to ROOT), so that scripts share text instead of
# copying it. A file is included once in a script: a second `--@include` of it adds nothing. `--@paste path` puts the
# file in every time: for a few statements that a fast path shares with a function of the general path. With
# `KEYS[4]=KEYS[3]` behind the path the file uses that key instead. `--@each` puts copies in that differ in their keys.
# The tables are sorted by name: mutex/acquire, mutex/release, ... A folder called `common` holds files that are included
# only; a folder called `tools` holds scripts that no lock needs.

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
