#include "explore/other_locks/other_locks.hpp"
#include "explore/other_locks/script_process.hpp"

namespace holdfast::sim::explore {
namespace {

constexpr const char* unlock_own =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

class redlock final : public script_process {
public:
    using script_process::script_process;

private:
    std::size_t servers() { return where().setup().servers; }

    void acquire() override {
        ++attempt_;
        began_ = now();
        yes_ = answers_ = 0;
        const std::string lease = std::to_string(where().setup().lease.count());
        for (std::size_t i = 0; i < servers(); ++i) {
            send(i, {"SET", "lock", name(), "NX", "PX", lease}, [this, attempt = attempt_](const told& answer) {
                if (attempt != attempt_ || !is_asking()) return;
                ++answers_;
                if (answer.is("OK")) ++yes_;
                decide();
            });
        }
        // A server that does not answer soon is left out.
        after(where().setup().request_timeout, [this, attempt = attempt_] {
            if (attempt == attempt_ && is_asking() && answers_ < servers()) give_up();
        });
    }
    void decide() {
        const milliseconds lease = where().setup().lease;
        const instant until = began_ + lease - lease / 100 - milliseconds(2);
        const bool is_majority = yes_ > servers() / 2;
        if (is_majority && now() < until) return acquired(until);
        if (answers_ == servers()) give_up();
    }
    void give_up() {
        unlock([] {});
        if (is_ending()) return refused();
        // As published after a random time.
        after(where().setup().lease / 3, [this, attempt = attempt_] {
            if (attempt == attempt_ && is_asking()) acquire();
        });
    }
    void release() override {
        unlock([this] { released(); });
    }
    void unlock(std::function<void()> then) {
        auto left = std::make_shared<std::size_t>(servers());
        for (std::size_t i = 0; i < servers(); ++i) {
            send(i, {"EVAL", unlock_own, "1", "lock", name()}, [left, then](const told&) {
                if (--*left == 0) then();
            });
        }
    }

    std::uint64_t attempt_ = 0;
    instant began_{};
    std::size_t yes_ = 0;
    std::size_t answers_ = 0;
};

}  // namespace

std::unique_ptr<process> make_redlock(small_world& where, std::size_t number, std::vector<act> steps) {
    return std::make_unique<redlock>(where, number, std::string(1, static_cast<char>('A' + number)), std::move(steps));
}

}  // namespace holdfast::sim::explore
