# nmt_embed(FOLDER NAMESPACE OUTPUT): the files of FOLDER, by their names, in one generated header:
# programs need no files beside them. OUTPUT is below generated/.
function(nmt_embed folder namespace output)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(entries "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME)
    file(READ ${file} text)
    string(APPEND entries "    {\"${name}\", R\"_page_(${text})_page_\"},\n")
  endforeach()
  string(CONCAT header "#pragma once\n#include <string_view>\n#include <utility>\n"
         "namespace ${namespace} {\n"
         "inline constexpr std::pair<std::string_view, std::string_view> files[] = {\n"
         "${entries}};\n}\n")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/${output} CONTENT "${header}" @ONLY)
endfunction()
