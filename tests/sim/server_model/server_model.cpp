#include "server_model/server_model.hpp"

#include <stdexcept>
#include <utility>

namespace holdfast::sim {

server_model::server_model(server_model_options options)
    : engine_(options.engine ? std::move(options.engine) : std::make_shared<script_engine>()),
      scripts_(engine_, options.undeclared_keys) {}

value server_model::execute(arguments command, asking asked) {
    if (command.empty()) throw std::logic_error("server model: an empty command");
    context ctx{keys_, channels_, scripts_, state_, now_us_, slots_, asked, &writes_};
    if (clock_) ctx.clock = &clock_;
    value answer = execute_command(ctx, command);
    told_us_ = ctx.told_us.value_or(now_us_);
    now_us_ = ctx.clock_us();
    return answer;
}

value server_model::execute(const std::vector<std::string>& command, asking asked) {
    const std::vector<std::string_view> words{command.begin(), command.end()};
    return execute(arguments{words}, asked);
}

std::optional<value> server_model::channel_refusal(std::string_view channel, asking asked) {
    context ctx{keys_, channels_, scripts_, state_, now_us_, slots_, asked};
    return slot_refusal(ctx, {&channel, 1}, named::channels);
}

std::optional<entry> server_model::take(std::string_view key) {
    entry* const found = keys_.find(key, {now_us_ / 1000, state_.as});
    if (found == nullptr) return std::nullopt;
    std::optional<entry> taken = std::move(*found);
    keys_.erase(key);
    return taken;
}

void server_model::subscribe(std::uint64_t connection, std::string_view channel, channel_kind kind) {
    channels_.subscribe(connection, channel, kind);
}

void server_model::unsubscribe(std::uint64_t connection, std::string_view channel, channel_kind kind) {
    channels_.unsubscribe(connection, channel, kind);
}

void server_model::unsubscribe_all(std::uint64_t connection) {
    channels_.unsubscribe_all(connection);
}

void server_model::on_message(std::function<void(const message&)> callback) {
    channels_.on_message = std::move(callback);
}

void server_model::restart(snapshot data) {
    keys_ = std::move(data);
    channels_.clear();
    scripts_.forget_all();
    state_ = {};
}

std::string server_model::dump() const {
    return keys_.dump({now_us_ / 1000, state_.as});
}

}  // namespace holdfast::sim
