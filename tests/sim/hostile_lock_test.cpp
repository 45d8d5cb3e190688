// Scripts on keys with hostile contents, on a real server whose clock the test sets: they end, say clearly why not, and
// block nothing. The same cases as the fuzz target `scripts`: its corpus, and random ones.
//
// HOLDFAST_HOSTILE_CASES: so many random cases. HOLDFAST_HOSTILE_SEED: other ones.
#include "hostile/hostile_lock.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "server_model/differential/real_server.hpp"
#include "world/random_stream.hpp"

namespace holdfast::sim::hostile_lock_test {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class clocked_server final : public hostile_server {
public:
    value run(const call_words& command) override { return server_.link().call(command); }
    void pass(std::chrono::milliseconds time) override {
        now_us_ += std::chrono::microseconds(time).count() + 1;
        server_.set_time(now_us_);
    }

private:
    std::int64_t now_us_ = hostile_lock::begin_us;
    real_server server_{HOLDFAST_SIM_CLOCK_MODULE, now_us_};
};

void play(clocked_server& server, const std::vector<std::uint8_t>& bytes, const std::string& name) {
    const hostile_lock lock{fuzz::choices(bytes)};
    EXPECT_EQ(lock.play(server), "") << name << "\n" << lock.describe();
    EXPECT_EQ(server.run({"PING"}).text, "PONG") << name;
}

TEST(HostileLock, ScriptsEndAndBlockNothingOnTheContentsOfTheCorpus) {
    clocked_server server;
    for (const auto& file : std::filesystem::directory_iterator(HOLDFAST_HOSTILE_CORPUS)) {
        std::ifstream in(file.path(), std::ios::binary);
        play(server, {std::istreambuf_iterator<char>(in), {}}, file.path().filename().string());
    }
}

TEST(HostileLock, ScriptsEndAndBlockNothingOnRandomContents) {
    clocked_server server;
    random_stream random(from_environment("HOLDFAST_HOSTILE_SEED", 1));
    const std::uint64_t cases = from_environment("HOLDFAST_HOSTILE_CASES", 200);
    for (std::uint64_t i = 0; i < cases && !HasFailure(); ++i) {
        std::vector<std::uint8_t> bytes(100 + random.below(300));
        for (std::uint8_t& each : bytes) each = static_cast<std::uint8_t>(random.below(256));
        play(server, bytes, "case " + std::to_string(i));
    }
}

}  // namespace
}  // namespace holdfast::sim::hostile_lock_test
