-- Shared by the scripts that serve a queue: a waiter's entry, its channel, and telling it something.
--
-- A waiter's entry in the hash KEYS[3] is one string of six words:
--   lease ms, poll interval ms, server time of its last poll in us, its token floor, what it wants (w to write, which is
--   all there is on a mutex; r to read; u to upgrade), its wake-up channel
-- SET takes no lease like "007".

local entry_form = '^([1-9]%d*) (%d+) (%d+) (%d+) ([wru]) (.+)$'

-- A wake-up channel with a tag is a sharded one. On a Cluster it is in the lock's own slot: then the listeners are on
-- this very server and are counted here, and nothing that is said is carried to all the others.
local function is_sharded(channel) return string.find(channel, '{', 1, true) end

-- The count of listeners is NUMSUB's and not PUBLISH's, which would count pattern subscribers too. Where that may not be
-- asked, polls must do.
local function is_listened_to(channel)
    local answer = redis.pcall('PUBSUB', is_sharded(channel) and 'SHARDNUMSUB' or 'NUMSUB', channel)
    return answer.err ~= nil or answer[2] > 0
end

-- What cannot be said is left to polls. SPUBLISH is never called without a listener: it ends some servers that were
-- updated from Redis 7.0, and clients do not listen there (docs/deployment.md, Updating a Cluster).
local function tell(channel, text)
    if not is_sharded(channel) then
        redis.pcall('PUBLISH', channel, text)
    elseif is_listened_to(channel) then
        redis.pcall('SPUBLISH', channel, text)
    end
end
