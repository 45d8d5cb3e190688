# What the tests of the packages share, on top of what the tests of the command do: a local server of the test's own,
# started by the installed command and ended by its pid.
load ../cli/common

: "${HOLDFAST_TREE:?names the sources}" "${HOLDFAST_BUILD:?names the build tree}" "${CXX:?names the compiler}"
consumer=$HOLDFAST_TREE/tests/package/consumer

# Whether that program can use a lock. Whatever it finds of the library it finds in the given folder.
works() {
    local program=$1 libraries=$2
    holdfast server start
    run env LD_LIBRARY_PATH="$libraries" "$program" "unix://$HOLDFAST_HOME/redis.sock"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$output" = locked ]
}

needs() { readelf -d "$1" | grep -q "NEEDED.*\[$2"; }

# Compiles the consumer as a Makefile would; $1 is where the pkg-config file is.
compile_by_pkg_config() {
    local flags
    flags=$(PKG_CONFIG_PATH=$1 pkg-config --cflags --libs holdfast)
    # shellcheck disable=SC2086
    "$CXX" -std=c++20 -Wall -Wextra -Werror "$consumer/main.cpp" -o "$BOX/consumer" $flags
}
