# holdfast run --slots: a bounded number of commands at a time, and how the other commands show it.
load common

hold_slots() {
    local id=$1 name=$2
    shift 2
    start run "$@" "$name" -- sh -c "$cat_until_told" hold "$id"
}
runs() { [ -e "$BOX/$1.runs" ]; }
out_is() { [ "$(redis hget "hf:{$1}" out)" = "$2" ]; }
nothing_left_of() { [ "$(redis exists "hf:{$1}" "hf:{$1}:leases" "hf:{$1}:grants" "hf:{$1}:queue")" = 0 ]; }

@test "Slots.SoManyRunAtATimeAndTheNextWaits" { # R53
    local one two three
    hold_slots one a --slots 2
    one=$last
    hold_slots two a --slots 2
    two=$last
    wait_until runs one
    wait_until runs two
    hold_slots three a --slots 2
    three=$last
    wait_until someone_waits_for a
    run ! runs three
    run holdfast run --no-wait --slots 2 a -- touch "$BOX/ran"
    [ "$status" -eq 1 ]
    [[ "$output" == *"lock 'a': not acquired; held by "*" and 1 other"* ]]
    [ ! -e "$BOX/ran" ]
    let_go one
    wait_until runs three
    let_go two
    let_go three
    for each in "$one" "$two" "$three"; do
        finish "$each"
        [ "$status" -eq 0 ]
    done
    nothing_left_of a
}

@test "Slots.OneRunMayTakeSeveral" {
    hold_slots many a --slots 4 --take 3
    wait_until runs many
    out_is a 3
    run holdfast run --no-wait --slots 4 --take 2 a -- true
    [ "$status" -eq 1 ]
    run holdfast run --no-wait --slots 4 a -- true
    [ "$status" -eq 0 ]
    let_go many
}

@test "Slots.ARunThatIsKilledGivesBackExactlyItsPermits" { # R53
    local one two
    hold_slots one a --slots 3 --take 2 --lease 1s
    one=$last
    hold_slots two a --slots 3
    two=$last
    wait_until runs one
    wait_until runs two
    kill -9 "$one"
    run holdfast run --wait 30s --slots 3 --take 2 a -- true
    [ "$status" -eq 0 ]
    out_is a 1
    let_go two
    finish "$two"
    [ "$status" -eq 0 ]
}

@test "Slots.AnotherLimitTooManyAndAnotherKindAreRefusedWithTheReason" {
    hold_slots one a --slots 2
    wait_until runs one
    run holdfast run --slots 3 a -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *"its limit is 2"*"another limit"* ]]
    run holdfast run --slots 2 --take 3 a -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *"more permits"* ]]
    run holdfast run a -- true
    [ "$status" -eq 125 ]
    [[ "$output" == *"it is used as a semaphore; say --slots 2"* ]]
    run holdfast run --take 2 b -- true
    [ "$status" -eq 125 ]
    run holdfast run --slots 2 -s b -- true
    [ "$status" -eq 125 ]
    run holdfast run --slots 0 b -- true
    [ "$status" -ne 0 ]
    let_go one
}

@test "Slots.OtherCommandsShowHoldersPermitsAndQueue" {
    hold_slots one a --slots 4 --take 3
    wait_until runs one
    hold_slots two a --slots 4 --take 2
    wait_until someone_waits_for a
    run holdfast ls
    [[ "$output" == *"3 of 4 permits"* ]]
    run holdfast show a
    [[ "$output" == *"a: 3 of 4 permits held, 1 waiter"* ]]
    [[ "$output" == *", 3 permits"* ]]
    [[ "$output" == *"for 2 permits"* ]]
    run --separate-stderr holdfast ls --json
    local lock='d["locks"][0]'
    [ "$(of_json "$lock[\"mode\"]" <<<"$output")" = semaphore ]
    [ "$(of_json "$lock[\"semaphore\"][\"limit\"], $lock[\"semaphore\"][\"out\"]" <<<"$output")" = '(4, 3)' ]
    [ "$(of_json "$lock[\"holders\"][0][\"permits\"]" <<<"$output")" = 3 ]
    [ "$(of_json "$lock[\"waiters\"][0][\"permits\"]" <<<"$output")" = 2 ]
    run holdfast metrics
    [[ "$output" == *'holdfast_locks{prefix="",mode="semaphore"} 1'* ]]
    [[ "$output" == *'holdfast_permits_out{prefix=""} 3'* ]]
    [[ "$output" == *'holdfast_permits_limit{prefix=""} 4'* ]]
    run holdfast release --force --yes a
    [ "$status" -eq 0 ]
    wait_until runs two
    let_go two
    let_go one
}
