// Several calls to one node that go out as one: acquisitions of several mutexes, or their releases (wire/together.hpp).
//
// The parts are calls like others. They count as written from the moment the bundle is submitted, so an undo of
// one of them is sent behind the bundle. Each is answered by its own part of the reply. A part that the script has left
// alone, and every part after a failure whose outcome is unknown, goes on by itself.
#pragma once

#include "engine/node/call.hpp"
#include "engine/node/outbox.hpp"

#include <vector>

namespace holdfast::engine {

class bundle final : public redis::command {
public:
    explicit bundle(node_agent& owner) : owner_(owner) {}

    void begin(std::vector<call*> parts) noexcept { parts_ = std::move(parts); }
    // Carries out the effect.
    void submit_to(outbox& node, instant now);

    void on_reply(const redis::reply_view& reply, instant now) override;
    void on_failure(const failure& why, instant now) override;

private:
    std::vector<call*> take_parts();

    node_agent& owner_;
    std::vector<call*> parts_;
};

}  // namespace holdfast::engine
