// Which server it is, by the marks that its INFO has, and what is known of locks there.
//
// A client refuses Garnet (redis/session/greeting), so it is not here.
//
// Other products tell a redis_version, too: the one that they are compatible with. So their own marks come first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::cli {

enum class experience : std::uint8_t {
    tested,    // this release runs in the project's tests
    alike,     // another release of a product that does
    untested,  // a product that nothing was run on
};

struct server_product {
    std::string name;     // "Valkey", with the service that runs it: "Redis at Amazon ElastiCache"
    std::string version;  // its own
    experience known = experience::untested;
    std::string caution;  // what is particular about it, if anything
};

// `info` is all that INFO answers. The name is empty if that tells nothing.
server_product read_product(std::string_view info);

}  // namespace holdfast::cli
