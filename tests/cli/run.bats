# holdfast run: exit statuses, the lock itself, what the command gets.
load common

@test "Run.PassesOnTheCommandsExitStatus" {
    for wanted in 0 1 3 75 125 255; do
        run holdfast run a -- sh -c "exit $wanted"
        [ "$status" -eq "$wanted" ]
    done
}

@test "Run.SaysBy128PlusNThatASignalEndedTheCommand" {
    run holdfast run a -- sh -c 'kill -TERM $$'
    [ "$status" -eq 143 ]
    run holdfast run a -- sh -c 'kill -KILL $$'
    [ "$status" -eq 137 ]
}

@test "Run.OfACommandThatIsNotThereIs127" {
    run -127 holdfast run a -- /no/such/program
    [ "$status" -eq 127 ]
    [[ "$output" == *"/no/such/program"* ]]
    lock_is_free a
}

@test "Run.OfACommandThatCannotBeRunIs126" {
    echo text >"$BOX/plain"
    run holdfast run a -- "$BOX/plain"
    [ "$status" -eq 126 ]
    lock_is_free a
}

@test "Run.ThatIsMisusedIs125AndRunsNothing" {
    local -a misuses=(
        "run" "run a" "run --bogus a" "run --lease 30 a" "run --lease 1ms a" "run --wait soon a" "run a b"
        "run --wait 1s --no-wait a" "run --keys odd a" "run --on-lost maybe a" "run -E 256 a" "run {}x{y a" "bogus"
        "run --shell true a" "run --url nonsense a" "run --no-wait --url redis://127.0.0.1:1 a"
        "run --no-wait --url redis://nowhere.invalid a"
    )
    for misuse in "${misuses[@]}"; do
        if [ "$misuse" = "run a" ]; then
            run holdfast $misuse
        else
            run holdfast $misuse -- touch "$BOX/ran"
        fi
        echo "$misuse: $status: $output"
        [ "$status" -eq 125 ]
        [[ "$output" == *"holdfast: "* ]]
        [ ! -e "$BOX/ran" ]
    done
}

@test "Run.PassesArgumentsInputAndOutputUnchanged" {
    run holdfast run a -- printf '<%s>' 'one two' '' '--' '-x' '$HOME'
    [ "${lines[-1]}" = '<one two><><--><-x><$HOME>' ]
    run bash -c 'printf "line 1\nline 2" | "$BIN" run a -- cat'
    [ "$output" = $'line 1\nline 2' ]
    run bash -c '"$BIN" run a -- sh -c "echo out; echo err >&2" 2>/dev/null'
    [ "$output" = out ]
}

@test "Run.ReadsNothingOfTheInputItself" {
    run bash -c 'printf "1\n2\n" | { "$BIN" run a -- true; cat; }'
    [ "${lines[-2]}" = 1 ]
    [ "${lines[-1]}" = 2 ]
}

@test "Run.WithShellRunsAPipeline" {
    run holdfast run -q --shell 'echo "$HOLDFAST_NAME" | tr a-z A-Z; exit 4' name
    [ "$status" -eq 4 ]
    [ "$output" = NAME ]
}

@test "Run.TellsTheCommandNameAndToken" {
    run holdfast run -q 'a b' -- sh -c 'echo "$HOLDFAST_NAME|$HOLDFAST_TOKEN"; echo "$HOLDFAST_HELD" | wc -l'
    [[ "${lines[0]}" =~ ^'a b|'[0-9]+$ ]]
    [ "${lines[1]}" -eq 1 ]
    local first=${lines[0]#*|}
    run holdfast run -q 'a b' -- sh -c 'echo $HOLDFAST_TOKEN'
    [ "$output" -gt "$first" ]
}

@test "Run.HoldsTheLockWhileTheCommandRunsAndNotAfter" {
    hold a
    run ! lock_is_free a
    let_go a
    finish "$last"
    [ "$status" -eq 0 ]
    lock_is_free a
}

@test "Run.WithNoWaitIsRefusedAtOnceWith1OrWhatWasAskedFor" {
    hold a
    run holdfast run --no-wait a -- touch "$BOX/ran"
    [ "$status" -eq 1 ]
    [[ "$output" == *"lock 'a': not acquired; held by $(id -un)@$(uname -n) holdfast:sh[$last] for "* ]]
    run holdfast run --no-wait -E 42 a -- touch "$BOX/ran"
    [ "$status" -eq 42 ]
    run holdfast run --no-wait other -- true
    [ "$status" -eq 0 ]
    [ ! -e "$BOX/ran" ]
    let_go a
    finish "$last"
    run holdfast run --no-wait a -- true
    [ "$status" -eq 0 ]
}

@test "Run.WithWaitGivesUpWhenTheTimeIsOver" {
    hold a
    run holdfast run --wait 3s a -- touch "$BOX/ran"
    [ "$status" -eq 1 ]
    [[ "$output" == *"not acquired within 3s"* ]]
    [ ! -e "$BOX/ran" ]
    let_go a
    finish "$last"
}

@test "Run.ServesWhoWaitsInTheOrderTheyCame" {
    hold a
    local holder=$last waiters=()
    for i in 1 2 3 4; do
        start run a -- sh -c "echo $i >>'$BOX/order'"
        waiters+=("$last")
        wait_until someone_waits_for a "$i"
    done
    let_go a
    for pid in "$holder" "${waiters[@]}"; do
        finish "$pid"
        [ "$status" -eq 0 ]
    done
    [ "$(tr '\n' ' ' <"$BOX/order")" = "1 2 3 4 " ]
}

@test "Run.NeverLetsTwoIn" {
    # mkdir fails for the second of two that overlap.
    patient_server
    local job='mkdir "$BOX/inside" || exit 9; sleep 0.02; rmdir "$BOX/inside"; echo done >>"$BOX/done"' pids=()
    for ((i = 0; i < 100; ++i)); do
        start run --lease 60s a -- sh -c "$job"
        pids+=("$last")
    done
    for pid in "${pids[@]}"; do
        finish "$pid"
        [ "$status" -eq 0 ] || { cat "$BOX/out"; false; }
    done
    [ "$(wc -l <"$BOX/done")" -eq 100 ]
}

@test "Run.WithRawKeysSharesTheKeyWithOtherPrograms" {
    holdfast server start
    redis set foreign somebody px 60000
    run holdfast run --keys raw --no-wait foreign -- true
    [ "$status" -eq 1 ]
    [[ "$output" == *"held by somebody (another program)"* ]]
    run holdfast run --keys raw mine -- redis-cli -s "$HOLDFAST_HOME/redis.sock" exists mine
    [ "$output" = 1 ]
    run holdfast run --prefix 'p:' mine -- redis-cli -s "$HOLDFAST_HOME/redis.sock" exists 'p:{mine}'
    [ "$output" = 1 ]
}

@test "Run.LeavesTheCommandNoneOfItsFiles" {
    run holdfast run -q a -- sh -c 'ls /proc/self/fd | wc -l'
    local under=$output
    run sh -c 'ls /proc/self/fd | wc -l'
    [ "$under" -eq "$output" ]
}

@test "Command.TellsItsVersionAndHelps" {
    run holdfast --version
    [ "$status" -eq 0 ]
    [[ "$output" =~ ^holdfast\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    for page in "--help" "run --help" "server --help"; do
        run holdfast $page
        [ "$status" -eq 0 ]
        [ "${#lines[@]}" -le 40 ]
    done
    [ ! -e "$HOLDFAST_HOME" ]
}

@test "Demo.BehavesAsItSays" {
    run "$HOLDFAST_DEMO" "$HOLDFAST_BIN"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "Run.WaitsForAServerThatIsJustStarting" {
    run_redis late 'save ""'
    local url=redis://127.0.0.1:$free_port pid=${started[-1]}
    kill -KILL "$pid"
    wait_until is_gone "$pid"
    start run --wait 60s --url "$url" a -- sh -c 'touch "$BOX/ran"'
    sleep 0.5
    is_alive "$last"
    redis-server "$BOX/late/redis.conf" >"$BOX/late/log" 2>&1 3>&- &
    started+=($!)
    finish "$last"
    [ "$status" -eq 0 ]
    [ -e "$BOX/ran" ]
}

@test "Run.ThatDoesNotWaitSaysAtOnceThatTheServerIsNotThere" {
    run_redis gone 'save ""'
    local url=redis://127.0.0.1:$free_port pid=${started[-1]}
    kill -KILL "$pid"
    wait_until is_gone "$pid"
    run --separate-stderr holdfast run --no-wait --url "$url?timeout=60s" a -- echo never
    [ "$status" -eq 125 ]
    [ -z "$output" ]
    [[ "$stderr" == *"${url#redis://}"*"nothing listens"* ]]
}

@test "Run.QuietSaysNothingWhereItIsRefused" {
    hold a
    run holdfast run -q --no-wait a -- true
    [ "$status" -eq 1 ]
    [ -z "$output" ]
    run holdfast run -q --wait 3s -E 7 a -- true  # a slow machine has connected by then
    [ "$status" -eq 7 ]
    [ -z "$output" ]
    let_go a
    finish "$last"
}

@test "Run.ShowsWhichProgramHoldsAndNoArgumentsInItsName" {
    start run a -- /bin/sh -c "$cat_until_told" hold a
    wait_until test -e "$BOX/a.runs"
    [[ "$(holdfast ls)" == *" holdfast:sh[$last] "* ]]
    [ "$(holdfast show --json a | of_json 'd["lock"]["holders"][0]["client"]["program"]')" = holdfast:sh ]
    run redis --no-raw hgetall "$(redis keys "hf:client:*")"
    [[ "$output" != *sleep* ]]
    let_go a
    finish "$last"
}

@test "Run.LeaseThatIsTooLongNamesTheOptionThatAllowsIt" {
    run holdfast run --lease 1h a -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$output" == *"--lease 1h: the longest lease is 1m; say --max-lease 1h, too"* ]]
    [ ! -e "$BOX/ran" ]
    run holdfast run --lease 1h --max-lease 1h a -- true
    [ "$status" -eq 0 ]
}

@test "Run.UrlsThatAreSeparatedByCommasOrBlanksAreExplained" {
    local urls
    run holdfast run --url 'redis://127.0.0.1:1 redis://127.0.0.2:2' a -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$output" == *"this is more than one server"*"--url once for each, or separated by blanks in HOLDFAST_URL"* ]]
    for urls in redis://127.0.0.1,redis://127.0.0.2 redis://127.0.0.1:1,127.0.0.2:2 redis://a,b; do
        run holdfast run --url "$urls" a -- touch "$BOX/ran"
        echo "$output"
        [ "$status" -eq 125 ]
        [[ "$output" == *"--url once for each, or separated by blanks in HOLDFAST_URL"* ]]
        HOLDFAST_URL=$urls run holdfast run a -- touch "$BOX/ran"
        [[ "$output" == *"--url once for each, or separated by blanks in HOLDFAST_URL"* ]]
    done
    [ ! -e "$BOX/ran" ]
}
