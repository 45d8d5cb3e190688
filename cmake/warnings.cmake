# Warnings for our own targets only; a consumer's flags are their business.
set(HOLDFAST_WARNING_FLAGS
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
  -Woverloaded-virtual -Wcast-align -Wimplicit-fallthrough)

function(holdfast_warnings target)
  target_compile_options(${target} PRIVATE ${HOLDFAST_WARNING_FLAGS})
  if(HOLDFAST_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # Files that are compiled together have their anonymous namespaces in common, and of that clang's -Wshadow complains.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -Wno-shadow)
  endif()
  # g++ 12 reports uninitialised reads inside library templates once a sanitizer has changed the code it looks at, and
  # has no -Wnull-dereference that an optimised build of Asio would pass.
  if(HOLDFAST_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-tsan)
  endif()
endfunction()
