#include "cli/ask.hpp"

#include "api/core.hpp"
#include "redis/command_writer.hpp"
#include "redis/error_reply.hpp"

namespace holdfast::cli {
namespace {

answer copy(const redis::reply_view& reply) {
    answer result;
    result.is_null = reply.is_null();
    if (reply.is_aggregate()) {
        for (const redis::reply_view item : reply) result.items.push_back(copy(item));
        return result;
    }
    result.text = reply.text();
    result.integer = reply.to_integer();
    return result;
}

class question final : private serial_task, private redis::command {
public:
    question(api::core& where, std::string encoded) : core_(where) { set_payload(std::move(encoded)); }

    answer wait() {
        core_.enter(*this);
        core_.loop().until(answered_);
        if (why_not_) throw error(why_not_->code, why_not_->detail);
        return std::move(answer_);
    }

private:
    void run() override {
        const instant now = boot_now();
        give_up_at(now + core_.settings().request_timeout);
        core_.session().submit(*this, now);
    }
    void on_reply(const redis::reply_view& reply, instant) override {
        if (reply.is_error()) {
            why_not_ = redis::classify_error(reply.text(), core_.settings().display());
        } else {
            answer_ = copy(reply);
        }
        core_.loop().end(answered_);
    }
    void on_failure(const failure& why, instant) override {
        why_not_ = why;
        core_.loop().end(answered_);
    }

    api::core& core_;
    api::loop::wait answered_;
    std::optional<failure> why_not_;
    answer answer_;
};

}  // namespace

answer ask(const client& server, std::initializer_list<std::string_view> command) {
    return ask(server, std::vector<std::string>(command.begin(), command.end()));
}

answer ask(const client& server, const std::vector<std::string>& command) {
    std::string encoded;
    {
        redis::command_writer writer(encoded, command.size());
        for (const std::string& argument : command) writer.arg(argument);
    }
    return question(*server.shared_core(), std::move(encoded)).wait();
}

}  // namespace holdfast::cli
