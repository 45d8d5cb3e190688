-- Shared by the scripts of this kind that serve the queue: the key of the gap, if other programs use the lock, too.
local has_gap = KEYS[7] ~= nil
local function read_gap() return redis.call('GET', KEYS[7]) end
local function write_gap(text) redis.pcall('SET', KEYS[7], text, 'PX', 10000) end
--@include common/gap.lua
