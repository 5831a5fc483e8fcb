# Builds the runtime for a Rust target and makes it a library to link: needs cargo and the target (`rustup target add TRIPLE`).
#
#   include(path/to/firmware/c/arenite.cmake)
#   arenite_library(arenite thumbv7em-none-eabihf FEATURES dsp MODELS digits.bin mlp.bin)
#   target_link_libraries(my_program PRIVATE arenite)
#
# The triple goes with the compiler's options: thumbv7em-none-eabihf with -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16, for example. docs/features.md
# says which triple and which features (dsp, mve) a core has. With MODELS the library has the kernels of these models and no others; without, all.
set(ARENITE_C_DIR ${CMAKE_CURRENT_LIST_DIR})
include(${CMAKE_CURRENT_LIST_DIR}/cmake/core.cmake)

function(arenite_library name triple)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "FEATURES;MODELS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "arenite_library(${name} ...): what is ${arg_UNPARSED_ARGUMENTS}? Expected FEATURES or MODELS before it")
  endif()
  string(REPLACE ";" "," features "${arg_FEATURES}")
  set(models)
  foreach(model IN LISTS arg_MODELS)
    get_filename_component(model "${model}" ABSOLUTE)
    list(APPEND models "${model}")
  endforeach()
  # As the system's search path is separated.
  if(NOT CMAKE_HOST_WIN32)
    string(REPLACE ";" ":" models "${models}")
  endif()
  set(target_dir ${CMAKE_CURRENT_BINARY_DIR}/${name}-rust)
  set(archive ${target_dir}/${triple}/release/libarenite_c.a)
  # cargo knows what has changed: it is asked at every build.
  add_custom_target(${name}_build
    COMMAND ${CMAKE_COMMAND} -E env "ARENITE_MODELS=${models}"
      cargo build --quiet --release --package arenite-c --lib --target ${triple} --features "${features}" --target-dir ${target_dir}
    WORKING_DIRECTORY ${ARENITE_C_DIR}/..
    BYPRODUCTS ${archive}
    VERBATIM)
  add_library(${name} INTERFACE)
  add_dependencies(${name} ${name}_build)
  target_include_directories(${name} INTERFACE ${ARENITE_C_DIR}/include)
  target_link_libraries(${name} INTERFACE ${archive})
endfunction()
