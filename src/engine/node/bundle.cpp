#include "engine/node/bundle.hpp"

#include "engine/node/node_agent.hpp"
#include "wire/together.hpp"

#include <boost/container/small_vector.hpp>

namespace holdfast::engine {

using redis::routing;

// What nobody wants any more does not go out.
void bundle::submit_to(outbox& node, instant now) {
    std::erase_if(parts_, [](call* part) {
        const bool is_orphan = part->is_orphan();
        if (is_orphan) part->end();
        return is_orphan;
    });
    const bool alone = parts_.size() < 2;
    if (!alone) owner_.write_together(*this, parts_);
    instant deadline = never;
    for (call* const part : parts_) {
        part->submitted();
        deadline = std::min(deadline, part->deadline());
        if (!alone) routing::set_written(*part, now);
    }
    give_up_at(deadline);
    if (!alone) return node.submit(*this);
    if (!parts_.empty()) node.submit(*parts_.front());
    take_parts();
}

// This bundle may be used again while its parts are answered.
std::vector<call*> bundle::take_parts() {
    std::vector<call*> parts = std::move(parts_);
    parts_.clear();
    owner_.end(*this);
    return parts;
}

void bundle::on_reply(const redis::reply_view& reply, instant now) {
    const instant written = written_at();
    const std::vector<call*> parts = take_parts();
    const bool is_split = reply.type() == redis::resp_type::array && reply.size() == parts.size();
    for (std::size_t i = 0; i < parts.size(); ++i) {
        call& part = *parts[i];
        routing::set_written(part, written);
        if (is_split && reply[i].is_null()) {
            owner_.send_alone(part, now);
        } else {
            routing::answer(part, is_split ? reply[i] : reply, now);
        }
    }
}

void bundle::on_failure(const failure& why, instant now) {
    const instant written = written_at();
    for (call* const part : take_parts()) {
        routing::set_written(*part, written);
        routing::fail(*part, why, now);
    }
}

}  // namespace holdfast::engine
