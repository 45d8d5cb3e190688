# `cmake --install` into a prefix of its own, and projects that use what is there.
load package

setup_file() {
    export PREFIX=$BATS_FILE_TMPDIR/prefix
    export HOLDFAST_BIN=$PREFIX/bin/holdfast
    cmake --install "$HOLDFAST_BUILD" --prefix "$PREFIX" >"$BATS_FILE_TMPDIR/log"
}

configure() { cmake -G Ninja -S "$consumer" -B "$BOX/build" -DCMAKE_PREFIX_PATH="$PREFIX" "$@"; }

@test "Install.BringsEveryPublicHeaderAndNoOther" {
    diff -r "$HOLDFAST_TREE/include" "$PREFIX/include"
}

@test "Install.TakesAtMostTenMegabytesAndLeavesTheSymbolsInTheBuildTree" {
    grep -q '^CMAKE_BUILD_TYPE:.*=Debug$' "$HOLDFAST_BUILD/CMakeCache.txt" && skip "a debug build keeps its symbols"
    du -ab "$PREFIX" | sort -n | tail -n 8
    [ "$(du -sb "$PREFIX" | cut -f1)" -le 10000000 ]
    [[ "$(readelf -S "$HOLDFAST_BUILD/bin/holdfast")" == *.debug_line* ]]
}

@test "Install.IsFoundByCMake" {
    configure
    cmake --build "$BOX/build"
    needs "$BOX/build/consumer" libholdfast.so
    run ! needs "$BOX/build/consumer" libssl  # ours to need, not the user's
    works "$BOX/build/consumer" ""
}

@test "Install.IsLinkedStaticallyWhenAsked" {
    configure -DHOLDFAST_USE_STATIC_LIBS=ON
    cmake --build "$BOX/build"
    run ! needs "$BOX/build/consumer" libholdfast
    works "$BOX/build/consumer" ""
}

@test "Install.WorksInAProgramByClang" {
    local static
    for static in OFF ON; do
        CXX=clang++ cmake -G Ninja -S "$consumer" -B "$BOX/$static" -DCMAKE_PREFIX_PATH="$PREFIX" -DHOLDFAST_USE_STATIC_LIBS=$static
        grep -q '^CMAKE_CXX_COMPILER:.*clang++' "$BOX/$static/CMakeCache.txt"
        cmake --build "$BOX/$static"
        works "$BOX/$static/consumer" ""
    done
}

@test "Install.IsFoundByPkgConfig" {
    compile_by_pkg_config "$PREFIX/lib/pkgconfig"
    needs "$BOX/consumer" libholdfast.so
    works "$BOX/consumer" "$PREFIX/lib"
}

@test "Install.TellsOneVersionEverywhere" {
    local version
    version=$(PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig pkg-config --modversion holdfast)
    [[ "$(holdfast --version)" == *"$version"* ]]
    grep -q "holdfast $version" "$PREFIX/share/man/man1/holdfast.1"
    [ -e "$PREFIX/lib/libholdfast.so.$version" ]
    configure -DWANTED="$version"
}

@test "Install.IsNotTakenForAnotherMinorVersion" {
    run configure -DWANTED=0.0.1
    [ "$status" -ne 0 ]
    [[ "$output" == *"0.0.1"* ]]
}

@test "Install.SaysWhichPartItDoesNotHave" {
    mkdir "$BOX/project"
    cat >"$BOX/project/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(picky LANGUAGES CXX)
find_package(holdfast CONFIG REQUIRED COMPONENTS shared static)
foreach(target IN ITEMS shared static holdfast)
  if(NOT TARGET holdfast::${target})
    message(FATAL_ERROR "no holdfast::${target}")
  endif()
endforeach()
find_package(holdfast CONFIG REQUIRED COMPONENTS teapot)
TEXT
    run cmake -S "$BOX/project" -B "$BOX/build" -DCMAKE_PREFIX_PATH="$PREFIX"
    [ "$status" -ne 0 ]
    [[ "$output" == *teapot* ]]
    [[ "$output" != *"no holdfast::"* ]]
}

@test "Install.CanBeMovedElsewhere" {
    run ! grep -rF -e "$HOLDFAST_TREE" -e "$HOLDFAST_BUILD" -e "$PREFIX" "$PREFIX"/lib/cmake "$PREFIX"/lib/pkgconfig
    local file
    for file in "$PREFIX/bin/holdfast" "$PREFIX/lib/libholdfast.so"; do
        [[ "$(readelf -d "$file")" != *@(RPATH|RUNPATH)* ]]
    done
}

@test "Install.BringsCompletionForEveryShellThereIsOneFor" {
    [ -d "$HOLDFAST_TREE/packaging/completion" ] || skip "no completion is written yet"
    local file copy
    for file in "$HOLDFAST_TREE"/packaging/completion/*; do
        copy=$(find "$PREFIX/share" -type f -exec cmp -s {} "$file" \; -print)
        [ -n "$copy" ] || { echo "not installed: $file" && false; }
    done
}
