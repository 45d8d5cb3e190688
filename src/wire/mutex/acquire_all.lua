-- mutex/acquire_all: acquire several locks that are free and wanted by nobody else: all of them, or none.
-- KEYS  of each lock, one lock after the other (at most 8 locks)  1 lock  2 queue  3 waiters  4 fence
-- ARGV  1 number of locks  2 fence retention ms, and then of each lock  3 hold id  4 lease ms  5 token floor
-- Returns  for each lock {1, token}: the caller holds all of them
--          for each lock {0, -1, ''}: nothing was done, because some lock is held or waited for
-- Repeatable: a second call after a lost reply finds the locks held, and does nothing.
--@include common/numbers.lua

local count, retention, is_sound = whole(ARGV[1], 1), whole(ARGV[2], 1), true
for nth = 1, count or 0 do
    is_sound = is_sound and whole(ARGV[3 * nth + 1], 1) and whole(ARGV[3 * nth + 2], 0)
end
if not (count and count <= 8 and retention and is_sound) then
    return redis.error_reply('ERR holdfast: number, lease, floor or retention out of range')
end

-- Everything is read before anything is written.
local are_free, marks, answers, proposal, now_us, now_text = true, {}, {}
--@paste common/steps/read_clock.lua
--@each 8 4 mutex/common/look_at_one.lua
if not are_free then
    for nth = 1, count do answers[nth] = {0, -1, ''} end
    return answers
end
--@each 8 4 mutex/common/acquire_one.lua
return answers
