-- semaphore/release: give the permits of one grant back and serve the queue; or leave the queue.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 leases  6 grants
-- ARGV  1 hold id  2 fence retention ms  3 limit that the caller declares  4 token of the grant that is meant; 0: any
--       grant of this id (giving up: the client never uses that id again)  5 proposed token, or 0
-- Returns  {1, waiters left, number of holders now} released | {0} not held, or by another grant
-- Repeatable: a second call finds no grant by that token, and changes nothing.

local id, retention, asked, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if not (token and string.find(retention .. ' ' .. asked .. ' ' .. token, '^[1-9]%d* [1-9]%d* %d+$')
    and math.max(retention, asked) < 9007199254740992) then
    return redis.error_reply('ERR holdfast: retention, limit or token out of range')
end
--@include common/queue.lua
local caller = nil
retention, asked, proposal = tonumber(retention), tonumber(asked), whole(ARGV[5], 1)
--@include semaphore/common/holders.lua
--@include semaphore/common/serve.lua

local is_named = my_grant and (token == '0' or token_of(my_grant) == token)
local holds_another = my_grant and not is_named
if is_named then give_back() end
if not holds_another then step_out(id) end
serve()
finish()
if is_named then return {1, queued, holders} end
return {0}
