#include "engine/hold.hpp"

#include <utility>

namespace holdfast::engine {

hold::hold(hold_id id, hold_terms terms, std::size_t nodes)
    : id_(std::move(id)),
      terms_(std::move(terms)),
      nodes_(std::make_unique<node_hold[]>(nodes)),
      count_(static_cast<std::uint16_t>(nodes)) {
    for (std::size_t i = 0; i < nodes; ++i) {
        nodes_[i].whole = this;
        nodes_[i].node = static_cast<std::uint16_t>(i);
    }
}

}  // namespace holdfast::engine
