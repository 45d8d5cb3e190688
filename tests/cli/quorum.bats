# Locks on three servers: the command goes on while a majority does.
load common

@test "Quorum.RunHoldsTheLockOnAllServersAndGivesItBack" {
    setup_quorum
    hold a
    wait_until is_held_everywhere a
    let_go a
    finish "$last"
    [ "$status" -eq 0 ]
    wait_until is_free_everywhere a
}

@test "Quorum.ServersAreNamedByRepeatedUrlsAndHandedDown" {
    setup_quorum
    local urls=$servers
    unset HOLDFAST_URL HOLDFAST_MAX_LEASE
    # The name behind the options is not taken for another URL.
    run --separate-stderr holdfast run --url "$(url 1)" --url "$(url 2)" --url "$(url 3)" --max-lease 4s --lease 3s a -- \
        sh -c 'echo "$HOLDFAST_URL"; echo "$HOLDFAST_MAX_LEASE"; echo "$HOLDFAST_NAME"'
    [ "$status" -eq 0 ]
    [ "$output" = "$urls"$'\n4s\na' ]
    run --separate-stderr holdfast run --url "$(url 1)" --url "$(url 2)" --url "$(url 3)" a --max-lease 4s -- true
    [ "$status" -eq 0 ]
}

@test "Quorum.ServerNamedTwiceIsRefused" {
    setup_quorum
    run --separate-stderr holdfast run --url "$(url 1)" --url "$(url 2)" --url "$(url 1)" a -- echo never
    [ "$status" -eq 125 ]
    [[ "$stderr" == *"named twice"* ]]
    [ -z "$output" ]
}

@test "Quorum.PasswordInOneOfSeveralUrlsIsRefused" {
    run --separate-stderr holdfast run --url redis://127.0.0.1:1 --url redis://:geheim@127.0.0.1:2 a -- echo never
    [ "$status" -eq 125 ]
    [[ "$stderr" == *"password on the command line"* && "$stderr" != *geheim* ]]
    [ -z "$output" ]
}

@test "Quorum.LeaseIsNoLongerThanTheLongest" {
    setup_quorum
    run --separate-stderr holdfast run --lease 6s a -- echo never
    [ "$status" -eq 125 ]
    [[ "$stderr" == *lease* ]]
    [ -z "$output" ]
}

@test "Quorum.RunWorksWithOneServerKilled" {
    setup_quorum
    crash 2
    run --separate-stderr holdfast run a -- echo works
    [ "$status" -eq 0 ]
    [ "$output" = works ]
}

@test "Quorum.RunGoesOnWhenOneServerIsKilledUnderIt" {
    setup_quorum
    start run a -- sh -c 'touch "$BOX/runs"; sleep 6; echo lived >"$BOX/lived"'
    wait_until test -e "$BOX/runs"
    crash 1
    finish "$last"
    [ "$status" -eq 0 ]
    has_line "$BOX/lived" lived
}

@test "Quorum.RunWithTwoServersKilledIs125AndNeverRuns" {
    setup_quorum
    crash 1
    crash 3
    run --separate-stderr holdfast run --wait 2s a -- echo never
    [ "$status" -eq 125 ]
    [ -z "$output" ]
    [ -n "$stderr" ]
}

@test "Quorum.CommandIsKilledWhenAMajorityHangsLongerThanTheLease" {
    setup_quorum
    start run --lease 4s a -- bash -c 'trap "" TERM; echo $$ >"$BOX/job"; while :; do date +%s%3N >>"$BOX/alive"; sleep 0.02; done'
    wait_until test -s "$BOX/alive"
    kill -STOP "${server[1]}" "${server[2]}"
    local stopped_ms last_sign
    stopped_ms=$(now_ms)
    finish "$last"
    last_sign=$(last_sign "$BOX/alive" "$stopped_ms")
    echo "$status, alive until $((last_sign - stopped_ms)) ms after two servers stopped"
    [ "$status" -eq 75 ]
    # No majority has answered a renewal that was sent after they stopped.
    [ $((last_sign - stopped_ms)) -lt 4000 ]
    has_line "$BOX/out" "lost the lock 'a'"
    is_gone "$(cat "$BOX/job")"
    kill -CONT "${server[1]}" "${server[2]}"
}

@test "Quorum.NoWaitForAHeldLockIsOneAndTellsTheHolder" {
    setup_quorum
    hold a
    run --separate-stderr holdfast run --no-wait a -- echo never
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"lock 'a': not acquired; held by "*"@"* ]]
    let_go a
    finish "$last"
}

@test "Quorum.NestedRunBorrowsInWhateverOrderServersAreNamed" {
    setup_quorum
    run --separate-stderr holdfast run a -- env HOLDFAST_URL="$(url 3) $(url 1) $(url 2)" \
        "$HOLDFAST_BIN" run --wait 5s a -- "$HOLDFAST_BIN" run --wait 5s a -- echo inside
    [ "$status" -eq 0 ]
    [ "$output" = inside ]
    [ -z "$stderr" ]
}

@test "Quorum.NestedRunBorrowsWithOneServerKilled" {
    setup_quorum
    crash 1
    run --separate-stderr holdfast run a -- "$HOLDFAST_BIN" run --wait 5s a -- echo inside
    [ "$status" -eq 0 ]
    [ "$output" = inside ]
}

@test "Quorum.RunThatIsInterruptedLeavesTheQueueOnAllServers" {
    setup_quorum
    hold a
    local holder=$last
    start run a -- echo never
    wait_until someone_waits_everywhere a
    kill -INT "$last"
    finish "$last"
    [ "$status" -eq 130 ]
    for i in 1 2 3; do [ "$(on $i zcard 'hf:{a}:queue')" = 0 ]; done
    let_go a
    finish "$holder"
}

@test "Quorum.FreshServersAreNamedWithTheTimeUntilTheyGrant" {
    start_servers
    export HOLDFAST_URL=$servers HOLDFAST_MAX_LEASE=1h
    run --separate-stderr holdfast run --no-wait a -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$stderr" =~ "redis.sock grants in "(1h|3[0-9]+s).*"redis.sock grants in "(1h|3[0-9]+s) ]]
    run --separate-stderr holdfast run --wait 100ms a -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$stderr" == *"s1/redis.sock grants in "* ]]
    [ ! -e "$BOX/ran" ]
    open_terminal
    terminal resize-window -t t -x 250
    type_line "HOLDFAST_MAX_LEASE=1h HOLDFAST_URL='$HOLDFAST_URL' \"\$HOLDFAST_BIN\" run a -- echo acquired-it"
    wait_until shows "waiting .* for 'a': servers .*s1/redis.sock.*s2/redis.sock.*s3/redis.sock.* started .* ago and grant in [0-9]*m.* (--max-lease)"
    run ! shows 'about to be handed over'
    terminal resize-window -t t -x 80
    wait_until shows '^  3 servers started .* ago and grant in [0-9]*m'
    shows "^holdfast: waiting .* for 'a'$"
}

@test "Quorum.StatusLineTellsHolderAndPosition" {
    setup_quorum
    hold a
    open_terminal
    type_line "HOLDFAST_MAX_LEASE=4s HOLDFAST_URL='$HOLDFAST_URL' \"\$HOLDFAST_BIN\" run a -- echo acquired-it"
    wait_until shows "position 1 of 1, for 'a'; held by "
    let_go a
    wait_until shows '^acquired-it'
}

@test "Quorum.StatusLineTellsWhyNoMajorityAnswers" {
    start_servers
    crash 2
    crash 3
    open_terminal
    type_line "HOLDFAST_MAX_LEASE=1s HOLDFAST_URL='$servers' \"\$HOLDFAST_BIN\" run --wait 60s a -- echo acquired-it"
    wait_until shows "waiting .*s for 'a'"
    wait_until shows '1 of 3 servers answered; .*s2/redis.sock'
    redis-server "$BOX/s2/redis.conf" >"$BOX/s2/log" 2>&1 3>&- &
    started+=($!)
    wait_until shows '^acquired-it'
}

@test "Quorum.AServerThatIsNamedInTwoWaysVotesOnce" {
    start_servers
    export HOLDFAST_MAX_LEASE=1s
    wait_until is_older_than 1 2
    wait_until is_older_than 2 2
    local twin="unix://$BOX/../${BOX##*/}/s1/redis.sock"
    run holdfast run --no-wait --url "$(url 1)" --url "$twin" a -- touch "$BOX/ran"
    echo "$output"
    [ "$status" -eq 125 ]
    [[ "$output" == *"is the same server as "*"name each server once"* ]]
    [ ! -e "$BOX/ran" ]
    # Two of three servers are enough if they are two.
    run holdfast run --wait 30s --url "$(url 1)" --url "$(url 2)" --url "$twin" a -- true
    [ "$status" -eq 0 ]
    crash 2
    run holdfast run --no-wait --url "$(url 1)" --url "$(url 2)" --url "$twin" a -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [ ! -e "$BOX/ran" ]
}
