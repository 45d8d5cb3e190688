// The semaphore: a hash with its limit, every hold's deadline (leases) and its permits and token (grants) beside it.
#include "wire/entry.hpp"
#include "wire/kind.hpp"
#include "wire/payload.hpp"
#include "wire/semaphore/semaphore_requests.hpp"

#include <algorithm>
#include <numeric>

namespace holdfast::wire {
namespace {

using side = lock_keys::side;

// All but renew and confirm begin alike.
payload semaphore_payload(const lock_terms& lock, std::string_view id) {
    payload call(lock.keys, {side::queue, side::waiters, side::fence, side::leases, side::grants});
    call.text(id).time(lock.fence_retention).token(lock.limit);
    return call;
}

// Holds whose lease runs and whose grant makes sense, the oldest first.
std::vector<seen_holder> holders_of(const redis::reply_view& leases, const redis::reply_view& grants,
                                    microseconds now) {
    std::vector<seen_holder> result;
    const auto known = pairs_of(grants);
    for (const auto& [id, deadline_text] : pairs_of(leases)) {
        const auto deadline_ms = number_in<double>(deadline_text);
        const auto grant = known.find(id);
        if (!deadline_ms || grant == known.end()) continue;
        std::string_view rest = grant->second;
        const auto permits = permits_in(cut_word(rest));
        const microseconds deadline(static_cast<std::int64_t>(*deadline_ms * 1000));
        if (!permits || deadline <= now) continue;
        seen_holder holder{.id = std::string(id),
                           .mode = access::permits,
                           .left = std::chrono::ceil<milliseconds>(deadline - now),
                           .permits = *permits};
        set_token(holder, token_of_grant(grant->second), now);
        result.push_back(std::move(holder));
    }
    std::ranges::stable_sort(result, {}, [](const seen_holder& holder) { return holder.token.value_or(0); });
    return result;
}

std::optional<limit_facts> limit_of(std::string_view declared, std::string_view present, std::string_view version) {
    const auto known = permits_in(declared);
    const auto now = permits_in(present);
    if (!known || !now) return std::nullopt;
    return limit_facts{*known, *now, std::string(version)};
}

class semaphore_kind final : public kind {
public:
    using kind::write;

    bool has_shared_mode() const noexcept override { return false; }
    bool can_release_alone() const noexcept override { return false; }
    bool can_renew_alone() const noexcept override { return false; }
    bool can_end_foreign_holds() const noexcept override { return false; }

    void write(redis::command& out, const lock_terms& lock, const acquire_request& request) const override {
        static const script& source = find("semaphore/acquire");
        semaphore_payload(lock, request.id)
            .token(request.permits)
            .time(request.lease)
            .token(request.token_floor)
            .text(request.channel)
            .text(request.ticket.empty() ? "0" : request.ticket)
            .time(request.poll_interval)
            .time(request.queue_retention)
            .token(lock.proposal)
            .write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const release_request& request) const override {
        static const script& source = find("semaphore/release");
        semaphore_payload(lock, request.id).token(request.token).token(lock.proposal).write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const renew_request& request) const override {
        static const script& source = find("semaphore/renew");
        holders_payload(lock.keys, request.id).time(request.lease).write(out, source);
    }

    void write(redis::command& out, const lock_terms& lock, const confirm_request& request) const override {
        static const script& source = find("semaphore/confirm");
        holders_payload(lock.keys, request.id).token(request.token).write(out, source);
    }

    void write_standing(redis::command& out, const lock_keys& keys, std::string_view id) const override {
        static const script& source = find("semaphore/tools/standing");
        payload(keys, {side::leases}).text(id).write(out, source);
    }

    // One of several holders, at most.
    std::optional<shape> read_standing(const redis::reply_view& reply, std::string_view) const override {
        if (reply.size() != 3 || reply[2].size() != 2) return std::nullopt;
        const auto deadline_ms = reply[1].is_null() ? std::nullopt : number_in<double>(reply[1].text());
        const auto now_us = reply[2][0].to_integer().value_or(0) * 1'000'000 + reply[2][1].to_integer().value_or(0);
        const bool lives = deadline_ms && *deadline_ms * 1000 > static_cast<double>(now_us);
        return !reply[0].is_null() && lives ? shape::reading : shape::nothing;
    }

    bool read_holders(const stored_lock& stored, look_answer& lock) const override {
        if (stored.type != "hash") return false;
        const auto fields = pairs_of(stored.value);
        const auto field = [&](std::string_view name) {
            const auto found = fields.find(name);
            return found == fields.end() ? std::string_view() : found->second;
        };
        lock.limit = limit_of(field("declared"), field("limit"), field("version"));
        if (!lock.limit) return false;
        lock.holders = holders_of(stored.leases, stored.grants, lock.server_time);
        return true;
    }
};

constexpr semaphore_kind semaphore_object;

}  // namespace

const kind& the_semaphore = semaphore_object;

std::uint64_t semaphore_answer::out() const noexcept {
    return std::accumulate(holders.begin(), holders.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const seen_holder& one) { return sum + one.permits; });
}

void write_semaphore_look(redis::command& out, const lock_keys& keys) {
    static const script& source = find("semaphore/look");
    payload(keys, {side::queue, side::leases, side::grants}).write(out, source);
}

std::optional<semaphore_answer> read_semaphore_look(const redis::reply_view& reply) {
    if (reply.type() != redis::resp_type::array || reply.size() != 5 || reply[1].size() != 3) return std::nullopt;
    const auto time_us = reply[0].to_integer();
    const auto waiters = reply[4].to_integer();
    if (!time_us || !waiters || *waiters < 0) return std::nullopt;
    return semaphore_answer{.limit = limit_of(reply[1][0].text(), reply[1][1].text(), reply[1][2].text()),
                            .holders = holders_of(reply[2], reply[3], microseconds(*time_us)),
                            .waiters = static_cast<std::size_t>(*waiters)};
}

void write_resize(redis::command& out, const lock_terms& lock, const resize_request& request) {
    static const script& source = find("semaphore/resize");
    semaphore_payload(lock, request.new_version).token(request.new_limit).text(request.replaces).write(out, source);
}

std::optional<resize_answer> read_resize(const redis::reply_view& reply) {
    using verdict = resize_answer::verdict;
    if (reply.type() != redis::resp_type::array || reply.size() != 2) return std::nullopt;
    const auto code = reply[0].to_integer();
    if (code == 1) return resize_answer{.what = verdict::done, .version = std::string(reply[1].text())};
    if (code == 0) return resize_answer{.what = verdict::other_version, .version = std::string(reply[1].text())};
    const auto declared = reply[1].to_integer();
    if (code != -1 || !declared || *declared < 1 || *declared > most_permits) return std::nullopt;
    return resize_answer{.what = verdict::other_limit, .declared = static_cast<std::uint32_t>(*declared)};
}

}  // namespace holdfast::wire
