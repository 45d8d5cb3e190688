# Runs inside runs.
load common

@test "Nested.OfTheSameNameBorrowsTheHold" {
    run holdfast run -q a -- sh -c 'echo $HOLDFAST_TOKEN; "$BIN" run --no-wait a -- sh -c "echo \$HOLDFAST_TOKEN"'
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "${lines[1]}" ]
}

@test "Nested.OfAThenBThenAWorks" {
    run holdfast run -q a -- "$HOLDFAST_BIN" run b -- "$HOLDFAST_BIN" run a -- "$HOLDFAST_BIN" run b -- \
        sh -c 'echo $HOLDFAST_NAME; exit 6'
    [ "$status" -eq 6 ]
    [ "$output" = b ]
    lock_is_free a
    lock_is_free b
}

@test "Nested.BorrowerNeitherReleasesNorShortens" {
    run holdfast run -q --lease 60s a -- sh -c \
        '"$BIN" run --lease 1s a -- true; redis-cli -s "$HOLDFAST_HOME/redis.sock" pttl "hf:{a}"'
    [ "$status" -eq 0 ]
    [ "$output" -gt 30000 ]
}

@test "Nested.OtherNamesAreLockedAsUsual" {
    hold b
    run holdfast run a -- "$HOLDFAST_BIN" run --no-wait b -- touch "$BOX/ran"
    [ "$status" -eq 1 ]
    [ ! -e "$BOX/ran" ]
    let_go b
    finish "$last"
}

@test "Nested.BorrowedCommandIsTheOneThatRuns" {
    run -127 holdfast run a -- "$HOLDFAST_BIN" run a -- /no/such/program
    [ "$status" -eq 127 ]
    run holdfast run a -- "$HOLDFAST_BIN" run a -- sh -c 'kill -TERM $$'
    [ "$status" -eq 143 ]
}

@test "Nested.ListThatOutlivedItsHoldIsNotBelieved" {
    run holdfast run -q a -- sh -c 'echo "$HOLDFAST_HELD"'
    export HOLDFAST_HELD=$output
    [ -n "$HOLDFAST_HELD" ]
    hold a
    run holdfast run --no-wait a -- touch "$BOX/ran"
    [ "$status" -eq 1 ]
    [ ! -e "$BOX/ran" ]
    let_go a
    finish "$last"
}

@test "Nested.NonsenseInTheListIsIgnored" {
    for nonsense in 'x' '|||' ' ' 'a|b|c|d' '%zz|b|1|d' 'a|b|1|d|e'; do
        HOLDFAST_HELD=$nonsense run holdfast run -q a -- true
        [ "$status" -eq 0 ]
    done
}

@test "Nested.OfTheSameNameOnAnotherServerIsAnotherLock" {
    hold a
    export HOLDFAST_HOME=$BOX/second
    run holdfast run --no-wait a -- env HOLDFAST_HOME="$BOX/home" "$HOLDFAST_BIN" run --no-wait a -- touch "$BOX/ran"
    [ "$status" -eq 1 ]
    [ ! -e "$BOX/ran" ]
    cp "$HOLDFAST_HOME/redis.pid" "$BOX/second.pid"
    export HOLDFAST_HOME=$BOX/home
    let_go a
    finish "$last"
}

@test "Nested.RunFindsTheServerOfTheUrlOption" {
    holdfast server start
    local url="unix://$HOLDFAST_HOME/redis.sock"
    export HOLDFAST_HOME=$BOX/unused
    run holdfast run -q --url "$url" a -- "$HOLDFAST_BIN" run --no-wait a -- echo inside
    export HOLDFAST_HOME=$BOX/home
    [ "$output" = inside ]
    [ ! -e "$BOX/unused" ]
}
