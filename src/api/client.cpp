#include <holdfast/client.hpp>

#include "api/core.hpp"
#include "redis/command_writer.hpp"
#include "redis/error_reply.hpp"

#include <optional>
#include <utility>

namespace holdfast {
namespace {

class blocking_ping final : private serial_task, private redis::command {
public:
    explicit blocking_ping(api::core& where) : core_(where) {
        std::string encoded;
        redis::append_command(encoded, {"PING"});
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
        give_up_at(now + core_.settings().request_timeout);
        core_.session().submit(*this, now);
    }
    void on_reply(const redis::reply_view& reply, instant) override {
        if (reply.is_error()) why_not_ = redis::classify_error(reply.text(), core_.settings().display());
        core_.loop().end(answered_);
    }
    void on_failure(const failure& why, instant) override {
        why_not_ = why;
        core_.loop().end(answered_);
    }

    api::core& core_;
    api::loop::wait answered_;
    std::optional<failure> why_not_;
};

}  // namespace

client::client(std::string_view url, client_options options) : core_(api::make_core(url, options)) {}
client::~client() = default;
client::client(client&&) noexcept = default;
client& client::operator=(client&&) noexcept = default;

std::string client::server() const {
    return core_->settings().display();
}

void client::ping() {
    core_->check_not_forked();
    if (const auto why = blocking_ping(*core_).wait()) throw error(why->code, why->detail);
}

}  // namespace holdfast
