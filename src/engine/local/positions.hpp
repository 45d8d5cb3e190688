// What the machine of local grants has asked the server for: positions in the queue, which all that wait share, and the
// tries of single claims.
//
// A position stays as long as anybody needs it, and has the deadline of the latest. One that is given up is answered
// all the same.
#pragma once

#include "engine/local/waiting_claims.hpp"

namespace holdfast::engine::local {

class positions {
public:
    explicit positions(const settings& chosen) : settings_(chosen) {}

    bool empty() const noexcept { return asks_.empty(); }
    bool anybody_tries() const noexcept { return !trying_.empty(); }
    bool writer_tries() const noexcept;
    // With passes = 0: somebody else waited when the last hold was acquired, or has asked for it.
    void others_wait(bool they_do) noexcept { contended_ = they_do; }

    // It is a try from now on.
    void add_try(claim& wish) noexcept;
    // Asks for that try alone.
    void ask_for(claim& tries, effects& out) { ask(tries.want, &tries, tries.limit, out); }
    // Takes the positions that are missing, gives up those that nobody needs, and puts deadlines off.
    void place(waiting_claims& claims, const held* current, instant now, effects& out);
    // A try that is not wanted any more.
    void give_up(const claim& tries, effects& out);
    void remove_try(claim& tries) noexcept { trying_.erase(trying_.iterator_to(tries)); }
    // The server's answer comes at the deadline of this waiter, too, and says more.
    bool is_answer_due(const claim& waiter) const noexcept;

    struct answered {
        claim* tries = nullptr;
        bool was_wanted = false;  // as a position
    };
    // Nothing: there is no such request.
    std::optional<answered> take(std::uint64_t number);

private:
    struct asked {
        std::uint64_t number;
        access mode;
        instant deadline;
        claim* tries = nullptr;
        bool cancelled = false;
    };
    struct demand {
        std::size_t exclusive = 0;
        std::size_t shared = 0;

        std::size_t& of(access mode) noexcept { return mode == access::shared ? shared : exclusive; }
    };

    demand wanted(const waiting_claims& claims, const held* current, instant now) const noexcept;
    void ask(access mode, claim* tries, patience limit, effects& out);

    const settings& settings_;
    std::vector<asked> asks_;
    boost::intrusive::list<claim> trying_;
    std::uint64_t last_number_ = 0;
    bool contended_ = false;
};

}  // namespace holdfast::engine::local
