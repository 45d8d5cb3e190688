// Many processes read and write one plain file under a read-write lock: R20, R29, R30. Short by default;
// HOLDFAST_CHAOS_SECONDS makes it longer. The order of grants comes from the server's own record, not from a clock.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <limits>
#include <list>
#include <sstream>
#include <thread>
#include <unordered_map>

#include "chaos/chaos_fixture.hpp"
#include "chaos/server_monitor.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing::rw_crowd_test {
namespace {

constexpr std::size_t processes = 4;
constexpr std::size_t readers_each = 16;
constexpr std::size_t writers_each = 1;

// Follows the queue of a read-write lock: who waits for which mode, and who is admitted when.
class queue_watcher final : public server_monitor {
public:
    queue_watcher(const std::string& socket, std::string lock) : server_monitor(socket), lock_(std::move(lock)) {}

    std::size_t readers_in = 0;
    std::size_t writers_in = 0;
    std::size_t writers_from_the_queue = 0;
    /// A reader was admitted while a writer waited.
    std::size_t readers_before_a_waiting_writer = 0;
    /// A waiter was admitted before one that had waited longer.
    std::size_t overtakings = 0;

private:
    void take(const std::vector<std::string>& words) override {
        if (words.size() >= 4 && words[0] == "HSET" && words[1] == lock_ + ":waiters") {
            enqueue(words[2], words[3]);
        } else if (words.size() >= 4 && words[0] == "HSET" && words[1] == lock_) {
            for (std::size_t i = 2; i + 1 < words.size(); i += 2) admit(words[i], words[i + 1]);
        }
    }

    // The fifth word of the entry is the mode.
    void enqueue(const std::string& id, const std::string& entry) {
        if (position_.contains(id)) return;  // a poll
        std::istringstream text(entry);
        std::string wants;
        for (int word = 0; word < 5; ++word) text >> wants;
        position_[id] = queue_.insert(queue_.end(), waiter{id, wants == "w"});
        if (wants == "w") ++writers_waiting_;
    }

    void admit(const std::string& field, const std::string& value) {
        if (field == "writer") {
            ++writers_in;
            if (position_.contains(value)) ++writers_from_the_queue;
            dequeue(value);
        } else if (field.starts_with("r:")) {
            ++readers_in;
            dequeue(field.substr(2));
            if (writers_waiting_ > 0) ++readers_before_a_waiting_writer;
        }
    }

    void dequeue(const std::string& id) {
        const auto found = position_.find(id);
        const bool first = queue_.empty() || (found != position_.end() && found->second == queue_.begin());
        if (!first) ++overtakings;
        if (found == position_.end()) return;
        if (found->second->writes) --writers_waiting_;
        queue_.erase(found->second);
        position_.erase(found);
    }

    struct waiter {
        std::string id;
        bool writes;
    };

    std::string lock_;
    std::list<waiter> queue_;  // in the order of arrival at the server
    std::unordered_map<std::string, std::list<waiter>::iterator> position_;
    std::size_t writers_waiting_ = 0;
};

struct served {
    std::size_t threads = 0;
    std::int64_t sections = 0;
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();  // of one thread
};

class ReadersAndWriters : public chaos_fixture {
protected:
    ReadersAndWriters() : chaos_fixture(server_options{.unix_socket = true}) {}

    void SetUp() override {
        std::ofstream file(path);
        for (int line = 0; line < 100; ++line) file << "0 0\n";
    }

    /// Runs all workers until the end.
    void run(const std::string& preference, const std::string& seconds) {
        std::vector<worker> workers;
        for (std::size_t started = 0; started < processes; ++started) {
            workers.emplace_back(std::vector<std::string>{"share", patient_url(), "file", path,
                                                          std::to_string(readers_each), std::to_string(writers_each),
                                                          seconds, preference});
        }
        for (worker& each : workers) {
            EXPECT_EQ(each.finish(), went_well) << each.process().errors();
            for (const told_line& line : each.lines("served")) {
                served& kind = line.at(1) == "read" ? reading : writing;
                ++kind.threads;
                kind.sections += to_number(line.at(2));
                kind.fewest = std::min(kind.fewest, to_number(line.at(2)));
            }
        }
        std::cout << preference << ": " << reading.sections << " read sections (fewest of a thread " << reading.fewest
                  << "), " << writing.sections << " write sections (" << writing.fewest << ")\n";
        EXPECT_EQ(reading.threads, processes * readers_each);
        EXPECT_EQ(writing.threads, processes * writers_each);
        EXPECT_EQ(version(), writing.sections) << "an update is lost";
    }

    std::int64_t version() {
        std::int64_t count = -1;
        std::ifstream(path) >> count;
        return count;
    }

    temp_directory directory;
    std::string path = directory.path() / "file";
    served reading;
    served writing;
};

// R20
TEST_F(ReadersAndWriters, SeeNothingTorn) {
    run("arrival", seconds_to_run("2"));
    EXPECT_GT(reading.sections, 64);
    EXPECT_GE(writing.sections, 4);
}

// R30, readers preferred: a writer may wait for as long as readers come.
TEST_F(ReadersAndWriters, SeeNothingTornWhereReadersArePreferred) {
    run("readers", seconds_to_run("1"));
    EXPECT_GT(reading.sections, 64);
    EXPECT_GE(writing.fewest, 1) << "when the last reader has left, at the latest";
}

// R30
TEST_F(ReadersAndWriters, InOrderOfArrivalNoWaiterIsOvertakenOrStarves) {
    queue_watcher watcher{server.unix_path(), "hf:{file}"};
    std::jthread watching{[&] { watcher.watch_until("end-of-test"); }};
    run("arrival", seconds_to_run("2"));
    server.call({"ECHO", "end-of-test"});
    watching.join();
    EXPECT_EQ(watcher.overtakings, 0U);
    EXPECT_EQ(watcher.readers_in, static_cast<std::size_t>(reading.sections));
    EXPECT_EQ(watcher.writers_in, static_cast<std::size_t>(writing.sections));
    EXPECT_GT(watcher.writers_from_the_queue, watcher.writers_in / 2) << "the queue was almost always empty";
    EXPECT_GE(reading.fewest, 1);
    EXPECT_GE(writing.fewest, 1);
}

// R29: a writer waits for the present readers and for other writers, but not for readers that came later.
TEST_F(ReadersAndWriters, WhereWritersArePreferredNoReaderOvertakesAWaitingWriter) {
    queue_watcher watcher{server.unix_path(), "hf:{file}"};
    std::jthread watching{[&] { watcher.watch_until("end-of-test"); }};
    run("writers", seconds_to_run("2"));
    server.call({"ECHO", "end-of-test"});
    watching.join();
    EXPECT_EQ(watcher.readers_before_a_waiting_writer, 0U);
    EXPECT_EQ(watcher.writers_in, static_cast<std::size_t>(writing.sections));
    EXPECT_EQ(watcher.readers_in, static_cast<std::size_t>(reading.sections));
    EXPECT_GT(watcher.writers_from_the_queue, watcher.writers_in / 2) << "the queue was almost always empty";
}

}  // namespace
}  // namespace holdfast::testing::rw_crowd_test
