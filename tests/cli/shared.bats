# holdfast run -s and -x: many read, or one writes.
load common

# A reader or writer that says that it runs, then waits until it is told to end: hold_as ID NAME OPTIONS...
hold_as() {
    local id=$1 name=$2
    shift 2
    start run "$@" "$name" -- sh -c "$cat_until_told" hold "$id"
}
runs() { [ -e "$BOX/$1.runs" ]; }
readers_are() { [ "$(redis hget "hf:{$1}" rcount)" = "$2" ]; }

@test "Shared.SeveralReadAtOnceAndAWriterWaitsForAll" { # R20
    local one two writer
    hold_as one a --shared
    one=$last
    hold_as two a -s
    two=$last
    wait_until runs one
    wait_until runs two
    readers_are a 2
    hold_as writer a --exclusive
    writer=$last
    wait_until someone_waits_for a
    let_go one
    finish "$one"
    [ "$status" -eq 0 ]
    run ! runs writer
    let_go two
    wait_until runs writer
    [ "$(redis hget 'hf:{a}' mode)" = write ]
    run holdfast run --no-wait --shared a -- touch "$BOX/ran"
    [ "$status" -eq 1 ]
    [[ "$output" == *"lock 'a': not acquired; held by $(id -un)@$(uname -n) holdfast:sh[$writer] for "* ]]
    [ ! -e "$BOX/ran" ]
    let_go writer
    finish "$writer"
    [ "$status" -eq 0 ]
    lock_is_free a
}

@test "Shared.RefusedWriterIsToldHowManyRead" {
    hold_as one a -s
    wait_until runs one
    local first=$last
    hold_as two a -s
    wait_until runs two
    run holdfast run --no-wait -x a -- touch "$BOX/ran"
    [ "$status" -eq 1 ]
    [[ "$output" == *"lock 'a': not acquired; read by $(id -un)@$(uname -n) holdfast:sh[$first] for "*" and 1 other"* ]]
    [ ! -e "$BOX/ran" ]
    let_go one
    let_go two
}

@test "Shared.NeverLetsAWriterInBesideAnother" {
    # Readers leave a mark each; a writer fails if there is any mark, a reader if there is the writer's.
    local reads='[ ! -e "$BOX/writes" ] || exit 9; touch "$BOX/reads.$$"; sleep 0.02; rm "$BOX/reads.$$"; [ ! -e "$BOX/writes" ] || exit 9'
    local writes='mkdir "$BOX/writes" || exit 9; ls "$BOX"/reads.* 2>/dev/null && exit 9; sleep 0.02; rmdir "$BOX/writes"'
    local pids=() i
    patient_server
    for ((i = 0; i < 24; ++i)); do
        if ((i % 4 == 0)); then
            start run -x --lease 60s a -- sh -c "$writes"
        else
            start run -s --lease 60s a -- sh -c "$reads"
        fi
        pids+=("$last")
    done
    for i in "${pids[@]}"; do
        finish "$i"
        [ "$status" -eq 0 ] || { cat "$BOX/out"; false; }
    done
}

# The order in which a waiting reader and a waiting writer acquire, by preference.
who_comes_first() {
    local prefer=$1
    hold_as one a -s --prefer "$prefer"
    wait_until runs one
    start run -x --prefer "$prefer" a -- sh -c 'echo writer >>"$BOX/order"'
    local writer=$last
    wait_until someone_waits_for a 1
    start run -s --prefer "$prefer" a -- sh -c 'echo reader >>"$BOX/order"'
    local reader=$last
    if [ "$prefer" = readers ]; then
        finish "$reader" # goes in beside the first, while that one still runs
    else
        wait_until someone_waits_for a 2
    fi
    let_go one
    finish "$writer"
    [ "$prefer" = readers ] || finish "$reader"
    tr '\n' ' ' <"$BOX/order"
}

@test "Shared.PreferArrivalServesWhoCameFirst" { [ "$(who_comes_first arrival)" = "writer reader " ]; }
@test "Shared.PreferReadersLetsThemPassAWriterThatWaits" { [ "$(who_comes_first readers)" = "reader writer " ]; }
@test "Shared.PreferWritersHoldsReadersBack" { [ "$(who_comes_first writers)" = "writer reader " ]; }

@test "Shared.PreferAloneMeansTheWritingSide" {
    run holdfast run -q --prefer writers a -- redis-cli -s "$HOLDFAST_HOME/redis.sock" hget 'hf:{a}' mode
    [ "$output" = write ]
}

@test "Shared.NestedReaderBorrowsFromAReaderEvenWhenAWriterWaits" {
    start run -s a -- sh -c 'touch "$BOX/outer"; while [ ! -e "$BOX/go" ]; do sleep 0.05; done; exec "$BIN" run -s --no-wait a -- sh -c "echo \$HOLDFAST_TOKEN >\"\$BOX/inner\""'
    local outer=$last
    wait_until test -e "$BOX/outer"
    start run -x a -- true
    local writer=$last
    wait_until someone_waits_for a
    touch "$BOX/go"
    finish "$outer"
    [ "$status" -eq 0 ]
    [ -s "$BOX/inner" ]
    finish "$writer"
    [ "$status" -eq 0 ]
}

@test "Shared.NestedReaderBorrowsFromAWriter" {
    run holdfast run -q -x a -- sh -c 'echo $HOLDFAST_TOKEN; "$BIN" run -s --no-wait a -- sh -c "echo \$HOLDFAST_TOKEN"'
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "${lines[1]}" ]
    run holdfast run -q a -- "$HOLDFAST_BIN" run -s --no-wait a -- echo plain holds alone, too
    [ "$output" = "plain holds alone, too" ]
    run holdfast run -q -x a -- "$HOLDFAST_BIN" run --no-wait a -- echo and so does the writing side
    [ "$output" = "and so does the writing side" ]
}

@test "Shared.NestedWriterInAReaderIsAnErrorNotADeadlock" {
    for inner in "-x" "" "-x --no-wait" "--prefer readers"; do
        run holdfast run -q -s a -- "$HOLDFAST_BIN" run $inner a -- touch "$BOX/ran"
        echo "$inner: $status $output"
        [ "$status" -eq 125 ]
        [[ "$output" == *"shared hold of 'a'"*"--exclusive"* ]]
        [ ! -e "$BOX/ran" ]
    done
    lock_is_free a
}

@test "Shared.ClaimOfADeadReaderIsNotBelieved" {
    start run -s --lease 1s a -- sh -c 'echo "$HOLDFAST_HELD" >"$BOX/held.tmp"; mv "$BOX/held.tmp" "$BOX/held"; exec sleep 1000'
    wait_until test -s "$BOX/held"
    kill -KILL "$last"
    # Its hash may lie about for longer than its lease: another reader keeps the key.
    hold_as other a -s
    wait_until runs other
    dead_reader_is_over() { [ "$(redis zcount 'hf:{a}:leases' "$(now_ms)" +inf)" -le 1 ]; }
    wait_until dead_reader_is_over
    export HOLDFAST_HELD
    HOLDFAST_HELD=$(cat "$BOX/held")
    run holdfast run -x --no-wait a -- touch "$BOX/ran"
    [ "$status" -eq 1 ]
    [ ! -e "$BOX/ran" ]
    let_go other
    finish "$last"
}

@test "Shared.TheOtherKindOfLockIsAnErrorThatSaysWhatToDo" {
    hold a
    for option in -s -x; do
        run holdfast run "$option" a -- touch "$BOX/ran"
        [ "$status" -eq 125 ]
        [[ "$output" == *"lock 'a': it is held as a plain lock"*"--exclusive"* ]]
    done
    let_go a
    finish "$last"
    hold b -s
    run holdfast run b -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$output" == *"lock 'b': it is used as a read-write lock; say --shared"*"--exclusive"* ]]
    let_go b
    redis rpush 'hf:{c}' x >/dev/null
    run holdfast run c -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$output" == *"lock 'c': the key holds something that is no lock"* ]]
    [ ! -e "$BOX/ran" ]
}

@test "Shared.LockOfRedissonIsRefusedByNameAndLeftAlone" {
    start_local_server
    local thread=5f0c2f1e-8a51-4f6c-9d6f-0d6a1b3f6a10:47 option
    redis hset plain "$thread" 1 >/dev/null
    redis hset reads mode read "$thread" 1 >/dev/null
    redis hset writes mode write "$thread:write" 1 >/dev/null
    for name in plain reads writes; do
        local before=$(redis hgetall "$name")
        for option in '' --shared --exclusive; do
            run holdfast run --keys raw --no-wait $option "$name" -- touch "$BOX/ran"
            [ "$status" -eq 125 ]
            [[ "$output" == *"lock '$name': the key holds what looks like a Redisson lock"* ]]
            [[ "$output" != *"free by now"* ]]
        done
        run holdfast show --keys raw "$name"
        [[ "$output" == *"looks like a Redisson lock"* ]]
        [ "$(redis hgetall "$name")" = "$before" ]
    done
    [ ! -e "$BOX/ran" ]
}

@test "Shared.ReaderIsKilledBeforeItsLeaseCanEnd" {
    start run -s --lease 3s --grace 100ms a -- sh -c 'touch "$BOX/runs"; exec sleep 1000'
    wait_until test -e "$BOX/runs"
    kill -STOP "$(server_pid)"
    finish "$last"
    [ "$status" -eq 75 ]
    kill -CONT "$(server_pid)"
}

@test "Shared.OptionsThatContradictAre125" {
    for misuse in "-s -x" "--prefer somebody" "-s --prefer x"; do
        run holdfast run $misuse a -- touch "$BOX/ran"
        [ "$status" -eq 125 ]
        [ ! -e "$BOX/ran" ]
    done
}
