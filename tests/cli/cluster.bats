# A Cluster of three primaries: run and every command that looks find a lock wherever its slot is.
#
# One Cluster for all tests here, because starting it takes longer than using it. Each test leaves it as it was.
load common

# The names a, b and c are in the slots of the third, the first and the second primary.
slot_of_a=15495

setup_file() {
    export CLUSTER PORTS
    CLUSTER=$(mktemp -d /tmp/hf-cli.XXXXXX)
    BOX=$CLUSTER started=()
    run_cluster 3
    PORTS=${members[*]}
}

teardown_file() {
    BOX=$CLUSTER HOLDFAST_HOME=$CLUSTER/none started=()
    teardown
}

sees_all() { sees_members "$(member_port "$1")" 3; }
member_port() { echo $PORTS | cut -d ' ' -f "$1"; }
# on_member NUMBER COMMAND...
on_member() { redis-cli -p "$(member_port "$1")" "${@:2}"; }
on_each() {
    local i
    for i in 1 2 3; do on_member $i "$@"; done
}
# The Cluster, named by its second member only: [USER:PASSWORD@]
cluster_url() { echo "redis+cluster://$1127.0.0.1:$(member_port 2)"; }
use_cluster() { export HOLDFAST_URL=$(cluster_url); }
lists_all_again() {
    output=$(holdfast ls --json 2>/dev/null)
    [ "$(names) $(of_json 'd["silent"]' <<<"$output")" = "['a', 'b', 'c'] []" ]
}
has_waiter() { [ "$(on_member 3 zcard "hf:{a}:queue")" = 1 ]; }
names() { of_json '[l["name"] for l in d["locks"]]' <<<"$output"; }
series() { sed -n "s/^$1 //p" <<<"$output"; }
nothing_is_left() { [ -z "$(on_each --scan --pattern 'hf:{bench:*')" ]; }
# severity_of CHECK: of the Cluster as a whole, in the doctor's JSON
severity_of() { of_json "next(c['severity'] for c in d['servers'][3]['checks'] if c['check'] == '$1')" <<<"$output"; }
finding_of() { of_json "next(c['finding'] for c in d['servers'][$2]['checks'] if c['check'] == '$1')" <<<"$output"; }
fix_of() { of_json "next(c['fix'] for c in d['servers'][$2]['checks'] if c['check'] == '$1')" <<<"$output"; }
examine() { run --separate-stderr holdfast doctor --json; }

@test "Cluster.EveryLookFindsLocksOnAllPrimaries" {
    use_cluster
    hold b
    local b=$last
    hold c --shared
    local c=$last
    hold a
    local a=$last
    start run a -- touch "$BOX/second"
    local second=$last
    wait_until has_waiter
    [ "$(on_member 1 exists "hf:{b}")$(on_member 2 exists "hf:{c}")$(on_member 3 exists "hf:{a}")" = 111 ]
    run --separate-stderr holdfast ls --json
    [ "$status" -eq 0 ]
    [ "$(names)" = "['a', 'b', 'c']" ]
    [ "$(of_json '[d["locks"][0]["holders"][0]["backing"][k] for k in ("servers", "of")]' <<<"$output")" = "[1, 1]" ]
    run --separate-stderr holdfast ls --names 'c*'
    [ "$output" = c ]
    run --separate-stderr holdfast show a --json
    [ "$status" -eq 0 ]
    [ "$(of_json 'd["lock"]["holders"][0]["client"]["pid"], d["lock"]["waiters"][0]["client"]["pid"]' <<<"$output")" = "($a, $second)" ]
    run --separate-stderr holdfast top --json --count 2 --interval 10ms
    [ "$(tail -1 <<<"$output" | of_json '[l["name"] for l in d["locks"]]')" = "['a', 'b', 'c']" ]
    run --separate-stderr holdfast metrics
    [ "$(series 'holdfast_holders{prefix=""}') $(series 'holdfast_waiters{prefix=""}') $(series holdfast_servers_up)" = "3 1 1" ]
    "$HOLDFAST_BIN" watch a --json --interval 20ms --count 4 </dev/null >"$BOX/events" 2>&1 3>&- &
    started+=($!)
    wait_until has_line "$BOX/events" '"event":"held"'
    let_go a
    wait_until has_line "$BOX/events" '"event":"released"'
    let_go b
    let_go c
    for pid in "$a" "$b" "$c" "$second"; do
        finish "$pid"
        [ "$status" -eq 0 ]
    done
    [ -e "$BOX/second" ]
}

@test "Cluster.ANestedRunBorrowsWhatTheOwnerOfTheSlotConfirms" {
    use_cluster
    run holdfast run --shared a -- "$HOLDFAST_BIN" run --no-wait --shared a -- \
        "$HOLDFAST_BIN" run --exclusive b -- "$HOLDFAST_BIN" run --no-wait b -- sh -c 'exit 6'
    [ "$status" -eq 6 ]
}

@test "Cluster.AForcedReleaseTellsTheHolderAndServesTheNext" {
    use_cluster
    # Its next renewal is far off: whatever it learns, it learns by the message.
    hold a --max-lease 1h --lease 1h
    local first=$last
    start run --max-lease 1h a -- touch "$BOX/second"
    local second=$last
    wait_until has_waiter
    run --separate-stderr holdfast release a --force --yes
    [ "$status" -eq 0 ]
    wait_until is_gone "$first"
    finish "$first"
    [ "$status" -eq 75 ]
    finish "$second"
    [ "$status" -eq 0 ]
    [ -e "$BOX/second" ]
}

@test "Cluster.ALockWhoseSlotIsMovingIsShownAsSuchAndNoOtherSuffers" {
    use_cluster
    hold a
    local a=$last
    hold b
    local b=$last
    on_member 1 cluster setslot $slot_of_a importing "$(on_member 3 cluster myid)"
    on_member 3 cluster setslot $slot_of_a migrating "$(on_member 1 cluster myid)"
    run --separate-stderr holdfast ls --json
    [ "$status" -eq 0 ]
    [ "$(of_json '[(l["name"], l["mode"]) for l in d["locks"]]' <<<"$output")" = "[('a', 'moving'), ('b', 'exclusive')]" ]
    run --separate-stderr holdfast show a
    [ "$status" -eq 125 ]
    [[ $stderr == *moving* ]]
    on_member 3 cluster setslot $slot_of_a stable
    on_member 1 cluster setslot $slot_of_a stable
    run --separate-stderr holdfast show a
    [ "$status" -eq 0 ]
    let_go a
    let_go b
    finish "$a"
    [ "$status" -eq 0 ]
    finish "$b"
    [ "$status" -eq 0 ]
}

# One of three hangs. The name b is on the first, c on the second, a on the third.
@test "Cluster.APrimaryThatDoesNotAnswerHidesNoLocksOfTheOthers" {
    use_cluster
    on_each config set cluster-require-full-coverage no
    on_each config set cluster-node-timeout 60000  # the others are not to take it for failed
    hold b
    local b=$last
    hold c
    local c=$last
    # As if a job held it, but without a process that would lose it.
    on_member 3 set "hf:{a}" hf_0000000000000001.1.0000000000000000000001 px 600000
    local third="redis://127.0.0.1:$(member_port 3)/0"
    "$HOLDFAST_BIN" top --json --interval 10ms </dev/null >"$BOX/lines" 2>"$BOX/told" 3>&- &
    local top=$!
    started+=("$top")
    wait_until has_line "$BOX/lines" '"name":"a"'
    # Nothing is judged before it goes on: other tests need it.
    kill -STOP "$(cat "$CLUSTER/m3.pid")"
    holdfast ls --json >"$BOX/ls" 2>"$BOX/ls.told" || touch "$BOX/failed"
    holdfast ls 'no such' 2>"$BOX/none.told" || touch "$BOX/failed"
    holdfast metrics >"$BOX/metrics" 2>"$BOX/metrics.told" || touch "$BOX/failed"
    wait_until has_line "$BOX/lines" "\"server\":\"$third\"" || touch "$BOX/failed"
    is_alive "$top" || touch "$BOX/failed"
    kill -CONT "$(cat "$CLUSTER/m3.pid")"
    [ ! -e "$BOX/failed" ]
    output=$(cat "$BOX/ls")
    [ "$(names)" = "['b', 'c']" ]
    [ "$(of_json '[s["server"] for s in d["silent"]]' <<<"$output")" = "['$third']" ]
    has_line "$BOX/ls.told" "$third"
    has_line "$BOX/none.told" "nothing is locked where somebody answers"
    output=$(cat "$BOX/metrics")
    [ "$(series 'holdfast_holders{prefix=""}') $(series holdfast_servers_up) $(series holdfast_members_silent)" = "2 1 1" ]
    has_line "$BOX/metrics.told" "$third"
    [ "$(grep -m 1 "\"server\":\"$third\"" "$BOX/lines" | of_json '[l["name"] for l in d["locks"]]')" = "['b', 'c']" ]
    wait_until has_line "$BOX/told" "$third"
    wait_until lists_all_again
    let_go b
    let_go c
    finish "$b"
    [ "$status" -eq 0 ]
    finish "$c"
    [ "$status" -eq 0 ]
    on_member 3 del "hf:{a}"
    on_each config set cluster-require-full-coverage yes
    on_each config set cluster-node-timeout 5000
    for i in 1 2 3; do wait_until sees_all $i; done
}

@test "Cluster.DoctorExaminesEveryPrimaryAndThenTheWhole" {
    use_cluster
    on_each config set cluster-node-timeout 8000  # the longest that the usual lease outlives
    examine
    on_each config set cluster-node-timeout 5000
    local members='sorted(s["server"] for s in d["servers"][:3])'
    [ "$(of_json "$members" <<<"$output")" = "$(printf '%s\n' $PORTS | sort | python3 -c \
        'import sys; print([f"redis://127.0.0.1:{p.strip()}/0" for p in sys.stdin])')" ]
    [ "$(of_json 'd["servers"][3]["server"], d["together"]' <<<"$output")" = "('$HOLDFAST_URL', None)" ]
    [ "$(of_json 'd["servers"][3]["dangers"], d["servers"][3]["warnings"]' <<<"$output")" = "(0, 2)" ]
    [ "$(severity_of coverage)$(severity_of failover)$(severity_of clocks)$(severity_of settings)" = okokokok ]
    [ "$(severity_of full-coverage)$(severity_of spares)" = warningwarning ]
    [ "$(finding_of role 0)$(finding_of rights 0)" = "a primaryall that locks need" ]

    on_each config set cluster-require-full-coverage no
    on_member 2 config set cluster-node-timeout 9000
    on_member 1 cluster delslots 0
    examine
    on_each config set cluster-require-full-coverage yes
    on_member 2 config set cluster-node-timeout 5000
    on_member 1 cluster addslots 0
    [ "$status" -eq 2 ]
    [ "$(severity_of coverage)$(severity_of full-coverage)" = dangerok ]
    [ "$(severity_of failover)$(severity_of settings)" = warningwarning ]
    [[ "$(fix_of failover 3)" == *"cluster-node-timeout 5000"*"leases of 33s" ]]
    for i in 1 2 3; do wait_until sees_all $i; done
}

# A Cluster of its own: in the other one all clocks are right.
@test "Cluster.DoctorWarnsOfClocksThatAreApart" {
    run_cluster 2 20
    HOLDFAST_URL=redis+cluster://127.0.0.1:${members[1]} examine
    [ "$(of_json 'next(c["severity"] for c in d["servers"][2]["checks"] if c["check"] == "clocks")' <<<"$output")" = warning ]
    # Less than it is by as much as the measurement is off, and told in whole seconds.
    [[ $(finding_of clocks 2) =~ ^"the primaries' are "(19|20)"s apart from each other; replicas are not asked"$ ]]
}

follows() { [[ $(redis-cli -p "$1" info replication) == *master_link_status:up* ]]; }
@test "Cluster.DoctorWantsMinReplicasOfAPrimaryWithTwoReplicasAndNotWithOne" {
    local id replica
    run_cluster 1
    export HOLDFAST_URL=redis+cluster://127.0.0.1:${members[1]}
    id=$(redis-cli -p "${members[1]}" cluster myid)
    for replica in 1 2; do
        run_redis "r$replica" 'cluster-enabled yes' 'cluster-port BUS' 'repl-diskless-sync-delay 0' 'save ""'
        redis-cli -p "${members[1]}" cluster meet 127.0.0.1 "$free_port" "$free_bus"
        wait_until sees_members "$free_port" $((replica + 1))
        redis-cli -p "$free_port" cluster replicate "$id"
        wait_until follows "$free_port"
        redis-cli -p "${members[1]}" config set min-replicas-to-write 0
        examine
        findings[replica]=$(finding_of replicas 0) fixes[replica]=$(fix_of replicas 0)
        redis-cli -p "${members[1]}" config set min-replicas-to-write 1
        examine
        findings[replica]+="; $(finding_of replicas 0)" fixes[replica]+="; $(fix_of replicas 0)"
    done
    [ "${findings[1]}" = "1 replica, min-replicas-to-write 0; 1 replica, min-replicas-to-write 1" ]
    [[ ${fixes[1]} == "; CONFIG SET min-replicas-to-write 0"* ]]
    [ "${findings[2]}" = "2 replicas, but min-replicas-to-write is 0; 2 replicas, min-replicas-to-write 1" ]
    [[ ${fixes[2]} == "CONFIG SET min-replicas-to-write 1 and min-replicas-max-lag 3"*"; " ]]
}

@test "Cluster.DoctorNamesTheRightsThatAreMissingOnAMember" {
    on_each acl setuser eve on '>pw-eve' '+@all' '-spublish' '-asking' '~hf:*' '&hf:wake:*'
    on_member 2 acl setuser eve '+@all'
    HOLDFAST_URL=$(cluster_url eve:pw-eve@) examine
    on_each acl deluser eve
    [ "$status" -eq 2 ]
    [ "$(of_json 'sorted(c["finding"][:25] for s in d["servers"][:3] for c in s["checks"] if c["check"] == "rights")' <<<"$output")" = \
        "['all that locks need', 'missing: SPUBLISH, ASKING', 'missing: SPUBLISH, ASKING']" ]
    [[ "$output" != *pw-eve* ]]
}

# as_user NAME WORD...: a user with these rights and no others, on all members, is who runs the commands from now on.
as_user() {
    on_each acl setuser "$1" reset on '>pw' "${@:2}" >/dev/null
    on_each acl log reset >/dev/null
    export HOLDFAST_URL=$(cluster_url "$1:pw@")
}
nothing_was_refused() { [ -z "$(on_each acl log | refused_of_log)" ]; }
nothing_but_a_card_was_refused() { [ -z "$(on_each acl log | refused_of_log | without_card)" ]; }

@test "Cluster.TheLeastRightsOfTheDocumentationAreEnoughForEveryCommand" {
    local words more
    as_user locks $(documented_user cluster-locks)
    for side in -s -x ""; do
        run holdfast run $side a -- "$HOLDFAST_BIN" run $side --no-wait a -- echo inside
        [ "$output" = inside ]
    done
    hold a
    local a=$last
    start run a -- touch "$BOX/second"
    local second=$last
    wait_until has_waiter
    nothing_was_refused
    as_user viewer $(documented_user cluster-viewer)
    for words in ls "show a" metrics "watch a --count 1" "top --json --count 1"; do
        run --separate-stderr holdfast $words
        [ "$status$stderr" = 0 ]
    done
    nothing_but_a_card_was_refused
    as_user releaser $(documented_user cluster-locks) $(documented_addition release)
    run --separate-stderr holdfast release a --force --yes
    [ "$status$stderr" = 0 ]
    nothing_was_refused
    finish "$a"
    [ "$status" -eq 75 ]
    finish "$second"
    [ "$status" -eq 0 ]
    more=$(sed -n 's/.*on a Cluster `\([^`]*\)` too.*/\1/p' "$least_rights")
    as_user doctor $(documented_user cluster-locks) $(documented_addition doctor) $more
    examine
    [ "$(of_json 'set(c["finding"] for s in d["servers"][:3] for c in s["checks"] if c["check"] == "rights")' <<<"$output")" = \
        "{'all that locks need'}" ]
    nothing_was_refused
    on_each acl deluser locks viewer releaser doctor
}

@test "Cluster.BenchCountsTheCommandsOfAllPrimariesAndLeavesNothing" {
    use_cluster
    run --separate-stderr holdfast bench --seconds 0.1 --threads 8 --workload parallel --workload read-mostly --json
    [ "$status" -eq 0 ]
    [ "$(of_json 'd["workloads"][0]["commands_per_cycle"], d["workloads"][0]["servers"]' <<<"$output")" = "(2.0, 1)" ]
    nothing_is_left
}
