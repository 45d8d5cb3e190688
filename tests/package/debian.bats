# The Debian packages: what is in which, and that two of them are enough to compile with.
load package

runtime=libholdfast${HOLDFAST_SOVERSION:?is part of the name of the library}

setup_file() {
    export DEBS=$BATS_FILE_TMPDIR/debs ROOT=$BATS_FILE_TMPDIR/root
    cpack --config "$HOLDFAST_BUILD/CPackConfig.cmake" -G DEB -B "$DEBS" >"$BATS_FILE_TMPDIR/log" ||
        { cat "$BATS_FILE_TMPDIR/log" && return 1; }
    local deb
    for deb in "$DEBS"/*.deb; do
        dpkg-deb -x "$deb" "$ROOT"
    done
    export HOLDFAST_BIN=$ROOT/usr/bin/holdfast
}

deb() { echo "$DEBS/$1"_*.deb; }
field() { dpkg-deb -f "$(deb "$1")" "$2"; }
# Regular files and links, without folders.
files() { dpkg-deb -c "$(deb "$1")" | grep -v '^d' | awk '{ print $6 }' | sed 's,^\.,,' | sort; }
has() { files "$1" | grep -qx -- "$2" || { echo "$1 has no $2, but:" && files "$1" && false; }; }

@test "Debian.PackagesAreThree" {
    local deb names=()
    for deb in "$DEBS"/*.deb; do
        names+=("$(dpkg-deb -f "$deb" Package)")
    done
    [ "${names[*]}" = "holdfast libholdfast-dev $runtime" ]
}

@test "Debian.LibraryPackageIsNamedAfterItsSonameAndHasOnlyTheLibrary" {
    local soname=libholdfast.so.$HOLDFAST_SOVERSION
    has "$runtime" "/usr/lib/$soname"
    [ -z "$(files "$runtime" | grep -vE "^/usr/(lib/$soname(\.[0-9]+)?|share/doc/.*)\$")" ]
    readelf -d "$ROOT/usr/lib/$soname" | grep -q "SONAME.*\[$soname\]"
    [[ "$(field "$runtime" Depends)" == *libssl3* ]]
    dpkg-deb --ctrl-tarfile "$(deb "$runtime")" | tar -tf - | grep -q shlibs
    dpkg-deb --ctrl-tarfile "$(deb "$runtime")" | tar -xOf - ./postinst | grep -q ldconfig
}

@test "Debian.DevelopmentPackageHasEverythingToCompileWith" {
    local header
    for header in $(cd "$HOLDFAST_TREE/include" && find holdfast -name '*.hpp'); do
        has libholdfast-dev "/usr/include/$header"
    done
    has libholdfast-dev '/usr/lib/libholdfast\.a'
    has libholdfast-dev /usr/lib/cmake/holdfast/holdfast-config.cmake
    has libholdfast-dev /usr/lib/pkgconfig/holdfast.pc
    [[ "$(field libholdfast-dev Depends)" == *"$runtime (= $(field "$runtime" Version))"* ]]
    [[ "$(field libholdfast-dev Depends)" == *libboost1.81-dev* ]]
    compile_by_pkg_config "$ROOT/usr/lib/pkgconfig"
    works "$BOX/consumer" "$ROOT/usr/lib"
}

@test "Debian.CommandNeedsNoOtherPackageOfOurs" {
    has holdfast /usr/bin/holdfast
    has holdfast /usr/share/man/man1/holdfast.1.gz
    [[ "$(field holdfast Depends)" != *libholdfast* ]]
    [[ "$(field holdfast Depends)" == *libssl3* ]]
    [ "$(field holdfast Recommends)" = redis-server ]
    run env -u LD_LIBRARY_PATH "$HOLDFAST_BIN" run -q a -- echo ran
    [ "$output" = ran ]
}

@test "Debian.NoFileIsInTwoPackages" {
    local package
    [ -z "$(for package in holdfast libholdfast-dev "$runtime"; do files "$package"; done | sort | uniq -d)" ]
}

@test "Debian.EveryPackageSaysItsLicenceAndCarriesNoDebuggingSymbols" {
    local package
    for package in holdfast libholdfast-dev "$runtime"; do
        has "$package" "/usr/share/doc/$package/copyright"
    done
    local file
    for file in "$HOLDFAST_BIN" "$ROOT/usr/lib/libholdfast.so.$HOLDFAST_SOVERSION" "$ROOT/usr/lib/libholdfast.a"; do
        [[ "$(readelf -S "$file")" != *.debug_info* ]]
    done
    [ -z "$(for package in holdfast libholdfast-dev "$runtime"; do dpkg-deb -c "$(deb "$package")"; done |
        awk '$2 != "root/root"')" ]
}
