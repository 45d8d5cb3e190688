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
"$HOLDFAST_BIN" run -q a -- sh -c 'touch "$BOX/runs"; exec sleep 1000'
echo the script went on
TEXT
    type_line 'bash "$BOX/script"'
    wait_until test -e "$BOX/runs"
    terminal send-keys -t t C-c
    wait_until lock_is_free a
    type_line 'echo "status=$?"'
    wait_until shows 'status=130'
    ! shows 'went on'
}

@test "Terminal.CtrlCWhileWaitingEndsTheWait" {
    hold a
    open_terminal
    type_line '"$HOLDFAST_BIN" run -q a -- echo inside; echo "status=$?"'
    wait_until someone_waits_for a
    terminal send-keys -t t C-c
    wait_until shows 'status=130' # behind the terminal's own ^C
    let_go a
    finish "$last"
}

@test "Terminal.CtrlZAndFgGoOnWithTheHold" {
    open_terminal
    type_line '"$HOLDFAST_BIN" run -q --lease 60s a -- sh -c "echo go ahead; read line; echo got:\$line:"; echo "status=$?"'
    wait_until shows '^go ahead'
    terminal send-keys -t t C-z
    wait_until shows 'Stopped'
    ! lock_is_free a
    type_line 'fg; echo "end=$?"'
    wait_until eval '[ "$(screen | grep -c "HOLDFAST_BIN")" -ge 2 ]'
    type_line 'hello'
    wait_until shows '^got:hello:'
    wait_until shows '^end=0'
    lock_is_free a
}

@test "Terminal.FgAfterTheLeaseIsOverEndsTheCommand" {
    open_terminal
    type_line '"$HOLDFAST_BIN" run -q --lease 1s a -- sh -c "echo go ahead; while :; do sleep 0.1; date +%s >>$BOX/alive; done"'
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
