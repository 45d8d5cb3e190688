// Threads that use locks of all kinds, and a file of what they believe and when.
//
// Each line is written by one write(), before what it tells counts: a process that is killed leaves no line out that
// another process could contradict. A line begins with nanoseconds of CLOCK_BOOTTIME and the number of the thread.
//
//   ask LOCK MODE                 a request begins; the mode is x (exclusive), r (reads), s (reads a stripe, whose
//   token
//                                 says nothing about other stripes), u (upgrade), pN (N permits)
//   queued LOCK                   the server has the request
//   campaigns LOCK VALUE          the next request for it, if it succeeds, has that value
//   got LOCK MODE HOLD TOKEN UNTIL  believes from now until then; the hold has that number in this file
//   until HOLD UNTIL              it was renewed
//   lost HOLD                     lost() has fired: it believes no more
//   free HOLD                     a release or a downgrade is about to be asked: it believes no more
//   freed HOLD CODE               the answer
//   refused LOCK MODE CODE        the answer to a request that got nothing
//   observes LOCK                 from now on it is told who leads
//   saw LOCK TOKEN VALUE          it was told
//   stalled SINCE                 this process did not run since then
//   done                          the process ends by itself
//
// The time of "got" and "until" was read before the validity was asked, so neither claims too much.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/use_future.hpp>
#include <functional>
#include <holdfast/async.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/boot_clock.hpp"
#include "store.hpp"
#include "worker.hpp"

namespace holdfast::chaos {
namespace {

using namespace std::chrono_literals;

std::int64_t now_ns() {
    return boot_now().time_since_epoch().count();
}

class journal {
public:
    explicit journal(const std::string& path)
        : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
        if (file_ < 0) throw std::runtime_error("no history can be written to " + path);
    }
    void write(std::int64_t when, int thread, const std::string& what) const {
        const std::string line = std::to_string(when) + ' ' + std::to_string(thread) + ' ' + what + '\n';
        if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
            ::_exit(3);  // what others could contradict must not be missing
        }
    }

private:
    const int file_;  // open until the process ends
};

// One hold, from the moment at which its holder may believe.
class belief {
public:
    /// Of a `lease` or a `striped_lease`.
    template <typename Lease>
    belief(const journal& file, int thread, const std::string& lock, const std::string& kind, const Lease& held)
        : file_(file), thread_(thread), validity_([&held] { return held.validity(); }), number_(next_number()) {
        const std::int64_t now = now_ns();
        if (!reads_validity(now)) until_ms_ = now / 1'000'000;
        file_.write(now, thread_,
                    "got " + lock + ' ' + kind + ' ' + number_ + ' ' + std::to_string(held.token()) + ' ' + until());
        told_.emplace(held.lost(), [this] { file_.write(now_ns(), thread_, "lost " + number_); });
    }
    belief(const belief&) = delete;
    belief& operator=(const belief&) = delete;

    void look() {
        const std::int64_t now = now_ns();
        if (!reads_validity(now)) return;
        file_.write(now, thread_, "until " + number_ + ' ' + until());
    }
    /// To be called before the release is asked.
    void end() {
        file_.write(now_ns(), thread_, "free " + number_);
        told_.reset();
    }
    void ended(const boost::system::error_code& outcome) const {
        file_.write(now_ns(), thread_, "freed " + number_ + ' ' + std::to_string(outcome.value()));
    }

private:
    static std::string next_number() {
        static std::atomic<std::uint64_t> last{0};
        return std::to_string(++last);
    }
    // True if the hold is valid, and for longer than was known. `now` was read before.
    bool reads_validity(std::int64_t now) {
        const milliseconds left = validity_();
        if (left <= 0ms || now / 1'000'000 + left.count() <= until_ms_) return false;
        until_ms_ = now / 1'000'000 + left.count();
        return true;
    }
    std::string until() const { return std::to_string(until_ms_ * 1'000'000); }

    const journal& file_;
    const int thread_;
    const std::function<milliseconds()> validity_;
    const std::string number_;
    std::int64_t until_ms_ = 0;
    std::optional<std::stop_callback<std::function<void()>>> told_;
};

struct settings {
    std::vector<std::string> urls;
    std::string directory;
    std::string process;
    milliseconds lease_time;
    milliseconds max_lease;
    milliseconds delay{0};
    bool with_semaphore = true;
    bool with_order = false;
    bool trusts_restarts = false;
};

client connected(const settings& chosen) {
    client_options options;
    options.max_lease = chosen.max_lease;
    if (!chosen.trusts_restarts) options.after_restart = restarted_server::mistrusted;
    // What is left of a lock must be gone, or about to go, soon after the run.
    options.fence_retention = milliseconds{60'000};
    options.first_connect = milliseconds{60'000};
    if (chosen.urls.size() > 1) return client{chosen.urls, options};
    return client{chosen.urls.front(), options};
}

struct locks {
    explicit locks(const settings& chosen)
        : redis(connected(chosen)), lease_time(chosen.lease_time), delay(chosen.delay) {
        if (chosen.with_semaphore) pool.emplace(redis, "pool", 3, semaphore_options{.lease = lease_time});
        if (chosen.with_order) fair.emplace(redis, "fair", mutex_options{.lease = chosen.max_lease});
    }

    client redis;
    milliseconds lease_time;
    milliseconds delay;
    mutex stock{redis, "stock", {.lease = lease_time}};
    mutex kept{redis, "kept", {.lease = lease_time, .keep = milliseconds{300}, .passes = 4}};
    shared_mutex page{redis, "page", {.lease = lease_time}};
    mutex left{redis, "left", {.lease = lease_time}};
    mutex right{redis, "right", {.lease = lease_time}};
    mutex slow{redis, "slow", {.lease = lease_time, .delay = delay}};
    striped_shared_mutex table{redis, "table", 3, {.lease = lease_time}};
    election vote{redis, "lead", {.lease = lease_time}};
    std::optional<semaphore> pool;
    std::optional<mutex> fair;
};

class person {
public:
    person(const settings& chosen, locks& all, const journal& file, int thread, unsigned seed)
        : chosen_(chosen), all_(all), file_(file), thread_(thread), chance_(seed) {}

    void work() {
        std::vector<void (person::*)()> activities{
            &person::count_stock, &person::count_stock, &person::use_kept,     &person::use_kept,
            &person::read_page,   &person::read_page,   &person::upgrade_page, &person::write_page,
            &person::take_both,   &person::use_slowly,  &person::use_slowly,   &person::read_stripe,
            &person::read_stripe, &person::write_table, &person::lead,         &person::lead};
        if (all_.pool) activities.insert(activities.end(), 2, &person::take_permits);
        if (all_.fair) activities.insert(activities.end(), 2, &person::wait_in_order);
        while (!end_.stop_requested()) {
            (this->*activities[chance_() % activities.size()])();
            std::this_thread::sleep_for(milliseconds{chance_() % 40});
        }
    }

private:
    void say(const std::string& what) const { file_.write(now_ns(), thread_, what); }

    // Runs `request`, which returns a lease, and tells what came of it.
    template <typename Request>
    auto ask(const std::string& lock, const std::string& kind, Request request) {
        say("ask " + lock + ' ' + kind);
        why_ = {};
        decltype(request()) held;
        try {
            held = request();
        } catch (const error& failure) {
            why_.code = failure.condition();
        }
        if (!held) say("refused " + lock + ' ' + kind + ' ' + std::to_string(static_cast<int>(why_.code)));
        return held;
    }

    // Without a limit, with one, or without waiting.
    lease acquire(lockable& lock) {
        const std::string name{lock.name()};
        acquire_options options{.why_not = &why_, .stop = end_};
        switch (chance_() % 8) {
            case 0:
                return ask(name, "x", [&] { return lock.try_acquire(options); });
            case 1:
                return ask(name, "x", [&] { return lock.try_acquire_for(500ms, options); });
            default:
                return ask(name, "x", [&] { return lock.acquire(options); });
        }
    }

    // Mostly some milliseconds; now and then until it was renewed. It looks at all that it holds.
    template <typename... Beliefs>
    void hold(Beliefs&... held) {
        const auto dice = chance_() % 100;
        milliseconds time{chance_() % 15};
        if (dice < 8) time = milliseconds{50 + chance_() % 400};
        if (dice == 99) time = all_.lease_time + all_.lease_time / 2;
        hold_until(boot_now() + time, held...);
    }

    template <typename... Beliefs>
    void hold_until(instant end, Beliefs&... held) {
        while (boot_now() < end && !end_.stop_requested()) {
            std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(end - boot_now(), 20ms));
            (held.look(), ...);
        }
    }

    template <typename Lease>
    void release(Lease& held, belief& mine) {
        mine.end();
        mine.ended(held.release());
    }

    // Adds one to both stores of the lock. Looks neither at validity() nor at lost() before it writes, as programs do
    // that trust a lock: that is how updates are lost where tokens are not checked.
    void count(const std::string& name, const lease& held, belief& mine) {
        const store plain{chosen_.directory + "/" + name + ".plain"};
        const store checked{chosen_.directory + "/" + name + ".checked"};
        const std::int64_t seen = plain.open(0);
        const std::int64_t admitted = checked.open(held.token());
        hold(mine);
        plain.write(0, seen);
        if (admitted >= 0) checked.write(held.token(), admitted);
    }

    void use(lockable& lock, lease held) {
        if (!held) return;
        const std::string name{lock.name()};
        belief mine{file_, thread_, name, "x", held};
        count(name, held, mine);
        release(held, mine);
    }

    void count_stock() { use(all_.stock, acquire(all_.stock)); }
    void use_kept() { use(all_.kept, acquire(all_.kept)); }

    lease acquire_page_to_read() {
        return ask("page", "r", [&] { return all_.page.acquire_shared({.why_not = &why_, .stop = end_}); });
    }

    void read_page() {
        lease held = acquire_page_to_read();
        if (!held) return;
        belief mine{file_, thread_, "page", "r", held};
        hold(mine);
        release(held, mine);
    }

    void upgrade_page() {
        lease reading = acquire_page_to_read();
        if (!reading) return;
        belief reads{file_, thread_, "page", "r", reading};
        if (lease writing =
                ask("page", "u", [&] { return reading.try_upgrade_for(1s, {.why_not = &why_, .stop = end_}); })) {
            belief writes{file_, thread_, "page", "x", writing};
            count("page", writing, writes);
            reads.look();
            release(writing, writes);
        }
        release(reading, reads);
    }

    void write_page() {
        lease writing = acquire(all_.page);
        if (!writing) return;
        belief writes{file_, thread_, "page", "x", writing};
        count("page", writing, writes);
        if (chance_() % 2 == 0) {
            release(writing, writes);
            return;
        }
        writes.end();
        lease reading = ask("page", "r", [&] { return writing.downgrade(); });
        if (!reading) return;
        belief reads{file_, thread_, "page", "r", reading};
        hold(reads);
        release(reading, reads);
    }

    void take_both() {
        say("ask left x");
        say("ask right x");
        try {
            const acquire_options options{.stop = end_};
            lockable* first = &all_.left;
            lockable* second = &all_.right;
            if (chance_() % 2 == 0) std::swap(first, second);
            const lock_all both{options, *first, *second};
            belief one{file_, thread_, std::string{first->name()}, "x", both[0]};
            belief other{file_, thread_, std::string{second->name()}, "x", both[1]};
            hold(one, other);
            one.end();
            other.end();
        } catch (const error& failure) {
            const std::string code = std::to_string(static_cast<int>(failure.condition()));
            say("refused left x " + code);
            say("refused right x " + code);
        }
    }

    // For so long that a process that is killed mostly holds it.
    void use_slowly() {
        lease held = acquire(all_.slow);
        if (!held) return;
        belief mine{file_, thread_, "slow", "x", held};
        hold_until(boot_now() + milliseconds{chance_() % 200}, mine);
        release(held, mine);
    }

    void read_stripe() {
        lease held = ask("table", "s", [&] { return all_.table.acquire_shared({.why_not = &why_, .stop = end_}); });
        if (!held) return;
        belief mine{file_, thread_, "table", "s", held};
        hold(mine);
        release(held, mine);
    }

    void write_table() {
        striped_lease held = ask("table", "x", [&] { return all_.table.acquire({.why_not = &why_, .stop = end_}); });
        if (!held) return;
        belief mine{file_, thread_, "table", "x", held};
        hold(mine);
        release(held, mine);
    }

    void lead() {
        const std::string value = chosen_.process + '/' + std::to_string(thread_) + '/' + std::to_string(++campaigns_);
        say("campaigns lead " + value);
        lease held = ask("lead", "x", [&] { return all_.vote.campaign(value, end_); });
        if (!held) return;
        belief mine{file_, thread_, "lead", "x", held};
        hold(mine);
        release(held, mine);
    }

    void take_permits() {
        const std::size_t permits = 1 + chance_() % 2;
        const std::string kind = "p" + std::to_string(permits);
        lease held = ask("pool", kind, [&] { return all_.pool->acquire(permits, {.why_not = &why_, .stop = end_}); });
        if (!held) return;
        belief mine{file_, thread_, "pool", kind, held};
        hold(mine);
        release(held, mine);
    }

    // The answer to a try comes from the same server, and after the request that was sent before it. A ping may go to
    // another member of a Cluster.
    void wait_in_order() {
        lease held = ask("fair", "x", [&] {
            auto answer = all_.fair->async_acquire({.stop = end_}, boost::asio::use_future);
            all_.fair->try_acquire();
            say("queued fair");
            try {
                return answer.get();
            } catch (const boost::system::system_error& failure) {
                throw error(static_cast<errc>(failure.code().value()), "fair");
            }
        });
        if (!held) return;
        belief mine{file_, thread_, "fair", "x", held};
        hold(mine);
        release(held, mine);
    }

    const settings& chosen_;
    locks& all_;
    const journal& file_;
    const int thread_;
    std::mt19937 chance_;
    std::uint64_t campaigns_ = 0;
    const std::stop_token end_ = end_of_input();
    refusal why_;
};

watching observe(const journal& file, const election& vote) {
    file.write(now_ns(), 0, "observes lead");
    return vote.observe([&file](const std::optional<leader>& who) {
        if (who) file.write(now_ns(), 0, "saw lead " + std::to_string(who->token) + ' ' + who->value);
    });
}

// Tells when this process did not run for a while: what others may conclude then is excused.
void watch_for_stalls(const journal& file, const std::stop_token& end) {
    std::int64_t last = now_ns();
    while (!end.stop_requested()) {
        std::this_thread::sleep_for(50ms);
        const std::int64_t now = now_ns();
        if (now - last > 300'000'000) file.write(now, 0, "stalled " + std::to_string(last));
        last = now;
    }
}

}  // namespace

int history(arguments given) {
    settings chosen{.urls = split(given[0]),
                    .directory = given[1],
                    .process = given[2],
                    .lease_time = to_milliseconds(given[5]),
                    .max_lease = to_milliseconds(given[6])};
    for (const std::string& word : given.subspan(7)) {
        if (word == "no-semaphore") chosen.with_semaphore = false;
        if (word == "order") chosen.with_order = true;
        if (word == "trusts-restarts") chosen.trusts_restarts = true;
        if (word.starts_with("delay=")) chosen.delay = to_milliseconds(word.substr(6));
    }
    const auto seed = static_cast<unsigned>(std::stoul(given[3]));
    const journal file{chosen.directory + "/" + chosen.process + ".history"};
    {
        locks all{chosen};
        watching eye;
        if (chosen.with_order) eye = observe(file, all.vote);
        std::vector<std::jthread> threads;
        threads.emplace_back([&] { watch_for_stalls(file, end_of_input()); });
        for (int thread = 1; thread <= std::stoi(given[4]); ++thread) {
            threads.emplace_back([&, thread] {
                person{chosen, all, file, thread, seed * 1000 + static_cast<unsigned>(thread)}.work();
            });
        }
    }
    file.write(now_ns(), 0, "done");
    return 0;
}

}  // namespace holdfast::chaos
