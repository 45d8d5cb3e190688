# Compiles the sources of a target in a few translation units ("unity build"), one for each folder right below the one
# that calls this, or one for all (ONE_PIECE): most of a file's compile time goes into the headers it includes, so a
# folder in one piece takes a fifth of the time of its files one by one.
#
# The price: files of one piece share their anonymous namespaces. `./dev alone` checks that every file and every header
# compiles by itself; CI runs it.
function(holdfast_compile_in_pieces target)
  cmake_parse_arguments(arg "ONE_PIECE" "" "" ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    set(piece ${target})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE inside)
    if(NOT arg_ONE_PIECE AND inside MATCHES "^([a-z_]+)/")
      set(piece ${CMAKE_MATCH_1})
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${piece})
  endforeach()
endfunction()
