// A client against a server that answers anything.
//
// The simulator's client (the real engine, sessions, router and acknowledgements) uses locks of all kinds at simulated
// servers that run the real scripts, in virtual time. The fuzzer's bytes choose what the users of the client do, and
// what becomes of each reply on its way: see client/tampering.hpp. In the end the servers are honest again.
//
// What must hold, besides no crash and no broken invariant:
//  (1) A hold is believed only after replies or messages of the right form that grant it, at a majority of the servers
//      (client/grant_record.hpp), and never for longer than its lease.
//  (2) Every request ends by its deadline, and at once when it is cancelled.
//  (3) No endless loop of events: virtual time goes on.
//  (4) When all is released, nothing is left in the client, and it can lock again.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "client/grant_record.hpp"
#include "client/tampering.hpp"
#include "redis/slots/hash_slot.hpp"
#include "support/choices.hpp"
#include "world/client.hpp"
#include "world/cluster.hpp"
#include "world/cluster_backend.hpp"
#include "world/server.hpp"

namespace holdfast::fuzz {
namespace {

using namespace std::chrono_literals;
using engine::access;
using sim::client;
using sim::link;
using sim::packet;
using sim::pipe;
using sim::plug;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

unsigned slot_of(std::string_view key) {
    return static_cast<unsigned>(redis::slot_of(key));
}

constexpr milliseconds lease = 4s;
constexpr milliseconds answer_time = 500ms;
constexpr std::size_t most_steps_at_one_time = 20'000;

struct deaf_watcher final : sim::script_watcher {
    void before_script(sim::server&, const sim::words&) override {}
    void after_script(const sim::words&, const sim::value&) override {}
};

// Compiled once; the scripts leave nothing behind.
std::shared_ptr<sim::script_engine> all_scripts() {
    static const auto only = std::make_shared<sim::script_engine>();
    return only;
}

enum class honesty : std::uint8_t { tampering, honest };

// One user of one lock: what a program may ask of the engine, and what it is told.
class lock_user final : public engine::acquire_completion, public engine::hold_listener {
public:
    lock_user(sim::timeline& time, client& process, const grant_record& record, std::size_t number)
        : time_(time), process_(process), record_(record), number_(number) {}

    struct wish {
        std::shared_ptr<const wire::lock_keys> keys;
        engine::lock_options options = {};
        access want = access::exclusive;
        engine::patience limit = {};
    };

    bool is_idle() const { return !asking_ && held_ == nullptr; }
    bool asks() const { return asking_; }
    engine::hold* held() const { return held_; }
    std::optional<errc> refused_for() const { return refused_for_; }

    void ask(const wish& what) {
        begin(what.limit.deadline);
        options_ = what.options;
        process_.engine().acquire(*this,
                                  {.keys = what.keys,
                                   .options = what.options,
                                   .want = what.want,
                                   .owner = static_cast<engine::owner_id>(number_ + 1),
                                   .limit = what.limit},
                                  process_.now());
    }
    void upgrade(instant deadline) {
        begin(deadline);
        process_.engine().upgrade(*held_, *this, {.deadline = deadline}, process_.now());
    }
    void cancel() {
        process_.engine().cancel(*this, errc::cancelled, process_.now());
        require(!asking_, "a cancelled request ends at once");
    }
    void release(access level) {
        engine::hold& mine = *held_;
        if (mine.levels(access::exclusive) + mine.levels(access::shared) == 1) held_ = nullptr;
        process_.engine().release(mine, level, new_answer(), process_.now() + answer_time, process_.now());
    }
    void downgrade() {
        process_.engine().downgrade(*held_, *new_answer(), process_.now() + answer_time, process_.now());
    }
    void renew() { process_.engine().renew(*held_, *new_answer(), process_.now()); }
    void want_numbers() { process_.engine().want_numbers(*held_, process_.now()); }
    void abandon() {
        engine::hold& mine = *held_;
        held_ = nullptr;
        process_.engine().abandon(mine, process_.now());
    }
    bool has_all_answers() const {
        return std::all_of(answers_.begin(), answers_.end(), [](const auto& one) { return one->has_come; });
    }

private:
    struct answer final : engine::hold_completion {
        void answered(const std::optional<engine::refusal>&) override { has_come = true; }
        bool has_come = false;
    };

    answer* new_answer() { return answers_.emplace_back(std::make_unique<answer>()).get(); }

    void begin(instant deadline) {
        asking_ = true;
        refused_for_.reset();
        ++serial_;
        if (deadline == never) return;
        time_.at(deadline + 1ms, [this, serial = serial_] {
            require(!asking_ || serial != serial_, "a request ends by its deadline");
        });
    }
    void check_grant(const engine::hold& got) const {
        const std::string id = got.id().text(process_.engine().id());
        const std::size_t told = record_.servers_that_told(id, got.token());
        require(2 * told > process_.backends().size(),
                "a hold is believed only if its grant was told: " + id + " token " + std::to_string(got.token()));
        check_validity(got.valid_until());
    }
    void check_validity(instant until) const {
        require(until <= process_.now() + options_.lease, "a hold is believed for no longer than its lease");
    }

    void acquired(engine::hold& got) override {
        require(asking_, "who has not asked is not told");
        asking_ = false;
        check_grant(got);
        if (held_ == &got) return;
        held_ = &got;
        got.listen(std::shared_ptr<engine::hold_listener>(std::shared_ptr<void>(), this));
    }
    void refused(const engine::refusal& why) override {
        require(asking_, "who has not asked is not told");
        asking_ = false;
        refused_for_ = why.code;
    }
    void on_validity(instant until) override { check_validity(until); }
    void on_token(engine::fencing_token) override {
        if (held_ != nullptr) check_grant(*held_);
    }
    void on_lost(errc) override {}
    void on_gone() override {}

    sim::timeline& time_;
    client& process_;
    const grant_record& record_;
    const std::size_t number_;
    engine::lock_options options_;
    engine::hold* held_ = nullptr;
    bool asking_ = false;
    std::uint64_t serial_ = 0;
    std::optional<errc> refused_for_;
    std::vector<std::unique_ptr<answer>> answers_;
};

// A link between the client and a server, with somebody in the middle.
struct tapped_link {
    tapped_link(sim::timeline& time, sim::random_stream& random, grant_record& record, std::size_t server,
                pipe::sink to_server, pipe::sink from_server, pipe::sink to_client)
        : real(time, random, std::move(to_server), std::move(from_server)),
          last_part(time, random, std::move(to_client)),
          reader(record, server) {}

    // Replies are paired with the commands that the client has written, of which some are still under way.
    void read_commands() {
        for (std::size_t i = read_ - arrived_; i < real.up.under_way().size(); ++i) {
            reader.sent(real.up.under_way()[i].second.bytes);
            ++read_;
        }
    }
    void arrives(const packet& what) {
        if (read_ == arrived_++) {
            reader.sent(what.bytes);
            ++read_;
        }
    }

    link real;
    pipe last_part;  // from who is in the middle to the client
    link_reader reader;

private:
    std::size_t read_ = 0;     // packets of the client
    std::size_t arrived_ = 0;  // at the server
};

class world final : public sim::network {
public:
    explicit world(choices choose) : choose_(choose), network_random_(7), ids_(11) {
        const std::size_t mode = choose_.below(8);
        has_cluster_ = mode == 5 || mode == 6;
        const std::size_t servers = has_cluster_ ? 2 : mode == 7 ? 3 : 1;
        replicas_ = mode == 4 || mode == 6 ? 1 : 0;
        for (std::size_t i = 0; i < servers; ++i) add_server(i);
        for (const char* name : {"a", "b", "c"}) {
            keys_.push_back(std::make_shared<const wire::lock_keys>(
                wire::make_keys(wire::lock_name(name), wire::key_naming::tagged, "hf:")));
        }
        if (has_cluster_) cluster_.assign(slot_of(keys_[1]->lock()), to_text(sim::address_of_member(1)));
        client_ = std::make_unique<client>(time_, sim::random_stream(3), ids_, setup(servers, mode), *this);
        for (std::size_t i = 0; i < 4; ++i) {
            users_.push_back(std::make_unique<lock_user>(time_, *client_, record_, i));
        }
    }

    void run() {
        client_->when_awake([this] { client_->start(); });
        pass(10ms);
        while (!choose_.are_over()) {
            act();
            if (time_.now() > begin_ + 10min) break;
        }
        pass(100ms);
        end_well();
    }

private:
    void add_server(std::size_t number) {
        sim::server_options options;
        options.engine = all_scripts();
        options.rate = 1.0;
        servers_.push_back(std::make_unique<sim::server>(time_, sim::random_stream(number), options, deaf_));
        if (has_cluster_) cluster_.add(*servers_.back(), to_text(sim::address_of_member(number)));
        if (replicas_ > 0) servers_.back()->be_followed({1ms, 3ms});
    }

    sim::client_setup setup(std::size_t servers, std::size_t mode) {
        sim::client_setup out;
        out.servers = servers;
        out.locks = keys_;
        if (has_cluster_) {
            out.server.use = redis::link_use::cluster;
            for (std::size_t i = 0; i < servers; ++i) out.server.seeds.push_back(sim::address_of_member(i));
            out.servers = 1;
        }
        out.server.connect_timeout = out.server.request_timeout = out.engine.request_timeout = answer_time;
        out.server.health_interval = 1s;
        out.server.backoff_max = 400ms;
        if (mode == 1) out.wakes = engine::woken_by::poll;
        if (mode == 2) out.wakes = engine::woken_by::hint;
        if (mode == 3) out.max_lease = lease;
        return out;
    }

    // --- the network
    void connect(plug& from) override {
        const unsigned attempt = from.attempt();
        const std::size_t number = from.server_number();
        if (number >= servers_.size() || (!is_honest() && choose_.one_in(8))) {
            time_.after(1ms, [&from, attempt] { from.not_connected(attempt); });
            return;
        }
        const std::size_t n = links_.size();
        links_.push_back(std::make_unique<tapped_link>(
            time_, network_random_, record_, number,
            [this, n, number](const packet& what) { to_server(n, number, what); },
            [this, n](const packet& what) { from_server(n, what); },
            [this, n, &from](const packet& what) { to_client(n, from, what); }));
        tapped_link& fresh = *links_.back();
        fresh.real.up.delay = fresh.real.down.delay = fresh.last_part.delay = {50us, 500us};
        servers_[number]->accept(fresh.real);
        time_.after(1ms, [&from, &fresh, attempt] { from.connected(fresh.real, attempt); });
    }

    void to_server(std::size_t n, std::size_t number, const packet& what) {
        trace(n, "->", what);
        links_[n]->arrives(what);
        try {
            servers_[number]->received(links_[n]->real, what);
        } catch (const std::logic_error&) {
            // What the model of a server does not know; the client learned from a lie that it should ask for it.
            if (links_[n]->real.server_open) links_[n]->real.down.send("-ERR unknown command\r\n");
        }
    }

    void from_server(std::size_t n, const packet& what) {
        tapped_link& at = *links_[n];
        if (what.what == packet::kind::end) return at.last_part.end();
        if (is_honest()) return at.last_part.send(what.bytes);
        const tampered instead = tamper(what.bytes, choose_, record_);
        if (instead.is_late) at.last_part.hold_until(time_.now() + milliseconds(4 * choose_.byte()));
        for (const std::string& piece : instead.pieces) {
            if (!piece.empty()) at.last_part.send(piece);
        }
        if (instead.ends_link) at.last_part.end();
    }

    void to_client(std::size_t n, plug& from, const packet& what) {
        trace(n, "<-", what);
        links_[n]->read_commands();
        links_[n]->reader.received(what.bytes);
        from.received(links_[n]->real, what);
    }

    // With HOLDFAST_FUZZ_TRACE set, for those who look into a failure.
    void trace(std::size_t n, const char* direction, const packet& what) const {
        static const bool is_wanted = std::getenv("HOLDFAST_FUZZ_TRACE") != nullptr;
        if (!is_wanted) return;
        const auto at = std::chrono::duration_cast<std::chrono::microseconds>(time_.now() - begin_).count();
        std::fprintf(stderr, "%9.3f link %zu %s %s\n", static_cast<double>(at) / 1000, n, direction,
                     what.what == packet::kind::end ? "(end)" : sim::in_quotes(what.bytes).c_str());
    }

    // --- time
    void pass(nanoseconds by) {
        const instant end = time_.now() + by;
        instant last = time_.now();
        for (std::size_t steps = 0; time_.step(end); ++steps) {
            if (std::exchange(last, time_.now()) != time_.now()) steps = 0;
            require(steps < most_steps_at_one_time, "no endless loop of events");
        }
    }
    bool is_honest() const { return honesty_ == honesty::honest; }

    // --- what happens
    void act() {
        const std::size_t what = choose_.below(16);
        if (what < 10) return use(*users_[choose_.below(users_.size())], what);
        if (what < 13) return pass(milliseconds(choose_.byte()));
        if (what == 13) return pass(milliseconds(50 * choose_.byte()));
        if (what == 14) return push();
        trouble();
    }

    void push() {
        if (links_.empty()) return;
        links_[links_.size() - 1 - choose_.below(std::min<std::size_t>(links_.size(), 4))]->last_part.send(
            invented_push(choose_, record_));
    }

    void trouble() {
        sim::server& at = *servers_[choose_.below(servers_.size())];
        switch (choose_.below(5)) {
            case 0:
                at.stop();
                return at.start(at.snapshot());
            case 1:
                at.stop();
                return at.start({});
            case 2:
                return at.flush_scripts();
            case 3:
                return at.stall_until(time_.now() + milliseconds(8 * choose_.byte()));
            default:
                // Another program holds one of the locks for a moment.
                at.run({"SET", keys_[choose_.below(keys_.size())]->lock(), "another program", "PX", "700"});
                return;
        }
    }

    lock_user::wish draw_wish() {
        constexpr std::array kinds{wire::lock_kind::mutex, wire::lock_kind::read_write, wire::lock_kind::semaphore};
        lock_user::wish out;
        // No semaphore on several servers.
        const std::size_t which = choose_.below(servers_.size() == 1 || has_cluster_ ? keys_.size() : 2);
        const std::size_t how = choose_.byte();
        out.keys = keys_[which];
        out.options.kind = kinds[which];
        out.options.lease = (how & 1U) != 0 ? lease : lease / 4;
        out.options.replicas = replicas_;
        out.options.replica_timeout_ms = 100;
        if (which == 1 && (how & 2U) != 0) out.want = access::shared;
        if (which != 2) out.options.kept = (how & 4U) != 0;
        if (which == 2) out.options.limit = 2;
        if ((how & 8U) != 0) out.options.renewing = engine::renewal::none;
        if ((how & 16U) != 0) out.limit.wait = engine::waiting::not_at_all;
        if ((how & 48U) != 0) out.limit.deadline = time_.now() + answer_time + milliseconds(10 * (how >> 5U));
        return out;
    }

    // Several mutexes at once.
    void use_together() {
        client_->engine().begin_together();
        for (std::size_t i = 0; i < 2; ++i) {
            if (!users_[i]->is_idle()) continue;
            users_[i]->ask({.keys = keys_[0],
                            .options = {.lease = lease},
                            .limit = {engine::waiting::not_at_all, time_.now() + answer_time}});
        }
        client_->engine().end_together(time_.now());
    }

    void use(lock_user& who, std::size_t what) {
        client_->when_awake([&] {
            if (what == 9) return use_together();
            if (who.asks()) {
                if (what < 2) who.cancel();
                return;
            }
            engine::hold* const held = who.held();
            if (held == nullptr) return who.ask(draw_wish());
            const bool writes = held->levels(access::exclusive) > 0;
            const bool is_rw = held->options().kind == wire::lock_kind::read_write;
            switch (what) {
                case 0:
                case 1:
                    return who.release(writes ? access::exclusive : access::shared);
                case 2:
                    return who.renew();
                case 3:
                    if (is_rw && !writes) who.upgrade(choose_.one_in(2) ? never : time_.now() + answer_time);
                    return;
                case 4:
                    if (is_rw && writes) who.downgrade();
                    return;
                case 5:
                    if (held->is_kept()) who.want_numbers();
                    return;
                case 6:
                    if (choose_.one_in(4)) who.abandon();
                    return;
                default:
                    return who.release(writes ? access::exclusive : access::shared);
            }
        });
    }

    // The servers are honest again, on new links. What is held is released, and nothing is left in the client.
    void end_well() {
        honesty_ = honesty::honest;
        for (const auto& each : servers_) {
            each->stop();
            each->start({});
        }
        for (const auto& each : links_) each->last_part.end();
        for (const auto& who : users_) {
            client_->when_awake([&] {
                if (who->asks()) who->cancel();
                while (who->held() != nullptr) {
                    const bool writes = who->held()->levels(access::exclusive) > 0;
                    who->release(writes ? access::exclusive : access::shared);
                }
            });
        }
        pass(2 * lease + 10s);
        for (const auto& who : users_) {
            require(who->is_idle(), "a user who wants nothing has nothing");
            require(who->has_all_answers(), "every question is answered");
        }
        require(client_->engine().holds() == 0, "nothing is left of holds that were released");
        lock_user& last = *users_[0];
        client_->when_awake([&] {
            last.ask({.keys = keys_[0], .options = {.lease = lease, .replica_timeout_ms = 100, .replicas = replicas_}});
        });
        pass(10s);
        require(last.held() != nullptr, "an honest server grants the lock again");
        client_->when_awake([&] { last.release(access::exclusive); });
        pass(10s);
        client_->close();
    }

    choices choose_;
    sim::timeline time_;
    const instant begin_ = time_.now();
    sim::random_stream network_random_;
    sim::random_stream ids_;
    deaf_watcher deaf_;
    grant_record record_;
    sim::cluster cluster_{slot_of};
    bool has_cluster_ = false;
    std::uint8_t replicas_ = 0;
    honesty honesty_ = honesty::tampering;
    std::vector<std::unique_ptr<sim::server>> servers_;
    std::vector<std::shared_ptr<const wire::lock_keys>> keys_;
    std::vector<std::unique_ptr<tapped_link>> links_;
    std::unique_ptr<client> client_;
    std::vector<std::unique_ptr<lock_user>> users_;
};

}  // namespace
}  // namespace holdfast::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::world(holdfast::fuzz::choices({data, size})).run();
    return 0;
}
