#include "api/blocking_command.hpp"

#include "api/blocking.hpp"
#include "redis/command_writer.hpp"
#include "redis/error_reply.hpp"

#include <optional>
#include <utility>

namespace holdfast::api {
namespace {

class blocking_command final : private serial_task, private redis::command {
public:
    blocking_command(core& where, std::string encoded, const std::function<void(const redis::reply_view&)>& read)
        : core_(where), read_(read) {
        set_payload(std::move(encoded));
    }

    std::optional<failure> wait() {
        core_.enter(*this);
        core_.loop().until(answered_);
        return why_not_;
    }

private:
    void run() override {
        const instant now = boot_now();
        give_up_at(now + core_.request_timeout());
        core_.session().submit(*this, now);
    }
    void on_reply(const redis::reply_view& reply, instant) override {
        if (reply.is_error()) {
            why_not_ = redis::classify_error(reply.text(), core_.display());
        } else {
            read_(reply);
        }
        core_.loop().end(answered_);
    }
    void on_failure(const failure& why, instant now) override {
        // May be asked twice: a link that broke under it says nothing about the server.
        const bool unanswered = why.code == errc::outcome_unknown;
        if (unanswered && now < deadline()) return core_.session().submit(*this, now);
        why_not_ = unanswered ? failure{errc::request_timed_out, why.detail} : why;
        core_.loop().end(answered_);
    }

    core& core_;
    const std::function<void(const redis::reply_view&)>& read_;
    loop::wait answered_;
    std::optional<failure> why_not_;
};

}  // namespace

void ask_server(core& where, std::initializer_list<std::string_view> words,
                const std::function<void(const redis::reply_view&)>& read) {
    where.check_not_forked();
    check_may_block();
    std::string encoded;
    redis::append_command(encoded, words);
    if (const auto why = blocking_command(where, std::move(encoded), read).wait()) {
        throw error(why->code, why->detail);
    }
}

}  // namespace holdfast::api
