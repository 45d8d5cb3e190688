-- semaphore/confirm: tell whether a hold still exists at this server as it was granted. If it does, write something that
-- changes nothing: WAIT counts the replicas that have this write, and a replica that has it has the hold, too.
-- KEYS  1 lock  2 leases  3 grants
-- ARGV  1 hold id  2 token of the grant, 0: any
-- Returns  ms left of its lease | 0 not held, or for less than a millisecond
-- Repeatable. Runs on a full server, and while the slot moves as long as all three keys are here.
--@include semaphore/common/grant_text.lua

local id, token = ARGV[1], ARGV[2]
local grant = redis.call('HGET', KEYS[3], id)
if not permits_of(grant) or token ~= '0' and token ~= token_of(grant) then return 0 end
local ends = redis.call('ZSCORE', KEYS[2], id)
if not ends then return 0 end

-- By the deadline or by the keys, whichever is first: after a move they may differ until a renewal corrects that. The
-- lock's key has the limit: without it a replica would not know how many permits are out.
local clock = redis.call('TIME')
local left = ends - clock[1] * 1000 - math.floor(clock[2] / 1000)
for _, of_key in ipairs({redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2]), redis.call('PTTL', KEYS[3])}) do
    if of_key ~= -1 then left = math.min(left, of_key) end
end
if left < 1 then return 0 end

-- A full server accepts a write that removes nothing, and then the next one, too.
redis.call('ZREM', KEYS[2], '')
redis.call('HSET', KEYS[3], id, grant)
return left
