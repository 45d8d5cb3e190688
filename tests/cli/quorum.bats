# Locks on three servers: the command goes on while a majority does, and operators see what each server says.
load common

# A server that was started a short while ago does not vote for the longest lease, so that is short here.
setup_quorum() {
    start_servers "$@"
    export HOLDFAST_URL=$servers HOLDFAST_MAX_LEASE=2s
    local i
    for i in 1 2 3; do wait_until is_older_than "$i" 2; done
}
crash() { kill -KILL "${server[$1]}" && wait_until is_gone "${server[$1]}"; }
is_free_on() { [ "$(on "$1" exists "hf:{$2}")" = 0 ]; }
is_held_on() { [ "$(on "$1" exists "hf:{$2}")" = 1 ]; }
is_free_everywhere() { is_free_on 1 "$1" && is_free_on 2 "$1" && is_free_on 3 "$1"; }
is_held_everywhere() { is_held_on 1 "$1" && is_held_on 2 "$1" && is_held_on 3 "$1"; }
someone_waits_everywhere() {
    local i
    for i in 1 2 3; do [ "$(on $i zcard "hf:{$1}:queue")" = 1 ] || return 1; done
}

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
    run --separate-stderr holdfast run --url "$(url 1)" --url "$(url 2)" --url "$(url 3)" --max-lease 2s --lease 900ms a -- \
        sh -c 'echo "$HOLDFAST_URL"; echo "$HOLDFAST_MAX_LEASE"; echo "$HOLDFAST_NAME"'
    [ "$status" -eq 0 ]
    [ "$output" = "$urls"$'\n2s\na' ]
    run --separate-stderr holdfast run --url "$(url 1)" --url "$(url 2)" --url "$(url 3)" a --max-lease 2s -- true
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
    run --separate-stderr holdfast run --lease 3s a -- echo never
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
    start run a -- sh -c 'touch "$BOX/runs"; sleep 5; echo lived >"$BOX/lived"'
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
    start run --lease 2s a -- bash -c 'trap "" TERM; echo $$ >"$BOX/job"; while :; do date +%s%3N >>"$BOX/alive"; sleep 0.02; done'
    wait_until test -s "$BOX/alive"
    kill -STOP "${server[1]}" "${server[2]}"
    local stopped_ms last_sign
    stopped_ms=$(now_ms)
    finish "$last"
    last_sign=$(tail -n 1 "$BOX/alive")
    echo "$status, alive until $((last_sign - stopped_ms)) ms after two servers stopped"
    [ "$status" -eq 75 ]
    # No majority has answered a renewal that was sent after they stopped.
    [ $((last_sign - stopped_ms)) -lt 2000 ]
    has_line "$BOX/out" "lost the lock 'a'"
    is_gone "$(cat "$BOX/job")"
    kill -CONT "${server[1]}" "${server[2]}"
}

@test "Quorum.NoWaitForATakenLockIsOneAndTellsTheHolder" {
    setup_quorum
    hold a
    run --separate-stderr holdfast run --no-wait a -- echo never
    [ "$status" -eq 1 ]
    [[ "$stderr" == *"lock 'a': taken; held by "*"@"* ]]
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

@test "Quorum.RunThatIsInterruptedLeavesTheLineOnAllServers" {
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

@test "Quorum.WaitingLineTellsHolderAndPlace" {
    setup_quorum
    hold a
    open_terminal
    type_line "HOLDFAST_MAX_LEASE=2s HOLDFAST_URL='$HOLDFAST_URL' \"\$HOLDFAST_BIN\" run a -- echo had-it"
    wait_until shows "'a' is held by .*place 1 of 1"
    let_go a
    wait_until shows '^had-it'
}

@test "Quorum.LsAndShowTellHowManyServersBackAHold" {
    setup_quorum
    hold a
    wait_until is_held_everywhere a
    run --separate-stderr holdfast ls
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == *SERVERS ]]
    [[ "${lines[1]}" == a*"3 of 3" ]]
    [ "${#lines[@]}" -eq 2 ]
    run --separate-stderr holdfast show a
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == "a: held  (key hf:{a})" ]]
    [[ "$output" == *"on 3 of 3 servers"* ]]
    [ "$(grep -c holder <<<"$output")" -eq 1 ]
    run --separate-stderr holdfast show a --json
    [ "$(of_json 'len(d["servers"]), d["silent"], [h["backing"] for h in d["lock"]["holders"]]' <<<"$output")" = \
        "(3, [], [{'servers': 3, 'of': 3}])" ]
    let_go a
    finish "$last"
}

@test "Quorum.SilentServerIsToldAndNotFatal" {
    setup_quorum
    crash 1
    hold a
    run --separate-stderr holdfast ls
    [ "$status" -eq 0 ]
    [[ "${lines[1]}" == a*"2 of 3" ]]
    [[ "$stderr" == *"$BOX/s1/redis.sock"* ]]
    run --separate-stderr holdfast ls --json
    [ "$status" -eq 0 ]
    [ "$(of_json 'len(d["servers"]), [s["server"] for s in d["silent"]], d["locks"][0]["holders"][0]["backing"]' <<<"$output")" = \
        "(3, ['unix://$BOX/s1/redis.sock'], {'servers': 2, 'of': 3})" ]
    run --separate-stderr holdfast ls --names
    [ "$output" = a ]
    [ -z "$stderr" ]
    run --separate-stderr holdfast top --json --count 1
    [ "$(of_json 'd["locks"][0]["holders"][0]["backing"]["servers"], len(d["silent"])' <<<"$output")" = "(2, 1)" ]
    run --separate-stderr holdfast metrics
    [ "$status" -eq 0 ]
    [[ "$output" == *$'\nholdfast_servers_up 2\n'*'holdfast_locks{prefix="",mode="exclusive"} 1'* ]]
    crash 2
    run --separate-stderr holdfast show a
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == "a: held, but not by a majority of the servers"* ]]
    run --separate-stderr holdfast metrics
    [ "$status" -eq 125 ]
    crash 3
    run --separate-stderr holdfast ls
    [ "$status" -eq 125 ]
    [ -n "$stderr" ]
}

@test "Quorum.MinorityIsShownAsWhatItIs" {
    setup_quorum
    on 2 set 'hf:{a}' "$(hold_id 1)" px 60000 >/dev/null
    run --separate-stderr holdfast ls
    [[ "${lines[1]}" == a*"1 of 3" ]]
    run --separate-stderr holdfast show a
    [[ "$output" == *"not by a majority"*"on 1 of 3 servers"* ]]
    run --separate-stderr holdfast metrics
    [[ "$output" != *'holdfast_locks{'* ]]
}

@test "Quorum.ForcedReleaseEndsTheHoldOnAllServersAndTheCommand" {
    setup_quorum
    hold a --lease 2s
    local holder=$last
    wait_until is_held_everywhere a
    run --separate-stderr holdfast release a --force --yes
    [ "$status" -eq 0 ]
    [[ "$output" == *"released on 3 of 3 servers"* ]]
    finish "$holder"
    [ "$status" -eq 75 ]
    is_free_everywhere a
}

@test "Quorum.ForcedReleaseWithoutAMajorityIsExitOne" {
    setup_quorum
    hold a --on-lost warn
    wait_until is_held_everywhere a
    crash 1
    crash 2
    on 3 persist 'hf:{a}' >/dev/null # it is not to end by itself while we look
    run --separate-stderr holdfast release a --force --yes --json
    [ "$status" -eq 1 ]
    [ "$(of_json '[h["released"] for h in d["holders"]], len(d["silent"])' <<<"$output")" = "([False], 2)" ]
    let_go a
    finish "$last"
}

@test "Quorum.WatchTakesOneServer" {
    setup_quorum
    run --separate-stderr holdfast watch a
    [ "$status" -eq 125 ]
    [[ "$stderr" == *"watch looks at one server"* ]]
    hold a
    run --separate-stderr holdfast watch a --url "$(url 2)" --count 1
    [ "$status" -eq 0 ]
    [[ "$output" == *held* ]]
    let_go a
    finish "$last"
}

together() { of_json "next(c['severity'] for c in d['together']['checks'] if c['check'] == '$1')" <<<"$output"; }

@test "Quorum.DoctorExaminesEachServerAndAllTogether" {
    setup_quorum
    run --separate-stderr holdfast doctor --json
    [ "$status" -eq 0 ]
    [ "$(of_json 'len(d["servers"]), [s["warnings"] for s in d["servers"]], d["together"]["warnings"]' <<<"$output")" = "(3, [0, 0, 0], 0)" ]
    # Without the short lease of these tests they are too young to vote.
    HOLDFAST_MAX_LEASE='' run --separate-stderr holdfast doctor --json
    [ "$status" -eq 1 ]
    on 2 config set maxmemory-policy allkeys-lru maxmemory 100mb >/dev/null
    run --separate-stderr holdfast doctor --json
    [ "$status" -eq 2 ]
    [ "$(of_json '[s["dangers"] for s in d["servers"]]' <<<"$output")" = "[0, 1, 0]" ]
    [ "$(together settings)" = warning ]
    run --separate-stderr holdfast doctor
    [ "$(grep -c '^unix://' <<<"$output")" -eq 3 ]
    [[ "$output" == *$'\ntogether\n'*"not the same: maxmemory-policy (noeviction, allkeys-lru)"* ]]
}

@test "Quorum.DoctorTellsOfServersThatAreDownTwinsAndEvenNumbers" {
    setup_quorum
    crash 2
    run --separate-stderr holdfast doctor --json
    [ "$status" -eq 2 ]
    [ "$(together majority)" = danger ]
    [ "$(of_json 'd["servers"][1]["checks"][0]["check"]' <<<"$output")" = answer ]
    ln -s "$BOX/s1" "$BOX/twin"
    HOLDFAST_URL="$(url 1) unix://$BOX/twin/redis.sock" run --separate-stderr holdfast doctor --json
    [ "$status" -eq 2 ]
    [ "$(together twins)" = danger ]
    [ "$(together number)" = warning ]
    crash 1
    crash 3
    run --separate-stderr holdfast doctor
    [ "$status" -eq 125 ]
}

@test "Quorum.CycleIsExactlyTwoCommandsOnEachServer" {
    setup_quorum
    run --separate-stderr holdfast bench --seconds 0.3 --workload quorum --json
    [ "$status" -eq 0 ]
    echo "$output"
    [ "$(of_json 'd["workloads"][0]["servers"], d["workloads"][0]["commands_per_cycle"]' <<<"$output")" = "(3, 2.0)" ]
    for i in 1 2 3; do [ -z "$(on $i --scan --pattern 'hf:{*')" ]; done
    run --separate-stderr holdfast bench --url "$(url 1)" --workload quorum
    [ "$status" -eq 125 ]
    [[ "$stderr" == *"several servers"* ]]
}

@test "Quorum.BenchMeasuresOneServerAndAllOfThem" {
    setup_quorum
    run --separate-stderr holdfast bench --seconds 0.1 --threads 2 --json
    [ "$status" -eq 0 ]
    [ "$(of_json '[(w["workload"], w["servers"]) for w in d["workloads"]][-2:]' <<<"$output")" = \
        "[('read-mostly', 1), ('quorum', 3)]" ]
}
