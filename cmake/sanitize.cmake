# One build tree has one instrumentation, for everything in it.
if(HOLDFAST_SANITIZE)
  add_compile_options(-fsanitize=${HOLDFAST_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HOLDFAST_SANITIZE})
endif()
if(HOLDFAST_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()
if(HOLDFAST_FUZZ)
  # Coverage guidance for the library too, not only for the fuzz targets' own files.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
