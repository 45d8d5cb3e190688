# What a user compiles: with both compilers, and what it costs.
load package

setup_file() { export HOLDFAST_BIN=$HOLDFAST_BUILD/bin/holdfast; }

# Processor seconds of a command.
processor_time() {
    local TIMEFORMAT='%U %S'
    { time "$@" >&2; } 2>&1 | awk '{ print $1 + $2 }'
}

@test "Compile.UsersFilesWorkWithBothCompilersAndTheirCostIsTold" {
    local compiler file
    for compiler in g++ clang++; do
        for file in "$HOLDFAST_TREE"/tests/package/cost/*.cpp; do
            echo "# $compiler -O2 $(basename "$file"): $(processor_time "$compiler" -std=c++20 -O2 -Wall -Wextra -Werror \
                -I "$HOLDFAST_TREE/include" -c "$file" -o "$BOX/object.o") s" >&3
            [ -s "$BOX/object.o" ]
            rm "$BOX/object.o"
        done
    done
}

@test "Compile.ExamplesWorkWithClang" {
    local file
    for file in "$HOLDFAST_TREE"/examples/*.cpp; do
        clang++ -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I "$HOLDFAST_TREE/include" "$file"
    done
}

@test "Compile.ProgramsOfTheReadmesWorkWithClang" {
    local readme name
    for readme in README.md README.zh-CN.md; do
        mkdir "$BOX/$readme"
        python3 "$BATS_TEST_DIRNAME/readme.py" programs "$HOLDFAST_TREE/$readme" "$BOX/$readme"
        [ "$(ls "$BOX/$readme"/*.cpp | wc -l)" -ge 2 ]
        for name in "$BOX/$readme"/*.cpp; do
            clang++ -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I "$HOLDFAST_TREE/include" "$name"
        done
    done
}
