# Embeds a page in the command: ROOT/page.html, with ROOT/page.css and ROOT/page.js in the places of {{style}} and
# {{script}}. So the browser needs one answer, and nothing from elsewhere.

set(HOLDFAST_EMBED_PAGE_FILE ${CMAKE_CURRENT_LIST_FILE})

if(CMAKE_SCRIPT_MODE_FILE)  # run as `cmake -DROOT=... -DOUTPUT=... -P`
  file(READ ${ROOT}/page.html page)
  foreach(part "style;css" "script;js")
    list(GET part 0 place)
    list(GET part 1 extension)
    file(READ ${ROOT}/page.${extension} text)
    string(REPLACE "{{${place}}}" "${text}" page "${page}")
  endforeach()
  file(WRITE ${OUTPUT} "// Generated from src/cli/web/page. Do not edit.
#include \"cli/web/page.hpp\"

namespace holdfast::cli {

std::string_view embedded_page() noexcept {
    return R\"page(${page})page\";
}

}  // namespace holdfast::cli
")
  return()
endif()

function(holdfast_embed_page)
  cmake_parse_arguments(arg "" "ROOT;OUTPUT" "" ${ARGN})
  file(GLOB parts CONFIGURE_DEPENDS ${arg_ROOT}/page.*)
  add_custom_command(
    OUTPUT ${arg_OUTPUT}
    COMMAND ${CMAKE_COMMAND} -DROOT=${arg_ROOT} -DOUTPUT=${arg_OUTPUT} -P ${HOLDFAST_EMBED_PAGE_FILE}
    DEPENDS ${parts} ${HOLDFAST_EMBED_PAGE_FILE}
    COMMENT "Embedding the page"
    VERBATIM)
endfunction()
