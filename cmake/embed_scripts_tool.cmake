# Run as `cmake -DROOT=... -DOUTPUT=... -P`; see embed_scripts.cmake.
cmake_minimum_required(VERSION 3.25)

# The text of one script with its includes. Two comments around an include name its file: so the simulator can count
# which lines of which file ran. Semicolons and brackets are safe because the text is never a list.
#
# `--@each COUNT STEP path` puts the file in COUNT times: in the N-th copy NTH is N, and KEYS[k] is the k-th of the N-th
# STEP keys. So a script names the keys of several locks literally, as some services demand.
function(read_copies count step path out)
  read_script(${ROOT}/${path} one)
  set(all "")
  foreach(nth RANGE 1 ${count})
    string(REGEX REPLACE "(^|[^A-Z])NTH([^A-Z]|$)" "\\1${nth}\\2" copy "${one}")
    foreach(key RANGE ${step} 1 -1)
      math(EXPR at "${step} * (${nth} - 1) + ${key}")
      string(REPLACE "KEYS[${key}]" "KEYS#${at}]" copy "${copy}")
    endforeach()
    string(REPLACE "KEYS#" "KEYS[" copy "${copy}")
    set(word from)
    if(nth GREATER 1)
      set(word again) # the copies take one line of the script that names them
    endif()
    string(APPEND all "--@${word} ${path}\n${copy}--@end\n")
  endforeach()
  set(${out} "${all}" PARENT_SCOPE)
endfunction()

function(read_script path out)
  file(READ ${path} text)
  while(text MATCHES "(^|\n)(--@each ([0-9]+) ([0-9]+) ([a-z_/]+\\.lua)\n)")
    set(line "${CMAKE_MATCH_2}")
    read_copies(${CMAKE_MATCH_3} ${CMAKE_MATCH_4} ${CMAKE_MATCH_5} copies)
    string(REPLACE "${line}" "${copies}" text "${text}")
  endwhile()
  set(done "")
  while(text MATCHES "(^|\n)--@(include|paste) ([a-z_/]+\\.lua)( (KEYS.[0-9].)=(KEYS.[0-9].))?\n")
    set(directive ${CMAKE_MATCH_2})
    set(name ${CMAKE_MATCH_3})
    set(line "--@${directive} ${name}${CMAKE_MATCH_4}\n")
    set(key "${CMAKE_MATCH_5}")
    set(its_key "${CMAKE_MATCH_6}")
    string(FIND "${text}" "${line}" at)
    string(LENGTH "${line}" length)
    math(EXPR behind "${at} + ${length}")
    string(SUBSTRING "${text}" 0 ${at} before)
    string(SUBSTRING "${text}" ${behind} -1 after)
    set(included "--@above\n") # so that the lines behind it keep their numbers
    if(directive STREQUAL "paste" OR NOT name IN_LIST done)
      file(READ ${ROOT}/${name} included)
      if(key)
        string(REPLACE "${key}" "${its_key}" included "${included}")
      endif()
      set(included "--@from ${name}\n${included}--@end\n")
      list(APPEND done ${name})
    endif()
    set(text "${before}${included}${after}")
  endwhile()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/*.lua)
list(FILTER files EXCLUDE REGEX "(^|/)common/")
list(SORT files)

set(lock_rows "")
set(tool_rows "")
foreach(file IN LISTS files)
  read_script(${ROOT}/${file} text)
  string(SHA1 sha "${text}")
  string(REGEX REPLACE "\\.lua$" "" name "${file}")
  set(rows lock_rows)
  if(name MATCHES "(^|/)tools/")
    set(rows tool_rows)
  endif()
  string(APPEND ${rows} "    {\"${name}\", \"${sha}\", R\"lua(${text})lua\"sv},\n")
endforeach()

file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// Generated from the .lua files of src/wire. Do not edit.
#include "wire/scripts.hpp"

namespace holdfast::wire {
namespace {

// A literal that knows its length: clang does not count that many characters while it compiles.
using std::string_view_literals::operator""sv;

constexpr script lock_table[] = {
@lock_rows@};
constexpr script tool_table[] = {
@tool_rows@};
}  // namespace

std::span<const script> all() noexcept {
    return lock_table;
}

std::span<const script> tools() noexcept {
    return tool_table;
}
}  // namespace holdfast::wire
]])
