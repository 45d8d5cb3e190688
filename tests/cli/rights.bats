# The users of docs/deployment.md, "The least rights", as whom every command can be run. The server's own ACL LOG tells
# what was refused, also where the command says nothing of it.
load common

# as WORD...: a user with these rights and no others is who runs the commands from now on.
as() {
    named_redis acl setuser u reset on '>pw' "$@" >/dev/null
    named_redis acl log reset >/dev/null
    named_redis script flush >/dev/null
    export HOLDFAST_URL=unix://u:pw@$BOX/named/redis.sock
}
nothing_was_refused() { [ -z "$(named_redis acl log | refused_of_log)" ]; }
nothing_but_a_card_was_refused() { [ -z "$(named_redis acl log | refused_of_log | without_card)" ]; }
# every_word_is_needed "FIXED WORDS" "WORDS" COMMAND...: without any one of WORDS something is refused.
every_word_is_needed() {
    local word others
    for word in $2; do
        others=" $2 "
        as $1 ${others/ $word / }
        "${@:3}" >/dev/null 2>&1 || true
        if nothing_was_refused; then
            echo "not needed: $word" >&2
            return 1
        fi
    done
}
waits() { [ "$(named_redis zcard "hf:{$1}:queue")" = 1 ]; }

setup_server() {
    start_named_server 'save ""'
    redis() { named_redis "$@"; }
}

@test "Rights.OfLocksAreEnoughToRunAndToMeasure" {
    setup_server
    as $(documented_user locks)
    for side in -s -x ""; do
        # The inner one borrows, and so asks the server whether it may.
        run --separate-stderr holdfast run $side a -- "$HOLDFAST_BIN" run $side --no-wait a -- echo inside
        echo "$side: $status $output $stderr"
        [ "$status" -eq 0 ]
        [ "$output" = inside ]
    done
    hold b
    local holder=$last
    start run b -- touch "$BOX/second"
    wait_until waits b
    let_go b
    finish "$holder"
    [ "$status" -eq 0 ]
    finish "$last"
    [ "$status" -eq 0 ]
    run --separate-stderr holdfast bench --seconds 0.1 --threads 2 --workload parallel --workload read-mostly
    [ "$status" -eq 0 ]
    nothing_was_refused
}

look_at_all() {
    local words
    for words in ls "show a" "show b" metrics "watch a --count 1" "top --json --count 1"; do
        holdfast $words || return 1
    done
}

# Its own card is refused to it, as that page says.
@test "Rights.OfAViewerAreEnoughToLookAndAllAreNeeded" {
    setup_server
    introduce 1
    held_by 1 a
    waited_for_by 2 a 3
    read_by b 1 2
    as $(documented_user viewer)
    run --separate-stderr look_at_all
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [[ "$output" == *user-1@host-1* ]]
    nothing_but_a_card_was_refused
    nothing_was_refused() { nothing_but_a_card_was_refused; }
    every_word_is_needed "" "$(documented_user viewer)" look_at_all
}

# It may not be told of changes, so it looks.
@test "Rights.OfAViewerAreEnoughToWatchAndWait" {
    setup_server
    held_by 1 a
    as $(documented_user viewer)
    start wait a --interval 20ms
    local waiter=$last
    start watch a --interval 20ms
    local watcher=$last
    wait_until has_line "$BOX/out" held
    redis del 'hf:{a}' >/dev/null
    finish "$waiter"
    [ "$status" -eq 0 ]
    wait_until has_line "$BOX/out" released
    held_by 2 a
    wait_until has_line "$BOX/out" acquired
    kill -INT "$watcher"
    finish "$watcher"
    [ "$status" -eq 0 ]
}

@test "Rights.OfLocksAndTypeAreEnoughToRelease" {
    setup_server
    introduce 1
    held_by 1 a
    as $(documented_user locks)
    run --separate-stderr holdfast release a --force --yes
    [ "$status" -eq 125 ]
    as $(documented_user locks) $(documented_addition release)
    run --separate-stderr holdfast release a --force --yes
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    nothing_was_refused
}

@test "Rights.OfLocksAndAFewMoreAreAllThatTheDoctorAsksFor" {
    setup_server
    local more
    more=$(documented_addition doctor)
    as $(documented_user locks) $more
    run --separate-stderr holdfast doctor --json
    [ "$(of_json '[c["finding"] for s in d["servers"] for c in s["checks"] if c["check"] == "rights"]' <<<"$output")" = \
        "['all that locks need']" ]
    nothing_was_refused
    every_word_is_needed "$(documented_user locks)" "$more" holdfast doctor
}
