# Compiles each folder of a target's sources as one translation unit ("unity build"): most of a file's compile time goes
# into the headers it includes, so a folder in one piece takes a fifth of the time of its files one by one.
#
# The price: files of one folder share their anonymous namespaces. That every file also compiles by itself, and every
# header alone, is checked by `./dev check` (-fsyntax-only), which CI runs.
function(holdfast_compile_in_pieces target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME piece)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${piece})
  endforeach()
endfunction()
