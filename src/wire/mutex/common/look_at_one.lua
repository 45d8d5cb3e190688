-- The lock NTH of mutex/acquire_all: is it free, and its last token.
if NTH <= count then
    local mark
    if redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3]) > 0 then are_free = false end
--@paste common/steps/read_mark.lua
    marks[NTH] = mark
end
