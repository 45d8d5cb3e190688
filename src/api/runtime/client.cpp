#include <holdfast/client.hpp>

#include "api/operations/blocking_command.hpp"
#include "api/runtime/core.hpp"
#include "redis/resp/error_reply.hpp"
#include "redis/session/command_writer.hpp"

#include <optional>
#include <utility>

namespace holdfast {

client::client(std::string_view url, client_options options)
    : core_(api::make_core({std::string(url)}, std::move(options))) {}

client::client(const std::vector<std::string>& urls, client_options options)
    : core_(api::make_core(urls, std::move(options))) {}

client::~client() = default;
client::client(client&&) noexcept = default;
client& client::operator=(client&&) noexcept = default;

std::string client::server() const {
    return core_->display();
}

void client::ping() {
    const std::string encoded = redis::encoded_command({"PING"});
    const std::vector<api::question> pings(core_->servers(), [&](redis::command& out) { out.set_payload(encoded); });
    std::size_t answers = 0;
    std::optional<failure> refused;
    const auto silent = api::ask_each_server(*core_, pings, [&](std::size_t, const redis::reply_view& reply) {
        if (reply.is_error()) {
            refused = redis::classify_error(reply.text(), core_->display());
        } else {
            ++answers;
        }
    });
    if (answers > core_->servers() / 2) return;
    const failure& why = silent ? *silent : *refused;
    throw error(why.code, why.detail);
}

}  // namespace holdfast
