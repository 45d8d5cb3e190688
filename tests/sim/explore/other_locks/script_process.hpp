// A process that locks by commands of its own, without holdfast. It has one user.
//
// Derived classes say what acquiring and releasing is. This class sends, hands the answers out in the order of the
// commands, and follows the user's program.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "explore/lock_user.hpp"
#include "explore/small_world.hpp"
#include "redis/resp/resp_reader.hpp"

namespace holdfast::sim::explore {

/// An answer: its text, or its number.
struct told {
    std::string text;
    std::int64_t number = 0;
    bool is(std::string_view what) const { return text == what; }
};

class script_process : public process {
public:
    script_process(small_world& where, std::size_t number, std::string name, std::vector<act> steps);

    void start() override;
    void when_awake(timeline::action what) override;
    void pause() override { paused_ = true; }
    void resume(client::first what) override;
    bool is_paused() const override { return paused_; }
    void die() override;
    bool is_dead() const override { return dead_; }
    void close() override;
    void has_trouble() override { calm_ = false; }
    bool is_quiet() const override;
    std::uint64_t runs() const override { return runs_; }

protected:
    using answer_to = std::function<void(const told&)>;

    // --- what a lock is
    virtual void acquire() = 0;
    virtual void read() { acquire(); }
    virtual void release() = 0;
    /// It holds already.
    virtual void read_once_more() { released(); }
    virtual void heard(const std::string& /*channel*/, const std::string& /*payload*/) {}

    void send(std::size_t server_number, const std::vector<std::string>& words, answer_to then);
    void after(milliseconds wait, std::function<void()> what);
    /// The user has the lock and believes in it until then.
    void acquired(instant until, engine::access mode = engine::access::exclusive);
    void refused();
    /// A request that is not about acquiring was answered.
    void released() { busy_ = false; }

    bool is_asking() const { return asking_; }
    bool is_ending() const { return ending_; }
    const std::string& name() const { return name_; }
    small_world& where() { return where_; }
    instant now() const { return where_.time().now(); }

private:
    class program_user;

    struct connection {
        link* real = nullptr;
        redis::resp_reader reader;
        std::deque<answer_to> waiting;
    };

    void arrived(connection& at, const packet& what);
    void step(act next);
    void note(const std::string& what) const;

    small_world& where_;
    const std::size_t number_;
    const std::string name_;
    std::vector<std::unique_ptr<connection>> servers_;
    std::deque<timeline::action> postponed_;
    bool paused_ = false;
    bool dead_ = false;
    bool calm_ = true;
    std::uint64_t runs_ = 0;
    // The user.
    bool asking_ = false;
    bool holds_ = false;
    bool busy_ = false;  // releasing
    bool ending_ = false;
    bool may_write_ = false;
    std::uint64_t turn_ = 0;
    instant asked_at_{};
    std::shared_ptr<belief> belief_;
};

}  // namespace holdfast::sim::explore
