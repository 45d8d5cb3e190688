#include <holdfast/client.hpp>

#include "api/blocking_command.hpp"
#include "api/core.hpp"

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
    api::ask_server(*core_, {"PING"}, [](const redis::reply_view&) {});
}

}  // namespace holdfast
