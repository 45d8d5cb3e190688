# Run as `cmake -DROOT=... -DOUTPUT=... -P`; see embed_scripts.cmake.
cmake_minimum_required(VERSION 3.25)

# The text of one script with its includes put in, each between two comments that say where it comes from: so a line
# of the whole can be told as a line of its file (the simulator counts which of them ran). Semicolons and brackets are safe: the text is never a list.
function(read_script path out)
  file(READ ${path} text)
  while(text MATCHES "(^|\n)--@include ([a-z_/]+\\.lua)\n")
    set(line "--@include ${CMAKE_MATCH_2}\n")
    file(READ ${ROOT}/${CMAKE_MATCH_2} included)
    string(REPLACE "${line}" "--@from ${CMAKE_MATCH_2}\n${included}--@end\n" text "${text}")
  endwhile()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/*.lua)
list(FILTER files EXCLUDE REGEX "(^|/)common/")
list(SORT files)

set(rows "")
set(count 0)
foreach(file IN LISTS files)
  read_script(${ROOT}/${file} text)
  string(SHA1 sha "${text}")
  string(REGEX REPLACE "\\.lua$" "" name "${file}")
  string(APPEND rows "    {\"${name}\", \"${sha}\", R\"lua(${text})lua\"},\n")
  math(EXPR count "${count} + 1")
endforeach()

file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// Generated from src/wire/scripts/**/*.lua. Do not edit.
#include "wire/scripts.hpp"

namespace holdfast::wire {
namespace {
constexpr script table[] = {
@rows@};
}  // namespace

std::span<const script> all() noexcept {
    return table;
}
}  // namespace holdfast::wire
]])
