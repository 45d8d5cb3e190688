#include "engine/hold.hpp"

#include "base/recycled.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace holdfast::engine {

static_assert(alignof(node_hold) <= alignof(hold) && sizeof(hold) % alignof(node_hold) == 0,
              "node_holds stand behind the hold");

namespace {
using room_for_one_node = recycled<sizeof(hold) + sizeof(node_hold)>;
}  // namespace

std::unique_ptr<hold, hold::deleter> hold::make(hold_id id, hold_terms terms, std::size_t nodes) {
    void* const room =
        nodes == 1 ? room_for_one_node::take() : ::operator new(sizeof(hold) + nodes * sizeof(node_hold));
    return std::unique_ptr<hold, deleter>(new (room) hold(std::move(id), std::move(terms), nodes));
}

hold::hold(hold_id id, hold_terms terms, std::size_t nodes) noexcept
    : id_(std::move(id)), terms_(std::move(terms)), nodes_(static_cast<std::uint16_t>(nodes)) {
    auto* const room = reinterpret_cast<std::byte*>(this + 1);
    for (std::size_t i = 0; i < nodes; ++i) new (room + i * sizeof(node_hold)) node_hold(*this, i);
}

hold::~hold() {
    std::destroy_n(&vote(0), nodes_);
}

void hold::deleter::operator()(hold* h) const noexcept {
    const bool one_node = h->nodes_ == 1;
    h->~hold();
    one_node ? room_for_one_node::give_back(h) : ::operator delete(h);
}

}  // namespace holdfast::engine
