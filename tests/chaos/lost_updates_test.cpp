// Many processes with many threads on one lock: R10, R11, R12, R14. Short by default; HOLDFAST_CHAOS_SECONDS makes it
// longer.
#include <gtest/gtest.h>

#include <deque>
#include <fstream>
#include <memory>
#include <set>
#include <thread>

#include "chaos/chaos_fixture.hpp"
#include "chaos/server_monitor.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing::lost_updates_test {
namespace {

class ManyProcesses : public chaos_fixture {
protected:
    ManyProcesses() : chaos_fixture(server_options{.unix_socket = true}) {}

    void SetUp() override { std::ofstream(path) << "0 0\n"; }

    void start(std::size_t processes, const std::string& seconds) {
        for (std::size_t started = 0; started < processes; ++started) {
            workers.emplace_back(std::vector<std::string>{"count", patient_url(), "counter", path, "8", seconds});
        }
    }

    /// The number of critical sections that the workers report.
    std::int64_t sections() {
        std::int64_t sum = 0;
        for (worker& each : workers) {
            EXPECT_EQ(each.finish(), went_well) << each.process().errors();
            sum += to_number(each.wait_for("done").at(1));
        }
        return sum;
    }

    std::int64_t counted() {
        std::int64_t count = -1;
        std::ifstream(path) >> count;
        return count;
    }

    temp_directory directory;
    std::string path = directory.path() / "counter";
    std::vector<worker> workers;
};

// Follows the queue of a mutex.
//
// Invariant of a fair lock: the new holder (SET) is the waiter with the oldest position (first ZADD), unless the queue
// is empty.
class order_watcher final : public server_monitor {
public:
    order_watcher(const std::string& socket, std::string lock) : server_monitor(socket), lock_(std::move(lock)) {}

    std::size_t grants = 0;
    std::size_t from_the_queue = 0;
    std::size_t overtakings = 0;

private:
    void take(const std::vector<std::string>& words) override {
        if (words.size() >= 4 && words[0] == "ZADD" && words[1] == lock_ + ":queue") {
            if (waiting_.insert(words.back()).second) queue_.push_back(words.back());
        } else if (words.size() >= 3 && words[0] == "SET" && words[1] == lock_) {
            granted(words[2]);
        }
    }

    void granted(const std::string& id) {
        ++grants;
        if (queue_.empty()) return;
        if (queue_.front() != id) {
            ++overtakings;
            return;
        }
        ++from_the_queue;
        waiting_.erase(id);
        queue_.pop_front();
    }

    std::string lock_;
    std::deque<std::string> queue_;  // hold ids in the order of arrival at the server
    std::set<std::string> waiting_;  // the same ids
};

// R11, R14
TEST_F(ManyProcesses, LoseNoUpdate) {
    start(8, seconds_to_run("3"));
    const auto done = sections();
    std::cout << "sections: " << done << '\n';
    EXPECT_GT(done, 64);
    EXPECT_EQ(counted(), done);
}

// R10, R12
TEST_F(ManyProcesses, AreServedInOrderOfArrivalAtTheServer) {
    order_watcher watcher{server.unix_path(), "hf:{counter}"};
    std::jthread watching{[&] { watcher.watch_until("end-of-test"); }};
    start(8, "1");
    const auto done = sections();
    server.call({"ECHO", "end-of-test"});
    watching.join();
    EXPECT_EQ(watcher.overtakings, 0U);
    EXPECT_EQ(watcher.grants, static_cast<std::size_t>(done));
    EXPECT_GT(watcher.from_the_queue, watcher.grants / 2) << "the queue was almost always empty";
}

}  // namespace
}  // namespace holdfast::testing::lost_updates_test
