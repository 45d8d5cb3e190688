// The plain file knows nothing of locks and is written in two steps: a reader beside a writer sees it torn.
#include <atomic>
#include <fstream>
#include <latch>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "worker.hpp"

namespace holdfast::chaos {
namespace {

constexpr int lines_in_file = 100;

struct page {
    std::uint64_t version = 0;
    std::uint64_t token = 0;  // of the writer

    friend bool operator==(const page&, const page&) = default;
};

page read_page(const std::string& path) {
    std::ifstream file(path);
    page first;
    if (!(file >> first.version >> first.token)) throw std::runtime_error("torn: the file is empty");
    for (int line = 1; line < lines_in_file; ++line) {
        page next;
        if (!(file >> next.version >> next.token)) throw std::runtime_error("torn: the file is too short");
        if (next != first) throw std::runtime_error("torn: two versions in one file");
    }
    return first;
}

void write_page(const std::string& path, const page& next) {
    std::ofstream file(path, std::ios::trunc);
    for (int line = 0; line < lines_in_file; ++line) {
        file << next.version << ' ' << next.token << '\n';
        if (line == lines_in_file / 2) file << std::flush;
    }
    if (!file.flush()) throw std::runtime_error("the file is not writable");
}

void write_section(shared_mutex& lock, const std::string& path) {
    const lease held = lock.acquire();
    const page now = read_page(path);
    if (held.token() <= now.token) throw std::runtime_error("a writer's token that did not grow");
    write_page(path, {now.version + 1, held.token()});
}

void read_section_of_a_lease(shared_mutex& lock, const std::string& path) {
    const lease held = lock.acquire_shared();
    if (held.token() <= read_page(path).token) throw std::runtime_error("a reader's token that is behind the writer's");
}

void read_section_of_a_thread(shared_mutex& lock, const std::string& path) {
    const std::shared_lock outer{lock};
    const std::shared_lock inner{lock};
    const page before = read_page(path);
    if (read_page(path) != before) throw std::runtime_error("torn: it changed under a reader");
}

prefer to_preference(const std::string& word) {
    if (word == "readers") return prefer::readers;
    return word == "writers" ? prefer::writers : prefer::arrival;
}

struct crew {
    shared_mutex& lock;
    std::string path;
    std::latch& start;
    std::chrono::seconds time;

    void work(const std::string& kind, void (*section)(shared_mutex&, const std::string&), milliseconds rest) const {
        start.arrive_and_wait();
        const auto end = std::chrono::steady_clock::now() + time;
        std::uint64_t sections = 0;
        while (std::chrono::steady_clock::now() < end) {
            section(lock, path);
            ++sections;
            std::this_thread::sleep_for(rest);
        }
        tell("served " + kind + ' ' + std::to_string(sections));
    }
};

}  // namespace

int share(arguments given) {
    const client redis{given[0]};
    shared_mutex lock{redis, given[1], {.prefer = to_preference(given[6])}};
    const auto readers = std::stoul(given[3]);
    const auto writers = std::stoul(given[4]);
    std::latch start(static_cast<std::ptrdiff_t>(readers + writers));
    const crew all{lock, given[2], start, std::chrono::seconds{std::stol(given[5])}};
    {
        std::vector<std::jthread> threads;
        for (std::size_t index = 0; index < readers; ++index) {
            const auto section = index % 2 == 0 ? &read_section_of_a_thread : &read_section_of_a_lease;
            threads.emplace_back([&all, section] { all.work("read", section, milliseconds{0}); });
        }
        // A writer without pauses keeps all readers out where writers are preferred.
        for (std::size_t index = 0; index < writers; ++index)
            threads.emplace_back([&all] { all.work("write", &write_section, milliseconds{10}); });
    }
    return 0;
}

int share_hold(arguments given) {
    const auto end = end_of_input();
    const client redis{given[0]};
    shared_mutex lock{redis, given[1], {.lease = to_milliseconds(given[2])}};
    const auto holders = std::stoul(given[3]);
    const bool reads = given[4] == "read";
    shared_mutex{redis, given[1] + ":warm-up"}.acquire_shared().release();
    tell("ready");
    std::atomic<std::size_t> held{0};
    {
        std::vector<std::jthread> threads;
        for (std::size_t index = 0; index < holders; ++index) {
            threads.emplace_back([&] {
                const lease mine = reads ? lock.acquire_shared() : lock.acquire();
                if (++held == holders) tell("held " + std::to_string(now_us()));
                while (!end.stop_requested()) std::this_thread::sleep_for(milliseconds{2});
            });
        }
    }
    tell("released " + std::to_string(now_us()));
    return 0;
}

}  // namespace holdfast::chaos
