// Machines of several processes on a simple model of a server, in random steps: never two believers, tokens grow,
// nobody who waits is forgotten, and nothing is left at the end. R50 R51 R52
#include "engine/local/local_grants.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <list>
#include <map>
#include <random>
#include <set>

namespace holdfast::engine::local::local_random_test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t outsider = 99;

// First come, first served; readers that are next to each other come in together. It publishes `wanted` whenever
// somebody waits, which a real one does at every poll.
class server {
public:
    struct entry {
        std::uint64_t process;
        std::uint64_t ask;
        access mode;
        bool operator==(const entry&) const = default;
    };
    struct holder {
        entry who;
        std::uint64_t token;
    };

    void ask(entry one) { queue.push_back(one); }
    bool try_now(const entry& one) { return queue.empty() && fits(one.mode); }
    void serve() {
        while (!queue.empty() && fits(queue.front().mode)) {
            admit(queue.front());
            queue.pop_front();
        }
    }
    holder& admit(const entry& one) { return holders.emplace_back(holder{one, ++fence}); }
    bool fits(access mode) const {
        return mode == access::exclusive
                   ? holders.empty()
                   : std::ranges::all_of(holders, [](const holder& h) { return h.who.mode == access::shared; });
    }
    // A block of numbers for an exclusive hold.
    std::uint64_t ceiling(const holder& h) {
        if (h.who.mode == access::shared) return h.token;
        fence = std::max(fence, h.token) + 3;
        return fence;
    }

    std::deque<entry> queue;
    std::list<holder> holders;
    std::uint64_t fence = 100;
};

class world {
public:
    world(unsigned seed, settings chosen) : random_(seed), settings_(chosen) {
        for (int i = 0; i < 2; ++i) processes_.push_back(std::make_unique<process>(chosen));
    }

    void play(int steps) {
        for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
        // Everybody finishes; nobody new comes.
        for (int i = 0; i < 5000 && !is_over(); ++i) {
            finish_somebody();
            deliver_all();
            now_ += 1ms;
            if (i % 10 == 0) tick();
        }
        for (const auto& p : processes_) {
            EXPECT_TRUE(p->waiting.empty()) << "somebody waits for ever";
            now_ += 2s;
        }
        tick();
        deliver_all();
        for (const auto& p : processes_) EXPECT_TRUE(p->machine.is_idle());
        EXPECT_TRUE(server_.holders.empty() && server_.queue.empty());
    }

private:
    struct process {
        explicit process(settings chosen) : machine(chosen) {}
        std::list<claim> claims;
        std::vector<claim*> waiting;
        std::vector<claim*> holding;
        local_grants machine;
        std::map<std::uint64_t, server::entry> holds;  // by the machine's number
        std::map<std::uint64_t, bool> upgrading;
        std::vector<std::uint64_t> fast;  // the holds of those who have no claim
        std::set<std::uint64_t> lost;
    };
    enum class what { wanted, granted };
    struct message {
        std::size_t process;
        what kind;
        server::entry about;
        std::uint64_t token = 0;
        std::uint64_t ceiling = 0;
    };

    unsigned draw(unsigned below) { return std::uniform_int_distribution<unsigned>(0, below - 1)(random_); }
    bool is_over() const {
        const auto is_idle = [](const auto& p) { return p->waiting.empty() && p->holding.empty() && p->fast.empty(); };
        return std::ranges::all_of(processes_, is_idle) && !outsider_holds() && !outsider_waits_ && messages_.empty();
    }
    bool outsider_holds() const {
        return std::ranges::any_of(server_.holders, [](const auto& h) { return h.who.process == outsider; });
    }

    void step() {
        now_ += std::chrono::microseconds(draw(300));
        const std::size_t i = draw(2);
        process& p = *processes_[i];
        switch (draw(14)) {
            case 12:
                begin_fast(p);
                break;
            case 13:
                finish_fast(i);
                break;
            case 0:
            case 1:
            case 2:
                begin(i);
                break;
            case 3:
            case 4:
            case 5:
                finish(i);
                break;
            case 6:
                if (!p.waiting.empty()) cancel(i, *p.waiting[draw(static_cast<unsigned>(p.waiting.size()))]);
                break;
            case 7:
                outside();
                break;
            case 8:
                if (draw(20) == 0) lose(i);
                break;
            case 9:
                tick();
                break;
            default:
                deliver();
        }
        check();
    }

    void begin(std::size_t i) {
        process& p = *processes_[i];
        claim& c = p.claims.emplace_back();
        c.owner = draw(2) == 0 ? owner_id::nobody : owner_id{1 + draw(4)};
        // An owner that waits does nothing else.
        const bool is_busy = std::ranges::any_of(p.waiting, [&](const claim* w) { return w->owner == c.owner; });
        if (is_busy) c.owner = owner_id::nobody;
        const bool shared = settings_.kind == lock_kind::read_write && draw(3) > 0;
        c.want = shared ? access::shared : access::exclusive;
        if (draw(5) == 0) c.limit = {waiting::not_at_all, now_ + 2s};
        effects out;
        const outcome said = p.machine.acquire(c, now_, out);
        if (said.what == outcome::verdict::granted) granted(i, c);
        if (said.what == outcome::verdict::waits) p.waiting.push_back(&c);
        carry_out(i, out);
    }

    // The fast path is opened, some come, and it is closed.
    void begin_fast(process& p) {
        const auto terms = p.machine.fast_path(now_);
        if (!terms) return;
        p.machine.count_out(terms->hold);
        const bool is_mutex = settings_.kind == lock_kind::mutex;
        const auto there = static_cast<unsigned>(std::ranges::count(p.fast, terms->hold));
        const unsigned fresh = is_mutex ? 1 - there : draw(3);
        p.fast.insert(p.fast.end(), fresh, terms->hold);
        p.machine.count_in(terms->hold, there + fresh, now_);
    }
    void finish_fast(std::size_t i) {
        process& p = *processes_[i];
        if (p.fast.empty()) return;
        const auto one = p.fast.begin() + draw(static_cast<unsigned>(p.fast.size()));
        const std::uint64_t hold = *one;
        p.fast.erase(one);
        effects out;
        EXPECT_EQ(p.machine.release_fast(hold, now_, out).has_value(), p.lost.contains(hold));
        carry_out(i, out);
    }

    void finish(std::size_t i) {
        process& p = *processes_[i];
        if (p.holding.empty()) return;
        release(i, *p.holding[draw(static_cast<unsigned>(p.holding.size()))]);
    }
    void finish_somebody() {
        for (std::size_t i = 0; i < processes_.size(); ++i) {
            finish(i);
            finish_fast(i);
        }
        if (outsider_holds()) outside();
    }
    void release(std::size_t i, claim& c) {
        process& p = *processes_[i];
        effects out;
        p.machine.release(c, c.exclusive > 0 ? access::exclusive : access::shared, now_, out);
        if (c.is_released()) std::erase(p.holding, &c);
        carry_out(i, out);
    }
    void cancel(std::size_t i, claim& c) {
        effects out;
        processes_[i]->machine.cancel(c, errc::cancelled, now_, out);
        carry_out(i, out);
    }
    void tick() {
        for (std::size_t i = 0; i < processes_.size(); ++i) {
            effects out;
            processes_[i]->machine.on_timer(now_, out);
            carry_out(i, out);
        }
    }

    // Of the first hold that the process has: the server ends it when the process knows.
    void lose(std::size_t i) {
        process& p = *processes_[i];
        if (p.holds.empty()) return;
        const auto [number, entry] = *p.holds.begin();
        p.lost.insert(number);
        effects out;
        p.machine.on_lost(number, now_, out);
        carry_out(i, out);
    }

    // The outsider acquires, or releases.
    void outside() {
        if (outsider_holds()) {
            server_.holders.remove_if([](const auto& h) { return h.who.process == outsider; });
            return publish();
        }
        if (outsider_waits_) return;
        outsider_waits_ = true;
        server_.ask({outsider, 0, access::exclusive});
        publish();
    }

    void publish() {
        server_.serve();
        for (auto& h : server_.holders) {
            if (h.who.process == outsider) {
                if (std::exchange(outsider_waits_, false)) {
                    EXPECT_GT(h.token, largest_);
                    largest_ = h.token;
                }
                continue;
            }
            const auto known = std::ranges::find(told_, h.who);
            if (known == told_.end()) {
                told_.push_back(h.who);
                const auto ceiling = server_.ceiling(h);
                messages_.push_back({h.who.process, what::granted, h.who, h.token, ceiling});
            } else if (!server_.queue.empty()) {
                messages_.push_back({h.who.process, what::wanted, h.who});
            }
        }
    }

    void deliver() {
        if (messages_.empty()) return;
        const message m = messages_.front();
        messages_.pop_front();
        process& p = *processes_[m.process];
        effects out;
        if (m.kind == what::granted) {
            const hold_facts facts{.mode = m.about.mode,
                                   .valid_until = now_ + 3s,
                                   .proved_at = now_,
                                   .token = m.token,
                                   .ceiling = m.ceiling,
                                   .wanted = !server_.queue.empty()};
            const auto number = p.machine.acquired(m.about.ask, facts, now_, out);
            p.holds.emplace(number, m.about);
        } else {
            for (const auto& [number, entry] : p.holds) {
                if (entry == m.about) p.machine.on_wanted(number, now_, out);
            }
        }
        carry_out(m.process, out);
    }
    void deliver_all() {
        while (!messages_.empty()) deliver();
        // What a renewal does all the time.
        for (std::size_t i = 0; i < processes_.size(); ++i) {
            const auto holds = processes_[i]->holds;
            for (const auto& [number, entry] : holds) renew(i, number);
        }
    }

    void renew(std::size_t i, std::uint64_t number) {
        process& p = *processes_[i];
        if (!p.holds.contains(number)) return;
        effects out;
        p.machine.on_validity(number, now_ + 3s, now_, out);
        p.machine.on_proof(number, now_, now_, out);
        for (auto& h : server_.holders) {
            if (h.who != p.holds.at(number)) continue;
            p.machine.on_ceiling(number, server_.ceiling(h), now_, out);
            if (!server_.queue.empty()) p.machine.on_wanted(number, now_, out);
        }
        carry_out(i, out);
    }

    void granted(std::size_t i, claim& c) {
        process& p = *processes_[i];
        std::erase(p.waiting, &c);
        if (c.is != claim::state::holding) return;
        p.holding.push_back(&c);
        if (draw(2) == 0) {
            effects out;
            const auto token = p.machine.token_of(c, now_, out);
            if (c.exclusive > 0) {
                EXPECT_GT(token, largest_);
                largest_ = token;
            } else {
                EXPECT_GE(token, largest_);
            }
            carry_out(i, out);
        }
    }

    void carry_out(std::size_t i, const effects& all) {
        process& p = *processes_[i];
        for (const effect& e : all) {
            const server::entry entry{i, e.number, e.mode};
            switch (e.what) {
                case effect::kind::granted:
                    granted(i, *e.who);
                    break;
                case effect::kind::refused:
                    std::erase(p.waiting, e.who);
                    break;
                case effect::kind::ask:
                    if (e.limit.wait == waiting::in_queue || server_.try_now(entry)) {
                        server_.ask(entry);
                        publish();
                    } else {
                        refuse(i, e.number, errc::busy);
                    }
                    break;
                case effect::kind::cancel:
                    if (std::erase(server_.queue, entry_of(i, e.number)) > 0) {
                        publish();
                        refuse(i, e.number, errc::cancelled);
                    }
                    break;
                case effect::kind::release:
                case effect::kind::abandon:
                    end(i, e.number);
                    break;
                case effect::kind::downgrade:
                    for (auto& h : server_.holders) {
                        if (!(h.who == p.holds.at(e.number))) continue;
                        h.who.mode = access::shared;
                        p.holds.at(e.number).mode = access::shared;
                        told_.push_back(h.who);
                    }
                    publish();
                    break;
                case effect::kind::renew:
                    renew(i, e.number);
                    break;
                default:
                    break;
            }
        }
        p.machine.check();
    }

    server::entry entry_of(std::size_t i, std::uint64_t ask) const {
        for (const auto& one : server_.queue) {
            if (one.process == i && one.ask == ask) return one;
        }
        return {};
    }
    void refuse(std::size_t i, std::uint64_t ask, errc why) {
        effects out;
        processes_[i]->machine.ask_refused(ask, std::make_shared<const refusal>(refusal{why, "", {}, {}}), now_, out);
        carry_out(i, out);
    }
    void end(std::size_t i, std::uint64_t number) {
        process& p = *processes_[i];
        const auto found = p.holds.find(number);
        // Released before its number was told: the grant gave it back in the same step.
        const server::entry who = found == p.holds.end() ? server::entry{} : found->second;
        if (found != p.holds.end()) p.holds.erase(found);
        if (found == p.holds.end() && who == server::entry{}) {
            const auto newest = std::ranges::find_if(server_.holders, [&](const auto& h) {
                return h.who.process == i &&
                       std::ranges::none_of(p.holds, [&](const auto& e) { return e.second == h.who; });
            });
            if (newest != server_.holders.end()) server_.holders.erase(newest);
        } else {
            server_.holders.remove_if([&](const auto& h) { return h.who == who; });
        }
        publish();
    }

    void check() {
        std::size_t writers = outsider_holds() ? 1 : 0;
        std::size_t believers = writers;
        for (const auto& p : processes_) {
            for (const std::uint64_t hold : p->fast) {
                if (p->lost.contains(hold)) continue;
                ++believers;
                if (settings_.kind == lock_kind::mutex) ++writers;
            }
            for (const claim* const c : p->holding) {
                if (c->is != claim::state::holding) continue;
                ++believers;
                if (c->exclusive > 0) ++writers;
            }
        }
        EXPECT_TRUE(writers == 0 || believers == 1) << writers << " writers among " << believers;
    }

    std::mt19937 random_;
    const settings settings_;
    std::vector<std::unique_ptr<process>> processes_;
    server server_;
    std::deque<message> messages_;
    std::vector<server::entry> told_;
    bool outsider_waits_ = false;
    std::uint64_t largest_ = 0;
    instant now_{1000s};
};

TEST(LocalRandom, NothingBreaksInAnyOrder) {
    for (unsigned seed = 0; seed < 300 && !::testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const settings chosen{.lease = 3s,
                              .keep = seed % 3 == 0 ? 0ms : 100ms,
                              .passes = seed % 4,
                              .kind = seed % 2 == 0 ? lock_kind::mutex : lock_kind::read_write,
                              .prefer = preference(seed / 2 % 3)};
        world(seed, chosen).play(400);
    }
}

}  // namespace
}  // namespace holdfast::engine::local::local_random_test
