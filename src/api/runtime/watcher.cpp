#include "api/runtime/watcher.hpp"

#include <utility>

namespace holdfast::api {
namespace {

void count(std::atomic<std::uint64_t>& counter) {
    counter.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void watcher::log(log_level level, std::string text) {
    if (!log_) return;
    notifier_.tell([sink = log_, level, text = std::move(text)] { sink(level, text); });
}

void watcher::on_acquired(std::chrono::nanoseconds waited, engine::how got) {
    if (!metrics_) return;
    count(metrics_->acquired);
    if (got == engine::how::handed_over) count(metrics_->handed_over);
    metrics_->acquire_wait.add(waited);
}

void watcher::on_reentered() {
    if (metrics_) count(metrics_->reentered);
}

void watcher::on_refused() {
    if (metrics_) count(metrics_->refused);
}

void watcher::on_released(std::chrono::nanoseconds held) {
    if (!metrics_) return;
    count(metrics_->released);
    metrics_->hold_time.add(held);
}

void watcher::on_renewed() {
    if (metrics_) count(metrics_->renewals);
}

void watcher::on_renewal_failed(const failure& why) {
    if (metrics_) count(metrics_->failed_renewals);
    log(log_level::warning, "a renewal failed and is tried again: " + why.detail);
}

void watcher::on_lost(const std::string& lock, errc why) {
    if (metrics_) count(metrics_->losses);
    log(log_level::warning, "the hold on " + lock + " is lost: " + make_error_code(why).message());
}

void watcher::on_votes(const std::string& lock, engine::votes_now what, engine::vote_count count_of) {
    const bool fewer = what == engine::votes_now::fewer;
    if (fewer && metrics_) count(metrics_->votes_lost);
    log(fewer ? log_level::warning : log_level::info, "the hold on " + lock + " is backed by " +
                                                          std::to_string(count_of.in_favour) + " of " +
                                                          std::to_string(count_of.nodes) + " servers");
}

void watcher::on_link_up(const std::string& server, const std::string& version) {
    if (metrics_) count(metrics_->links);
    log(log_level::info, "connected to " + server + ", version " + version);
}

void watcher::on_link_down(const failure& why) {
    if (why.code == errc::client_closed) return;  // the normal end: nothing broke
    log(log_level::warning, "the connection broke: " + why.detail);
}

void watcher::on_thread_exit_holding() {
    log(log_level::warning, "a thread ended without unlocking what it had locked; its holds are renewed no longer");
}

void watcher::on_destroyed_while_locked(const std::string& name) {
    log(log_level::warning, "the lock '" + name + "' was destroyed while it was locked; it is released");
}

}  // namespace holdfast::api
