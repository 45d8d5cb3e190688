# Warnings for our own targets only; a consumer's flags are their business.
function(holdfast_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
    -Woverloaded-virtual -Wcast-align -Wnull-dereference -Wimplicit-fallthrough)
  if(HOLDFAST_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # g++ 12 reports null dereferences and uninitialised reads inside library templates once a sanitizer
  # has changed the code it looks at; they are not in our sources.
  if(HOLDFAST_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-null-dereference -Wno-maybe-uninitialized -Wno-tsan)
  endif()
endfunction()
