#include "wire/mutex/watch.hpp"

#include "wire/entry.hpp"
#include "wire/payload.hpp"

namespace holdfast::wire {

void write_watch(redis::command& out, const lock_keys& keys, const watch_request& request) {
    using side = lock_keys::side;
    static const script& source = find("mutex/watch");
    payload(keys, {side::queue, side::waiters, side::fence, side::notes})
        .text(request.id)
        .text(request.channel)
        .time(request.lasts)
        .write(out, source);
}

std::optional<watch_answer> read_watch(const redis::reply_view& reply) {
    if (reply.type() != redis::resp_type::array || reply.size() < 2) return std::nullopt;
    const auto code = reply[0].to_integer();
    watch_answer answer;
    const std::size_t usual_size = code == 0 ? 2 : 5;
    answer.is_untold = reply.size() > usual_size && reply[usual_size].text() == "untold";
    if (code == 0) {
        answer.token = token_in(reply[1].text()).value_or(0);
        return answer;
    }
    if (code != 1 || reply.size() < usual_size || reply[1].text().empty()) return std::nullopt;
    const auto left = reply[2].to_integer();
    if (!left) return std::nullopt;
    answer.holder = reply[1].text();
    if (*left >= 0) answer.left = milliseconds(*left);
    answer.token = token_in(reply[3].text()).value_or(0);
    answer.note = reply[4].text();
    return answer;
}

}  // namespace holdfast::wire
