#include "api/operations/blocking_command.hpp"

#include "api/operations/blocking.hpp"
#include "redis/resp/error_reply.hpp"
#include "redis/session/command_writer.hpp"

#include <deque>
#include <optional>
#include <utility>

namespace holdfast::api {
namespace {

using reader = std::function<void(std::size_t, const redis::reply_view&)>;

// Whether one server gets all questions, or each server gets one.
enum class audience { one_server, every_server };

// Lives until its last command has ended: until then the connection refers to the commands.
class blocking_commands final : private serial_task {
public:
    blocking_commands(core& where, audience who, std::span<const question> questions, const reader& read)
        : core_(where), audience_(who), read_(read), open_(questions.size()) {
        for (std::size_t i = 0; i < questions.size(); ++i) questions[i](commands_.emplace_back(*this, i));
    }

    std::optional<failure> wait() {
        if (open_ == 0) return std::nullopt;
        core_.enter(*this);
        core_.loop().until(answered_);
        return why_not_;
    }

private:
    class one final : public redis::command {
    public:
        one(blocking_commands& all, std::size_t index) : all_(all), index_(index) {}

        std::size_t index() const noexcept { return index_; }

    private:
        void on_reply(const redis::reply_view& reply, instant) override {
            all_.read_(index_, reply);
            all_.one_is_over();
        }
        void on_failure(const failure& why, instant now) override {
            // A broken link says nothing about the server, and the command is repeatable.
            const bool unanswered = why.code == errc::outcome_unknown;
            if (unanswered && now < deadline()) return all_.send(*this, now);
            if (!all_.why_not_) all_.why_not_ = unanswered ? failure{errc::request_timed_out, why.detail} : why;
            all_.one_is_over();
        }

        blocking_commands& all_;
        const std::size_t index_;
    };

    void run() override {
        const instant now = boot_now();
        const auto last = commands_.end();
        for (auto next = commands_.begin(); next != last;) {
            one& command = *next++;  // before submit(), which may end the last command and with it this object
            command.give_up_at(now + core_.request_timeout());
            send(command, now);
        }
    }
    void send(one& command, instant now) {
        backend& to = audience_ == audience::every_server ? core_.server(command.index()) : core_.some_server();
        to.submit(command, now);
    }
    void one_is_over() {
        if (--open_ == 0) core_.loop().end(answered_);
    }

    core& core_;
    const audience audience_;
    const reader& read_;
    std::deque<one> commands_;
    std::size_t open_;
    loop::wait answered_;
    std::optional<failure> why_not_;
};

}  // namespace

void ask_server(core& where, std::span<const question> questions, const reader& read) {
    where.check_not_forked();
    check_may_block();
    const auto why = blocking_commands(where, audience::one_server, questions, read).wait();
    if (why) throw error(why->code, why->detail);
}

std::optional<failure> ask_each_server(core& where, std::span<const question> questions, const reader& read) {
    where.check_not_forked();
    check_may_block();
    return blocking_commands(where, audience::every_server, questions, read).wait();
}

void ask_server(core& where, std::initializer_list<redis::argument> words,
                const std::function<void(const redis::reply_view&)>& read) {
    std::string encoded = redis::encoded_command(words);
    const question only = [&encoded](redis::command& out) { out.set_payload(std::move(encoded)); };
    std::optional<failure> refused;
    ask_server(where, {&only, 1}, [&](std::size_t, const redis::reply_view& reply) {
        if (reply.is_error()) {
            refused = redis::classify_error(reply.text(), where.display());
        } else {
            read(reply);
        }
    });
    if (refused) throw error(refused->code, refused->detail);
}

}  // namespace holdfast::api
