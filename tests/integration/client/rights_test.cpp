// The users that docs/deployment.md recommends: each can do everything that is said of it, and not one of its rights is
// too many.
//
// What is refused is in the server's own ACL LOG, also what a script was refused inside or nobody was told of. With all
// the rights it stays empty. With one of them left out it does not: so a right that is missing in the documentation
// fails the first test of its kind, and one that nobody needs the second.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/use_future.hpp>

#include <cstdlib>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include "integration/refusal.hpp"
#include "support/documented_user.hpp"
#include "support/eventually.hpp"
#include "support/redis_cluster.hpp"
#include "support/replica_set.hpp"

namespace holdfast::testing::rights_test {
namespace {

using namespace std::chrono_literals;

/// So long that nothing is lost on a slow machine; or so short that who is told nothing finds out soon.
struct times {
    milliseconds lease;
    milliseconds patience;
};
constexpr times leisure{60s, an_age};
constexpr times haste{400ms, 1s};

void must(const boost::system::error_code& outcome) {
    if (outcome) throw std::runtime_error{outcome.message()};
}

/// A program that does all there is to do with locks. Each part throws what it is refused.
class program {
public:
    using owner_of_key = std::function<redis_server&(const std::string&)>;

    program(const std::string& url, times spans, owner_of_key owner)
        : owner_{std::move(owner)}, spans_{spans}, subject_{url}, other_{url} {}

    void use_mutexes() {
        const mutex_options terms{.lease = spans_.lease};
        mutex lock{subject_, "stock", terms};
        mutex theirs{other_, "stock", terms};
        lease held = lock.acquire();
        must(held.renew());
        if (theirs.try_acquire()) throw std::logic_error{"two have it"};
        auto waiting = std::async(std::launch::async, [&] { return theirs.try_acquire_for(spans_.patience); });
        wait_for_a_line("stock", waiting);
        must(held.release());
        if (!waiting.get()) throw std::runtime_error{"nobody was served"};
        if (!lock.async_acquire(boost::asio::use_future).get()) throw std::runtime_error{"not free again"};
    }

    void use_read_write_locks() {
        const shared_mutex_options terms{.lease = spans_.lease};
        shared_mutex catalog{subject_, "catalog", terms};
        shared_mutex theirs{other_, "catalog", terms};
        lease reading = catalog.acquire_shared();
        must(theirs.acquire_shared().release());
        must(reading.renew());
        lease writing = reading.try_upgrade_for(spans_.patience);
        auto waiting = std::async(std::launch::async, [&] { return theirs.try_acquire_shared_for(spans_.patience); });
        wait_for_a_line("catalog", waiting);
        lease again = writing.downgrade();
        if (!waiting.get()) throw std::runtime_error{"no reader was let in"};
        // Another program reads, too; now every field has to be looked at.
        owner_("hf:{catalog}").call({"HSET", "hf:{catalog}", "r:somebody", "1"});
        must(again.renew());
        must(again.release());
        striped_shared_mutex striped{subject_, "striped", 4};
        if (!striped.try_acquire()) throw std::runtime_error{"not free"};
        mutex stock{subject_, "stock", {.lease = spans_.lease}};
        shared_mutex shelf{subject_, "shelf", terms};
        const lock_all both{stock, shelf};
    }

    void use_semaphores() {
        const semaphore_options terms{.lease = spans_.lease};
        semaphore pool{subject_, "pool", 2, terms};
        semaphore theirs{other_, "pool", 2, terms};
        lease held = pool.acquire(2);
        must(held.renew());
        auto waiting = std::async(std::launch::async, [&] { return theirs.try_acquire_for(spans_.patience); });
        wait_for_a_line("pool", waiting);
        must(held.release());
        if (!waiting.get()) throw std::runtime_error{"nobody was served"};
        pool.resize(3);
        if (theirs.available() > 3 || theirs.holders().size() > 1) throw std::logic_error{"wrong count"};
    }

    void use_replicas(milliseconds within) {
        mutex lock{subject_, "important", {.lease = spans_.lease, .replicas = 1, .replica_timeout = within}};
        lease held = lock.acquire();
        must(held.renew());
        must(held.release());
    }

    /// So many that those which nobody waits on any more are left.
    void wait_for_many_locks() {
        for (int i = 0; i < 260; ++i) {
            const std::string name = "shelf " + std::to_string(i);
            mutex lock{subject_, name, {.lease = spans_.lease}};
            mutex theirs{other_, name, {.lease = spans_.lease}};
            const lease held = lock.acquire();
            if (theirs.try_acquire_for(1ms)) throw std::logic_error{"two have it"};
        }
    }

private:
    /// Or until whoever was to wait does not.
    void wait_for_a_line(const std::string& name, const std::future<lease>& waiting) {
        const std::string queue = "hf:{" + name + "}:queue";
        const auto is_there = [&] {
            return owner_(queue).call({"ZCARD", queue}).integer == 1 ||
                   waiting.wait_for(0ms) == std::future_status::ready;
        };
        if (!eventually(is_there, an_age)) throw std::runtime_error{"nobody waits"};
    }

    owner_of_key owner_;
    times spans_;
    client subject_;
    client other_;
};

/// Servers that know a user of the documentation.
class guarded {
public:
    guarded(documented_user who, std::vector<redis_server*> servers) : user{std::move(who)}, all_{std::move(servers)} {}

    /// With these words, and as if nothing had been yet: no script is known.
    void begin_with(const std::vector<std::string>& words) {
        for (redis_server* each : all_) {
            check(each->call(user.command(words)));
            check(each->call({"ACL", "LOG", "RESET"}));
        }
    }
    void forget_all() {
        for (redis_server* each : all_) {
            check(each->call({"FLUSHALL"}));
            check(each->call({"SCRIPT", "FLUSH"}));
        }
    }
    std::string refused() {
        std::string all;
        for (redis_server* each : all_) {
            for (const redis_reply& entry : each->call({"ACL", "LOG"}).elements) {
                for (const redis_reply& word : entry.elements) all += word.text + " ";
                all += "\n";
            }
        }
        return all;
    }

    const documented_user user;

private:
    static void check(const redis_reply& answer) {
        if (answer.is_error()) throw std::runtime_error{answer.text};
    }

    std::vector<redis_server*> all_;
};

/// With all rights nothing is refused; without any one of them something is. What then comes of it is told elsewhere.
void expect_all_are_needed(guarded& where, const std::function<void(times)>& everything) {
    where.begin_with(where.user.words);
    ASSERT_NO_THROW(everything(leisure)) << where.refused();
    EXPECT_EQ(where.refused(), "");
    for (const std::string& right : where.user.rights()) {
        where.begin_with(where.user.words_without(right));
        // On a slow machine haste alone may be why something is refused before that right is needed.
        for (const times spans : {haste, leisure}) {
            try {
                everything(spans);
            } catch (const std::exception&) {
            }
            if (where.refused() != "") break;
        }
        EXPECT_NE(where.refused(), "") << where.user.name << " does not need " << right;
    }
}

TEST(LeastRights, OfLocksOnAServer) {
    const documented_user user = documented("locks");
    replica_set set{1, {.acl_users = {user.line()}}};
    guarded where{user, {&set.primary}};
    const std::string url =
        "redis://" + user.name + ":" + user.password + "@" + at_port(set.primary.port()) + "?timeout=6s";
    expect_all_are_needed(where, [&](times spans) {
        where.forget_all();
        program all{url, spans, [&](const std::string&) -> redis_server& { return set.primary; }};
        all.use_mutexes();
        all.use_read_write_locks();
        all.use_semaphores();
        all.use_replicas(2s);
    });
}

TEST(LeastRights, OfLocksOnACluster) {
    const documented_user user = documented("cluster-locks");
    redis_cluster cluster{{.replicas = false, .acl_users = {"default off", user.line()}}};
    guarded where{user, {&cluster.members[0], &cluster.members[1], &cluster.members[2]}};
    const std::string url = cluster.url(user.name + ":" + user.password);
    expect_all_are_needed(where, [&](times spans) {
        where.forget_all();
        program all{url, spans, [&](const std::string& key) -> redis_server& { return cluster.owner_of(key); }};
        all.use_mutexes();
        all.use_read_write_locks();
        all.use_semaphores();
        if (where.refused() == "") all.wait_for_many_locks();  // takes long
    });
    expect_client_refused(errc::wrong_password, cluster.url(user.name + ":" + password), user.name + "@");
}

TEST(LeastRights, OfWhoAsksSentinels) {
    const documented_user user = documented("sentinel-locks");
    ASSERT_EQ(setenv("HOLDFAST_SENTINEL_TEST", user.password.c_str(), 1), 0);
    redis_server server;
    redis_server sentinel{{.acl_users = {user.line()},
                           .config = {"sentinel monitor mine 127.0.0.1 " + std::to_string(server.port()) + " 1"},
                           .sentinel = true}};
    guarded where{user, {&sentinel}};
    const std::string url = "redis+sentinel://" + at_port(sentinel.port()) + "/mine?sentinel_user=" + user.name +
                            "&sentinel_password_env=HOLDFAST_SENTINEL_TEST";
    expect_all_are_needed(where, [&](times spans) {
        client subject{url};
        mutex lock{subject, "stock", {.lease = spans.lease}};
        if (!lock.try_acquire()) throw std::runtime_error{"not free"};
        // It is listened to beside that, and nobody waits for it.
        const auto listens = [&] {
            return sentinel.call({"CLIENT", "LIST"}).text.find(" sub=1 ") != std::string::npos;
        };
        if (!eventually([&] { return where.refused() != "" || listens(); })) {
            throw std::runtime_error{"the sentinel is not listened to"};
        }
    });
    unsetenv("HOLDFAST_SENTINEL_TEST");
}

}  // namespace
}  // namespace holdfast::testing::rights_test
