-- rw/release: end a grant, or a part of it, and let in those whose turn it is. With `r` left it is the downgrade.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 leases  6 grants
-- ARGV  1 hold id  2 fence retention ms  3 preference
--       4 token of the grant that is meant; 0: any grant of this id (giving up: nobody will ever believe in it again)
--       5 what is left: nothing (empty; its place in line goes too), r or w  6 lease ms of what is left
--       7 proposed token, or 0
-- Returns  {1, waiters left, how many hold it now} | {0} not held by anybody
--          {-1, ms left, holder} held by others, or by another grant of the same id
-- Repeatable: a second call finds what is left already, or nothing, and changes nothing.
--@include common/line.lua

local id, retention, prefer, token, left_over = ARGV[1], whole(ARGV[2], 1), ARGV[3], ARGV[4], ARGV[5]
if not (retention and whole(ARGV[6], 0) and string.find(left_over, '^[rw]?$')) then
    return redis.error_reply('ERR holdfast: retention, lease or what is left out of range')
end
proposal = whole(ARGV[7], 1)
--@include common/rw.lua
--@include common/rw_line.lua

local meant = my_grant and (token == '0' or token_of(my_grant) == token)
if meant and left_over == '' then
    remove(id)
elseif meant then
    if left_over == 'r' and writer == id then stop_writing() end
    if left_over == 'w' and writer == id then stop_reading(id) end
    refresh(writer == id and left_over or 'r', tonumber(ARGV[6]))
end
if left_over == '' and (meant or not my_grant) then step_out() end
local nobody = not writer and readers == 0
answer_tells = false
serve()
settle()

if meant then return {1, in_line, readers + (writer and not reads(writer) and 1 or 0)} end
if nobody then return {0} end
local left, holder = standing()
return {-1, left, holder}
