-- Shared by the scripts that serve the queue: the wake-up channels of waiters. See wire/push.hpp for the messages.

-- Instead of a channel: the waiter listens nowhere and polls. It is alive while it does, and its next poll shows
-- what was granted to it.
local by_polls = '-'

-- A channel with a tag is sharded. On a Cluster it is in the lock's own slot, so its subscribers are at this member,
-- and a message does not go to the other members.
local function is_sharded(channel) return string.find(channel, '{', 1, true) end

-- NUMSUB counts subscribers; PUBLISH would count pattern subscribers, too. Without the right to ask, polls must
-- suffice.
local function is_listened_to(channel)
    if channel == by_polls then return true end
    local answer = is_sharded(channel) and redis.pcall('PUBSUB', 'SHARDNUMSUB', channel)
        or redis.pcall('PUBSUB', 'NUMSUB', channel)
    return answer.err ~= nil or answer[2] > 0
end

-- Polls replace a message that cannot be sent. SPUBLISH needs a subscriber: without one it ends some servers that were
-- updated from Redis 7.0, where clients do not subscribe (docs/deployment.md, Updating a Cluster).
local function tell(channel, text)
    if channel == by_polls then
        return
    elseif not is_sharded(channel) then
        redis.pcall('PUBLISH', channel, text)
    elseif is_listened_to(channel) then
        redis.pcall('SPUBLISH', channel, text)
    end
end
