# Before any component: arenite_model() for all of them.
include(${CMAKE_CURRENT_LIST_DIR}/cmake/core.cmake)
