// The doctor recognises servers by what INFO says of them.
#include "cli/doctor/server_product.hpp"

#include <gtest/gtest.h>

#include <string>

namespace holdfast::cli::server_product_test {
namespace {

struct row {
    const char* info;
    const char* name;
    const char* version;
    experience known;
};

std::string head_of(const row& one) {
    return std::string("# Server\r\n") + one.info + "\r\nrun_id:abc\r\n";
}

TEST(ServerProduct, IsReadFromItsOwnMarks) {
    for (const row& each : std::initializer_list<row>{
             {"redis_version:7.0.15", "Redis", "7.0.15", experience::tested},
             {"redis_version:8.0.2", "Redis", "8.0.2", experience::tested},
             {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1", "Valkey", "8.1.1",
              experience::tested},
             {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.0.0", "Valkey", "9.0.0",
              experience::alike},
             {"redis_version:6.2.14", "Redis", "6.2.14", experience::alike},
             {"redis_version:7.4.1", "Redis", "7.4.1", experience::alike},
             {"redis_version:70.0.1", "Redis", "70.0.1", experience::alike},
             {"redis_version:7.4.0\r\ndragonfly_version:df-v1.31.0", "Dragonfly", "df-v1.31.0", experience::untested},
             {"redis_version:6.3.4\r\nexecutable:/usr/bin/keydb-server", "KeyDB", "6.3.4", experience::untested},
             {"redis_version:6.3.4\r\n# KeyDB\r\nmvcc_depth:0", "KeyDB", "6.3.4", experience::untested},
             {"kvrocks_version:2.15.0\r\nredis_version:7.0.0", "Kvrocks", "2.15.0", experience::untested},
             {"upstash_version:1.10.5\r\nredis_version:6.2.6", "Upstash", "1.10.5", experience::untested},
             {"redis_version:7.4.0\r\nrlec_version:7.8.2-60", "Redis Enterprise", "7.8.2-60", experience::untested},
             {"redis_version:7.1.0\r\nos:Amazon ElastiCache", "Redis at Amazon ElastiCache", "7.1.0",
              experience::untested},
             {"valkey_version:8.1.0\r\nos:Amazon MemoryDB", "Valkey at Amazon MemoryDB", "8.1.0", experience::untested},
             {"tcp_port:6379", "", "", experience::untested},
         }) {
        const server_product read = read_product(head_of(each));
        EXPECT_EQ(read.name, each.name) << each.info;
        EXPECT_EQ(read.version, each.version) << each.info;
        EXPECT_EQ(read.known, each.known) << each.info;
    }
}

TEST(ServerProduct, KeydbWarnsOfTwoPrimaries) {
    const server_product keydb = read_product("# Server\r\nredis_version:6.3.4\r\nmvcc_depth:0\r\n");
    EXPECT_NE(keydb.caution.find("active-replica"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::cli::server_product_test
