// How blocking calls report a refusal: as a plain "no" where the caller set a limit, otherwise as an error.
#pragma once

#include "base/boot_clock.hpp"
#include "base/errc_table.hpp"
#include "engine/hold.hpp"

#include <holdfast/detail/wait_time.hpp>
#include <holdfast/options.hpp>

#include <string>

namespace holdfast::api {

// Zero: does not wait, and the deadline is that of the request. detail::for_ever: no limit.
inline engine::patience to_patience(milliseconds wait, milliseconds request_timeout) {
    if (wait <= milliseconds(0)) return {engine::waiting::not_at_all, boot_now() + request_timeout};
    return {engine::waiting::in_queue, wait >= detail::for_ever_from ? never : boot_now() + wait};
}

// A caller that waits without a limit asks for the lock or an error.
inline bool is_plain_no(errc code, milliseconds wait) {
    return wait < detail::for_ever && is_plain_no(code);
}

inline std::string describe_refusal(std::string what, const std::string& server, const refusal& why) {
    std::string text = std::move(what);
    if (why.detail.find(server) == std::string::npos) text += " on " + server;
    if (!why.detail.empty()) text += ": " + why.detail;
    if (!why.holder.empty()) text += ", held by " + why.holder;
    if (why.holder_left) text += " for another " + std::to_string(why.holder_left->count()) + " ms";
    return text;
}

}  // namespace holdfast::api
