#include "support/admin_link.hpp"

#include <hiredis/hiredis.h>
#include <sys/socket.h>

#include <stdexcept>
#include <utility>

namespace holdfast::testing {
namespace {

redis_reply copied(const redisReply& from) {
    redis_reply to;
    switch (from.type) {
        case REDIS_REPLY_STATUS:
            to.kind = redis_reply::type::status;
            break;
        case REDIS_REPLY_ERROR:
            to.kind = redis_reply::type::error;
            break;
        case REDIS_REPLY_INTEGER:
            to.kind = redis_reply::type::integer;
            break;
        case REDIS_REPLY_STRING:
            to.kind = redis_reply::type::string;
            break;
        case REDIS_REPLY_ARRAY:
            to.kind = redis_reply::type::array;
            break;
        case REDIS_REPLY_NIL:
            break;
        default:
            throw std::runtime_error{"unknown reply type " + std::to_string(from.type)};
    }
    if (to.kind == redis_reply::type::integer) to.integer = from.integer;
    if (from.str != nullptr) to.text.assign(from.str, from.len);
    for (std::size_t i = 0; i < from.elements; ++i) to.elements.push_back(copied(*from.element[i]));
    return to;
}

constexpr timeval patience{.tv_sec = 10, .tv_usec = 0};

}  // namespace

void admin_link::closer::operator()(redisContext* context) const noexcept {
    ::redisFree(context);
}

admin_link::admin_link(std::filesystem::path socket, admin_login login)
    : socket_{std::move(socket)}, login_{std::move(login)} {}

admin_link::~admin_link() = default;

void admin_link::disconnect() noexcept {
    context_.reset();
}

// After the server closed the connection (CLIENT KILL, for example) an end-of-file is there to read.
bool admin_link::connected() const noexcept {
    if (context_ == nullptr) return false;
    char byte;
    return ::recv(context_->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

void admin_link::connect() {
    context_.reset(::redisConnectUnixWithTimeout(socket_.c_str(), patience));
    if (context_ == nullptr) throw std::runtime_error{"hiredis: out of memory"};
    if (context_->err != 0) {
        const std::string reason = context_->errstr;
        context_.reset();
        throw std::runtime_error{"connect " + socket_.string() + ": " + reason};
    }
    ::redisSetTimeout(context_.get(), patience);
    if (!login_.password.empty()) {
        std::vector<std::string> auth{"AUTH", login_.password};
        if (!login_.user.empty()) auth.insert(auth.begin() + 1, login_.user);
        if (const redis_reply reply = exchange(auth); reply.is_error()) {
            context_.reset();
            throw std::runtime_error{"AUTH of the harness: " + reply.text};
        }
    }
    exchange({"CLIENT", "SETNAME", "harness"});
}

redis_reply admin_link::call(const std::vector<std::string>& arguments) {
    if (!connected()) connect();
    return exchange(arguments);
}

redis_reply admin_link::exchange(const std::vector<std::string>& arguments) {
    std::vector<const char*> texts;
    std::vector<std::size_t> lengths;
    for (const std::string& argument : arguments) {
        texts.push_back(argument.data());
        lengths.push_back(argument.size());
    }
    void* raw = ::redisCommandArgv(context_.get(), static_cast<int>(texts.size()), texts.data(), lengths.data());
    if (raw == nullptr) {
        const std::string reason = context_->errstr;
        context_.reset();
        throw std::runtime_error{"no answer to " + arguments.at(0) + ": " + reason};
    }
    const std::unique_ptr<void, decltype(&::freeReplyObject)> owner{raw, &::freeReplyObject};
    return copied(*static_cast<redisReply*>(raw));
}

}  // namespace holdfast::testing
