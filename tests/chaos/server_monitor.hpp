// The server's own record (MONITOR) of every command in order, including those inside scripts.
#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::testing {

class server_monitor {
public:
    explicit server_monitor(const std::string& socket) : context_(redisConnectUnix(socket.c_str())) {
        redisSetTimeout(context_.get(), {.tv_sec = 60, .tv_usec = 0});
        const std::unique_ptr<void, void (*)(void*)> answer{redisCommand(context_.get(), "MONITOR"), freeReplyObject};
        if (!answer) throw std::runtime_error("the server cannot be watched");
    }
    server_monitor(const server_monitor&) = delete;
    server_monitor& operator=(const server_monitor&) = delete;

    /// Follows until a command contains this word.
    void watch_until(const std::string& word) {
        for (void* raw = nullptr; redisGetReply(context_.get(), &raw) == REDIS_OK; raw = nullptr) {
            const std::unique_ptr<void, void (*)(void*)> reply{raw, freeReplyObject};
            const std::string line = static_cast<redisReply*>(raw)->str;
            if (line.find(word) != std::string::npos) return;
            if (line.find(" lua] ") != std::string::npos) take(words_of(line));
        }
        throw std::runtime_error("the server stopped telling");
    }

protected:
    ~server_monitor() = default;

private:
    /// One command of a script.
    virtual void take(const std::vector<std::string>& words) = 0;

    // The quoted words of a line; none of them contains an escape.
    static std::vector<std::string> words_of(const std::string& line) {
        std::vector<std::string> words;
        for (auto open = line.find('"'); open != std::string::npos;) {
            const auto close = line.find('"', open + 1);
            if (close == std::string::npos) break;
            words.push_back(line.substr(open + 1, close - open - 1));
            open = line.find('"', close + 1);
        }
        return words;
    }

    struct closer {
        void operator()(redisContext* context) const noexcept { redisFree(context); }
    };

    std::unique_ptr<redisContext, closer> context_;
};

}  // namespace holdfast::testing
