// A real redis-server whose clock the test sets. It answers in the types of the model.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server_model/channels.hpp"
#include "server_model/value.hpp"
#include "support/redis_server.hpp"
#include "support/temp_directory.hpp"

struct redisContext;

namespace holdfast::sim {

/// One connection, with pipelining.
class raw_link {
public:
    explicit raw_link(const std::string& unix_path);

    void append(const std::vector<std::string>& command);
    value read();
    value call(const std::vector<std::string>& command);

private:
    struct closer {
        void operator()(redisContext* context) const;
    };
    std::unique_ptr<redisContext, closer> context_;
};

class real_server {
public:
    /// `preload`: the clock module.
    real_server(const std::filesystem::path& preload, std::int64_t now_us);
    ~real_server();
    real_server(const real_server&) = delete;
    real_server& operator=(const real_server&) = delete;

    void set_time(std::int64_t now_us) { clock_->store(now_us); }
    /// As if a Cluster had moved all keys to a member with this clock: keys keep their remaining time to live, and
    /// times stored in values stay as they are.
    void move_to_clock(std::int64_t now_us);
    std::string unix_path() const { return server_->unix_path(); }
    raw_link& link() { return *link_; }

    /// The same text as server_model::dump(), read by commands.
    std::string dump();

private:
    std::string contents(const std::string& key, const std::string& type);

    testing::temp_directory directory_{"hf-clock-"};
    std::atomic<std::int64_t>* clock_ = nullptr;  // mapped
    std::optional<testing::redis_server> server_;
    std::unique_ptr<raw_link> link_;
};

/// A subscribed connection and the messages that it received.
class listener {
public:
    listener(const std::string& unix_path, std::uint64_t id);
    void subscribe(std::string_view channel, channel_kind kind);
    /// All messages published before this call.
    std::vector<message> heard();
    std::uint64_t id() const { return id_; }

private:
    raw_link link_;
    std::uint64_t id_;
};

}  // namespace holdfast::sim
