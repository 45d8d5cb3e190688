# What people type from habit: without "--", as flock(1) has it, with the names of other programs.
load common

@test "Habits.RunTakesTheCommandBehindTheName" {
    run holdfast run -q job echo -n hi --wait
    [ "$status" -eq 0 ]
    [ "$output" = "hi --wait" ]
    run holdfast run -q job --lease 20s echo hi
    [ "$output" = hi ]
    run holdfast run -q job ls -d /
    [ "$output" = / ]
    run holdfast run job --bogus touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$output" == *"no option --bogus; put -- before the command"* ]]
    run holdfast run my job -- touch "$BOX/ran"
    [ "$status" -eq 125 ]
    [[ "$output" == *"NAME is one word"* ]]
    [ ! -e "$BOX/ran" ]
}

@test "Habits.FlocksShortOptionsAreAccepted" {
    hold a
    run holdfast run -n a touch "$BOX/ran"
    [ "$status" -eq 1 ]
    run holdfast run -w 0.2 -E 9 a touch "$BOX/ran"
    [ "$status" -eq 9 ]
    [[ "$output" == *"within 200ms"* ]]
    [ ! -e "$BOX/ran" ]
    run holdfast run -q b -c 'echo "$HOLDFAST_NAME" | tr a-z A-Z'
    [ "$output" = B ]
    let_go a
    finish "$last"
}

@test "Habits.UnknownSubcommandsAreAnsweredWithTheOneThatWasMeant" {
    local word meant
    while read -r word meant; do
        run holdfast $word
        echo "$word: $output"
        [ "$status" -eq 125 ]
        [[ "$output" == *"no subcommand '$word'; did you mean holdfast $meant?"* ]]
    done <<<$'list ls\nps ls\nstatus ls\nexec run\nstart server start\nsohw show\ndocter doctor'
    run holdfast nightly -- true
    [[ "$output" == *"did you mean holdfast run nightly -- COMMAND?"* ]]
    run holdfast nonsense
    [ "$status" -eq 125 ]
    [[ "$output" != *"did you mean"* ]]
    [ ! -e "$HOLDFAST_HOME" ]
}

@test "Habits.HelpAndVersionInEveryForm" {
    run holdfast -V
    [ "$status" -eq 0 ]
    [ "$output" = "$(holdfast --version)" ]
    run holdfast help
    [ "$status" -eq 0 ]
    [ "$output" = "$(holdfast --help)" ]
    for page in run ls "server stop"; do
        run holdfast help $page
        [ "$status" -eq 0 ]
        [ "$output" = "$(holdfast $page --help)" ]
    done
    for page in $(holdfast --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
        run holdfast $page --help
        [[ "$output" == *Usage:* && "$output" != *" in ["* ]] # no type and range where a word says it
    done
    run holdfast help bogus
    [ "$status" -eq 125 ]
    [ ! -e "$HOLDFAST_HOME" ]
}

@test "Habits.OptionsMayStandBeforeTheSubcommand" {
    unset HOLDFAST_URL
    run holdfast --local --prefix p: --max-lease 20s run job redis-cli -s "$HOLDFAST_HOME/redis.sock" exists 'p:{job}'
    [ "$status" -eq 0 ]
    [ "$output" = 1 ]
    run holdfast --url "unix://$HOLDFAST_HOME/redis.sock" --max-lease=20s ls --json
    [ "$status" -eq 0 ]
    [[ "$output" == *"$HOLDFAST_HOME/redis.sock"* ]]
    run holdfast --local --prefix p: --max-lease 20s server url
    [ "$status" -eq 0 ]
    [ "$output" = "unix://$HOLDFAST_HOME/redis.sock" ]
    run holdfast --url redis://127.0.0.1:1 server status
    [ "$status" -eq 125 ]
    run holdfast --url
    [ "$status" -eq 125 ]
    run holdfast --local
    [ "$status" -eq 125 ]
}
