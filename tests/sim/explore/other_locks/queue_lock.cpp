#include "explore/other_locks/other_locks.hpp"
#include "explore/other_locks/script_process.hpp"

namespace holdfast::sim::explore {
namespace {

// SETNX, or RPUSH. The model of the server has no lists: here the list is a sorted set, in which each element has its
// place as its score. Nobody is in the list twice.
constexpr const char* lock_text =
    "if redis.call('SET', KEYS[1], ARGV[1], 'NX') then return 1 end "
    "redis.call('ZADD', KEYS[2], redis.call('ZCARD', KEYS[2]), ARGV[1]) return 0";
// DEL, RPOP, PUBLISH.
constexpr const char* unlock_text =
    "redis.call('DEL', KEYS[1]) "
    "local last = redis.call('ZREVRANGE', KEYS[2], 0, 0)[1] "
    "if last then redis.call('ZREM', KEYS[2], last) redis.call('PUBLISH', KEYS[3], last) end return 1";

class queue_lock : public script_process {
public:
    using script_process::script_process;

protected:
    void subscribe() {
        if (!subscribed_) send(0, {"SUBSCRIBE", "lock_channel"}, [](const told&) {});
        subscribed_ = true;
    }
    void acquire() override {
        where().line().asks(name());
        ask();
    }
    void ask() {
        send(0, {"EVAL", lock_text, "2", "lock", "lock_wait", name()}, [this](const told& answer) {
            if (answer.number == 1) {
                where().line().acquired(name());
                return acquired(never);
            }
            where().line().waits(name());
            subscribe();
        });
    }
    void release() override {
        send(0, {"EVAL", unlock_text, "3", "lock", "lock_wait", "lock_channel"}, [this](const told&) { released(); });
    }
    void heard(const std::string&, const std::string& whose) override {
        if (is_asking() && whose == name()) ask();
    }

private:
    bool subscribed_ = false;
};

// As it should have been written: then other faults show.
class subscribed_queue_lock final : public queue_lock {
public:
    using queue_lock::queue_lock;

private:
    void acquire() override {
        subscribe();
        queue_lock::acquire();
    }
};

std::string name_of(std::size_t number) {
    return std::string(1, static_cast<char>('A' + number));
}

}  // namespace

std::unique_ptr<process> make_queue_lock(small_world& where, std::size_t number, std::vector<act> steps) {
    return std::make_unique<queue_lock>(where, number, name_of(number), std::move(steps));
}

std::unique_ptr<process> make_subscribed_queue_lock(small_world& where, std::size_t number, std::vector<act> steps) {
    return std::make_unique<subscribed_queue_lock>(where, number, name_of(number), std::move(steps));
}

}  // namespace holdfast::sim::explore
