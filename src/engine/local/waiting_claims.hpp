// Claims that wait for a local grant, in the order in which they came. The lock's preference decides who is next.
#pragma once

#include "engine/local/held.hpp"

namespace holdfast::engine::local {

class waiting_claims {
public:
    using list = boost::intrusive::list<claim>;

    explicit waiting_claims(const settings& chosen) : settings_(chosen) {}

    bool empty() const noexcept { return waiting_.empty(); }
    std::size_t size() const noexcept { return waiting_.size(); }
    bool has_writer() const noexcept { return waiting_.size() > readers_; }
    // Of those who wait, or later.
    instant latest_deadline() const noexcept { return latest_deadline_; }
    list::iterator begin() noexcept { return waiting_.begin(); }
    list::iterator end() noexcept { return waiting_.end(); }
    list::const_iterator begin() const noexcept { return waiting_.begin(); }
    list::const_iterator end() const noexcept { return waiting_.end(); }

    void add(claim& wish) noexcept;
    void remove(claim& waiter) noexcept;
    // Null: nobody waits.
    const claim* next() const noexcept;
    claim* next() noexcept { return const_cast<claim*>(std::as_const(*this).next()); }
    // Whether it would be the next if it waited from now on.
    bool would_be_next(const claim& wish) const noexcept;

private:
    const settings& settings_;
    list waiting_;
    std::size_t readers_ = 0;
    instant latest_deadline_{};
};

}  // namespace holdfast::engine::local
