// Operations that block their thread: it drives the loop, or follows, until the answer arrives.
//
// A thread inside the serial section, or one that drives the loop already, must not block: it would wait for itself.
// User code runs there only if its executor runs posted functions at once.
#pragma once

#include "api/operations/operation.hpp"
#include "base/errc_table.hpp"

#include <holdfast/detail/wait_time.hpp>

#include <algorithm>
#include <atomic>
#include <stop_token>
#include <string>
#include <string_view>

namespace holdfast::api {

// Throws errc::would_deadlock.
void check_may_block();
bool may_block() noexcept;

// Zero: does not wait, and the deadline is that of the request. detail::for_ever: no limit.
inline engine::patience to_patience(milliseconds wait, milliseconds request_timeout) {
    if (wait <= milliseconds(0)) return {engine::waiting::not_at_all, boot_now() + request_timeout};
    return {engine::waiting::in_queue, wait >= detail::for_ever_from ? never : boot_now() + wait};
}

// A caller that waits without a limit asks for the lock or an error.
inline bool is_plain_no(errc code, milliseconds wait) {
    return wait < detail::for_ever && is_plain_no(code);
}

// Others wrote it: what could drive a terminal becomes '_', and it is cut where it would hide the rest of a message.
inline std::string printable_note(std::string_view note) {
    constexpr std::size_t most_shown = 200;
    std::string text(note.substr(0, most_shown));
    std::ranges::replace_if(
        text, [](unsigned char one) { return one < 0x20 || one == 0x7f; }, '_');
    return note.size() > most_shown ? text + "..." : text;
}

inline std::string describe_refusal(std::string what, const std::string& server, const refusal& why) {
    std::string text = std::move(what);
    if (why.detail.find(server) == std::string::npos) text += " on " + server;
    if (!why.detail.empty()) text += ": " + why.detail;
    if (!why.holder.empty()) text += ", held by " + why.holder;
    if (why.kept) text += " (kept)";
    if (!why.note.empty()) text += " (\"" + printable_note(why.note) + "\")";
    if (why.holder_left) text += " for another " + std::to_string(why.holder_left->count()) + " ms";
    return text;
}

class blocking_acquire final : public acquire_operation {
public:
    blocking_acquire(std::shared_ptr<core> where, engine::acquire_terms terms, face wish)
        : acquire_operation(std::move(where), std::move(terms), wish) {}
    blocking_acquire(std::shared_ptr<hold_face> target, engine::patience limit)
        : acquire_operation(std::move(target), limit) {}

    // Starts the operation and returns when it has finished. A stop request ends it early.
    void wait(std::stop_token stop);

private:
    // Ends the acquisition from another thread. wait() waits for it, even if it enters the section after the answer.
    class canceller final : public holdfast::serial_task {
    public:
        explicit canceller(blocking_acquire& owner) : owner_(owner) {}
        void run() override;
        loop::wait done;
        std::atomic<bool> entered = false;

    private:
        blocking_acquire& owner_;
    };

    void finished() override { where().loop().end(answered_); }

    loop::wait answered_;
};

class blocking_hold_operation final : public hold_operation {
public:
    blocking_hold_operation(std::shared_ptr<hold_face> target, what kind) : hold_operation(std::move(target), kind) {}
    blocking_hold_operation(core& where, owned_hold target, what kind)
        : hold_operation(where, std::move(target), kind) {}

    boost::system::error_code wait();

private:
    void finished() override { where().loop().end(answered_); }

    loop::wait answered_;
};

}  // namespace holdfast::api
