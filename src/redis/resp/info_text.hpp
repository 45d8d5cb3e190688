// Reads INFO and CLIENT INFO.
#pragma once

#include "redis/resp/resp_reply.hpp"

#include <string>
#include <string_view>

namespace holdfast::redis {

// The value of `name` in lines or words of the form name<separator>value.
std::string find_field(std::string_view text, std::string_view name);

struct replication_facts {
    bool is_replica = false;
    std::string history;  // changes when the server was a replica meanwhile
};

// From the answer to INFO replication.
replication_facts read_replication(const reply_view& reply);

}  // namespace holdfast::redis
