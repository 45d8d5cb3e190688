# holdfast lock and unlock: a lock for a shell, which wraps no command.
load common

# Runs its input as a script of its own, with $BIN as the command.
script() {
    local file
    file=$(mktemp "$BOX/script.XXXX")
    cat >"$file"
    bash "$file" </dev/null >>"$BOX/out" 2>&1 3>&- &
    last=$!
    started+=("$last")
}
lock_is_held() { ! lock_is_free "$1"; }

@test "Lock.IsHeldUntilUnlockAndPrintsTheToken" {
    script <<'END'
token=$("$BIN" lock a) || exit 9
echo "token=$token"
echo held >"$BOX/held"
while [ ! -e "$BOX/go" ]; do sleep 0.05; done
"$BIN" unlock a
echo "unlocked=$?"
"$BIN" unlock a
echo "again=$?"
END
    wait_until test -e "$BOX/held"
    lock_is_held a
    [ "$(sed -n 's/^token=//p' "$BOX/out")" = "$(redis get 'hf:{a}:fence')" ]
    run holdfast run -q --no-wait a -- true
    [ "$status" -eq 1 ]
    [[ "$(holdfast ls)" == *" holdfast:lock["* ]]
    # Somebody else's shell holds nothing.
    run holdfast unlock a
    [ "$status" -eq 1 ]
    touch "$BOX/go"
    finish "$last"
    has_line "$BOX/out" unlocked=0
    has_line "$BOX/out" again=1
    has_line "$BOX/out" "does not hold the lock 'a'"
    lock_is_free a
}

@test "Lock.EndsWithItsShellHoweverThatEnds" {
    script <<'END'
"$BIN" lock a && touch "$BOX/held"
while :; do sleep 0.05; done
END
    wait_until test -e "$BOX/held"
    lock_is_held a
    kill -KILL "$last"
    wait_until lock_is_free a
    script <<<'"$BIN" lock b && echo locked-b'
    finish "$last"
    has_line "$BOX/out" locked-b
    wait_until lock_is_free b
    # A subshell is a shell of its own.
    script <<<'( "$BIN" lock c >/dev/null; "$BIN" ls --names ); while [ "$("$BIN" ls --names)" ]; do sleep 0.05; done; echo over'
    finish "$last"
    has_line "$BOX/out" '^c$'
    has_line "$BOX/out" '^over$'
}

@test "Lock.WaitsInTheQueueAndIsRefusedAsRunIs" {
    hold a
    local holder=$last
    run holdfast lock -n a
    [ "$status" -eq 1 ]
    [[ "$output" == *"lock 'a': not acquired; held by "* ]]
    run holdfast lock -w 0.1 -E 7 a
    [ "$status" -eq 7 ]
    run holdfast lock --lease soon a
    [ "$status" -eq 125 ]
    run holdfast lock --url redis://127.0.0.1:1 -n a
    [ "$status" -eq 125 ]
    [[ "$output" == *"nothing listens"* ]]
    run holdfast lock --pid 999999999 a
    [ "$status" -eq 125 ]
    script <<<'"$BIN" lock a >/dev/null && echo "got it"'
    wait_until someone_waits_for a
    let_go a
    finish "$last"
    has_line "$BOX/out" 'got it'
}

@test "Lock.ThatIsGivenUpWhileItWaitsLeavesTheQueue" {
    hold a
    start lock a
    wait_until someone_waits_for a
    kill -TERM "$last"
    finish "$last"
    [ "$status" -eq 143 ]
    [ "$(redis zcard 'hf:{a}:queue')" = 0 ]
    start lock a
    wait_until someone_waits_for a
    kill -KILL "$last" # the child hears of it
    wait_until eval '[ "$(redis zcard "hf:{a}:queue")" = 0 ]'
    let_go a
}

@test "Lock.KeepsNoFileOfTheShellOpen" {
    # A reader of the pipe would wait for the holder.
    script <<'END'
"$BIN" lock a 2>&1 | cat >"$BOX/piped"
echo "end of file"
END
    finish "$last"
    has_line "$BOX/out" "end of file"
}

@test "Lock.InsideIsBorrowedByRunAndRefusedToASecondLock" {
    script <<'END'
"$BIN" lock a >"$BOX/token"
"$BIN" run a -- sh -c 'echo "inside=$HOLDFAST_TOKEN"'
sh -c '"$BIN" run a -- echo deeper; :'
"$BIN" lock a
echo "second=$?"
sh -c '"$BIN" lock a; echo "below=$?"'
sh -c '"$BIN" unlock a; echo "unlocked=$?"'
END
    finish "$last"
    cat "$BOX/out"
    has_line "$BOX/out" "^inside=$(cat "$BOX/token")$"
    has_line "$BOX/out" '^deeper$'
    has_line "$BOX/out" '^second=125$'
    has_line "$BOX/out" '^below=125$'
    has_line "$BOX/out" '^unlocked=0$'
    run holdfast run -q b -- sh -c '"$BIN" lock b'
    [ "$status" -eq 125 ]
    [[ "$output" == *"above this shell"* ]]
}

@test "Lock.ThatIsLostIsToldByASignalAFileAndUnlock" {
    script <<'END'
trap 'echo heard TERM' TERM
"$BIN" lock --lease 2s --status-file "$BOX/state" a >/dev/null
touch "$BOX/held"
while [ ! -e "$BOX/go" ]; do sleep 0.05; done
"$BIN" unlock a
echo "unlocked=$?"
END
    wait_until test -e "$BOX/held"
    [ "$(cat "$BOX/state")" = "held $(redis get 'hf:{a}:fence')" ]
    redis del 'hf:{a}'
    wait_until has_line "$BOX/out" 'heard TERM'
    has_line "$BOX/state" '^lost: the server no longer has this hold'
    touch "$BOX/go"
    finish "$last"
    has_line "$BOX/out" '^unlocked=75$'
    has_line "$BOX/out" "the lock 'a' was lost: the server no longer has this hold"
}

@test "Lock.WithWarnTheShellGetsNoSignal" {
    script <<'END'
"$BIN" lock --lease 2s --on-lost warn --status-file "$BOX/state" a >/dev/null
touch "$BOX/held"
while ! grep -q lost "$BOX/state"; do sleep 0.05; done
echo alive
END
    wait_until test -e "$BOX/held"
    redis del 'hf:{a}'
    finish "$last"
    has_line "$BOX/out" '^alive$'
}

@test "Lock.IsGivenBackToAnOperatorWhenTheShellHasEnded" {
    script <<'END'
"$BIN" lock a >/dev/null
touch "$BOX/held"
while :; do sleep 0.05; done
END
    wait_until test -e "$BOX/held"
    run holdfast release --force --yes a
    [ "$status" -eq 0 ]
    [[ "$output" == *"stopped, and released it"* ]]
    finish "$last"
    [ "$status" -eq 143 ]
    lock_is_free a
}

@test "Lock.WithAFileIsHeldAsLongAsSomebodyHasItOpen" {
    script <<'END'
(
    "$BIN" lock --fd 9 a >/dev/null || exit 9
    (touch "$BOX/held"; while [ ! -e "$BOX/go" ]; do sleep 0.05; done) & # has it open, too
) 9>"$BOX/file"
echo "the first is over"
wait
END
    wait_until test -e "$BOX/held"
    wait_until has_line "$BOX/out" 'the first is over'
    sleep 0.3
    lock_is_held a
    touch "$BOX/go"
    wait_until lock_is_free a
    # Several may do so with one file, also as readers; only the lock decides.
    rm "$BOX/go"
    local reader
    for reader in 1 2; do
        script <<END
( "\$BIN" lock -s --fd $((7 + reader)) b >/dev/null && touch "\$BOX/reads.$reader"
  while [ ! -e "\$BOX/go" ]; do sleep 0.05; done ) $((7 + reader))>>"\$BOX/file"
END
        wait_until test -e "$BOX/reads.$reader"
    done
    [ "$(holdfast show b | grep -c '^  holder')" -eq 2 ]
    touch "$BOX/go"
    wait_until lock_is_free b
    run bash -c '"$BIN" lock --fd 9 a 9</dev/null'
    [ "$status" -eq 125 ]
    [[ "$output" == *"--fd 9"*"open for writing"* ]]
}
