// The lock scripts as holdfast sends them, for programs that are nothing but a socket.
//
// The library itself writes the arguments, so the floor cannot drift away from what is measured against it.
#pragma once

#include "wire/keys.hpp"
#include "wire/kind.hpp"
#include "wire/scripts.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace holdfast::bench {

class script_call {
public:
    script_call(std::string_view name, wire::lock_kind kind, wire::lock_keys keys)
        : source_(wire::find(name)), kind_(kind), keys_(std::move(keys)) {}

    // The whole EVALSHA.
    template <typename Question>
    std::string encode(const Question& question) const {
        const std::string arguments = written(question);
        const auto lines = std::count(arguments.begin(), arguments.end(), '\n');  // two for each argument
        return "*" + std::to_string(lines / 2 + 2) + "\r\n$7\r\nEVALSHA\r\n$40\r\n" + std::string(source_.sha1) +
               "\r\n" + arguments;
    }

private:
    struct unsent final : redis::command {
        void on_reply(const redis::reply_view&, instant) override { std::abort(); }
        void on_failure(const failure&, instant) override { std::abort(); }
    };

    template <typename Question>
    std::string written(const Question& question) const {
        unsent request;
        const std::string& arguments = request.script_payload(source_, 0);
        wire::write(request, {.keys = keys_, .kind = kind_, .fence_retention = std::chrono::hours(1)}, question);
        return arguments;
    }

    const wire::script& source_;
    wire::lock_kind kind_;
    wire::lock_keys keys_;
};

}  // namespace holdfast::bench
