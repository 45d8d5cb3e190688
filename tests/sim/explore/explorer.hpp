// Tries every order of events of a small world.
//
// Stateless: the explorer remembers which choices it took, not the world, and plays a new world from its beginning for
// each branch. A state that was seen before is not explored again: worlds with equal states have equal futures.
// Deterministic: the same world always has the same schedules, in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::sim::explore {

/// A system in which somebody has to choose what happens next.
class world {
public:
    world() = default;
    world(const world&) = delete;
    world& operator=(const world&) = delete;
    virtual ~world() = default;

    /// The number of events that may be the next one. 0: it has ended.
    virtual std::size_t choices() = 0;
    /// One of them, for readers.
    virtual std::string describe(std::size_t choice) const = 0;
    virtual void take(std::size_t choice) = 0;
    /// Two worlds with the same state have the same future. Precondition: choices() was called.
    virtual std::uint64_t state() = 0;
    /// After the last choice: plays on without choices and checks what has to be true in the end.
    virtual void end() = 0;
    /// The violation; empty: every rule was kept.
    virtual const std::string& verdict() const = 0;
};

/// The numbers of the choices taken, where there was more than one event.
using schedule = std::vector<std::size_t>;

struct limits {
    std::uint64_t schedules = 0;  // 0: no limit
    /// Called after every so many schedules; for showing progress.
    std::function<void(std::uint64_t schedules, std::uint64_t states)> progress = {};
};

struct findings {
    std::uint64_t schedules = 0;  // played from the beginning
    std::uint64_t ended = 0;      // of these, the ones that did not meet a state that was seen before
    std::uint64_t states = 0;     // different ones with more than one choice
    std::uint64_t events = 0;     // including those that were played again
    std::size_t depth = 0;        // the most events of one schedule
    bool is_complete = false;     // nothing is left to try
    std::string verdict = {};     // the first violation; the exploration ends there
    schedule violating = {};
    std::size_t violating_events = 0;
};

using world_maker = std::function<std::unique_ptr<world>()>;

findings explore(const world_maker& make, const limits& most = {});

/// Plays one schedule; afterwards the first event is taken wherever there are several. Tells every event.
std::string replay(const world_maker& make, const schedule& chosen, const std::function<void(std::string)>& tell);

}  // namespace holdfast::sim::explore
