#include "engine/hold.hpp"

#include "base/recycled.hpp"

#include <utility>

namespace holdfast::engine {

hold::hold(hold_id id, hold_terms terms, std::size_t nodes)
    : id_(std::move(id)),
      terms_(std::move(terms)),
      several_(nodes == 1 ? nullptr : std::make_unique<node_hold[]>(nodes)),
      count_(static_cast<std::uint16_t>(nodes)) {
    std::uint16_t number = 0;
    for (node_hold& n : this->nodes()) {
        n.whole = this;
        n.node = number++;
    }
}

void* hold::operator new(std::size_t) {
    return recycled<sizeof(hold)>::take();
}

void hold::operator delete(void* room) noexcept {
    recycled<sizeof(hold)>::give_back(room);
}

}  // namespace holdfast::engine
