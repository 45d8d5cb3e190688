// A user of the real engine, and its process. Like an actor of the random simulator (world/actor), it reports to the
// checker what it believes and what it is told.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "explore/process.hpp"
#include "world/checker.hpp"
#include "world/user.hpp"

namespace holdfast::sim::explore {

/// One step of a program. What comes after an acquisition that was refused is left out, up to the next acquisition.
enum class act : std::uint8_t {
    acquire,    // waits in the queue
    try_once,   // does not wait
    read,       // waits in the queue
    upgrade,    // waits
    downgrade,  // keeps what it reads
    release,    // one level
    check,      // whether it still holds, by its own clock
    write,      // to the resource, if the check said so, with the token
    number,     // of a kept lock: asks for the token
    cancel,     // of the acquisition before; does nothing if that has ended
};

bool acquires(act what);
/// The program writes at this step or at a later one.
bool may_still_write(const std::vector<act>& steps, std::size_t at);
std::string_view name_of(act what);

struct program {
    std::vector<act> steps;
    engine::lock_options options;
    /// Of each acquisition that waits; zero: none.
    milliseconds patience{0};
    /// After a hold that was not released nobody else acquires the lock for so long.
    milliseconds delay{0};
    bool has_note = false;
};

class engine_process final : public process {
public:
    engine_process(timeline& time, random_source& ids, client_setup setup, network& net);

    client& real() { return client_; }
    void start() override { client_.start(); }
    void when_awake(timeline::action what) override { client_.when_awake(std::move(what)); }
    void pause() override { client_.pause(); }
    void resume(client::first what) override { client_.resume(what); }
    bool is_paused() const override { return client_.paused(); }
    void die() override { client_.die(); }
    bool is_dead() const override { return client_.dead(); }
    void close() override { client_.close(); }
    void has_trouble() override { client_.trouble_until(never); }
    bool is_quiet() const override { return client_.is_quiet(); }
    std::uint64_t runs() const override { return client_.runs(); }

private:
    client client_;
};

struct lock_user_setup {
    std::string name;
    std::shared_ptr<const wire::lock_keys> keys;
    program what;
    resource* guarded;
    std::function<void(const std::string&)> trace;
    // Mutants: what the user does not tell the engine.
    bool deadlines_ignored = false;
    bool answers_ignored = false;
    bool cancellations_ignored = false;
};

class lock_user final : public user, private engine::acquire_completion, private engine::hold_listener {
public:
    lock_user(timeline& time, client& process, checker& check, lock_user_setup setup);

    bool may_step() const override;
    std::string next_step() const override;
    void step() override;
    bool has_begun() const override { return at_ > 0; }
    bool is_done() const override { return at_ == steps().size() && !asking_ && answers_due_ == 0; }
    void begin_nothing_more() override { is_ending_ = true; }
    void died() override {
        if (belief_) belief_->die();
    }
    std::string describe() const override;
    std::uint64_t turn() const override { return may_still_write(steps(), at_) ? turn_ : 0; }

private:
    class answer;

    const std::vector<act>& steps() const { return setup_.what.steps; }
    bool is_to_skip() const;
    void skip();
    void ask(engine::access want, engine::waiting wait);
    void upgrade();
    void downgrade();
    void release();
    void cancel();
    void expect_end(instant deadline, std::uint64_t serial);
    void expect_answer(const std::shared_ptr<answer>& asked, instant deadline);
    bool is_expected(errc why) const;
    void note(const std::string& what) const;
    instant now() const { return process_.now(); }

    void acquired(engine::hold& held) override;
    void refused(const engine::refusal& why) override;
    void on_validity(instant until) override;
    void on_token(engine::fencing_token token) override;
    void on_lost(errc why) override;
    void on_gone() override {}

    timeline& time_;
    client& process_;
    checker& check_;
    const lock_user_setup setup_;
    std::size_t at_ = 0;
    bool asking_ = false;
    bool cancelled_ = false;
    bool is_ending_ = false;
    unsigned answers_due_ = 0;
    instant asked_at_{};
    instant granted_at_{};
    engine::patience patience_;
    std::uint64_t serial_ = 0;
    engine::hold* held_ = nullptr;
    std::uint64_t turn_ = 0;
    bool may_write_ = false;
    std::shared_ptr<belief> belief_;
    std::vector<std::shared_ptr<answer>> answers_;
};

}  // namespace holdfast::sim::explore
