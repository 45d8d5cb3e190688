#include "world/set_actor.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

set_actor::set_actor(actor::environment where, random_stream random, std::string name)
    : env_(std::move(where)), random_(random), name_(std::move(name)) {}

bool set_actor::keeps(const std::string& lock) const {
    return std::ranges::any_of(members_,
                               [&](const auto& one) { return one->held() != nullptr && one->lock() == lock; });
}

void set_actor::died() {
    for (const auto& one : members_) {
        if (one->believed()) one->believed()->over = true;
    }
}

void set_actor::note(const std::string& what) const {
    if (env_.trace) env_.trace(name_ + " " + what);
}

void set_actor::after(nanoseconds wait, void (set_actor::*what)()) {
    env_.time.after(wait, [this, what] { env_.process.when_awake([this, what] { (this->*what)(); }); });
}

void set_actor::rest() {
    after(random_.within(env_.load.rest), &set_actor::ask);
}

void set_actor::ask() {
    if (env_.time.now() >= env_.load.stop) return;
    asked_at_ = env_.time.now();
    const workload& load = env_.load;
    const milliseconds lease = load.leases[random_.below(load.leases.size())];
    for (const lock_plan& lock : load.locks) {
        if (lock.kind == wire::lock_kind::semaphore || random_.percent(15)) continue;
        engine::acquire_terms terms;
        terms.keys = lock.keys;
        terms.options.kind = lock.kind;
        terms.options.prefer = lock.prefer;
        terms.options.lease = lease;
        terms.options.delay_ms = static_cast<std::uint32_t>(load.delay_of(lock.kind).count());
        terms.options.replicas = load.replicas;
        terms.options.replica_timeout_ms = load.replica_timeout_ms;
        terms.options.yield_after_ms = load.yield_after_ms;
        terms.limit = {engine::waiting::not_at_all, env_.process.now() + request_time};
        members_.push_back(std::make_unique<member>(*this, std::move(terms)));
    }
    if (members_.empty()) return rest();
    note("asks for " + std::to_string(members_.size()) + " locks together");
    engine::engine& engine = env_.process.engine();
    engine.begin_together();
    for (const auto& one : members_) one->ask();
    engine.end_together(env_.process.now());
}

void set_actor::answered() {
    if (!std::ranges::all_of(members_, [](const auto& one) { return one->is_answered(); })) return;
    const bool has_all = std::ranges::all_of(members_, [](const auto& one) { return one->held() != nullptr; });
    after(has_all ? random_.within(env_.load.hold) : nanoseconds(0), &set_actor::release);
}

void set_actor::release() {
    note("releases its locks together");
    engine::engine& engine = env_.process.engine();
    engine.begin_together();
    for (const auto& one : members_) {
        if (one->held() != nullptr) one->release();
    }
    engine.end_together(env_.process.now());
    std::ranges::move(members_, std::back_inserter(former_));
    members_.clear();
    rest();
}

// --- one lock

void set_actor::member::ask() {
    whole_.env_.process.engine().acquire(*this, terms_, whole_.env_.process.now());
}

void set_actor::member::release() {
    belief_->over = true;
    whole_.env_.process.engine().release(*std::exchange(held_, nullptr), engine::access::exclusive, nullptr,
                                         whole_.env_.process.now() + request_time, whole_.env_.process.now());
}

void set_actor::member::acquired(engine::hold& held) {
    answered_ = true;
    held_ = &held;
    held.listen({std::shared_ptr<void>(), this});
    const client& process = whole_.env_.process;
    belief_ = whole_.env_.check.believes({.lock = lock(),
                                          .id = held.id().text(whole_.env_.process.engine().id()),
                                          .token = held.token(),
                                          .until = held.valid_until() + process.slept(),
                                          .mode = engine::access::exclusive,
                                          .lease = terms_.options.lease,
                                          .delay = whole_.env_.load.delay_of(terms_.options.kind),
                                          .asked = whole_.asked_at_});
    whole_.note("acquired " + lock() + " by " + belief_->id + " token " + std::to_string(held.token()));
    whole_.answered();
}

void set_actor::member::refused(const engine::refusal& why) {
    answered_ = true;
    whole_.env_.check.told(whole_.name_, why.code);
    whole_.answered();
}

void set_actor::member::on_validity(instant until) {
    whole_.env_.check.extended(belief_, until + whole_.env_.process.slept());
}

void set_actor::member::on_lost(errc why) {
    if (why != errc::lost) belief_->over = true;
    whole_.env_.check.lost.insert(belief_->id);
}

}  // namespace holdfast::sim
