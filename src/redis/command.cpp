#include "redis/command.hpp"

#include "redis/command_writer.hpp"

#include <utility>

namespace holdfast::redis {

void command::set_payload(std::string encoded) noexcept {
    script_ = nullptr;
    payload_ = std::move(encoded);
    confirmed_by_push_ = false;
    send_text_ = false;
}

void command::set_subscription(std::string_view channel) {
    std::string encoded;
    append_command(encoded, {"SUBSCRIBE", channel});
    set_payload(std::move(encoded));
    confirmed_by_push_ = true;
}

std::string& command::script_payload(const script& source, std::uint32_t payload_arguments) noexcept {
    script_ = &source;
    payload_arguments_ = payload_arguments;
    payload_.clear();
    confirmed_by_push_ = false;
    send_text_ = false;
    return payload_;
}

void command::append_to(std::string& out) const {
    if (script_ != nullptr) {
        out += '*';
        out += std::to_string(payload_arguments_ + 2);
        out += send_text_ ? "\r\n$4\r\nEVAL\r\n$" : "\r\n$7\r\nEVALSHA\r\n$";
        const std::string_view body = send_text_ ? script_->text : script_->sha1;
        out += std::to_string(body.size());
        out += "\r\n";
        out += body;
        out += "\r\n";
    }
    out += payload_;
}

}  // namespace holdfast::redis
