# holdfast elect and holdfast wait.
load common

@test "Elect.RunsTheCommandAndTellsTheLeadersValue" { # R56
    start elect leader --value node-1:8080 -- sh -c "$cat_until_told" hold leader
    wait_until test -e "$BOX/leader.runs"
    run --separate-stderr holdfast show leader --json
    [ "$(of_json 'd["lock"]["holders"][0]["note"]' <<<"$output")" = node-1:8080 ]
    run holdfast elect leader --value node-2:8080 --no-wait -- true
    [ "$status" -eq 1 ]
    [[ "$output" == *node-1:8080* ]]
    let_go leader
    finish "$last"
    [ "$status" -eq 0 ]
    run holdfast elect leader -- true
    [ "$status" -eq 125 ]
}

@test "Wait.EndsWhenTheLockIsFree" {
    start_local_server
    run holdfast wait nothing
    [ "$status" -eq 0 ]
    hold a
    holder=$last
    run holdfast wait a --timeout 200ms
    [ "$status" -eq 1 ]
    [[ "$output" == *"not free within 200ms"* ]]
    run holdfast wait a --timeout 200ms -q -E 7
    [ "$status" -eq 7 ]
    [ -z "$output" ]
    start wait a
    waiter=$last
    let_go a
    finish "$holder"
    finish "$waiter"
    [ "$status" -eq 0 ]
}
