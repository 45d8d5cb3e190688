# holdfast top: the screen is read by tmux.
load common

three_locks() {
    start_local_server
    introduce 1
    held_by 1 alpha
    held_by 2 beta
    held_by 3 gamma
    waited_for_by 4 beta 5
    waited_for_by 5 beta 3
    waited_for_by 6 gamma 400
    redis set 'hf:{idle}:fence' 7 px 3600000 >/dev/null
}
open_top() {
    open_terminal
    type_line "\"\$HOLDFAST_BIN\" top --interval 50ms $*; echo \"status=\$?\""
    wait_until shows '^NAME'
}
press() { terminal send-keys -t t "$@"; }
# The names on the screen, from top to bottom.
names() { screen | awk 'found && (NF == 0 || /^q quit/) { exit } found { print $1 } /^NAME/ { found = 1 }' | tr '\n' ' '; }
names_are() { [ "$(names)" = "$1 " ]; }

@test "Top.ShowsTheMostWantedFirstAndFollowsChanges" {
    three_locks
    open_top
    wait_until names_are 'beta gamma alpha'
    shows '3 locks held, 3 waiters, by waiters'
    shows 'alpha *exclusive *user-1@host-1 prog-1\[1\]'
    shows '^beta .* 2 *[0-9]'
    redis del 'hf:{beta}' 'hf:{beta}:queue' 'hf:{beta}:waiters' >/dev/null
    wait_until names_are 'gamma alpha'
    held_by 7 delta
    wait_until names_are 'gamma alpha delta'
    press q
    wait_until shows '^status=0'
    # The page before is back.
    run ! shows '^NAME'
}

@test "Top.AKeptLockIsTold" {  # R50
    three_locks
    kept_by 1 alpha
    open_top
    wait_until shows 'alpha *exclusive, kept *user-1@host-1 prog-1\[1\]'
    run ! shows 'gamma *exclusive, kept'
    press q
}

@test "Top.KeysSortFilterAndShowFreeOnes" {
    three_locks
    open_top
    wait_until names_are 'beta gamma alpha'
    press n
    wait_until names_are 'alpha beta gamma'
    press r
    wait_until names_are 'gamma beta alpha'
    press o
    wait_until names_are 'gamma beta alpha'
    shows 'by longest wait'
    press s
    wait_until shows 'by time held'
    press n
    press a
    wait_until names_are 'alpha beta gamma idle'
    press / MM
    wait_until shows 'filter: MM_'
    wait_until names_are 'gamma'
    press BSpace
    wait_until names_are 'gamma'
    press Enter
    wait_until shows 'only \*M\*'
    press Escape
    wait_until names_are 'alpha beta gamma idle'
    press q
    wait_until shows '^status=0'
}

@test "Top.FollowsTheTerminalsSizeAndScrolls" {
    start_local_server
    local i
    for i in $(seq 10 39); do held_by "$i" "lock-$i"; done
    open_top
    press n
    wait_until shows '^lock-39' # all fit in 40 rows
    terminal resize-window -t t -x 50 -y 12
    wait_until names_are 'lock-10 lock-11 lock-12 lock-13 lock-14 lock-15 lock-16 lock-17'
    # Nothing is wider than the screen: a wrapped line would push the heading up.
    [ "$(screen | sed -n 3p | cut -c 1-4)" = NAME ]
    press Down
    wait_until names_are 'lock-11 lock-12 lock-13 lock-14 lock-15 lock-16 lock-17 lock-18'
    press Space
    press Space
    press Space
    wait_until shows '^lock-39'
    terminal resize-window -t t -x 120 -y 40
    wait_until shows '^lock-10'
    press q
    wait_until shows '^status=0'
}

@test "Top.NarrowScreenStillTellsWhoWaits" {
    three_locks
    open_top
    shows TOKEN
    terminal resize-window -t t -x 84 -y 24
    wait_until shows '^q quit.*…$'
    shows 'HOLDER  *FOR  *LEFT  *WAITERS  *LONGEST$'
    shows '^gamma .* 1  *[0-9]*m[0-9]*s$'
    run ! shows TOKEN
    terminal resize-window -t t -x 120 -y 40
    wait_until shows TOKEN
    press q
    wait_until shows '^status=0'
}

@test "Top.CtrlCAndCtrlZLeaveTheTerminalAsItWas" {
    three_locks
    open_top
    press C-z
    wait_until shows Stopped
    run ! shows '^NAME'
    type_line 'echo still $((40 + 2))'
    wait_until shows '^still 42'
    type_line fg
    wait_until shows '^NAME'
    press C-c
    wait_until eval '! shows ^NAME'
    type_line 'echo again $((40 + 3))'
    wait_until shows '^again 43'
    type_line 'stty -a | grep -o " icanon"'
    wait_until shows '^ icanon'
}

@test "Top.ShowsTroubleAndGoesOn" {
    three_locks
    open_top
    wait_until names_are 'beta gamma alpha'
    kill -STOP "$(server_pid)"
    local trouble='has not answered\|did not answer' # a request, or later the greeting of a new connection
    wait_until shows "$trouble"
    shows '^beta' # what was last seen
    kill -CONT "$(server_pid)"
    wait_until eval '! shows "$trouble"'
    press q
    wait_until shows '^status=0'
}

@test "Top.NoColorIsRespected" {
    three_locks
    open_terminal
    type_line 'NO_COLOR=1 "$HOLDFAST_BIN" top; echo "status=$?"'
    wait_until shows '^NAME'
    run terminal capture-pane -e -p -t t
    [[ "$output" != *$'\e['* ]]
    press q
    wait_until shows '^status=0'
    type_line '"$HOLDFAST_BIN" top; echo "status=$?"'
    wait_until shows '^NAME'
    run terminal capture-pane -e -p -t t
    [[ "$output" == *$'\e['* ]]
    press q
}

@test "Top.WithoutATerminalSaysWhatToDo" {
    start_local_server
    run --separate-stderr holdfast top
    [ "$status" -eq 125 ]
    [[ "$stderr" == *"holdfast ls"* ]]
    [ -z "$output" ]
}

@test "Top.JsonIsALineForEachLook" {
    three_locks
    run --separate-stderr holdfast top --json --interval 10ms --count 3
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 3 ]
    [ "$(of_json '[l["name"] for l in d["locks"]]' <<<"${lines[2]}")" = "['alpha', 'beta', 'gamma']" ]
}
