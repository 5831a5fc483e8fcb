# Which library belongs to a compiler's options, and models in programs.
include(${CMAKE_CURRENT_LIST_DIR}/cores.cmake)

# arenite_core(VARIABLE [OPTION...])
#
# The core of cores.cmake that the C compiler compiles for: with CMAKE_C_FLAGS, this folder's compile options, and the given ones. Empty where there is none.
function(arenite_core variable)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS}")
  get_directory_property(options COMPILE_OPTIONS)
  # An option that depends on the language or the configuration says nothing of the core.
  list(FILTER options EXCLUDE REGEX "\\$<")
  set(empty ${CMAKE_CURRENT_BINARY_DIR}/arenite-empty.c)
  file(WRITE ${empty} "")
  execute_process(
    COMMAND ${CMAKE_C_COMPILER} ${flags} ${options} ${ARGN} -dM -E ${empty}
    OUTPUT_VARIABLE defined ERROR_VARIABLE said RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "arenite: ${CMAKE_C_COMPILER} does not list its macros: ${said}")
  endif()
  foreach(core IN LISTS ARENITE_CORES)
    set(agrees TRUE)
    foreach(name IN LISTS ARENITE_CORE_${core}_MACROS)
      string(REGEX REPLACE "^!" "" wanted "${name}")
      string(REGEX MATCH "#define (${wanted})[ \r\n]" found "${defined}")
      if(name MATCHES "^!")
        if(found)
          set(agrees FALSE)
        endif()
      elseif(NOT found)
        set(agrees FALSE)
      endif()
    endforeach()
    if(agrees)
      set(${variable} ${core} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${variable} "" PARENT_SCOPE)
endfunction()

# arenite_model(TARGET NAME FILE)
#
# Embeds a model file, at a multiple of 16 among the constants. The header NAME.h declares it: `NAME` is its first byte, `NAME_end` the one behind its last.
function(arenite_model target name file)
  if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "arenite_model(${target} ${name} ...): expected a name in C")
  endif()
  get_filename_component(file "${file}" ABSOLUTE)
  if(NOT EXISTS "${file}")
    message(FATAL_ERROR "arenite_model(${target} ${name} ...): there is no ${file}; `pack` makes it")
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/arenite-models)
  file(WRITE ${folder}/${name}.h.new
"#pragma once
#include <stdint.h>
#ifdef __cplusplus
extern \"C\" {
#endif
extern const uint8_t ${name}[], ${name}_end[];
#ifdef __cplusplus
}
#endif
")
  file(WRITE ${folder}/${name}.c.new
"/* ${file} */
__asm__(\".section .rodata.${name},\\\"a\\\"\\n\"
        \".balign 16\\n\"
        \".global ${name}\\n\"
        \"${name}:\\n\"
        \".incbin \\\"${file}\\\"\\n\"
        \".global ${name}_end\\n\"
        \"${name}_end:\\n\"
        \".previous\\n\");
")
  # Files that are as they were are not compiled again.
  configure_file(${folder}/${name}.h.new ${folder}/${name}.h COPYONLY)
  configure_file(${folder}/${name}.c.new ${folder}/${name}.c COPYONLY)
  # A file that the linker optimises loses symbols of assembly.
  set_source_files_properties(${folder}/${name}.c PROPERTIES OBJECT_DEPENDS "${file}" COMPILE_OPTIONS -fno-lto)
  target_sources(${target} PRIVATE ${folder}/${name}.c)
  target_include_directories(${target} PRIVATE ${folder})
endfunction()
