# The tree as a part of other projects, and the recipes of package managers.
# `./dev conan` runs the test of Conan.
#
# Building the library takes minutes, so these tests configure, and look at what would be built; where something has to be
# installed they take it from the build tree. With HOLDFAST_CONAN (the path of conan) Conan builds and tests a package.
load package

export HOLDFAST_BIN=$HOLDFAST_BUILD/bin/holdfast
packaging=$HOLDFAST_TREE/packaging

configure() { cmake -G Ninja -S "$consumer" -B "$BOX/build" -DHOLDFAST_TREE="$HOLDFAST_TREE" "$@"; }

# What a build of the consumer's project makes, one file or name per line.
targets() { ninja -C "$BOX/build" -t targets all | sed 's/: [^:]*$//'; }

# Builds the consumer with one kind of library, without the command, tests or a rule that installs ours.
expect_only() {
    local kind=$1 other=$2
    ninja -C "$BOX/build" -n consumer >/dev/null
    targets >"$BOX/targets"
    grep -q "libholdfast\\.$kind" "$BOX/targets"
    run ! grep -E "libholdfast\\.$other|holdfast_cli|test_unit|gtest|bats" "$BOX/targets"
    cmake --install "$BOX/build" --prefix "$BOX/prefix"
    [ ! -e "$BOX/prefix/include/holdfast" ]
}

@test "Tree.AsASubdirectoryBuildsTheStaticLibraryAndNothingElse" {
    configure
    expect_only a so
}

@test "Tree.AsASubdirectoryBuildsTheSharedLibraryWhenAsked" {
    configure -DBUILD_SHARED_LIBS=ON
    expect_only so a
}

@test "Tree.CanBeFetchedByFetchContent" {
    configure -DHOW=FetchContent
    expect_only a so
}

@test "Tree.CanBeFetchedByCpm" {
    configure -DHOW=CPM
    expect_only a so
}

@test "Tree.SaysWhatAnOptionNeeds" {
    run cmake -G Ninja -S "$HOLDFAST_TREE" -B "$BOX/build" -DHOLDFAST_LIBRARY=shared
    [ "$status" -ne 0 ]
    [[ "$output" == *"HOLDFAST_CLI"*"HOLDFAST_LIBRARY"* ]]
    run cmake -G Ninja -S "$HOLDFAST_TREE" -B "$BOX/other" -DHOLDFAST_LIBRARY=dynamic
    [ "$status" -ne 0 ]
    [[ "$output" == *"use shared, static or both"* ]]
}

# vcpkg's functions as its documentation describes them; see vcpkg.cmake. The package has one kind of library, which is found
# without being named.
@test "Vcpkg.PortMakesAPackageThatIsFound" {
    local linkage
    for linkage in static dynamic; do
        cmake -DPORT="$packaging/vcpkg/holdfast" -DBOX="$BOX/$linkage" -DLINKAGE=$linkage -DBUILT="$HOLDFAST_BUILD" \
            -P "$BATS_TEST_DIRNAME/vcpkg.cmake"
        [ -s "$BOX/$linkage/packages/share/holdfast/copyright" ]
        [ -s "$BOX/$linkage/packages/share/holdfast/usage" ]
        cmake -G Ninja -S "$consumer" -B "$BOX/$linkage/consumer" -Dholdfast_DIR="$BOX/$linkage/packages/share/holdfast"
    done
    cmake --build "$BOX/static/consumer"
    works "$BOX/static/consumer/consumer" ""
}

@test "Conan.RecipeMakesAPackageThatIsFound" {
    [ -n "${HOLDFAST_CONAN:-}" ] ||
        skip "./dev conan runs it: it builds the library"
    export CONAN_HOME=$BOX/conan
    local shared
    for shared in ${HOLDFAST_CONAN_SHARED:-False True}; do
        # The recipe is what is tested: without optimization it takes half the time.
        "$HOLDFAST_CONAN" create "$packaging/conan" -pr:a "$packaging/conan/debian12" -o "holdfast/*:shared=$shared" \
            -c:a 'tools.build:cxxflags=["-O0"]'
    done
}

@test "Ci.GetsWhatTheTestsOfTheSiteAndOfConanNeed" {
    local ci=$HOLDFAST_TREE/.ci/run
    # The site is tested if mkdocs is there when the tests are configured.
    [ "$(grep -nx './dev docs' "$ci" | cut -d : -f 1)" -lt "$(grep -nx './dev test' "$ci" | cut -d : -f 1)" ]
    grep -qx './dev conan' "$ci"
    # Otherwise the test of clang's ThreadSanitizer is skipped.
    [[ "$(sed -n '/^for_tests=/,/)/p' "$HOLDFAST_TREE/dev")" == *libclang-rt* ]]
}

@test "Packaging.HasThePagesThatPeopleLookFor" {
    local page
    for page in SECURITY.md CODE_OF_CONDUCT.md CONTRIBUTING.md LICENSE CHANGELOG.md docs/versions.md; do
        [ -s "$HOLDFAST_TREE/$page" ]
    done
    [ "$(ls "$HOLDFAST_TREE"/.github/ISSUE_TEMPLATE | wc -l)" -ge 2 ]
}

# All that name the version or the library's name say the same.
@test "Packaging.TellsOneVersionEverywhere" {
    local version
    version=$(sed -n 's/^project(holdfast VERSION \([0-9.]*\).*/\1/p' "$HOLDFAST_TREE/CMakeLists.txt")
    [ -n "$version" ]
    grep -q "\"version\": \"$version\"" "$packaging/vcpkg/holdfast/vcpkg.json"
    [ "$(dpkg-parsechangelog -l "$packaging/debian/changelog" -S Version)" = "$version-1" ]
    grep -qx "Package: libholdfast$HOLDFAST_SOVERSION" "$packaging/debian/control"
    grep -q "libholdfast$HOLDFAST_SOVERSION (= " "$packaging/debian/control"
    grep -q "find_package(holdfast $HOLDFAST_SOVERSION " "$HOLDFAST_TREE/docs/packaging.md"
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$packaging/vcpkg/holdfast/vcpkg.json"
}

@test "Debian.SourcePackageCanBeMadeAndUnpacked" {
    "$packaging/debian-source" "$BOX/out"
    cd "$BOX"
    dpkg-source -x out/*.dsc tree >"$BOX/log" 2>&1 || { cat "$BOX/log"; false; }
    [ -x tree/debian/rules ]
    [ -e tree/CMakeLists.txt ]
    make -n -f debian/rules -C tree clean 2>/dev/null | grep -q 'dh clean'
}

# A clone of its own, so that the tree may have changes and the tag harms nobody.
release_clone() {
    git clone -q "$HOLDFAST_TREE" "$BOX/clone"
    cd "$BOX/clone"
    git config user.name test
    git config user.email test@localhost
    cp "$packaging/release" packaging/release
    version=$(sed -n 's/^project(holdfast VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
    git add -A
    git diff --cached --quiet || git commit -qm "Release"
}

@test "Release.DryRunMakesArchivesWithSumsAndNoTag" {
    release_clone
    packaging/release "$version" --dry-run --out "$BOX/out"
    [ -z "$(git tag -l "v$version")" ]
    cd "$BOX/out"
    sha256sum -c "holdfast-$version.sha256"
    tar -tf "holdfast-$version.tar.xz" | grep -qx "holdfast-$version/CMakeLists.txt"
    diff <(tar -tf "holdfast-$version.tar.xz") <(tar -tf "holdfast-$version.tar.gz")
    # Repeated it makes the same bytes.
    cp "holdfast-$version.sha256" first
    cd "$BOX/clone"
    packaging/release "$version" --dry-run --out "$BOX/out"
    cmp "$BOX/out/first" "$BOX/out/holdfast-$version.sha256"
}

@test "Release.TagsOnceAndOnlyACleanTreeThatNamesTheVersion" {
    release_clone
    run packaging/release 9.9.9 --dry-run --out "$BOX/out"
    [ "$status" -ne 0 ]
    [[ "$output" == *"CMakeLists.txt does not name 9.9.9"* ]]
    echo change >>README.md
    run packaging/release "$version" --out "$BOX/out"
    [ "$status" -ne 0 ]
    [[ "$output" == *"not committed"* ]]
    git checkout -q README.md
    packaging/release "$version" --out "$BOX/out"
    [ "$(git rev-parse "v$version^{commit}")" = "$(git rev-parse HEAD)" ]
    run packaging/release "$version" --out "$BOX/out"
    [ "$status" -ne 0 ]
    [[ "$output" == *"exists already"* ]]
}
