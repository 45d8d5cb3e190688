// holdfast as a worker beside other programs; ../run has the conversation.
#include <holdfast/holdfast.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using settings = std::map<std::string, std::string>;

long number_in(const std::string& path) {
    long number = 0;
    std::ifstream{path} >> number;
    return number;
}

// Adds one to the number in the file, slowly enough for another to come in between.
void increment(const std::string& path, std::chrono::microseconds section) {
    const long number = number_in(path);
    std::this_thread::sleep_for(section);
    std::ofstream{path} << number + 1;
}

struct result {
    int cycles = 0;
    int reads = 0;  // of these
    double longest_wait_ms = 0;
    int errors = 0;
    std::string first_error;

    void failed(const std::string& why) {
        if (errors++ == 0) first_error = why;
    }
};

class worker {
public:
    worker(holdfast::client& server, const settings& words)
        : words_(words),
          lock_(server, words.at("key"), options_of<holdfast::mutex_options>(words)),
          shared_(server, words.at("key"), options_of<holdfast::shared_mutex_options>(words)) {}

    void run(double seconds) {
        const auto end = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(seconds * 1s);
        std::vector<result> results(std::stoul(words_.at("threads")));
        {
            std::vector<std::jthread> threads;
            for (result& each : results) threads.emplace_back([&] { work(end, each); });
        }
        result all;
        for (const result& each : results) {
            all.cycles += each.cycles;
            all.reads += each.reads;
            all.longest_wait_ms = std::max(all.longest_wait_ms, each.longest_wait_ms);
            all.errors += each.errors;
            if (all.first_error.empty()) all.first_error = each.first_error;
        }
        std::ranges::replace(all.first_error, '"', '\'');
        std::cout << "{\"cycles\": " << all.cycles << ", \"reads\": " << all.reads
                  << ", \"longest_wait_ms\": " << all.longest_wait_ms << ", \"errors\": " << all.errors
                  << ", \"first_error\": \"" << all.first_error << "\"}" << std::endl;
    }

    holdfast::lease acquire() { return is_rw_ ? shared_.acquire() : lock_.acquire(); }
    holdfast::mutex& lock() { return lock_; }
    holdfast::shared_mutex& shared() { return shared_; }

private:
    template <typename Options>
    static Options options_of(const settings& words) {
        Options out;
        out.lease = std::chrono::milliseconds(std::stol(words.at("lease_ms")));
        out.keys = holdfast::keys::raw;
        return out;
    }

    // Of a read-write lock every fourth cycle writes, and the others read.
    void work(steady_clock::time_point end, result& done) {
        for (int cycle = 1; steady_clock::now() < end; ++cycle) {
            const bool reads = is_rw_ && cycle % 4 != 0;
            const auto asked = steady_clock::now();
            try {
                holdfast::lease held = reads ? shared_.acquire_shared() : acquire();
                const std::chrono::duration<double, std::milli> waited = steady_clock::now() - asked;
                done.longest_wait_ms = std::max(done.longest_wait_ms, waited.count());
                reads ? read(done) : increment(words_.at("file"), section_);
                ++done.cycles;
                done.reads += reads ? 1 : 0;
                if (const auto lost = held.release()) done.failed(lost.message());
            } catch (const holdfast::error& failed) {
                done.failed(failed.what());
            }
        }
    }

    void read(result& done) {
        const long before = number_in(words_.at("file"));
        std::this_thread::sleep_for(section_);
        if (number_in(words_.at("file")) != before) done.failed("a writer came in while this one read");
    }

    const settings& words_;
    const bool is_rw_ = words_.contains("kind") && words_.at("kind") == "rw";
    const std::chrono::microseconds section_{std::stol(words_.at("section_us"))};
    holdfast::mutex lock_;
    holdfast::shared_mutex shared_;
};

// What a lock answers that another program holds in a form of its own.
template <typename Lock>
void attempt(Lock& lock) {
    try {
        std::cout << (lock.try_acquire() ? "acquired" : "held by another") << std::endl;
    } catch (const holdfast::error& refused) {
        std::cout << "refused: " << refused.what() << std::endl;
    }
}

void obey(holdfast::client& server, const settings& words) {
    worker here{server, words};
    holdfast::lease held;
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream in{line};
        std::string command;
        double seconds = 0;
        in >> command >> seconds;
        if (command == "run") here.run(seconds);
        if (command == "try") attempt(here.lock());
        if (command == "try-shared") attempt(here.shared());
        if (command != "hold" && command != "once") continue;
        held = here.acquire();
        std::cout << "acquired" << std::endl;
        if (command == "once") {
            held.release();
            std::cout << "released" << std::endl;
        }
    }
}

}  // namespace

int main(int count, char** arguments) {
    settings words;
    for (const std::string& word : std::vector<std::string>(arguments + 1, arguments + count)) {
        words[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    }
    try {
        holdfast::client server{"redis://" + words.at("address")};
        obey(server, words);
    } catch (const std::exception& failed) {
        std::cerr << failed.what() << "\n";
        return 1;
    }
}
