-- semaphore/resize: replace the limit that counts. What is declared stays. Holders keep what they have; a smaller limit
-- admits nobody until enough came back, and waiters for more are told to poll, which refuses them.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 leases  6 grants
-- ARGV  1 name of the new version, used once  2 fence retention ms  3 limit that the caller declares  4 the new limit
--       5 the version that it replaces; empty: none
-- Returns  {1, version} done | {0, version} that version is not the present one
--          {-1, declared} others hold or wait, and declared another limit
-- Repeatable: a second call finds the new version and answers {1}. A late copy finds a later one, and changes nothing.

local id, retention, asked, new_limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if not (new_limit and ARGV[5] and id ~= '' and string.find(retention .. ' ' .. asked .. ' ' .. new_limit,
    '^[1-9]%d* [1-9]%d* [1-9]%d*$') and math.max(retention, asked, new_limit) < 9007199254740992) then
    return redis.error_reply('ERR holdfast: retention or limit out of range')
end
--@include common/queue.lua
local caller = nil
retention, asked, new_limit = tonumber(retention), tonumber(asked), tonumber(new_limit)
--@include semaphore/common/holders.lua
--@include semaphore/common/serve.lua

local is_done = version == id
if not is_done and declared ~= asked then
    serve() -- dead waiters do not count
    if holders > 0 or queued > 0 then
        finish()
        return {-1, declared}
    end
end
if not is_done and (version or '') ~= ARGV[5] then
    serve()
    finish()
    return {0, version or ''}
end
if not is_done then
    declared, limit, version, touched = asked, new_limit, id, true
    for who, wants in waiting() do
        if wants and tonumber(wants.kind) > limit then tell(wants.channel, 'poll ' .. who) end
    end
end
serve()
finish()
return {1, id}
