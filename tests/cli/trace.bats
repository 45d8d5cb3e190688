# run --trace: what becomes of a lock, in the form of Perfetto.
load common

# Expressions on the events `e` of a file.
of_trace() { python3 -c 'import json, sys; e = json.load(open(sys.argv[1])); print(('"$2"'))' "$1"; }

@test "Trace.HasEverySpanOfARun" {
    holdfast run --trace "$BOX/one.json" job -- sleep 0.2
    [ "$(of_trace "$BOX/one.json" '[(x["name"], x["ph"]) for x in e]')" = \
        "[('acquire job', 'b'), ('acquire job', 'e'), ('hold job', 'b'), ('hold job', 'e')]" ]
    [ "$(of_trace "$BOX/one.json" 'len({x["id"] for x in e})')" = 1 ]
    [ "$(of_trace "$BOX/one.json" 'e[3]["ts"] - e[2]["ts"] >= 200000 and e[1]["ts"] <= e[2]["ts"] + 1000')" = True ]
    [ "$(of_trace "$BOX/one.json" 'int(e[2]["args"]["token"]) > 0 and e[0]["args"]["lock"] == "job"')" = True ]
}

@test "Trace.WaitIsASpanOfItsOwn" {
    hold job
    start run --trace "$BOX/two.json" job -- true
    waiter=$last
    wait_until someone_waits_for job
    let_go job
    finish "$waiter"
    [ "$(of_trace "$BOX/two.json" '[x["name"] for x in e if x["ph"] == "b"]')" = "['wait job', 'hold job']" ]
}

@test "Trace.RefusalsAndLossesAreThere" {
    hold job
    run holdfast run --no-wait --trace "$BOX/no.json" job -- true
    [ "$status" -eq 1 ]
    [ "$(of_trace "$BOX/no.json" '[x["name"] for x in e if x["ph"] == "b"]')" = "['refused job']" ]
    start run --trace "$BOX/lost.json" other -- sleep 600
    loser=$last
    wait_until has_line "$BOX/lost.json" 'acquire other'
    holdfast release --force --yes --grace 0s other >/dev/null
    finish "$loser"
    [ "$status" -eq 75 ]
    [ "$(of_trace "$BOX/lost.json" '"lost other" in [x["name"] for x in e if x["ph"] == "n"]')" = True ]
}

@test "Trace.AnyNameIsJson" {
    holdfast run --trace "$BOX/odd.json" $'a"b\\c\n\xff' -- true
    [ "$(of_trace "$BOX/odd.json" 'e[0]["args"]["lock"] == "a\"b\\c\n\u00ff"')" = True ]
    holdfast run --trace "$BOX/words.json" '錠' -- true
    [ "$(of_trace "$BOX/words.json" 'e[0]["args"]["lock"]')" = '錠' ]
}

@test "Trace.FileThatCannotBeWrittenIs125" {
    run --separate-stderr holdfast run --trace "$BOX/none/x.json" job -- true
    [ "$status" -eq 125 ]
    [[ "$stderr" == *"--trace $BOX/none/x.json: No such file or directory"* ]]
}
