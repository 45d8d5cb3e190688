// User and password that may change while a client runs, and who knows the present ones.
#pragma once

#include "base/errc_table.hpp"
#include "redis/url/secret.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::redis {

struct login {
    std::string user;  // empty: "default"
    secret password;
    std::optional<std::chrono::milliseconds> expires_in = std::nullopt;  // none: not known to expire
};

// Called in the serial section.
class login_receiver {
public:
    virtual void on_login(login given) = 0;
    virtual void on_no_login(const failure& why) = 0;

protected:
    ~login_receiver() = default;
};

// Where user and password come from: a callback of the user, or a file. Both may be slow, so neither runs in the serial
// section.
class login_source {
public:
    virtual ~login_source() = default;

    // Answers later, in the serial section, never within the call; not at all if the receiver is gone by then.
    // `server`: as logs show it.
    virtual void ask(const std::string& server, std::weak_ptr<login_receiver> to) = 0;
    // For operators. The text holds no secret.
    virtual void warn(std::string text) = 0;
};

}  // namespace holdfast::redis
