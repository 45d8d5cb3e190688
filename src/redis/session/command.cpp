#include "redis/session/command.hpp"

#include "redis/session/command_writer.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::redis {
namespace {

// Takes the first word off `encoded`. Empty if that is not encoded as by command_writer.
std::string_view take_word(std::string_view& encoded) noexcept {
    if (!encoded.starts_with('$')) return {};
    std::size_t size = 0;
    const auto [end, bad] = std::from_chars(encoded.data() + 1, encoded.data() + encoded.size(), size);
    const auto begin = static_cast<std::size_t>(end - encoded.data()) + 2;  // behind CR LF
    if (bad != std::errc() || begin > encoded.size() || size > encoded.size() - begin) return {};
    const std::string_view word = encoded.substr(begin, size);
    encoded.remove_prefix(std::min(begin + size + 2, encoded.size()));
    return word;
}

}  // namespace

void command::reset_flags() noexcept {
    confirmed_by_push_ = unsubscribes_ = send_text_ = text_at_first_ = tells_if_moving_ = passes_others_ = false;
    waits_for_first_link_ = false;
}

void command::set_payload(std::string encoded) noexcept {
    script_ = nullptr;
    payload_ = std::move(encoded);
    reset_flags();
}

void command::copy_script(const command& other) {
    script_ = other.script_;
    payload_ = other.payload_;
    payload_arguments_ = other.payload_arguments_;
    reset_flags();
}

void command::set_subscription(std::string_view channel) {
    set_payload(encoded_command({"SUBSCRIBE", channel}));
    confirmed_by_push_ = true;
}

void command::set_sharded_subscription(std::string_view channel) {
    set_payload(encoded_command({"SSUBSCRIBE", channel}));
    confirmed_by_push_ = true;
}

void command::set_unsubscription(std::string_view channel) {
    std::string encoded;
    append_command(encoded, {"SUNSUBSCRIBE", channel});
    append_command(encoded, {"PING", channel});
    set_payload(std::move(encoded));
    unsubscribes_ = true;
}

std::string& command::script_payload(const script& source, std::uint32_t payload_arguments) noexcept {
    script_ = &source;
    payload_arguments_ = payload_arguments;
    payload_.clear();
    reset_flags();
    return payload_;
}

std::string_view command::first_key() const noexcept {
    std::string_view rest = payload_;
    if (script_ != nullptr) return take_word(rest) == "0" ? std::string_view{} : take_word(rest);
    const auto header = rest.find('\n');
    if (header == std::string_view::npos || rest.starts_with("*1\r")) return {};
    rest.remove_prefix(header + 1);
    take_word(rest);
    return take_word(rest);
}

bool command::has_several_keys() const noexcept {
    std::string_view rest = payload_;
    if (script_ == nullptr) return false;
    const std::string_view count = take_word(rest);
    return count != "0" && count != "1";
}

command::standing command::look_at(const reply_view& reply) noexcept {
    const bool may_precede = prelude_due_;
    prelude_due_ = false;
    if (asking_ && may_precede) return standing::prelude;  // if ASKING is refused, the answer is MOVED
    if (!unsubscribes_) return standing::answer;
    if (reply.type() == resp_type::bulk_string && reply.text() == first_key()) return standing::answer;
    return may_precede && reply.is_error() ? standing::prelude : standing::out_of_step;
}

void command::append_to(std::string& out) const {
    if (asking_) out += "*1\r\n$6\r\nASKING\r\n";
    if (script_ != nullptr && send_text_) append_head(out, payload_arguments_ + 2, {"EVAL", script_->text});
    if (script_ != nullptr && !send_text_) append_head(out, payload_arguments_ + 2, {"EVALSHA", script_->sha1});
    out += payload_;
}

}  // namespace holdfast::redis
