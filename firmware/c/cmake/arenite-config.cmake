# find_package(arenite): the library that comes built in this archive, for the core that the compiler's options name.
#
#   find_package(arenite REQUIRED)            # -DCMAKE_PREFIX_PATH=<the folder of the archive>
#   target_link_libraries(my_program PRIVATE arenite::arenite)
#   arenite_model(my_program digits digits.bin)
#
# ARENITE_CORE names the core where it is not to be found out: docs/c.md.
include(${CMAKE_CURRENT_LIST_DIR}/core.cmake)

if(NOT TARGET arenite::arenite)
  if(NOT ARENITE_CORE)
    arenite_core(ARENITE_CORE)
  endif()
  get_filename_component(arenite_prefix ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
  set(arenite_library ${arenite_prefix}/lib/arenite/${ARENITE_CORE}/libarenite_c.a)
  if(NOT ARENITE_CORE OR NOT EXISTS ${arenite_library})
    file(GLOB arenite_there RELATIVE ${arenite_prefix}/lib/arenite ${arenite_prefix}/lib/arenite/*)
    string(REPLACE ";" ", " arenite_there "${arenite_there}")
    set(arenite_NOT_FOUND_MESSAGE
      "no library for the core `${ARENITE_CORE}` that CMAKE_C_FLAGS compile for. There are: ${arenite_there}. Set ARENITE_CORE, or build one from a checkout by add_subdirectory")
    set(arenite_FOUND FALSE)
    return()
  endif()
  add_library(arenite::arenite STATIC IMPORTED)
  set_target_properties(arenite::arenite PROPERTIES
    IMPORTED_LOCATION ${arenite_library}
    INTERFACE_INCLUDE_DIRECTORIES ${arenite_prefix}/include)
endif()
