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

// Adds one to the number in the file, slowly enough for another to come in between.
void increment(const std::string& path, std::chrono::microseconds section) {
    long number = 0;
    std::ifstream{path} >> number;
    std::this_thread::sleep_for(section);
    std::ofstream{path} << number + 1;
}

struct result {
    int cycles = 0;
    double longest_wait_ms = 0;
    int errors = 0;
    std::string first_error;
};

void work(holdfast::mutex& lock, const settings& words, steady_clock::time_point end, result& done) {
    const std::chrono::microseconds section{std::stol(words.at("section_us"))};
    while (steady_clock::now() < end) {
        const auto asked = steady_clock::now();
        try {
            holdfast::lease held = lock.acquire();
            const std::chrono::duration<double, std::milli> waited = steady_clock::now() - asked;
            done.longest_wait_ms = std::max(done.longest_wait_ms, waited.count());
            increment(words.at("file"), section);
            ++done.cycles;
            held.release();
        } catch (const holdfast::error& failed) {
            if (done.errors++ == 0) done.first_error = failed.what();
        }
    }
}

void run(holdfast::mutex& lock, const settings& words, double seconds) {
    const auto end = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(seconds * 1s);
    std::vector<result> results(std::stoul(words.at("threads")));
    {
        std::vector<std::jthread> threads;
        for (result& each : results) threads.emplace_back([&] { work(lock, words, end, each); });
    }
    result all;
    for (const result& each : results) {
        all.cycles += each.cycles;
        all.longest_wait_ms = std::max(all.longest_wait_ms, each.longest_wait_ms);
        all.errors += each.errors;
        if (all.first_error.empty()) all.first_error = each.first_error;
    }
    std::ranges::replace(all.first_error, '"', '\'');
    std::cout << "{\"cycles\": " << all.cycles << ", \"longest_wait_ms\": " << all.longest_wait_ms
              << ", \"errors\": " << all.errors << ", \"first_error\": \"" << all.first_error << "\"}" << std::endl;
}

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
    const std::chrono::milliseconds lease{std::stol(words.at("lease_ms"))};
    holdfast::mutex lock{server, words.at("key"), {.lease = lease, .keys = holdfast::keys::raw}};
    holdfast::shared_mutex shared{server, words.at("key"), {.lease = lease, .keys = holdfast::keys::raw}};
    holdfast::lease held;
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream in{line};
        std::string command;
        double seconds = 0;
        in >> command >> seconds;
        if (command == "run") run(lock, words, seconds);
        if (command == "try") attempt(lock);
        if (command == "try-shared") attempt(shared);
        if (command != "hold" && command != "once") continue;
        held = lock.acquire();
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
