#include "explore/other_locks/other_locks.hpp"
#include "explore/other_locks/script_process.hpp"

namespace holdfast::sim::explore {
namespace {

constexpr const char* lock_read = R"lua(
local waitWrite = redis.call('get', KEYS[3]..':wait_write')
if waitWrite ~= false then
    return redis.call('pttl', KEYS[1])
end
local mode = redis.call('hget', KEYS[1], 'mode')
if (mode == false) then
    redis.call('hset', KEYS[1], 'mode', 'read')
    redis.call('hset', KEYS[1], ARGV[2], 1)
    redis.call('set', KEYS[2]..':1', 1)
    redis.call('pexpire', KEYS[2]..':1', ARGV[1])
    redis.call('pexpire', KEYS[1], ARGV[1])
    return 'OK'
end
if (mode == 'read') then
    local ind = redis.call('hincrby', KEYS[1], ARGV[2], 1)
    local key = KEYS[2] .. ':' .. ind
    redis.call('set', key, 1)
    redis.call('pexpire', key, ARGV[1])
    local remainTime = redis.call('pttl', KEYS[1])
    redis.call('pexpire', KEYS[1], math.max(remainTime, ARGV[1]))
    return 'OK'
end
return redis.call('pttl', KEYS[1])
)lua";

constexpr const char* unlock_read = R"lua(
local mode = redis.call('hget', KEYS[1], 'mode')
if (mode == false) then
    return 3
end
if mode == 'write' then
    return -1
end
local lockExists = redis.call('hexists', KEYS[1], ARGV[1])
if (lockExists == 0) then
    return 2
end
local counter = redis.call('hincrby', KEYS[1], ARGV[1], -1)
if (counter == 0) then
    redis.call('hdel', KEYS[1], ARGV[1])
end
redis.call('del', KEYS[2] .. ':' .. (counter+1))
if (redis.call('hlen', KEYS[1]) > 1) then
    local maxRemainTime = 0
    local keys = redis.call('hkeys', KEYS[1])
    for n, key in ipairs(keys) do
        counter = tonumber(redis.call('hget', KEYS[1], key))
        if type(counter) == 'number' then
            for i=counter, 1, -1 do
                local remainTime = redis.call('pttl', KEYS[3] .. ':' .. key .. ':rwlock_timeout:' .. i)
                maxRemainTime = math.max(remainTime, maxRemainTime)
            end
        end
    end
    if maxRemainTime > 0 then
        redis.call('pexpire', KEYS[1], maxRemainTime)
        return 0
    end
end
redis.call('del', KEYS[1])
redis.call('PUBLISH',KEYS[3]..':channel',ARGV[1]..'_del_read')
return 1
)lua";

constexpr const char* lock_write = R"lua(
local mode = redis.call('hget', KEYS[1], 'mode')
if (mode == false) then
    local waitWrite = redis.call('get', KEYS[2]..':wait_write')
    if waitWrite ~= false and waitWrite ~= ARGV[2] then
        return -1
    end
    if waitWrite ~= false then
        redis.call('del', KEYS[2]..':wait_write')
    end
    redis.call('hset', KEYS[1], 'mode', 'write')
    redis.call('hset', KEYS[1], ARGV[2], 1)
    redis.call('pexpire', KEYS[1], ARGV[1])
    return 'OK'
end
if (mode == 'read') then
    local waitWrite = redis.call('get', KEYS[2]..':wait_write')
    if waitWrite == false then
        redis.call('set', KEYS[2]..':wait_write',ARGV[2])
        redis.call('pexpire', KEYS[2]..':wait_write',ARGV[3])
        return 1
    end
    if waitWrite == ARGV[2] then
        redis.call('pexpire', KEYS[2]..':wait_write',ARGV[3])
    end
end
return 2
)lua";

constexpr const char* unlock_write = R"lua(
if (redis.call('hget', KEYS[1], 'mode') == 'write') then
    if (tonumber(redis.call('hget', KEYS[1], ARGV[1])) == 1) then
        redis.call('del', KEYS[1])
        redis.call('PUBLISH',KEYS[2]..':channel',ARGV[1]..'_del_write')
        return 1
    end
end
return -1
)lua";

// Whoever waits subscribes to the channel, and tries again when something is published there. A reader is told, too,
// after which time to try again; a writer is not.
class wait_mark_lock : public script_process {
public:
    using script_process::script_process;

private:
    static constexpr const char* prefix = "lock";
    std::string lease() { return std::to_string(where().setup().lease.count()); }
    std::string timeouts() const { return std::string(prefix) + ":" + name() + ":rwlock_timeout"; }

    void acquire() override {
        reads_ = false;
        ask();
    }
    void read() override {
        reads_ = true;
        ask();
    }
    // Subscribes before it asks, so that it misses no message.
    void ask() {
        if (!subscribed_) send(0, {"SUBSCRIBE", std::string(prefix) + ":channel"}, [](const told&) {});
        subscribed_ = true;
        const instant since = now();
        const auto then = [this, since](const told& answer) {
            if (!is_asking()) return;
            if (reads_ && answer.number > 0) return after(milliseconds(answer.number + 1), [this] { ask_again(); });
            if (!answer.is("OK")) return told_to_wait();
            acquired(since + where().setup().lease, reads_ ? engine::access::shared : engine::access::exclusive);
        };
        if (reads_) {
            send(0, {"EVAL", lock_read, "3", "hash", timeouts(), prefix, lease(), name()}, then);
        } else {
            send(0, {"EVAL", lock_write, "2", "hash", prefix, lease(), name(), lease()}, then);
        }
    }
    virtual void told_to_wait() {}
    void heard(const std::string&, const std::string&) override { ask_again(); }
    // "A thread may read again while it reads."
    void read_once_more() override {
        const auto then = [this](const told& answer) {
            if (!answer.is("OK")) where().check().fail(name() + " reads, and was refused to read once more");
            released();
        };
        send(0, {"EVAL", lock_read, "3", "hash", timeouts(), prefix, lease(), name()}, then);
    }
    void release() override {
        const auto then = [this](const told&) { released(); };
        if (reads_) {
            send(0, {"EVAL", unlock_read, "3", "hash", timeouts(), prefix, name()}, then);
        } else {
            send(0, {"EVAL", unlock_write, "2", "hash", prefix, name()}, then);
        }
    }

    bool reads_ = false;
    bool subscribed_ = false;

protected:
    void ask_again() {
        if (is_asking()) ask();
    }
};

class polling_wait_mark_lock final : public wait_mark_lock {
public:
    using wait_mark_lock::wait_mark_lock;

private:
    void told_to_wait() override {
        after(where().setup().lease / 3, [this] { ask_again(); });
    }
};

}  // namespace

std::unique_ptr<process> make_wait_mark_lock(small_world& where, std::size_t number, std::vector<act> steps) {
    return std::make_unique<wait_mark_lock>(where, number, std::string(1, static_cast<char>('A' + number)),
                                            std::move(steps));
}

std::unique_ptr<process> make_polling_wait_mark_lock(small_world& where, std::size_t number, std::vector<act> steps) {
    return std::make_unique<polling_wait_mark_lock>(where, number, std::string(1, static_cast<char>('A' + number)),
                                                    std::move(steps));
}

}  // namespace holdfast::sim::explore
