// The harness's own connection to a server that it started: hiredis over the server's unix socket. It is independent of
// the client under test, so that neither hides the other's mistakes.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/redis_reply.hpp"

struct redisContext;

namespace holdfast::testing {

struct admin_login {
    std::string user{};      // empty: the default user
    std::string password{};  // empty: no AUTH at all
};

/// For one thread at a time.
class admin_link {
public:
    admin_link(std::filesystem::path socket, admin_login login);
    ~admin_link();

    /// Connects if necessary. Throws std::runtime_error without a connection or an answer within ten seconds.
    redis_reply call(const std::vector<std::string>& arguments);

    void disconnect() noexcept;

private:
    struct closer {
        void operator()(redisContext* context) const noexcept;
    };

    void connect();
    bool connected() const noexcept;
    redis_reply exchange(const std::vector<std::string>& arguments);

    std::filesystem::path socket_;
    admin_login login_;
    std::unique_ptr<redisContext, closer> context_;
};

}  // namespace holdfast::testing
