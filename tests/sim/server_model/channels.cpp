#include "server_model/channels.hpp"

#include <algorithm>

namespace holdfast::sim {

void channels::subscribe(std::uint64_t connection, std::string_view channel, channel_kind kind) {
    auto& listeners = of(kind)[std::string{channel}];
    if (std::find(listeners.begin(), listeners.end(), connection) == listeners.end()) listeners.push_back(connection);
}

void channels::unsubscribe(std::uint64_t connection, std::string_view channel, channel_kind kind) {
    const auto found = of(kind).find(channel);
    if (found == of(kind).end()) return;
    std::erase(found->second, connection);
    if (found->second.empty()) of(kind).erase(found);
}

void channels::unsubscribe_all(std::uint64_t connection) {
    for (table* each : {&plain_, &sharded_}) {
        for (auto& [name, listeners] : *each) std::erase(listeners, connection);
        std::erase_if(*each, [](const auto& channel) { return channel.second.empty(); });
    }
}

void channels::clear() {
    plain_.clear();
    sharded_.clear();
}

std::size_t channels::listeners(channel_kind kind, std::string_view channel) const {
    const auto found = of(kind).find(channel);
    return found == of(kind).end() ? 0 : found->second.size();
}

std::vector<std::string> channels::names(channel_kind kind) const {
    std::vector<std::string> out;
    for (const auto& [name, listeners] : of(kind)) out.push_back(name);
    return out;
}

std::size_t channels::publish(channel_kind kind, std::string_view channel, payload body) const {
    const auto found = of(kind).find(channel);
    if (found == of(kind).end()) return 0;
    const std::vector<std::uint64_t> listeners = found->second;  // the callback may unsubscribe a listener
    for (const std::uint64_t connection : listeners) {
        if (on_message) on_message({connection, kind, std::string{channel}, std::string{body.text}});
    }
    return listeners.size();
}

}  // namespace holdfast::sim
