# At a terminal: Ctrl-C, Ctrl-Z and fg, reading from it. A tmux with a socket of its own is the terminal.
load common

@test "Terminal.CommandCanReadFromIt" {
    open_terminal
    type_line '"$HOLDFAST_BIN" run -q a -- sh -c "echo go ahead; read line; echo got:\$line:"; echo "status=$?"'
    wait_until shows '^go ahead'
    type_line 'hello'
    wait_until shows '^got:hello:'
    wait_until shows '^status=0'
    # And the shell has its terminal back.
    type_line 'echo still $((40 + 2))'
    wait_until shows '^still 42'
}

@test "Terminal.CommandInAPipelineCanReadFromItToo" {
    open_terminal
    type_line '"$HOLDFAST_BIN" run -q a -- sh -c "echo go ahead >&2; read line; echo got:\$line:" | cat; echo "status=$?"'
    wait_until shows '^go ahead'
    type_line 'hello'
    wait_until shows '^got:hello:'
    wait_until shows '^status=0'
}

@test "Terminal.CtrlCEndsTheCommandAndTheScriptAroundIt" {
    open_terminal
    cat >"$BOX/script" <<'TEXT'
"$BIN" run -q a -- sh -c 'touch "$BOX/runs"; exec sleep 1000'
echo the script went on
TEXT
    type_line 'bash "$BOX/script"'
    wait_until test -e "$BOX/runs"
    terminal send-keys -t t C-c
    wait_until lock_is_free a
    type_line 'echo "status=$?"'
    wait_until shows 'status=130'
    run ! shows 'went on'
}

@test "Terminal.CtrlCWhileWaitingEndsTheWait" {
    hold a
    open_terminal
    type_line '"$HOLDFAST_BIN" run -q a -- echo inside; echo "status=$?"'
    wait_until someone_waits_for a
    terminal send-keys -t t C-c
    wait_until shows '^status=130' # not behind the terminal's own ^C
    let_go a
    finish "$last"
}

@test "Terminal.CtrlZAndFgGoOnWithTheHold" {
    open_terminal
    type_line '"$HOLDFAST_BIN" run -q --lease 60s a -- sh -c "echo go ahead; read line; echo got:\$line:"; echo "status=$?"'
    wait_until shows '^go ahead'
    terminal send-keys -t t C-z
    wait_until shows 'Stopped'
    run ! lock_is_free a
    type_line 'fg; echo "end=$?"'
    wait_until eval '[ "$(screen | grep -c "HOLDFAST_BIN")" -ge 2 ]'
    type_line 'hello'
    wait_until shows '^got:hello:'
    wait_until shows '^end=0'
    lock_is_free a
}

@test "Terminal.FgAfterTheLeaseIsOverEndsTheCommand" {
    open_terminal
    type_line '"$HOLDFAST_BIN" run -q --lease 5s a -- sh -c "echo go ahead; while :; do sleep 0.1; date +%s >>$BOX/alive; done"'
    wait_until shows '^go ahead'
    wait_until test -s "$BOX/alive"
    terminal send-keys -t t C-z
    wait_until shows 'Stopped'
    wait_until lock_is_free a
    local before
    before=$(wc -l <"$BOX/alive")
    type_line 'fg; echo "end=$?"'
    wait_until shows '^end=75'
    [ "$(wc -l <"$BOX/alive")" -eq "$before" ]
}

@test "Terminal.LongWaitShowsHolderTimeAndPositionInOneLineThatIsUpdated" {
    hold a
    local holder=$last
    open_terminal
    type_line '"$HOLDFAST_BIN" run a -- echo "insi""de"; echo "status=$?"'
    terminal resize-window -t t -x 180 -y 20
    wait_until shows "holdfast: waiting [0-9]*s, position 1 of 1, for 'a'; held by $(id -un)@$(uname -n) holdfast:sh.$holder. for [0-9]*s, [0-9]*s of its lease left"
    wait_until shows 'waiting [2-9]s, position 1 of 1'
    # Two more waiters come; the position stays, the queue grows.
    start run -q a -- true
    local second=$last
    wait_until someone_waits_for a 2
    start run -q a -- true
    local third=$last
    wait_until shows 'position 1 of 3'
    [ "$(screen | grep -c "holdfast: waiting")" -eq 1 ]
    let_go a
    wait_until shows '^inside'
    wait_until shows '^status=0'
    run ! shows 'holdfast: waiting' # the line is gone
    finish "$second"
    finish "$third"
}

@test "Terminal.LongWaitMovesUpInTheQueue" {
    hold a
    start run -q a -- sh -c 'touch "$BOX/second.runs"; while [ ! -e "$BOX/second.end" ]; do sleep 0.05; done'
    local second=$last
    wait_until someone_waits_for a 1
    open_terminal
    type_line '"$HOLDFAST_BIN" run a -- echo "insi""de"'
    wait_until shows 'position 2 of 2'
    let_go a
    wait_until shows "position 1 of 1, for 'a'; held by .*holdfast:sh.$second. "
    touch "$BOX/second.end"
    wait_until shows '^inside'
}

@test "Terminal.LongWaitOfAReaderTellsWhoWrites" {
    hold a -x
    open_terminal
    type_line '"$HOLDFAST_BIN" run -s a -- echo "insi""de"'
    wait_until shows "position 1 of 1, for 'a'; held by .*holdfast:sh.$last. "
    let_go a
    wait_until shows '^inside'
}

@test "Terminal.LongWaitFitsTheTerminalAndLeavesNothingBehindWhenStopped" {
    hold a
    open_terminal
    terminal resize-window -t t -x 40 -y 20
    type_line '"$HOLDFAST_BIN" run a -- echo "insi""de"; echo "status=$?"'
    wait_until shows "^holdfast: waiting [0-9]*s, position 1 of…$"
    shows '^  held by .*…$'
    terminal resize-window -t t -x 120 -y 20
    wait_until shows 'position 1 of 1'
    terminal send-keys -t t C-z
    wait_until shows Stopped
    run ! shows 'holdfast: waiting'
    type_line 'fg; echo "end=$?"'
    wait_until shows 'position 1 of 1'
    terminal send-keys -t t C-c
    wait_until shows 'end=130'
    run ! shows 'holdfast: waiting'
    let_go a
    finish "$last"
}

@test "Terminal.LongWaitIsSilentInTheBackgroundAndWithQuiet" {
    hold a
    open_terminal
    type_line '"$HOLDFAST_BIN" run -q a -- true & "$HOLDFAST_BIN" run a -- true &'
    wait_until someone_waits_for a 2
    sleep 2.5 # longer than the second after which it would speak
    run ! shows 'holdfast: waiting'
    type_line 'fg %2'
    wait_until shows 'position [12] of 2'
    let_go a
    wait_until lock_is_free a
}

@test "Terminal.LongWaitSaysThatTheServerIsAway" {
    hold a --lease 60s
    open_terminal
    type_line '"$HOLDFAST_BIN" run --wait 60s a -- true; echo "status=$?"'
    wait_until shows 'position 1 of 1'
    kill -STOP "$(server_pid)"
    wait_until shows "holdfast: waiting [0-9]*s for 'a'$"
    shows '^  .*redis.sock.*answer'
    kill -CONT "$(server_pid)"
    wait_until shows 'position 1 of 1'
    let_go a
    wait_until shows '^status=0'
}

@test "Terminal.StatusLineTellsWhyTheServerCannotBeReached" {
    run_redis late 'save ""'
    local url=redis://127.0.0.1:$free_port pid=${started[-1]}
    kill -KILL "$pid"
    wait_until is_gone "$pid"
    open_terminal
    terminal resize-window -t t -x 250 -y 20
    type_line "\"\$HOLDFAST_BIN\" run --wait 60s --url $url a -- echo acquired-it"
    wait_until shows "waiting .*s for 'a': .*${url#redis://}.*nothing listens"
    redis-server "$BOX/late/redis.conf" >"$BOX/late/log" 2>&1 3>&- &
    started+=($!)
    wait_until shows '^acquired-it'
}

@test "Terminal.LongWaitTakesTwoLinesAndCtrlCErasesThem" {
    hold "a-name-that-is-so-long-that-it-takes-most-of-a-line"
    open_terminal
    terminal resize-window -t t -x 100 -y 20
    type_line 'clear; "$HOLDFAST_BIN" run a-name-that-is-so-long-that-it-takes-most-of-a-line -- true; echo "status=$?"'
    wait_until shows "^holdfast: waiting [0-9]*s, position 1 of 1, for 'a-name.*line'$"
    wait_until shows '^  held by .* for .*'
    sleep 1.2 # redrawn in place
    [ "$(screen | grep -c 'holdfast: waiting')" -eq 1 ]
    [ "$(screen | grep -c '  held by')" -eq 1 ]
    terminal send-keys -t t C-c
    wait_until shows '^status=130'
    run ! shows 'holdfast: waiting'
    run ! shows 'held by'
    run ! shows '\^C'
    let_go a-name-that-is-so-long-that-it-takes-most-of-a-line
    finish "$last"
}
