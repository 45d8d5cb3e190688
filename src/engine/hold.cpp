#include "engine/hold.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace holdfast::engine {

static_assert(alignof(ballot) <= alignof(hold) && sizeof(hold) % alignof(ballot) == 0, "ballots stand behind the hold");

std::unique_ptr<hold, hold::deleter> hold::make(hold_id id, hold_terms terms, std::size_t nodes) {
    void* const room = ::operator new(sizeof(hold) + nodes * sizeof(ballot));
    return std::unique_ptr<hold, deleter>(new (room) hold(std::move(id), std::move(terms), nodes));
}

hold::hold(hold_id id, hold_terms terms, std::size_t nodes) noexcept
    : id_(std::move(id)), terms_(std::move(terms)), nodes_(static_cast<std::uint16_t>(nodes)) {
    auto* const room = reinterpret_cast<std::byte*>(this + 1);
    for (std::size_t i = 0; i < nodes; ++i) new (room + i * sizeof(ballot)) ballot(*this, i);
}

hold::~hold() {
    std::destroy_n(&vote(0), nodes_);
}

ballot& hold::vote(std::size_t number) const noexcept {
    return std::launder(reinterpret_cast<ballot*>(const_cast<hold*>(this) + 1))[number];
}

void hold::deleter::operator()(hold* h) const noexcept {
    h->~hold();
    ::operator delete(h);
}

}  // namespace holdfast::engine
