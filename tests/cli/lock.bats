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

# Two containers of one host: processes that see other pids, but the same sockets with abstract names.
in_a_container() { unshare -pf --mount-proc bash -c 'bash "$0"; exit $?' "$1" </dev/null >>"$BOX/out" 2>&1 3>&-; }
needs_containers() { unshare -pf --mount-proc true 2>/dev/null || skip "needs the right to make a pid namespace"; }

@test "Lock.OfAnotherContainerIsNotBorrowedAndNotReleased" {
    needs_containers
    start_local_server
    cat >"$BOX/first" <<'END'
"$BIN" lock a >/dev/null && echo $$ >"$BOX/held"
while [ ! -e "$BOX/go" ]; do sleep 0.05; done
"$BIN" unlock a
echo "first unlocked=$?"
END
    cat >"$BOX/second" <<'END'
echo $$ >"$BOX/second.shell"
"$BIN" run -q --no-wait a -- touch "$BOX/borrowed"
echo "run=$?"
"$BIN" lock -q --no-wait a
echo "lock=$?"
"$BIN" unlock a
echo "unlock=$?"
END
    in_a_container "$BOX/first" &
    local first=$!
    started+=("$first")
    wait_until test -s "$BOX/held"
    in_a_container "$BOX/second"
    cmp "$BOX/held" "$BOX/second.shell" # shells of one pid
    [ ! -e "$BOX/borrowed" ]
    has_line "$BOX/out" '^run=1$'
    has_line "$BOX/out" '^lock=1$'
    has_line "$BOX/out" '^unlock=1$'
    lock_is_held a
    touch "$BOX/go"
    finish "$first"
    has_line "$BOX/out" '^first unlocked=0$'
    lock_is_free a
}

@test "Lock.IsNotThatOfALaterShellWithTheSamePid" {
    needs_containers
    start_local_server
    cat >"$BOX/both" <<'END'
echo 100 >/proc/sys/kernel/ns_last_pid || { echo no >"$BOX/cannot"; exit; }
bash -c 'echo $$ >"$BOX/former"; "$BIN" lock --fd 9 a >/dev/null; sleep 600 & echo $! >"$BOX/sleeper"; exit' 9>"$BOX/file"
echo 100 >/proc/sys/kernel/ns_last_pid
bash -c 'echo $$ >"$BOX/latter"; "$BIN" run -q --no-wait a -- touch "$BOX/borrowed"; echo "run=$?"; "$BIN" unlock a; echo "unlock=$?"'
kill "$(cat "$BOX/sleeper")"
END
    in_a_container "$BOX/both"
    [ ! -e "$BOX/cannot" ] || skip "needs the right to choose a pid"
    cmp "$BOX/former" "$BOX/latter"
    [ ! -e "$BOX/borrowed" ]
    has_line "$BOX/out" '^run=1$'
    has_line "$BOX/out" '^unlock=1$'
}

@test "Lock.OfAScriptThatIsTheFirstProcessOfItsContainer" {
    needs_containers
    start_local_server
    cat >"$BOX/script" <<'END'
"$BIN" lock a >/dev/null
"$BIN" run -q --no-wait a -- echo inside
"$BIN" unlock a
echo "$$ unlocked=$?"
END
    run unshare -pf --mount-proc bash "$BOX/script"
    echo "$output"
    [[ "$output" == *inside* ]]
    [[ "$output" == *"1 unlocked=0"* ]]
    lock_is_free a
}

@test "Lock.ForTheFirstProcessIsRefusedUnlessItIsNamed" {
    needs_containers
    start_local_server
    # The parent ends at once: the first process takes its place, which is no shell of the lock's.
    cat >"$BOX/script" <<'END'
setsid -f sh -c 'while [ "$(ps -o ppid= -p $$)" -ne 1 ]; do sleep 0.05; done; exec "$BIN" lock a' >"$BOX/orphan" 2>&1
while [ ! -s "$BOX/orphan" ]; do sleep 0.05; done
"$BIN" ls --names
setsid -w "$BIN" lock --pid 1 b >/dev/null
"$BIN" unlock b
echo "unlock=$?"
END
    run unshare -pf --mount-proc bash "$BOX/script"
    cat "$BOX/orphan"
    [ "$output" = unlock=0 ]
    has_line "$BOX/orphan" '--pid'
}

@test "Lock.WithAFileThatOthersWithTheSamePidHaveOpen" {
    needs_containers
    start_local_server
    cat >"$BOX/script" <<'END'
exec 9>>"$BOX/file"
"$BIN" lock -s --fd 9 a >/dev/null
echo "lock=$?"
echo x >>"$BOX/locked"
while [ ! -e "$BOX/go" ]; do sleep 0.05; done
END
    local each
    for each in 1 2; do
        in_a_container "$BOX/script" &
        started+=("$!")
        wait_until eval "[ \"\$(cat \"\$BOX/locked\" 2>/dev/null | wc -l)\" = $each ]"
    done
    cat "$BOX/out"
    [ "$(grep -c '^lock=0$' "$BOX/out")" -eq 2 ]
    touch "$BOX/go"
    wait_until lock_is_free a
}

@test "Lock.WhoseStatusFileCannotBeWrittenIsNotHeld" {
    start_local_server
    local file
    mkdir "$BOX/directory"
    for file in "$BOX/no/such/state" "$BOX/directory"; do
        run bash -c '"$BIN" lock --status-file "$0" a; echo "lock=$?"; "$BIN" ls --names; :' "$file"
        echo "$output"
        [[ "$output" == *"--status-file $file: "*"lock=125" ]]
    done
}

@test "Lock.WhoseTokenCannotBePrintedIsNotHeld" {
    start_local_server
    run bash -c '"$BIN" lock a >/dev/full; echo "lock=$?"; "$BIN" ls --names; :'
    echo "$output"
    [[ "$output" == *lock=125 ]]
}
