# The READMEs: every block of code in them is run, as a reader would run it.
load package

export HOLDFAST_BIN=$HOLDFAST_BUILD/bin/holdfast
readme=$BATS_TEST_DIRNAME/readme.py
languages="README.md README.zh-CN.md"

@test "Readme.RunsFromTopToBottom" {
    start_local_server
    start_servers
    export HOLDFAST_TEST_SERVERS=$servers
    export HOLDFAST_TEST_URL=unix://$HOLDFAST_HOME/redis.sock HOME=$BOX/reader
    mkdir -p "$HOME" "$BOX/tree/build"
    ln -s "$HOLDFAST_BUILD" "$BOX/tree/build/release"
    python3 "$readme" script "$HOLDFAST_TREE/README.md" >"$BOX/script"
    # The text has ten seconds for the longest lease, and a server that is younger grants no locks.
    for i in 1 2 3; do wait_until is_older_than $i 10; done
    cd "$BOX/tree"
    run bash "$BOX/script"
    echo "$output"
    [ "$status" -eq 0 ]
    local blocks
    blocks=$(python3 "$readme" list "$HOLDFAST_TREE/README.md" | wc -l)
    [ "$blocks" -gt 5 ]
    [ "$(grep -c '^done with line' <<<"$output")" -eq "$blocks" ]
    # By what was installed, not by what was built.
    [ "$(cd "$HOME/.local/bin" && ls)" = holdfast ]
}

@test "Readme.HasTheSameCodeInBothLanguages" {
    diff <(python3 "$readme" list "$HOLDFAST_TREE/README.md") <(python3 "$readme" list "$HOLDFAST_TREE/README.zh-CN.md")
}

@test "Readme.HasTheSameTableInBothLanguages" {
    # As many rows, with as many columns.
    shape() { grep '^|' "$HOLDFAST_TREE/$1" | tr -cd '|\n'; }
    diff <(shape README.md) <(shape README.zh-CN.md)
}

@test "Readme.NamesOnlyCommandsAndFilesThatAreThere" {
    local page word
    for page in $languages; do
        for word in $(grep -o '`\./dev [a-z]*`' "$HOLDFAST_TREE/$page" | tr -d '`' | cut -d ' ' -f 2 | sort -u); do
            "$HOLDFAST_TREE/dev" help | grep -q "^\./dev $word " || { echo "$page: ./dev $word" && false; }
        done
        for word in $(grep -o '](\([^)#:]*\))' "$HOLDFAST_TREE/$page" | tr -d ']()' | sort -u); do
            [ -e "$HOLDFAST_TREE/$word" ] || { echo "$page: $word" && false; }
        done
    done
}

@test "Readme.BlockThatNobodyRunsIsAnError" {
    for block in $'```text\nhello\n```' $'```\nhello\n```' $'\n    holdfast ls\n' $'```cpp\nint main() {}\n```' $'```sh\nnever closed'; do
        printf 'Text.\n\n%s\n' "$block" >"$BOX/page.md"
        run python3 "$readme" script "$BOX/page.md"
        echo "$block: $output"
        [ "$status" -ne 0 ]
        [[ "$output" == *"page.md:"* ]]
    done
}

@test "Readme.BlockThatFailsIsNoticed" {
    printf '```sh\nfalse\n```\n' >"$BOX/page.md"
    python3 "$readme" script "$BOX/page.md" >"$BOX/script"
    run bash "$BOX/script"
    [ "$status" -ne 0 ]
    [[ "$output" != *"done with"* ]]
}
