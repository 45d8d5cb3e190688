// A reply that is parsed from the bytes of a server.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "redis/resp/resp_reader.hpp"

namespace holdfast::redis::testing {

class parsed {
public:
    explicit parsed(std::string_view bytes) {
        const std::span<char> room = reader_.prepare(bytes.size());
        std::copy(bytes.begin(), bytes.end(), room.begin());
        reader_.commit(bytes.size());
        EXPECT_EQ(reader_.next(reply), resp_status::reply);
    }
    reply_view reply;

private:
    resp_reader reader_;
};

}  // namespace holdfast::redis::testing
