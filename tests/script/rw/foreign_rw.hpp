// What another program does to the hash: the flow charts of 000 and 002, one script for each chart.
// KEYS 1 lock; ARGV 1 owner  2 ttl ms. Each answers 1 for done, 0 for refused.
#pragma once

#include <string_view>

namespace holdfast::testing::foreign_rw {

inline constexpr std::string_view lock_to_read = R"lua(
local mode = redis.call('HGET', KEYS[1], 'mode')
if mode == 'write' and redis.call('HGET', KEYS[1], 'writer') ~= ARGV[1] then return 0 end
if not mode then redis.call('HSET', KEYS[1], 'mode', 'read') end
redis.call('HINCRBY', KEYS[1], 'r:' .. ARGV[1], 1)
redis.call('HINCRBY', KEYS[1], 'rcount', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
)lua";

inline constexpr std::string_view unlock_from_reading = R"lua(
local own = tonumber(redis.call('HGET', KEYS[1], 'r:' .. ARGV[1]) or '0')
if own <= 0 then return 0 end
if redis.call('HINCRBY', KEYS[1], 'r:' .. ARGV[1], -1) == 0 then redis.call('HDEL', KEYS[1], 'r:' .. ARGV[1]) end
if redis.call('HINCRBY', KEYS[1], 'rcount', -1) <= 0 then
    if redis.call('HGET', KEYS[1], 'mode') == 'read' then
        redis.call('DEL', KEYS[1])
    else
        redis.call('HDEL', KEYS[1], 'rcount')
    end
end
return 1
)lua";

inline constexpr std::string_view renew_reading = R"lua(
if tonumber(redis.call('HGET', KEYS[1], 'r:' .. ARGV[1]) or '0') <= 0 then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
)lua";

inline constexpr std::string_view lock_to_write = R"lua(
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then
    redis.call('HSET', KEYS[1], 'mode', 'write', 'writer', ARGV[1], 'wcount', 1)
elseif mode == 'write' then
    if redis.call('HGET', KEYS[1], 'writer') ~= ARGV[1] then return 0 end
    redis.call('HINCRBY', KEYS[1], 'wcount', 1)
else
    local total = tonumber(redis.call('HGET', KEYS[1], 'rcount') or '0')
    local own = tonumber(redis.call('HGET', KEYS[1], 'r:' .. ARGV[1]) or '0')
    if total ~= own then return 0 end
    redis.call('HSET', KEYS[1], 'mode', 'write', 'writer', ARGV[1], 'wcount', 1)
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
)lua";

inline constexpr std::string_view unlock_from_writing = R"lua(
if redis.call('HGET', KEYS[1], 'writer') ~= ARGV[1] then return 0 end
if redis.call('HINCRBY', KEYS[1], 'wcount', -1) > 0 then return 1 end
redis.call('HDEL', KEYS[1], 'writer', 'wcount')
if tonumber(redis.call('HGET', KEYS[1], 'rcount') or '0') > 0 then
    redis.call('HSET', KEYS[1], 'mode', 'read')
else
    redis.call('DEL', KEYS[1])
end
return 1
)lua";

inline constexpr std::string_view renew_writing = R"lua(
if redis.call('HGET', KEYS[1], 'writer') ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
)lua";

}  // namespace holdfast::testing::foreign_rw
