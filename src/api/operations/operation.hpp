// A user's request on its way through the serial section. The blocking and the asynchronous operations differ only in
// what finished() does: wake a thread, or post a handler.
//
// An operation must stay alive from start() until finished() is entered, which may destroy it.
#pragma once

#include "api/operations/hold_face.hpp"
#include "api/runtime/core.hpp"

#include <memory>
#include <optional>

namespace holdfast::api {

// A program that starts many operations would send each by itself: with every completion comes the next request, and
// the thread that starts it finds the section free. So `with_others` queues the request for the thread that drives the
// loop, and until it runs, more requests come. A single request is sent faster at once.
enum class sending { at_once, with_others };
void enter(core& where, serial_task& task, sending how);
// For a caller that knows nothing of other requests.
sending usual_sending(core& where);

// No caller waits for the answer to a release longer than the hold is valid.
instant answer_by(const core& where, const engine::hold& held, instant now);

// Acquires a lock, or upgrades a hold.
class acquire_operation : private serial_task, private engine::acquire_completion {
public:
    enum class face { wanted, not_wanted };

    void start(sending how) { enter(*core_, *this, how); }
    // Inside the section.
    void cancel_now(errc why);

    bool acquired() const noexcept { return !why_; }
    const engine::refusal& why() const { return *why_; }
    const std::shared_ptr<hold_face>& held() const noexcept { return face_; }
    std::uint64_t hold_number() const noexcept { return hold_number_; }

protected:
    acquire_operation(std::shared_ptr<core> where, engine::acquire_terms terms, face wish);
    acquire_operation(std::shared_ptr<hold_face> target, engine::patience limit);
    ~acquire_operation() = default;

    core& where() const noexcept { return *core_; }
    // As start(), by a caller that is in the section.
    void start_inside() { run(); }

private:
    virtual void finished() = 0;

    void run() override;
    void acquired(engine::hold& held) override;
    void refused(const engine::refusal& why) override {
        why_ = why;
        finished();
    }

    const std::shared_ptr<core> core_;
    engine::acquire_terms terms_;
    std::shared_ptr<hold_face> face_;  // of what is acquired; of an upgrade, what it upgrades
    const bool upgrades_;
    std::uint64_t hold_number_ = 0;
    std::optional<errc> cancelled_early_;  // before run()
    bool running_ = false;
    std::optional<engine::refusal> why_;
};

// Releases, renews or downgrades a hold: that of a lease, or the one that an owner has on a lock.
class hold_operation : private serial_task, private engine::hold_completion {
public:
    // `check` only finds out whether the hold is still valid.
    enum class what { release, release_shared, renew, downgrade, check };
    struct owned_hold {
        engine::owner_id owner;
        std::shared_ptr<const engine::lock_keys> keys;
        std::uint64_t number = 0;  // of the hold that is meant; 0: whichever the owner has
    };

    void start(sending how) { enter(core_, *this, how); }

    // There was a hold to release or renew.
    bool found() const noexcept { return found_; }
    // Nothing: done.
    const std::optional<engine::refusal>& why_not() const noexcept { return why_not_; }
    boost::system::error_code result() const noexcept {
        return why_not_ ? make_error_code(why_not_->code) : boost::system::error_code();
    }
    const afterwards& left() const noexcept { return left_; }

protected:
    hold_operation(std::shared_ptr<hold_face> target, what kind);
    hold_operation(core& where, owned_hold target, what kind);
    ~hold_operation() = default;

    core& where() const noexcept { return core_; }

private:
    virtual void finished() = 0;

    void run() override;
    void left_behind(std::size_t holders, std::size_t waiters) override { left_ = {holders, waiters}; }
    void answered(const std::optional<engine::refusal>& why_not) override {
        why_not_ = why_not;
        finished();
    }
    engine::hold* target() const { return face_ ? face_->held() : core_.engine().find(owned_.owner, *owned_.keys); }

    const std::shared_ptr<hold_face> face_;
    core& core_;
    const owned_hold owned_{};
    const what kind_;
    bool found_ = false;
    afterwards left_;
    std::optional<engine::refusal> why_not_;
};

}  // namespace holdfast::api
