// Many processes read and write one plain file under a read-write lock: R20, R29, R30.
//
// Runs for a short time; HOLDFAST_CHAOS_SECONDS makes it longer. Who went before whom is judged by the server's own
// account of what it did, not by a clock.
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

// Follows the line of a read-write lock: who stands in it and wants what, and who is let in when.
class line_watcher final : public server_monitor {
public:
    line_watcher(const std::string& socket, std::string lock) : server_monitor(socket), lock_(std::move(lock)) {}

    std::size_t readers_in = 0;
    std::size_t writers_in = 0;
    std::size_t writers_from_the_line = 0;
    /// A reader was let in while a writer stood in line.
    std::size_t readers_before_a_waiting_writer = 0;
    /// Somebody was let in while somebody else had stood in line for longer.
    std::size_t overtakings = 0;

private:
    void take(const std::vector<std::string>& words) override {
        if (words.size() >= 4 && words[0] == "HSET" && words[1] == lock_ + ":waiters") {
            stand_in_line(words[2], words[3]);
        } else if (words.size() >= 4 && words[0] == "HSET" && words[1] == lock_) {
            for (std::size_t i = 2; i + 1 < words.size(); i += 2) let_in(words[i], words[i + 1]);
        }
    }

    // The entry's fifth word is what it wants.
    void stand_in_line(const std::string& id, const std::string& entry) {
        if (place_.contains(id)) return;  // a poll
        std::istringstream text(entry);
        std::string wants;
        for (int word = 0; word < 5; ++word) text >> wants;
        place_[id] = line_.insert(line_.end(), waiter{id, wants == "w"});
        if (wants == "w") ++writers_waiting_;
    }

    void let_in(const std::string& field, const std::string& value) {
        if (field == "writer") {
            ++writers_in;
            if (place_.contains(value)) ++writers_from_the_line;
            leave_line(value);
        } else if (field.starts_with("r:")) {
            ++readers_in;
            leave_line(field.substr(2));
            if (writers_waiting_ > 0) ++readers_before_a_waiting_writer;
        }
    }

    void leave_line(const std::string& id) {
        const auto found = place_.find(id);
        const bool first = line_.empty() || (found != place_.end() && found->second == line_.begin());
        if (!first) ++overtakings;
        if (found == place_.end()) return;
        if (found->second->writes) --writers_waiting_;
        line_.erase(found->second);
        place_.erase(found);
    }

    struct waiter {
        std::string id;
        bool writes;
    };

    std::string lock_;
    std::list<waiter> line_;  // in the order the server saw them
    std::unordered_map<std::string, std::list<waiter>::iterator> place_;
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

    /// Has them all at work, until the end.
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

// R30: 000's way. A writer may wait for as long as readers come.
TEST_F(ReadersAndWriters, SeeNothingTornWhereReadersArePreferred) {
    run("readers", seconds_to_run("1"));
    EXPECT_GT(reading.sections, 64);
    EXPECT_GE(writing.fewest, 1) << "when the last reader has left, at the latest";
}

// R30
TEST_F(ReadersAndWriters, InOrderOfArrivalNobodyIsOvertakenAndNobodyStarves) {
    line_watcher watcher{server.unix_path(), "hf:{file}"};
    std::jthread watching{[&] { watcher.watch_until("all-is-told"); }};
    run("arrival", seconds_to_run("2"));
    server.call({"ECHO", "all-is-told"});
    watching.join();
    EXPECT_EQ(watcher.overtakings, 0U);
    EXPECT_EQ(watcher.readers_in, static_cast<std::size_t>(reading.sections));
    EXPECT_EQ(watcher.writers_in, static_cast<std::size_t>(writing.sections));
    EXPECT_GT(watcher.writers_from_the_line, watcher.writers_in / 2) << "there was hardly a line to watch";
    EXPECT_GE(reading.fewest, 1);
    EXPECT_GE(writing.fewest, 1);
}

// R29: a writer waits for the readers that were in before it, and for writers, but for no reader that came later.
TEST_F(ReadersAndWriters, WhereWritersArePreferredNoReaderComesInBeforeAWriterThatWaits) {
    line_watcher watcher{server.unix_path(), "hf:{file}"};
    std::jthread watching{[&] { watcher.watch_until("all-is-told"); }};
    run("writers", seconds_to_run("2"));
    server.call({"ECHO", "all-is-told"});
    watching.join();
    EXPECT_EQ(watcher.readers_before_a_waiting_writer, 0U);
    EXPECT_EQ(watcher.writers_in, static_cast<std::size_t>(writing.sections));
    EXPECT_EQ(watcher.readers_in, static_cast<std::size_t>(reading.sections));
    EXPECT_GT(watcher.writers_from_the_line, watcher.writers_in / 2) << "there was hardly a line to watch";
}

}  // namespace
}  // namespace holdfast::testing::rw_crowd_test
