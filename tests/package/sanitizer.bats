# ThreadSanitizer in a user's program, with the library as it is installed.
load package

setup_file() { export HOLDFAST_BIN=$HOLDFAST_BUILD/bin/holdfast; }

# sanitized COMPILER LIBRARY: $BOX/race, linked with that file.
sanitized() {
    printf 'int main() {}' >"$BOX/nothing.cpp"
    "$1" -fsanitize=thread "$BOX/nothing.cpp" -o "$BOX/nothing" 2>/dev/null || skip "$1 has no ThreadSanitizer here"
    "$BOX/nothing" 2>/dev/null || skip "ThreadSanitizer does not run on this machine"
    "$1" -std=c++20 -O1 -g1 -fsanitize=thread -I "$HOLDFAST_TREE/include" "$HOLDFAST_TREE/tests/package/sanitizer/race.cpp" \
        "$2" -o "$BOX/race" -lssl -lcrypto -pthread
}

sees_the_locks() {
    holdfast server start
    export LD_LIBRARY_PATH=$HOLDFAST_BUILD/lib
    run "$BOX/race" "unix://$HOLDFAST_HOME/redis.sock?timeout=60s" locked
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$output" = 525 ]
    # And it still finds what no lock protects.
    run "$BOX/race" "unix://$HOLDFAST_HOME/redis.sock?timeout=60s" unlocked
    [ "$status" -eq 66 ]
    [[ "$output" == *"data race"* ]]
}

@test "Sanitizer.SeesTheLocksInAProgramByGcc" {
    sanitized g++ "$HOLDFAST_BUILD/lib/libholdfast.so"
    sees_the_locks
}

@test "Sanitizer.SeesTheLocksInAProgramByClang" {
    sanitized clang++ "$HOLDFAST_BUILD/lib/libholdfast.a"
    sees_the_locks
}
