// Runs a fuzz target without libFuzzer, as an ordinary test.
//
// First every file of the corpus directories (or files) named on the command line, then a bounded number of
// mutations of them (HOLDFAST_FUZZ_RUNS, default 20000, fewer for slow targets). Everything follows from the seed
// (HOLDFAST_FUZZ_SEED, default 1), so a failure comes again; the input that fails is left behind in a file,
// to replay alone.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#ifndef HOLDFAST_FUZZ_RUNS
#define HOLDFAST_FUZZ_RUNS 20000
#endif

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::string current;  // what the target is looking at
constexpr const char* failed_input_file = "fuzz-failure.bin";

// The target ends by abort(); keep what it was given.
extern "C" void keep_failed_input(int) {
    if (std::FILE* file = std::fopen(failed_input_file, "wb")) {
        std::fwrite(current.data(), 1, current.size(), file);
        std::fclose(file);
        std::fprintf(stderr, "the failing input (%zu bytes) is in %s\n", current.size(), failed_input_file);
    }
}

void run(std::string input) {
    current = std::move(input);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
}

std::string contents(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return std::move(bytes).str();
}

// Sorted, because directories have no order and a seed must mean the same everywhere.
std::vector<std::string> read_corpus(int argc, char** argv) {
    std::vector<std::filesystem::path> paths;
    for (int i = 1; i < argc; ++i) {
        if (!std::filesystem::is_directory(argv[i])) {
            paths.emplace_back(argv[i]);
            continue;
        }
        for (const auto& entry : std::filesystem::recursive_directory_iterator{argv[i]}) {
            if (entry.is_regular_file()) paths.push_back(entry.path());
        }
    }
    std::sort(paths.begin(), paths.end());
    std::vector<std::string> inputs;
    for (const auto& path : paths) inputs.push_back(contents(path));
    return inputs;
}

class mutator {
public:
    mutator(std::vector<std::string> corpus, std::uint32_t seed) : corpus_(std::move(corpus)), random_(seed) {}

    std::string next() {
        std::string input = any();
        for (std::size_t times = 1 + below(4); times > 0; --times) mutate(input);
        return input;
    }

private:
    std::size_t below(std::size_t bound) { return random_() % bound; }
    const std::string& any() { return corpus_[below(corpus_.size())]; }
    char any_byte() { return static_cast<char>(below(256)); }

    void mutate(std::string& input) {
        const std::size_t at = below(input.size() + 1);
        switch (below(7)) {
            case 0:
                if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
                break;
            case 1:
                if (at < input.size()) input[at] = any_byte();
                break;
            case 2:
                input.insert(at, 1 + below(4), any_byte());
                break;
            case 3:
                input.erase(at, 1 + below(8));
                break;
            case 4:
                input.resize(at);
                break;
            case 5:
                splice(input, at);
                break;
            default:
                input.insert(at, input.substr(below(input.size() + 1), 1 + below(16)));
                break;
        }
    }

    // The head of one and the tail of another.
    void splice(std::string& input, std::size_t at) {
        const std::string& other = any();
        input.resize(at);
        input.append(other, below(other.size() + 1), std::string::npos);
    }

    std::vector<std::string> corpus_;
    std::mt19937 random_;
};

unsigned long from_environment(const char* name, unsigned long otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoul(text, nullptr, 10);
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGABRT, keep_failed_input);
    const std::vector<std::string> corpus = read_corpus(argc, argv);
    if (corpus.empty()) {
        std::fprintf(stderr, "usage: %s CORPUS-DIRECTORY...   (no input found)\n", argv[0]);
        return 2;
    }
    for (const std::string& input : corpus) run(input);
    const unsigned long runs = from_environment("HOLDFAST_FUZZ_RUNS", HOLDFAST_FUZZ_RUNS);
    mutator mutations{corpus, static_cast<std::uint32_t>(from_environment("HOLDFAST_FUZZ_SEED", 1))};
    for (unsigned long i = 0; i < runs; ++i) run(mutations.next());
    std::printf("%zu inputs of the corpus, %lu mutations\n", corpus.size(), runs);
    return 0;
}
