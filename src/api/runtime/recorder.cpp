#include "api/runtime/recorder.hpp"

#include <array>
#include <chrono>
#include <utility>

namespace holdfast::api {
namespace {

void count(std::atomic<std::uint64_t>& counter) {
    counter.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void recorder::log(log_level level, std::string text) {
    if (!log_) return;
    notifier_.tell([sink = log_, level, text = std::move(text)] { sink(level, text); });
}

void recorder::on_step(const engine::hold& of, engine::life_step what, std::chrono::nanoseconds took) {
    if (metrics_) count_step(of, what, took);
    if (trace_) trace_step(of, what, took);
}

void recorder::count_step(const engine::hold& of, engine::life_step what, std::chrono::nanoseconds took) {
    using engine::life_step;
    if (what == life_step::renewed) return;
    lock_metrics& named = metrics_->by_name.of(of.terms().keys->name());
    const auto add = [this, &named](auto metrics::*all, auto lock_metrics::*one, int by) {
        (*metrics_.*all).fetch_add(by, std::memory_order_relaxed);
        (named.*one).fetch_add(by, std::memory_order_relaxed);
    };
    const bool is_acquired =
        what == life_step::acquired || what == life_step::handed_over || what == life_step::upgraded;
    if (what == life_step::asked) add(&metrics::waiting, &lock_metrics::waiting, 1);
    if (is_acquired || what == life_step::refused) add(&metrics::waiting, &lock_metrics::waiting, -1);
    if (is_acquired && what != life_step::upgraded) add(&metrics::held, &lock_metrics::held, 1);
    if (what == life_step::released) add(&metrics::held, &lock_metrics::held, -1);
    // The totals of these are counted where they are told.
    if (is_acquired) {
        count(named.acquired);
        named.acquire_wait.add(took);
    }
    if (what == life_step::handed_over) count(named.handed_over);
    if (what == life_step::refused) count(named.refused);
    if (what == life_step::lost) count(named.losses);
    if (what == life_step::released) named.hold_time.add(took);
}

void recorder::trace_step(const engine::hold& of, engine::life_step what, std::chrono::nanoseconds took) {
    using engine::life_step;
    using kind = trace_event::kind;
    // In the order of life_step.
    constexpr std::array kinds{kind::acquire, kind::acquire, kind::wait, kind::acquire,
                               kind::refused, kind::renew,   kind::lost, kind::hold};
    if (what == life_step::asked) return;  // its span comes when it has ended
    const auto now = std::chrono::system_clock::now();
    trace_event event{.what = kinds[static_cast<std::size_t>(what)],
                      .lock = std::string(of.terms().keys->name()),
                      .hold = of.id().text(*client_),
                      .token = of.token(),
                      .begin = now - std::chrono::duration_cast<std::chrono::system_clock::duration>(took),
                      .end = now};
    notifier_.tell([sink = trace_, event = std::move(event)] { sink(event); });
}

void recorder::on_acquired(std::chrono::nanoseconds waited, engine::how granted_how) {
    if (!metrics_) return;
    count(metrics_->acquired);
    if (granted_how == engine::how::handed_over) count(metrics_->handed_over);
    metrics_->acquire_wait.add(waited);
}

void recorder::on_reentered() {
    if (metrics_) count(metrics_->reentered);
}

void recorder::on_refused() {
    if (metrics_) count(metrics_->refused);
}

void recorder::on_released(std::chrono::nanoseconds held) {
    if (!metrics_) return;
    count(metrics_->released);
    metrics_->hold_time.add(held);
}

void recorder::on_renewed() {
    if (metrics_) count(metrics_->renewals);
}

void recorder::on_renewal_failed(const failure& why) {
    if (metrics_) count(metrics_->failed_renewals);
    log(log_level::warning, "a renewal failed and is tried again: " + why.detail);
}

void recorder::on_lost(const std::string& lock, errc why) {
    if (metrics_) count(metrics_->losses);
    log(log_level::warning, "the hold on " + lock + " is lost: " + make_error_code(why).message());
}

void recorder::on_support(const std::string& lock, engine::support_now what, engine::support_count count_of) {
    const bool fewer = what == engine::support_now::fewer;
    if (fewer && metrics_) count(metrics_->votes_lost);
    log(fewer ? log_level::warning : log_level::info, "the hold on " + lock + " is backed by " +
                                                          std::to_string(count_of.in_favour) + " of " +
                                                          std::to_string(count_of.nodes) + " servers");
}

void recorder::on_link_up(const std::string& server, const std::string& version) {
    if (metrics_) count(metrics_->links);
    log(log_level::info, "connected to " + server + ", version " + version);
}

void recorder::on_link_down(const failure& why) {
    if (why.code == errc::client_closed) return;  // the normal end: nothing broke
    log(log_level::warning, "the connection broke: " + why.detail);
}

void recorder::on_resp2(const redis::server_settings& server) {
    if (server.resp != redis::resp_choice::either) return;  // the URL says so
    log(log_level::warning, server.display() + " refuses HELLO 3, so RESP2 is used (resp=2 in the URL asks for it)");
}

void recorder::on_wakes_refused(const failure& why) {
    log(log_level::warning, "nothing can wake waiters, so they poll (wake=poll in the URL asks for it): " + why.detail);
}

void recorder::on_local_grants(std::uint64_t grants, std::uint64_t passes, std::uint64_t give_backs) {
    if (!metrics_) return;
    metrics_->local_grants.fetch_add(grants, std::memory_order_relaxed);
    if (passes > 0) metrics_->passes.fetch_add(passes, std::memory_order_relaxed);
    if (give_backs > 0) metrics_->give_backs.fetch_add(give_backs, std::memory_order_relaxed);
}

void recorder::on_given_back(std::chrono::nanoseconds unused) {
    if (metrics_) metrics_->kept_time.add(unused);
}

void recorder::on_thread_exit_holding() {
    log(log_level::warning, "a thread ended without unlocking what it had locked; its holds are renewed no longer");
}

void recorder::on_destroyed_while_locked(const std::string& name) {
    log(log_level::warning, "the lock '" + name + "' was destroyed while it was locked; it is released");
}

}  // namespace holdfast::api
