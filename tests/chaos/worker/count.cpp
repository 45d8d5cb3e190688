// The resource is a plain file that knows nothing of locks: a second writer in the section loses an update.
#include <atomic>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "worker.hpp"

namespace holdfast::chaos {
namespace {

struct content {
    std::uint64_t count = 0;
    std::uint64_t token = 0;  // the highest token that wrote
};

content read(const std::string& path) {
    content now;
    std::ifstream file(path);
    if (!(file >> now.count >> now.token)) throw std::runtime_error("the counter is not readable");
    return now;
}

void write(const std::string& path, const content& next) {
    std::ofstream file(path, std::ios::trunc);
    file << next.count << ' ' << next.token << '\n';
    if (!file.flush()) throw std::runtime_error("the counter is not writable");
}

void section_of_a_thread(mutex& lock, const std::string& path) {
    const std::scoped_lock outer{lock};
    const std::scoped_lock inner{lock};  // R14: fair and re-entrant at the same time
    content now = read(path);
    ++now.count;
    write(path, now);
}

void section_of_a_lease(mutex& lock, const std::string& path) {
    const lease held = lock.acquire();
    content now = read(path);
    if (held.token() <= now.token) throw std::runtime_error("a token that did not grow");
    write(path, {now.count + 1, held.token()});
}

}  // namespace

int count(arguments given) {
    const client redis{given[0]};
    mutex lock{redis, given[1]};
    const std::string path = given[2];
    const auto threads = std::stoul(given[3]);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{std::stol(given[4])};
    std::atomic<std::uint64_t> sections{0};
    {
        std::vector<std::jthread> workers;
        for (std::size_t index = 0; index < threads; ++index) {
            workers.emplace_back([&, index] {
                const auto section = index % 2 == 0 ? &section_of_a_thread : &section_of_a_lease;
                while (std::chrono::steady_clock::now() < end) {
                    section(lock, path);
                    ++sections;
                }
            });
        }
    }
    tell("done " + std::to_string(sections));
    return 0;
}

}  // namespace holdfast::chaos
