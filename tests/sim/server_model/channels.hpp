// Subscriptions. Plain and sharded channels are two name spaces. Subscribers are connection ids; they receive a message
// in the order of their subscriptions. Patterns are not modelled, because holdfast uses none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

enum class channel_kind : std::uint8_t { plain, sharded };

struct message {
    std::uint64_t connection;  // the receiver
    channel_kind kind;
    std::string channel;
    std::string payload;
};

/// A message body; its own type prevents confusion with the channel.
struct payload {
    std::string_view text;
};

class channels {
public:
    void subscribe(std::uint64_t connection, std::string_view channel, channel_kind kind);
    void unsubscribe(std::uint64_t connection, std::string_view channel, channel_kind kind);
    void unsubscribe_all(std::uint64_t connection);
    void clear();

    std::size_t listeners(channel_kind kind, std::string_view channel) const;
    /// The sorted names of all channels with subscribers.
    std::vector<std::string> names(channel_kind kind) const;

    /// Returns the number of receivers.
    std::size_t publish(channel_kind kind, std::string_view channel, payload body) const;

    /// Called once per subscriber while the publishing command runs, before that command's reply exists.
    std::function<void(const message&)> on_message;

private:
    using table = std::map<std::string, std::vector<std::uint64_t>, std::less<>>;
    table& of(channel_kind kind) { return kind == channel_kind::plain ? plain_ : sharded_; }
    const table& of(channel_kind kind) const { return kind == channel_kind::plain ? plain_ : sharded_; }

    table plain_;
    table sharded_;
};

}  // namespace holdfast::sim
