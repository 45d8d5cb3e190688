// The fixture for the Lua scripts: one lock's keys on a server, and a picture of all keys.
//
// A row of a script is a state, a call and a state. The picture has every key with its type, its value and its expiry,
// so one comparison shows that nothing changed.
//
// Scripts run as a user with rights to the lock's own keys only: in every row the server refuses a script that touches
// a key it did not declare (design §4.8).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/admin_link.hpp"
#include "support/redis_server.hpp"
#include "wire/scripts.hpp"

namespace holdfast::testing {

struct key_state {
    std::string type;
    std::string value;            // members of collections in order, one a line
    std::int64_t expires_at = 0;  // Unix time in ms; -1: never

    friend bool operator==(const key_state&, const key_state&) = default;
    friend std::ostream& operator<<(std::ostream& out, const key_state& state) {
        return out << state.type << " '" << state.value << "' until " << state.expires_at;
    }
};

using keyspace = std::map<std::string, key_state>;

// Somebody who listens on a channel, as a holdfast client or as a tool with a pattern.
class listener {
public:
    enum class to { channel, pattern };

    listener(const std::string& socket, to what, const std::string& name)
        : context_{::redisConnectUnix(socket.c_str()), &::redisFree} {
        if (context_ == nullptr || context_->err != 0) throw std::runtime_error{"listener: no connection"};
        constexpr timeval patience{.tv_sec = 10, .tv_usec = 0};
        ::redisSetTimeout(context_.get(), patience);
        const char* verb = what == to::channel ? "SUBSCRIBE" : "PSUBSCRIBE";
        owned{::redisCommand(context_.get(), "%s %s", verb, name.c_str()), &::freeReplyObject};
    }

    // The next message; throws if none comes within ten seconds.
    std::string next() {
        void* raw = nullptr;
        if (::redisGetReply(context_.get(), &raw) != REDIS_OK) throw std::runtime_error{"no message came"};
        const owned reply{raw, &::freeReplyObject};
        const auto& message = *static_cast<redisReply*>(raw);
        const redisReply& text = *message.element[message.elements - 1];
        return {text.str, text.len};
    }

private:
    using owned = std::unique_ptr<void, decltype(&::freeReplyObject)>;
    std::unique_ptr<redisContext, decltype(&::redisFree)> context_;
};

// --- what the scripts answer ---------------------------------------------------------------------------

inline std::int64_t code(const redis_reply& reply) {
    if (reply.elements.empty()) throw std::runtime_error{"not a list: " + reply.text};
    return reply.elements[0].integer;
}

MATCHER_P(IsGranted, token, "is {1, token}") {
    return arg.elements.size() == 2 && arg.elements[0].integer == 1 && arg.elements[1].text == token;
}
MATCHER_P(IsError, prefix, "is an error") {
    return arg.is_error() && arg.text.starts_with(prefix);
}

inline std::string ticket_of(const redis_reply& queued) {
    return queued.elements.at(3).text;
}
inline std::string fence_of(const redis_reply& queued) {
    return queued.elements.at(5).text;
}

// A marked hold id, of a hold that can be asked back; and its client, whose channel is hf:wake:<client>.
inline std::string client_named(const std::string& name) {
    return "hf_" + name + std::string(16 - name.size(), '0');
}
inline std::string marked_id(const std::string& name, const std::string& counter = "07") {
    return client_named(name) + "." + counter + ".0123456789abcdefghijkl";
}

// Constructed before the fixture that uses it.
struct own_server {
    explicit own_server(server_options options) : running{with_socket(std::move(options))} {}
    redis_server running;

private:
    static server_options with_socket(server_options options) {
        options.unix_socket = true;
        return options;
    }
};

// --- the fixture -----------------------------------------------------------------------------------------

// The server belongs to the caller and outlives the fixture.
class script_fixture : public ::testing::Test {
protected:
    const std::string lock = "hf:{stock}";
    const std::string queue = "hf:{stock}:queue";
    const std::string waiters = "hf:{stock}:waiters";
    const std::string fence = "hf:{stock}:fence";

    static constexpr std::int64_t minute = 60'000;
    static constexpr std::int64_t hour = 60 * minute;

    script_fixture(std::string socket, const std::vector<std::string>& more_keys)
        : socket_{std::move(socket)}, admin_{socket_, admin_login{}} {
        std::vector<std::string> rights{"ACL",       "SETUSER",     "rows",      "on", ">rows", "~" + lock,
                                        "~" + queue, "~" + waiters, "~" + fence, "&*", "+@all"};
        for (const std::string& key : more_keys) rights.push_back("~" + key);
        must(rights);
        link_ = std::make_unique<admin_link>(socket_, admin_login{"rows", "rows"});
    }

    // --- the world around ----------------------------------------------------------------------------
    redis_reply must(const std::vector<std::string>& arguments) {
        redis_reply reply = admin_.call(arguments);
        if (reply.is_error()) throw std::runtime_error{arguments.at(0) + ": " + reply.text};
        return reply;
    }
    const std::string& socket() const { return socket_; }
    listener listens(const std::string& id) { return {socket_, listener::to::channel, "wake:" + id}; }
    void server_is_full() { must({"CONFIG", "SET", "maxmemory", "1"}); }

    // Makes the last poll of the waiter this many ms old.
    void last_polled(const std::string& id, std::int64_t ms_ago) {
        const std::string entry = must({"HGET", waiters, id}).text;
        const auto seen = entry.find(' ', entry.find(' ') + 1) + 1;
        const auto end = entry.find(' ', seen);
        const std::int64_t then = std::stoll(entry.substr(seen, end - seen)) - ms_ago * 1000;
        must({"HSET", waiters, id, entry.substr(0, seen) + text(then) + entry.substr(end)});
    }

    // What the client of a marked hold hears.
    listener keeper_listens(const std::string& name) {
        return {socket_, listener::to::channel, "hf:wake:" + client_named(name)};
    }
    void expect_keeper_hears_nothing(listener& who, const std::string& name) {
        must({"PUBLISH", "hf:wake:" + client_named(name), "end"});
        EXPECT_EQ(who.next(), "end");
    }

    // The calls that scripts made since RESETSTAT, apart from EVAL.
    std::int64_t calls_of_scripts() {
        std::int64_t calls = 0;
        std::istringstream lines{must({"INFO", "commandstats"}).text};
        for (std::string line; std::getline(lines, line);) {
            const auto at = line.find(":calls=");
            if (!line.starts_with("cmdstat_") || at == std::string::npos) continue;
            const std::string name = line.substr(8, at - 8);
            if (name != "eval" && name != "config|resetstat" && name != "info")
                calls += std::stoll(line.substr(at + 7));
        }
        return calls;
    }

    // What a listener gets next is this, so nothing came before it.
    void expect_silence(listener& who, const std::string& id) {
        must({"PUBLISH", "wake:" + id, "end"});
        EXPECT_EQ(who.next(), "end");
    }

    // --- looking -------------------------------------------------------------------------------------
    keyspace everything() {
        keyspace all;
        for (const redis_reply& key : must({"KEYS", "*"}).elements) all[key.text] = look_at(key.text);
        return all;
    }
    std::string value(const std::string& key) { return must({"GET", key}).text; }
    std::int64_t left(const std::string& key) { return must({"PTTL", key}).integer; }
    std::vector<std::string> queued_ids() { return texts(must({"ZRANGE", queue, "0", "-1"})); }
    std::int64_t server_us() {
        const redis_reply time = must({"TIME"});
        return std::stoll(time.elements[0].text) * 1'000'000 + std::stoll(time.elements[1].text);
    }
    // §4.6: every key expires.
    void expect_all_keys_expire() {
        for (const auto& [key, state] : everything()) EXPECT_GT(state.expires_at, 0) << key;
    }

    static std::string text(std::int64_t number) { return std::to_string(number); }
    static std::vector<std::string> texts(const redis_reply& reply) {
        std::vector<std::string> all;
        for (const redis_reply& element : reply.elements) all.push_back(element.text);
        return all;
    }

    redis_reply run(std::string_view name, const std::vector<std::string>& keys,
                    const std::vector<std::string>& arguments) {
        std::vector<std::string> command{"EVAL", std::string{wire::find(name).text}, std::to_string(keys.size())};
        command.insert(command.end(), keys.begin(), keys.end());
        command.insert(command.end(), arguments.begin(), arguments.end());
        return link_->call(command);
    }

private:
    key_state look_at(const std::string& key) {
        key_state state{
            .type = must({"TYPE", key}).text, .value = {}, .expires_at = must({"PEXPIRETIME", key}).integer};
        if (state.type == "string") {
            state.value = value(key);
        } else if (state.type == "zset") {
            state.value = lines(texts(must({"ZRANGE", key, "0", "-1", "WITHSCORES"})));
        } else if (state.type == "hash") {
            const auto fields = texts(must({"HGETALL", key}));
            std::map<std::string, std::string> sorted;
            for (std::size_t i = 0; i + 1 < fields.size(); i += 2) sorted[fields[i]] = fields[i + 1];
            for (const auto& [field, content] : sorted) state.value += lines({field, content});
        } else if (state.type == "list") {
            state.value = lines(texts(must({"LRANGE", key, "0", "-1"})));
        }
        return state;
    }
    static std::string lines(const std::vector<std::string>& words) {
        std::string all;
        for (std::size_t i = 0; i < words.size(); ++i) all += words[i] + (i % 2 == 0 ? " " : "\n");
        return all;
    }

    std::string socket_;
    admin_link admin_;
    std::unique_ptr<admin_link> link_;
};

}  // namespace holdfast::testing
