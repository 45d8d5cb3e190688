#include "explore/explorer.hpp"

#include <algorithm>
#include <unordered_set>

namespace holdfast::sim::explore {
namespace {

// A point at which there was more than one event.
struct branch {
    std::size_t taken;
    std::size_t choices;
};

class search {
public:
    search(const world_maker& make, const limits& most) : make_(make), most_(most) {}

    findings run() {
        do {
            play();
            if (!found_.verdict.empty()) return std::move(found_);
            if (most_.progress && found_.schedules % 256 == 0) most_.progress(found_.schedules, seen_.size());
            if (!next()) {
                found_.is_complete = true;
                break;
            }
        } while (most_.schedules == 0 || found_.schedules < most_.schedules);
        return std::move(found_);
    }

private:
    // Repeats the branches so far, then goes on with the first event of each new state.
    void play() {
        const std::unique_ptr<world> played = make_();
        ++found_.schedules;
        std::size_t events = 0;
        std::size_t at = 0;
        bool is_known = false;
        while (played->verdict().empty()) {
            const std::size_t choices = played->choices();
            if (choices == 0) break;
            std::size_t choice = 0;
            if (choices > 1) {
                if (at == branches_.size()) {
                    is_known = !seen_.insert(played->state()).second;
                    if (is_known) break;
                    branches_.push_back({0, choices});
                }
                choice = branches_[at++].taken;
            }
            played->take(choice);
            ++events;
        }
        found_.events += events;
        found_.depth = std::max(found_.depth, events);
        found_.states = seen_.size();
        if (is_known) return;
        ++found_.ended;
        if (played->verdict().empty()) played->end();
        if (played->verdict().empty()) return;
        found_.verdict = played->verdict();
        found_.violating_events = events;
        for (const branch& one : branches_) found_.violating.push_back(one.taken);
    }

    // The next schedule in depth-first order.
    bool next() {
        while (!branches_.empty() && branches_.back().taken + 1 == branches_.back().choices) branches_.pop_back();
        if (branches_.empty()) return false;
        ++branches_.back().taken;
        return true;
    }

    const world_maker& make_;
    const limits& most_;
    findings found_;
    std::vector<branch> branches_;
    std::unordered_set<std::uint64_t> seen_;
};

}  // namespace

findings explore(const world_maker& make, const limits& most) {
    return search(make, most).run();
}

std::string replay(const world_maker& make, const schedule& chosen, const std::function<void(std::string)>& tell) {
    const std::unique_ptr<world> played = make();
    std::size_t at = 0;
    while (played->verdict().empty()) {
        const std::size_t choices = played->choices();
        if (choices == 0) break;
        std::size_t choice = 0;
        if (choices > 1 && at < chosen.size()) choice = std::min(chosen[at++], choices - 1);
        tell(played->describe(choice));
        played->take(choice);
    }
    if (played->verdict().empty()) played->end();
    return played->verdict();
}

}  // namespace holdfast::sim::explore
