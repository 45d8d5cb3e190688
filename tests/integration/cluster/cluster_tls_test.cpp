// A Cluster whose members speak TLS, also among themselves, and know a user with a password: what moves is followed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "integration/refusal.hpp"
#include "support/documented_user.hpp"
#include "support/eventually.hpp"
#include "support/leftovers.hpp"
#include "support/redis_cluster.hpp"

namespace holdfast::testing::cluster_tls_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// The lines of CLIENT LIST that are about that user's links.
std::vector<std::string> links_of(redis_server& server, const std::string& user) {
    std::istringstream list{server.call({"CLIENT", "LIST"}).text};
    std::vector<std::string> links;
    for (std::string line; std::getline(list, line);) {
        if (line.find(" user=" + user + " ") != std::string::npos) links.push_back(line);
    }
    return links;
}

TEST(ClusterOverTls, IsFollowedByAUserWithAPasswordWhenASlotMovesAndAReplicaTakesOver) {
    const documented_user user = documented("cluster-locks");
    const std::string login = user.name + ":" + user.password;
    redis_cluster cluster{{.tls = true, .acl_users = {user.line()}}};
    const std::string url = cluster.tls_url(login) + "?ca_file=" + cluster.tls().ca.string();
    client subject{url};
    client other{url};
    mutex ours{subject, "stock", {.lease = 60s}};
    mutex theirs{other, "stock", {.lease = 60s}};
    const std::string key = "hf:{stock}";
    lease held = ours.acquire();
    std::atomic<bool> served = false;
    const std::jthread waiting([&](const std::stop_token& giving_up) {
        EXPECT_TRUE(theirs.try_acquire_for(4 * an_age, {.stop = giving_up}));
        served = true;
    });
    const auto somebody_waits = [&] { return cluster.owner_of(key).call({"ZCARD", key + ":queue"}).integer == 1; };
    ASSERT_TRUE(eventually(somebody_waits, an_age));

    redis_server& to = cluster.other_than_owner_of(key);
    cluster.move_slot(key, to);
    EXPECT_FALSE(held.renew());
    EXPECT_EQ(to.call({"GET", key}).text, held.id());
    ASSERT_TRUE(cluster.fail_over(key));
    EXPECT_FALSE(held.renew());
    redis_server& successor = cluster.owner_of(key);
    EXPECT_NE(&successor, &to);
    EXPECT_EQ(successor.call({"GET", key}).text, held.id());
    for (const std::string& link : links_of(successor, user.name)) {
        EXPECT_THAT(link, HasSubstr(" laddr=127.0.0.1:" + std::to_string(successor.tls_port()) + " "));
    }
    EXPECT_FALSE(links_of(successor, user.name).empty());
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(eventually([&] { return served.load(); }, an_age));

    // One member and much time: a busy machine may let a handshake wait for longer than all others would.
    const std::string one = at_port(cluster.members[0].tls_port());
    const std::string patient = "?timeout=20s";
    const std::string known = "rediss+cluster://" + login + "@" + one + patient;
    const std::string stranger = "rediss+cluster://" + user.name + ":" + password + "@" + one + patient;
    const std::string plain = "redis+cluster://" + login + "@" + one + patient;
    const std::string trusted = "&ca_file=" + cluster.tls().ca.string();
    expect_client_refused(errc::certificate_untrusted, known, one);
    expect_client_refused(errc::wrong_password, stranger + trusted, one);
    expect_client_refused(errc::tls_expected, plain, one);
}

}  // namespace
}  // namespace holdfast::testing::cluster_tls_test
